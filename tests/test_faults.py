"""What docs/method/faults.md promises is what tests/faults.yaml has, and each of it is tested."""

import ast
from functools import cache
from pathlib import Path

from tests.faults import HEAD, PAGE, PROJECT, faults, with_rows


@cache
def names_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    return {one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)}


def test_the_page_has_the_rows_of_the_table() -> None:
    """Renew it with `python -m tests.faults`; what is new on the page stands first in the table."""
    page = PAGE.read_text()
    known = {*HEAD, *(one.row for one in faults())}
    added = [line for line in page.splitlines() if line.startswith("|") and line not in known]
    assert added == [], "the page has rows that tests/faults.yaml does not have"
    assert with_rows(page) == page


def test_each_fault_is_provoked_by_a_test_that_is_there() -> None:
    found = faults()
    assert len({(one.fault, one.moment) for one in found}) == len(found) > 30
    for one in found:
        assert one.outcome and one.tests, one.fault
        for test in one.tests:
            file, _, name = test.partition("::")
            assert name in names_of(PROJECT / file), test
    # Each way that the harness has to spoil a disk is promised something of.
    tested = {test.partition("::")[0] for one in found for test in one.tests}
    assert {f"tests/campaign/test_{name}.py" for name in ("power_loss", "failing_disk")} <= tested
