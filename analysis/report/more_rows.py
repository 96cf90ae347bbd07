"""Pages beside a report with all rows of the tables that it shortens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

import jinja2

from analysis.tables.table import TEXT, Column, Table
from records.files import write_whole

#: How many rows a page has at most.
ROWS_OF_A_PAGE = 1000
#: What programs alone see of a table in its file, and people on its page.
SHOWN = {
    "cell": "cell", "series": "series", "implementation": "implementation",
    "oversubscribed": "oversubscribed", "launch": "launch", "where": "where",
    "sentence": "sentence", "launch_names": "launches",
}  # fmt: skip


@dataclass
class MorePages:
    """The tables that a report at `path` links to; each is requested by its name."""

    path: Path
    tables: dict[str, Table]
    names: dict[str, None] = field(default_factory=dict)

    @classmethod
    def beside(cls, path: Path, tables: Iterable[Table]) -> MorePages:
        """Begin without pages, for tables by name."""
        return cls(path, {table.name: table for table in tables})

    def of(self, name: str) -> str:
        """Return the address of a table's first page, that `write` will write."""
        if name not in self.tables:
            raise KeyError(f"no table is called {name}")
        self.names[name] = None
        return quote(self.page(name, 0))

    def page(self, name: str, number: int) -> str:
        """Return the file name of a table's page."""
        count = f"-{number + 1}" if number else ""
        return f"{self.path.stem}-{name}{count}.html"

    def write(self, campaign: str, environment: jinja2.Environment) -> list[Path]:
        """Write the requested pages, and return their paths."""
        written = []
        template = environment.get_template("rows.html")
        for name in self.names:
            table = for_a_page(self.tables[name])
            starts = range(0, len(table.rows), ROWS_OF_A_PAGE)
            for number, start in enumerate(starts):
                last = number == len(starts) - 1
                text = template.render(
                    table=table, campaign=campaign, first=start + 1, report=quote(self.path.name),
                    rows=table.rows[start : start + ROWS_OF_A_PAGE],
                    before=quote(self.page(name, number - 1)) if number else None,
                    after=None if last else quote(self.page(name, number + 1)),
                )  # fmt: skip
                written.append(self.path.with_name(self.page(name, number)))
                write_whole(written[-1], text)
        return written


def for_a_page(table: Table) -> Table:
    """Return a table as text, with the subject and launches of its rows."""

    def shown(column: Column) -> Column:
        heading = SHOWN.get(column.name)
        return column if column.heading or not heading else replace(column, heading=heading)

    columns = tuple(map(shown, table.columns))
    # A table that is for programs alone is shown whole.
    if not any(column.heading for column in columns):
        columns = tuple(replace(one, heading=one.name, kind=TEXT) for one in columns)
    return replace(table, columns=columns)
