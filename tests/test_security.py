"""SECURITY.md promises nothing without a test: each row names some, and they exist."""

import ast
import re
from pathlib import Path

PROJECT = Path(__file__).parents[1]


def rows() -> list[list[str]]:
    """Return the cells of each row of the table of whom we trust."""
    text = (PROJECT / "SECURITY.md").read_text()
    table = text.split("## Whom we trust with what")[1].split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_everybody_has_a_row() -> None:
    named = " ".join(row[0] for row in rows())
    for who in ("site", "image", "bundle", "program", "other users", "root"):
        assert who in named, who
    assert all(len(row) == 4 and all(row) for row in rows())


def test_each_row_names_tests_that_exist() -> None:
    for who, _, _, tests in rows():
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", tests)
        assert named and tests.count("`") == 2 * len(named), who
        for file, test in named:
            tree = ast.parse((PROJECT / file).read_text())
            known = {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
            assert any(name.startswith("test_") for name in known), file
            assert not test or test in known, f"{file}::{test}"
