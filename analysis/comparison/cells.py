"""What a campaign's sound launches measured, by cell, implementation, round and message size."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from analysis.comparison.oversubscription import Waits
from inference.intervals import PRINTED_STEP, median
from records.campaign import Campaign
from records.ending import MOST_WAITED
from records.experiments import compared
from records.launch import Launch
from records.limits.plausibility import limited_by_clock
from records.values import LaunchValues

Values = dict[int, dict[int, float]]  # round -> message size in bytes -> value


def without_added(launch: LaunchValues, values: dict[int, float]) -> tuple[dict[int, float], ...]:
    """Return the values at the requested sizes, and those at added sizes.

    Which sizes `--refine` adds depends on the times: a mean over them would be over sizes that
    the result chose, different ones in each launch.
    """
    return (
        {size: value for size, value in values.items() if size not in launch.added},
        {size: value for size, value in values.items() if size in launch.added},
    )


@dataclass(frozen=True)
class Limited:
    """What is too short to be compared: medians over launches at a message size in bytes.

    `step_s` is what it is too few times of: the coarsest of the launches' clocks, or, where ranks
    were `late`, by how much they may have been.
    """

    message_bytes: int
    value: float
    time_s: float
    step_s: float
    late: bool = False


@dataclass
class MeasuredCell:
    """What a campaign measured in one cell: implementation -> round -> message size -> value.

    `values` are at the requested sizes, which ratios and histories use; those at
    sizes that a program added between them are `refined`, for curves. What is `limited` is in
    neither. `seconds` are the times of the launches that print a time beside their rate. The cell
    is `oversubscribed` where ranks of one implementation waited for processors too long for all of
    its times.
    """

    name: str
    launch: Launch
    series: str
    values: dict[str, Values] = field(default_factory=lambda: defaultdict(dict))
    refined: dict[str, Values] = field(default_factory=lambda: defaultdict(dict))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    #: The first launch of each implementation.
    launches: dict[str, Launch] = field(default_factory=dict)
    limited: dict[str, list[Limited]] = field(default_factory=dict)
    #: By implementation.
    waits: dict[str, Waits] = field(default_factory=lambda: defaultdict(Waits))
    oversubscribed: bool = False
    #: The step of each implementation's mean logarithm over sizes, where a clock made the values.
    steps: dict[str, float] = field(default_factory=dict)

    def step(self, *implementations: str) -> float:
        """Return the coarsest step of these implementations' values, as a fraction of them."""
        return max(PRINTED_STEP, *(self.steps.get(name, 0.0) for name in implementations))


@dataclass
class Clocked:
    """The times of one series of an implementation by message size, and the coarsest clock.

    `resolution_s` is what it can resolve, including readings; `step_s` is what it counts by.
    """

    times: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    resolution_s: float = 0.0
    step_s: float = 0.0

    def add(self, launch: LaunchValues, times: dict[int, float]) -> None:
        """Add the times of a launch, in s."""
        self.resolution_s = max(self.resolution_s, launch.resolution_s or 0.0)
        self.step_s = max(self.step_s, launch.step_s or 0.0)
        for size, seconds in times.items():
            self.times[size].append(seconds)


def judge_waits(cell: MeasuredCell, clocks: dict[str, Clocked]) -> dict[str, float]:
    """Return the shortest time in s of each implementation that counts in spite of waiting ranks.

    Where one has none the cell is oversubscribed, and keeps all of its values.
    """
    shortest = {name: waits.shortest_s(name in clocks) for name, waits in cell.waits.items()}
    for name, least in shortest.items():
        times = [median(own) for own in clocks[name].times.values()] if name in clocks else []
        cell.oversubscribed |= least > 0 and not any(time >= least for time in times)
    return {} if cell.oversubscribed else shortest


def set_limited_apart(cell: MeasuredCell, clocks: dict[str, Clocked]) -> None:
    """Remove from a cell's values what is limited by the clock, or by ranks that were late.

    Over all launches of an implementation together: leaving out a size only in the round where
    it came out short would be a choice by the result.
    """
    shortest = judge_waits(cell, clocks)
    for name, clocked in clocks.items():
        launches = [*cell.values[name].values(), *cell.refined[name].values()]
        squares = []
        for size, times in sorted(clocked.times.items()):
            own = [values[size] for values in launches if size in values]
            is_late = median(times) < shortest.get(name, 0.0)
            if own and (is_late or limited_by_clock(median(times), clocked.resolution_s)):
                step_s = MOST_WAITED * shortest[name] if is_late else clocked.resolution_s
                point = Limited(size, median(own), median(times), step_s, is_late)
                cell.limited.setdefault(name, []).append(point)
                for values in launches:
                    values.pop(size, None)
            elif any(size in values for values in cell.values[name].values()):
                squares.append((clocked.step_s / median(times)) ** 2)
        if squares:
            cell.steps[name] = math.sqrt(sum(squares)) / len(squares)
        for of in (cell.values, cell.refined):
            of[name] = {number: values for number, values in of[name].items() if values}
            if not of[name]:
                del of[name]


def measured_cells(campaign: Campaign) -> list[MeasuredCell]:
    """Return the values of a campaign's sound launches, with cells in the order of tables.

    A cell that is entirely limited by the clock has no values.
    """
    cells: dict[str, MeasuredCell] = {}
    clocks: dict[str, dict[str, Clocked]] = defaultdict(lambda: defaultdict(Clocked))
    for launch in campaign.sound():
        record = launch.record
        own = launch.values
        for series, values in own.series.items():
            name = f"{record.cell} {series}".rstrip()
            cell = cells.setdefault(name, MeasuredCell(name, launch, series))
            asked, added = without_added(own, values)
            cell.values[record.implementation][record.round] = asked
            cell.refined[record.implementation][record.round] = added
            cell.launches.setdefault(record.implementation, launch)
            if series in own.times:
                clocks[name][record.implementation].add(own, own.times[series])
            if own.seconds:
                cell.seconds[record.implementation] += own.seconds
            cell.waits[record.implementation].add(record)
    for name, cell in cells.items():
        set_limited_apart(cell, clocks.get(name, {}))
    return sorted(cells.values(), key=lambda cell: cell_order(cell.launch, cell.series))


def cell_order(launch: Launch, series: str) -> tuple[Any, ...]:
    """Return a cell's place in tables, according to its experiment's entry."""
    experiment = launch.record.experiment
    parameters = compared()[experiment].order_of(launch.record.parameters)
    return (list(compared()).index(experiment), *parameters, series)
