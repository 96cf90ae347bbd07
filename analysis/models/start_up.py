"""The parts of process start-up as tables: for the report, and to be saved."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import Any

from analysis.comparison.result import Comparison
from analysis.tables.table import Column, Row, Table
from inference.intervals import median
from records.campaign import Campaign
from records.experiments import read_by
from records.program_output import ProgramOutput
from records.start_up import start_up_times

#: What each part is; what else a launch's record has in times_s is by its name alone.
PARTS = {
    "start_up": "from the launch to the last rank's integer at rank 0",
    "to_main": "from the launch to the last rank's entry of main, on rank 0's node",
    "initialisation": "the slowest rank's time in MPI_Init",
    "container": "one start of /bin/true in the same image just before the launch",
    "daemons": "from the launch until the daemons were up",
}


#: (cell, implementation) -> part -> seconds of each launch.
Parts = dict[tuple[str, str], dict[str, list[float]]]


def parts_of(campaign: Campaign) -> Parts:
    """Return the launches' times of each part, in seconds, by cell and implementation."""
    parts: Parts = defaultdict(lambda: defaultdict(list))
    for launch in campaign.sound():
        own = launch.record.experiment in read_by("start-up")
        if own and isinstance(launch.output, ProgramOutput):
            times = asdict(start_up_times(launch.output, launch.record.started_s()))
            for name, seconds in (times | launch.record.times_s).items():
                parts[launch.record.cell, launch.record.implementation][name].append(seconds)
    return parts


def start_up_rows(comparison: Comparison, table: Table) -> list[dict[str, Any]]:
    """Return a row for each cell and implementation: the medians of `start_up_table`, seconds."""
    parts: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in table.rows:
        cell, name, part, middle = (
            table.value(row, column) for column in ("cell", "implementation", "part", "median")
        )
        parts[cell, name][part] = middle
    return [
        {
            "cell": cell,
            "implementation": name,
            "estimate": estimates[0],
            "parts": parts[cell.name, name],
        }
        for experiment in read_by("start-up")
        for cell in comparison.experiment(experiment)
        for name, estimates in cell.estimates.items()
    ]


def start_up_table(parts: Parts) -> Table:
    """Return the median of each part over launches, with minimum and maximum."""
    columns = (
        Column("cell"), Column("implementation"), Column("part"), Column("median", unit="s"),
        Column("least", unit="s"), Column("most", unit="s"), Column("launches", unit="1"),
        Column("formula"),
    )  # fmt: skip
    rows = [
        Row(
            (
                cell, name, part, median(values), min(values), max(values), len(values),
                f"median over launches: {PARTS.get(part, part)}",
            ),
            name, (cell,),
        )
        for (cell, name), of in sorted(parts.items())
        for part, values in of.items()
    ]  # fmt: skip
    return Table("start-up-parts", "Parts of process start-up", columns, rows)
