"""The origin of each number on a page: campaign, launches, image digest and formula.

A row of a table leads by a link to its entry in a list at the end of the report, which rows of the
same launches share; a script shows the same on hovering over a number.
"""

from __future__ import annotations

from collections import defaultdict

from analysis.comparison.compare import looks_of
from analysis.comparison.metrics import metrics
from analysis.comparison.result import Cell, Comparison, Group
from analysis.comparison.tables import FORMULA
from analysis.models.profile import ProfiledCell
from analysis.models.start_up import PARTS
from analysis.tables.origins import ROOM, TraceList
from analysis.tables.table import Row, Table


class Traces(TraceList):
    """The entries of a report."""

    def __init__(self, comparison: Comparison, room: int = ROOM) -> None:
        """Begin an empty list for the comparison of a campaign."""
        super().__init__(comparison.campaign, room)
        self.comparison = comparison
        self.names = comparison.launch_names

    def cell(self, cell: Cell, *formulas: str) -> str:
        """Return the id of the entry for a cell's medians and ratios."""
        return self.cells(cell.launch_cell, [cell], *formulas)

    def start_up(self, cell: Cell) -> str:
        """Return the id of the entry for a cell of start-up and its parts."""
        parts = (f"{name.replace('_', ' ')}: {words}" for name, words in PARTS.items())
        return self.cell(cell, *parts, "2003: Kearns 2003, Table 9")

    def group(self, group: Group, implementation: str = "") -> str:
        """Return the id of the entry for the ratios over a group of cells.

        For an implementation they are those that its verdict covers, if not all.
        """
        cells = group.judged(implementation) if implementation else group.cells
        title = group.name if len(cells) == len(group.cells) else f"{group.name}, {implementation}"
        formula = "over a group, the mean over its checks, each of the rounds that it has"
        return self.cells(title, cells or group.cells, formula)

    def cells(self, title: str, cells: list[Cell], *formulas: str) -> str:
        """Return the id of the entry for numbers of several cells of an experiment."""
        about = metrics()[cells[0].experiment]
        launches: dict[str, dict[str, None]] = defaultdict(dict)
        for cell in cells:
            for name, rounds in cell.values.items():
                launches[name][self.names.of(cell, name, rounds)] = None
        looks = looks_of(self.comparison.campaign.manifest)
        of = (
            f"medians over launches of: {about['formula']}",
            f"ratio: {FORMULA}; Student's interval on the logarithms"
            + (", of each look at the campaign" if looks else ""),
        )
        return self.add(title, (*of, *formulas), launches)

    def profile(self, one: ProfiledCell) -> str:
        """Return the id of the entry for a profiled cell of an implementation."""
        names = self.names.of_row(Row((), one.implementation, (one.cell,)))
        formula = "sums over ranks and launches, from the profile beside each launch's output"
        return self.add(one.title, (formula,), {one.implementation: names})

    def row(self, table: Table, row: Row) -> str:
        """Return the id of the entry for a row of a table.

        A row that names no implementation does not belong to this campaign.
        """
        cell = next((word for column, word in zip(table.shown, table.words(row), strict=True)
                     if column.name == "cell"), "")  # fmt: skip
        launches = (
            {row.implementation: self.names.of_row(row, table.experiments)}
            if row.implementation in self.digest
            else {}
        )
        title = ": ".join([table.title, *([cell] if cell else [])])
        return self.add(title, tuple(table.notes), launches)
