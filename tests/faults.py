"""The faults that were provoked, when, what is promised for each, and its tests: faults.yaml.

docs/method/faults.md has the same rows for people; `python -m tests.faults` renews them.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

PROJECT = Path(__file__).resolve().parents[1]
TABLE = PROJECT / "tests" / "faults.yaml"
PAGE = PROJECT / "docs" / "method" / "faults.md"
HEAD = ["| fault | promise | test |", "|---|---|---|"]


class Fault(BaseModel):
    """A fault at some moment, its outcome, and the tests that provoke it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fault: str
    #: None where it makes no difference when it comes.
    moment: str | None
    outcome: str
    tests: list[str]

    @property
    def row(self) -> str:
        """Return the fault as the page has it."""
        when = f" {self.moment}" if self.moment else ""
        # A test class of hypothesis has many steps.
        tests = ", ".join(
            f"the states of `{test}`" if test.rpartition("::")[2][0].isupper() else f"`{test}`"
            for test in self.tests
        )
        return f"| {self.fault}{when} | {self.outcome} | {tests} |"


def faults() -> list[Fault]:
    """Return the table."""
    return TypeAdapter(list[Fault]).validate_python(yaml.safe_load(TABLE.read_text()))


def with_rows(page: str) -> str:
    """Return the page with the rows of the table in place of those that it has."""
    lines = page.splitlines()
    first = lines.index(HEAD[0])
    end = next(at for at in range(first, len(lines)) if not lines[at].startswith("|"))
    return "\n".join([*lines[:first], *HEAD, *(one.row for one in faults()), *lines[end:], ""])


if __name__ == "__main__":
    PAGE.write_text(with_rows(PAGE.read_text()))
