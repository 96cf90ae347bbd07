"""Where each number of a page is from: campaign, launches, image digest and formula.

A row of a table leads by a link to its entry in a list at the end of the report, which rows of the
same launches share; a script shows the same on hovering over a number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass

from analysis.campaign import Campaign
from analysis.comparison import Cell, Comparison, Group
from analysis.data_tables import DIGEST_SIGNS, FORMULA, digests
from analysis.latency_plane import POINTS
from analysis.launch_names import cell_name
from analysis.linpack_tables import TITLE as HPL
from analysis.metrics import metrics
from analysis.model_tables import PARAMETERS
from analysis.profile import ProfiledCell
from analysis.row_launches import RowLaunches
from analysis.start_up_tables import PARTS
from analysis.text_table import TextTable

#: What all entries may take of a report, in characters; rows beyond share the last one.
ROOM = 600_000
#: How many cells an entry lists by name.
MOST_CELLS = 40
#: Which experiments' launches a row takes that has no cells of its own, as one that says what was
#: not told; those of other tables take any.
EXPERIMENTS = {
    HPL: ("Linpack", "Dgemm"),
    "What a node does by itself": ("Dgemm", "Stream", "SerialLinpack"),
    POINTS: ("EchoTest",),
    "Operations and latency in cycles": ("SerialLinpack", "EchoTest"),
    "Speedup and serial part": ("Linpack", "Nas", "Su3"),
    "Scaling of exchanges over ranks": ("Collectives", "SomeToSome"),
    "Self-consistency guidelines": ("Collectives",),
    PARAMETERS: ("PointToPoint", "EchoTest", "Mpptest", "Collectives", "Pairs"),
    "Violations of guidelines": ("Collectives",),
}


@dataclass(frozen=True)
class Source:
    """The launches of an implementation; `left` are the cells that there was no room for."""

    implementation: str
    digest: str
    launches: tuple[str, ...]
    left: int

    @property
    def signs(self) -> int:
        """Return about how long it is."""
        return 120 + sum(len(one) + 15 for one in self.launches)


@dataclass(frozen=True)
class Trace:
    """An entry of the list: what the numbers are, and from which launches."""

    id: str
    title: str
    formulas: tuple[str, ...]
    sources: tuple[Source, ...]


class TraceList:
    """The entries that rows have asked for, in the order in which they did."""

    def __init__(self, campaign: Campaign, room: int = ROOM) -> None:
        """Begin an empty list for the numbers of a campaign."""
        self.digest = digests(campaign)
        self.room = room
        self.entries: list[Trace] = []
        self._known: dict[Hashable, str] = {}
        self._is_full = False

    def add(
        self, title: str, formulas: tuple[str, ...], launches: Mapping[str, Collection[str]]
    ) -> str:
        """Return the id of an entry, which is a new one unless there is the same."""
        sources = tuple(
            Source(
                name, self.digest.get(name, "")[:DIGEST_SIGNS], tuple(of)[:MOST_CELLS],
                max(0, len(of) - MOST_CELLS),
            )
            for name, of in sorted(launches.items())
        )  # fmt: skip
        key = (title, formulas, sources)
        if key in self._known:
            return self._known[key]
        signs = 200 + sum(map(len, formulas)) + sum(source.signs for source in sources)
        if self._is_full or signs > self.room:
            return self._others()
        self.room -= signs
        self._known[key] = f"trace-{len(self.entries) + 1}"
        self.entries.append(Trace(self._known[key], title, formulas, sources))
        return self._known[key]

    def _others(self) -> str:
        """Return the id of the entry that rows share for which there is no room."""
        if not self._is_full:
            self._is_full = True
            words = (
                "the report has no room for a list of these: the saved tables of medians and "
                "ratios have them in launch_names and formula, and launches.csv has all launches"
            )
            every = [Source(name, one[:DIGEST_SIGNS], (), 0) for name, one in self.digest.items()]
            self.entries.append(Trace("trace-others", "Other rows", (words,), tuple(every)))
        return "trace-others"


class Traces(TraceList):
    """The entries of a report."""

    def __init__(self, comparison: Comparison, room: int = ROOM) -> None:
        """Begin an empty list for the comparison of a campaign."""
        super().__init__(comparison.campaign, room)
        self.comparison = comparison
        self.names = comparison.launch_names
        self.rows = RowLaunches(self.names)

    def cell(self, cell: Cell, *formulas: str) -> str:
        """Return the id of the entry for a cell's medians and ratios."""
        return self.cells(cell_name(cell), [cell], *formulas)

    def start_up(self, cell: Cell) -> str:
        """Return the id of the entry for a cell of start-up and its parts."""
        parts = (f"{name.replace('_', ' ')}: {words}" for name, words in PARTS.items())
        return self.cell(cell, *parts, "2003: Kearns 2003, Table 9")

    def group(self, group: Group) -> str:
        """Return the id of the entry for the ratios over a group of cells."""
        return self.cells(
            group.name, group.cells, "over a group, in each round the mean of its cells' logarithms"
        )

    def cells(self, title: str, cells: list[Cell], *formulas: str) -> str:
        """Return the id of the entry for numbers of several cells of an experiment."""
        about = metrics()[cells[0].experiment]
        launches: dict[str, dict[str, None]] = defaultdict(dict)
        for cell in cells:
            for name, rounds in cell.values.items():
                launches[name][self.names.of(cell, name, rounds)] = None
        of = (
            f"medians over launches of: {about['formula']}",
            f"ratio: {FORMULA}; Student's interval on the logarithms",
        )
        return self.add(title, (*of, *formulas), launches)

    def profile(self, one: ProfiledCell) -> str:
        """Return the id of the entry for a profiled cell of an implementation."""
        names = self.rows.of(one.cell, one.implementation)
        formula = "sums over ranks and launches, from the profile beside each launch's output"
        return self.add(one.title, (formula,), {one.implementation: names})

    def words(self, table: TextTable, row: tuple[str, ...]) -> str:
        """Return the id of the entry for a row of a table of words.

        A row that names its cell takes the launches of that, one of a table that has its cells
        those of them, another those of its implementation in the table's experiments. One that
        names no implementation is not of this campaign.
        """
        columns = [column.strip() for column in table.columns]
        named = [word for word in row[: table.numbers_from] if word in self.digest]
        cell = row[columns.index("cell")] if "cell" in columns else ""
        own, experiments = table.cells_of(row), EXPERIMENTS.get(table.title)
        launches = {
            name: self.rows.of_cells(own, name) if own else self.rows.of(cell, name, experiments)
            for name in named
        }
        title = ": ".join([table.title, *([cell] if cell else [])])
        return self.add(title, tuple(table.notes), launches)
