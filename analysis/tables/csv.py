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

#: What no text format may contain: control characters except tab and newline, and non-characters.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
#: A spreadsheet may take text that begins with one of these for a formula; signed numbers are none.
FORMULA = re.compile(r"[=@\t\r+-]")


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
    """Return a value as text without control characters."""
    return CONTROL.sub("", "" if text is None else str(text))


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
    return f"'{text}" if FORMULA.match(text) and not is_number(text) else text


def csv_text(table: Table) -> str:
    """Return a table as CSV (RFC 4180), the first line the headers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(table.heads)
    writer.writerows([csv_field(value) for value in table.record(row)] for row in table.rows)
    return out.getvalue()
