"""Tables inside the report, to be saved from it without a network: compressed CSV as data links."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass

from analysis.tables.table import Table
from records.causes import harmless

#: Where a spreadsheet may take what follows for a formula: at the beginning, and, where its user
#: has another separator than a comma, after that, too.
FORMULA = re.compile(r"(?:^|(?<=[;\t\n\r]))(?=[;=@\t\n\r+\-\uff1d\uff20\uff0b\uff0d])")

#: What all links together may take of a report, in characters.
BUDGET = 2_000_000


@dataclass(frozen=True)
class Download:
    """A table as a link: `href` is gzip in base64, None where the report had no room for it."""

    name: str
    rows: int
    href: str | None


def downloads_of(tables: Iterable[Table], budget: int = BUDGET) -> dict[str, Download]:
    """Return the tables as links by name, the small ones first, as long as they fit the budget."""
    links = {}
    for table in tables:
        # Without a time in it the same table is the same link.
        packed = gzip.compress(csv_text(table).encode(), 9, mtime=0)
        links[table.name] = len(table.rows), base64.b64encode(packed).decode()
    found = {}
    for name, (rows, text) in sorted(links.items(), key=lambda item: len(item[1][1])):
        budget -= len(text)
        href = f"data:application/gzip;base64,{text}" if budget >= 0 else None
        found[name] = Download(name, rows, href)
    return found


def plain(text: object) -> str:
    """Return a value as text without characters that change how it is shown."""
    return harmless("" if text is None else str(text))


def is_number(text: str) -> bool:
    """Return whether a whole text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def csv_field(value: object) -> object:
    """Return a value as CSV has it: numbers in full, no text that a spreadsheet would run."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    text = plain(value)
    return text if is_number(text) else FORMULA.sub("'", text)


def csv_text(table: Table) -> str:
    """Return a table as CSV (RFC 4180), the first line the headers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(map(csv_field, table.heads))
    writer.writerows([csv_field(value) for value in table.record(row)] for row in table.rows)
    return out.getvalue()
