"""How communications change with the number of ranks: those of one series, against the fewest."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from analysis.comparison.metrics import metrics
from analysis.comparison.oversubscription import COMPUTING
from analysis.comparison.result import Cell, Comparison
from analysis.tables.table import (
    COUNT,
    PREFIXED,
    RATIO,
    Column,
    Row,
    Table,
    interval,
    of_ratio,
)
from inference.intervals import PRINTED_STEP, Ratio, median, paired_ratio
from records.experiments import compared
from records.launch import LaunchRecord

NAME = "over-ranks"
COLUMNS = (
    Column("series", "series"), Column("implementation", "implementation"),
    Column("ranks", "ranks", COUNT, "1"), Column("nodes", "nodes", COUNT, "1"),
    Column("base_ranks", "base ranks", COUNT, "1"), Column("base_nodes", "base nodes", COUNT, "1"),
    Column("base", "base", PREFIXED, "base_unit"), Column("base_unit"),
    Column("rounds", "rounds", COUNT, "1"), Column("ratio", "ratio to the base", RATIO, "1"),
    interval("ratio", "95% interval", "1"),
)  # fmt: skip
NOTE = (
    "The value with this many ranks over that with the fewest in the same round, the geometric "
    "mean over rounds and over the message sizes that both have; the base is the median at the "
    "largest "
    "of these. A ratio that stays at 1 means that more ranks cost nothing; on more nodes than the "
    "base, messages also take another path. Programs that compute are left out, since more ranks "
    "leave each less to do; so are oversubscribed cells and what is too short to be compared."
)


@dataclass(frozen=True)
class OverRanks:
    """What a series of an implementation becomes with more ranks; `base` in `unit`."""

    series: str
    implementation: str
    ranks: int
    nodes: int
    base_ranks: int
    base_nodes: int
    base: float
    unit: str
    ratio: Ratio
    cells: tuple[str, str]


def records_of(comparison: Comparison) -> dict[str, LaunchRecord]:
    """Return the first sound launch of each cell."""
    found: dict[str, LaunchRecord] = {}
    for launch in comparison.campaign.sound():
        found.setdefault(launch.record.cell, launch.record)
    return found


def without_ranks(cell: Cell) -> str:
    """Return a cell's name without its number of ranks, which is what distinguishes its series."""
    named = [f"{name}={value}" for name, value in cell.parameters.items() if name != "ranks"]
    return " ".join(filter(None, (cell.experiment, *named, cell.series)))


def series_over_ranks(
    comparison: Comparison, records: Mapping[str, LaunchRecord]
) -> dict[str, dict[int, Cell]]:
    """Return the cells of communications that differ in the number of ranks alone."""
    found: dict[str, dict[int, Cell]] = defaultdict(dict)
    for cell in comparison.cells:
        timed = compared()[cell.experiment].values == "time"
        computes = records[cell.launch_cell].program in COMPUTING
        if timed and "ranks" in cell.parameters and not (cell.oversubscribed or computes):
            found[without_ranks(cell)][int(cell.parameters["ranks"])] = cell
    return {series: by_ranks for series, by_ranks in found.items() if len(by_ranks) > 1}


def log_ratios(
    of: Mapping[int, Mapping[int, float]], base: Mapping[int, Mapping[int, float]]
) -> Iterator[float]:
    """Yield each common round's logarithm of the ratio, averaged over the sizes that both have."""
    for number in sorted(of.keys() & base.keys()):
        logs = [math.log(of[number][size] / base[number][size])
                for size in sorted(of[number].keys() & base[number].keys())]  # fmt: skip
        if logs:
            yield sum(logs) / len(logs)


def over_ranks(comparison: Comparison) -> list[OverRanks]:
    """Return what each series becomes with more ranks, against the fewest that have values."""
    rows = []
    records = records_of(comparison)
    for series, by_ranks in series_over_ranks(comparison, records).items():
        for name in comparison.implementations:
            counts = [ranks for ranks in sorted(by_ranks) if by_ranks[ranks].values.get(name)]
            for ranks in counts[1:]:
                base, cell = by_ranks[counts[0]], by_ranks[ranks]
                logs = [*log_ratios(cell.values[name], base.values[name])]
                if not logs:
                    continue
                own = [{size for sizes in one.values[name].values() for size in sizes}
                       for one in (base, cell)]  # fmt: skip
                largest = max(set.intersection(*own))
                of_base = [v[largest] for v in base.values[name].values() if largest in v]
                cells = base.launch_cell, cell.launch_cell
                step = max(base.step, cell.step, PRINTED_STEP)
                rows.append(
                    OverRanks(
                        series, name, ranks, records[cells[1]].nodes, counts[0],
                        records[cells[0]].nodes, median(of_base),
                        metrics()[cell.experiment]["unit"], paired_ratio(logs, step=step), cells,
                    )
                )  # fmt: skip
    return rows


def over_ranks_table(comparison: Comparison) -> Table | None:
    """Return how series change with the number of ranks; None where none has several."""
    rows = [
        Row(
            (
                one.series, one.implementation, one.ranks, one.nodes, one.base_ranks,
                one.base_nodes, one.base, one.unit,
                one.ratio.pairs, *of_ratio(one.ratio),
            ),
            one.implementation, one.cells,
        )
        for one in over_ranks(comparison)
    ]  # fmt: skip
    title = "Communication over the number of ranks"
    return Table(NAME, title, COLUMNS, rows, [NOTE]) if rows else None
