"""Tables in Markdown."""

from __future__ import annotations

import re

from analysis.tables.csv import plain
from analysis.tables.table import Table


def markdown_cell(value: object) -> str:
    """Return a value as text in a cell of a Markdown table."""
    text = " ".join(plain(value).split())
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", text)


def markdown_table(table: Table) -> list[str]:
    """Return the lines of a Markdown table."""
    headings = [column.heading or "" for column in table.shown]
    return [
        f"| {' | '.join(map(markdown_cell, headings))} |",
        f"|{'---|' * len(headings)}",
        *(f"| {' | '.join(map(markdown_cell, table.words(row)))} |" for row in table.rows),
    ]
