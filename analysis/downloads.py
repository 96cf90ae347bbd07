"""Tables inside the report, to be saved from it without a network: compressed CSV as data links."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable
from dataclasses import dataclass

from analysis.data_tables import DataTable
from analysis.exports import csv_text

#: What all links together may take of a report, in characters.
BUDGET = 2_000_000


@dataclass(frozen=True)
class Download:
    """A table as a link: `href` is gzip in base64, None where the report had no room for it."""

    name: str
    rows: int
    href: str | None


def downloads_of(tables: Iterable[DataTable], budget: int = BUDGET) -> dict[str, Download]:
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
