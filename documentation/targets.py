"""The page of make's targets, as `make help` has them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

TARGET = re.compile(r"  make (\S+) +(.+)")
#: The variables that a target takes, in the brackets that end its line.
TAKES = re.compile(r"(.*\S) +\((.*)\)$")


def page(root: Path) -> str:
    """Return the page."""
    said = subprocess.run(
        ["awk", "-f", root / "campaign" / "bin" / "help.awk", root / "Makefile"],
        text=True, capture_output=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    lines = [
        "# The targets of make", "",
        "Type `make TARGET`, with variables as `NAME=value`; `make help` prints the same. A target "
        "or variable that is not listed is refused before anything is done.",
    ]  # fmt: skip
    for line in said.splitlines():
        found = TARGET.match(line)
        if found:
            takes = TAKES.match(found[2])
            what, variables = takes.groups() if takes else (found[2], "")
            lines.append(f"| `make {found[1]}` | {cell(what)} | {cell(variables)} |")
        elif line.endswith(":"):
            lines += ["", f"## {line[:-1]}", "", "| target | what it does | variables |",
                      "|---|---|---|"]  # fmt: skip
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """Return words for a cell of a table: what would be a tag or a border is not."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
