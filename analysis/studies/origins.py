"""Where a study page's numbers come from: launches and images, or the report's own tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from analysis.studies.declaration import Claim, Exhibit, NotMeasuredError
from analysis.studies.exhibits import Drawn, Shown
from analysis.studies.needs import base_tables, cells_wanted, joined
from analysis.studies.reading import Paper
from analysis.studies.relations import TodaysTables, families
from analysis.tables.launch_names import folded
from analysis.tables.origins import TraceList
from analysis.tables.table import Row, Table, file_name, plain_columns

#: The column that has the report's name of an implementation, where something stands for it.
FAMILY = "mpi"
ORIGIN = ("campaign", "implementations", "image_sha256", "launch_names", "formula", "source")


def tables_of(paper: Paper, exhibit: Exhibit) -> list[str]:
    """Return the tables with rows of their own that an exhibit is made of, once each."""
    found = base_tables(paper.study, str(exhibit.table)) + joined(paper.study, exhibit.steps)
    return list(dict.fromkeys(found))


def formulas(paper: Paper, tables: Iterable[str]) -> tuple[str, ...]:
    """Return what today's columns of tables are computed from, a sentence each."""
    found = []
    for name in tables:
        today = paper.study.tables[name].today
        if today is None:
            continue
        columns = ", ".join(f"{column} = {text}" for column, text in today.columns.items())
        of = paper.study.experiments[today.experiment].check
        where = f", where {today.where}" if today.where else ""
        found.append(f"{name}, of the results of {of}{where}: {columns}")
    return (*found, f"then by the steps in literature/{paper.name}/study.yaml")


class Origins(TraceList):
    """The entries of a study's page, each with the launches that its numbers come from."""

    def __init__(self, measured: TodaysTables) -> None:
        """Begin an empty list for a campaign."""
        super().__init__(measured.campaign)
        self.measured = measured
        self.records = {one.record.launch: one.record for one in measured.campaign.sound()}

    def exhibit(self, exhibit: Exhibit, family: str = "") -> str:
        """Return the id of the entry for an exhibit's numbers of today, or a family's of them."""
        tables = tables_of(self.measured.paper, exhibit)
        launches = self.launches(tables, family)
        title = f"{exhibit.number}, today" + (f": {family}" if len(launches) == 1 else "")
        return self.add(title, (*formulas(self.measured.paper, tables), MEDIAN), launches)

    def claim(self, claim: Claim) -> str:
        """Return the id of the entry for the numbers that test a claim here."""
        paper = self.measured.paper
        statements = claim.here if isinstance(claim.here, list) else []
        tables = [
            table
            for statement in statements
            if statement.that
            for table in cells_wanted(paper.study, claim, statement.that)
        ]
        tables = list(dict.fromkeys(tables))
        of = tuple(
            f"{name}: {quantity.value}" for name, quantity in claim.quantities.items()
        )  # fmt: skip
        return self.add(f"{claim.id}, here", formulas(paper, tables) + of, self.launches(tables))

    def launches(self, tables: Iterable[str], family: str = "") -> dict[str, list[str]]:
        """Return implementation -> the launches that tables have rows of, those of a cell as one.

        `family` is the report's name of an implementation; where nothing stands for it, all are.
        """
        by_cell: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name in tables:
            table = self.measured.study.tables[name]
            try:
                self.measured.base(name, table)
            except NotMeasuredError:
                continue
            records = [self.records[one] for one in self.measured.launches.get(name, [])]
            stands = families(self.measured.study, sorted({one.implementation for one in records}))
            for record in records:
                if stands.get(family, record.implementation) == record.implementation:
                    by_cell[record.implementation, record.cell].append(record.launch)
        found: dict[str, list[str]] = defaultdict(list)
        for (implementation, _), names in by_cell.items():
            found[implementation].append(folded(dict.fromkeys(names)))
        return dict(found)


MEDIAN = "median over rounds, with the interval of order statistics"


def origin(
    paper: Paper, exhibit: Exhibit, origins: Origins | None, today: bool, family: str
) -> tuple[Any, ...]:
    """Return where a number comes from, as the columns of ORIGIN."""
    tables = tables_of(paper, exhibit)
    if not (today and origins):
        files = [paper.study.tables[name].file for name in tables]
        named = ", ".join(f"literature/{paper.name}/{file}" for file in files if file)
        return (None,) * 5 + (f"{paper.study.source}, {exhibit.number}: {named}",)
    launches = origins.launches(tables, family)
    return (
        origins.measured.campaign.path.name, " ".join(launches),
        " ".join(origins.digest.get(name, "") for name in launches),
        " ".join(name for names in launches.values() for name in names),
        "; ".join((*formulas(paper, tables), MEDIAN)), None,
    )  # fmt: skip


def exhibit_table(paper: Paper, shown: Shown, origins: Origins | None) -> Table:
    """Return an exhibit's numbers, a row each: the report's and today's."""
    exhibit = shown.exhibit
    columns = (*exhibit.rows, *([exhibit.across] if exhibit.across else []), "quantity", "unit",
               "whose", "number", "interval_low", "interval_high", "interval_coverage (1)",
               "rounds (1)", *ORIGIN)  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    known: dict[tuple[bool, str], tuple[Any, ...]] = {}
    for key, cells in shown.rows:
        for about, cell in zip(shown.about, cells, strict=True):
            if cell.number is None:
                continue
            by = dict(zip(exhibit.rows, key, strict=True)) | {exhibit.across: about.side}
            of = (about.today, by.get(FAMILY, ""))
            known.setdefault(of, origin(paper, exhibit, origins, *of))
            interval = cell.number.interval
            rows.append((
                *key, *([about.side] if exhibit.across else []), about.value, about.unit,
                "today" if about.today else "report", cell.number.value,
                *((interval.low, interval.high, interval.coverage) if interval else (None,) * 3),
                cell.number.rounds, *known[of],
            ))  # fmt: skip
    return Table(
        file_name(exhibit.number), exhibit.title, plain_columns(*columns), list(map(Row, rows))
    )


def figure_table(paper: Paper, shown: Shown, drawn: Drawn, origins: Origins | None) -> Table:
    """Return the points of a figure's lines, the report's and today's."""
    figure = drawn.figure
    columns = ("figure", "whose", "line", figure.across, figure.up, "interval_low",
               "interval_high", *ORIGIN)  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for lines, today in zip(drawn.lines, (False, True), strict=True):
        of = origin(paper, shown.exhibit, origins, today, "")
        rows += [
            (
                drawn.label, "today" if today else "report", line.name, point.across, point.up,
                *((point.low, point.high) if point.high > point.low else (None, None)), *of,
            )
            for line in lines
            for point in line.points
        ]  # fmt: skip
    name = file_name(f"{shown.exhibit.number} drawn {drawn.label}")
    title = f"{shown.exhibit.number}: {drawn.label}"
    return Table(name, title, plain_columns(*columns), list(map(Row, rows)))


def study_tables(paper: Paper, exhibits: Iterable[Shown], origins: Origins | None) -> list[Table]:
    """Return every table and figure of a study that has numbers, each by its own name."""
    found = []
    for shown in exhibits:
        found.append(exhibit_table(paper, shown, origins))
        found += [figure_table(paper, shown, drawn, origins) for drawn in shown.figures]
    return [table for table in found if table.rows]
