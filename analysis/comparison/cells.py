"""What a campaign's sound launches measured, by cell, implementation, round and message size."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from inference.intervals import PRINTED_STEP, median
from records.campaign import Campaign
from records.communication import BESIDE, COMPUTING, Communication, PingPong
from records.emulation import EmulationResult
from records.experiments import compared
from records.launch import Launch
from records.limits.plausibility import (
    clock_resolution,
    clock_step,
    limited_by_clock,
    one_way_bandwidth,
)
from records.npb import NpbRun
from records.program_output import ProgramOutput, Result
from records.start_up import start_up_times
from records.su3 import Su3Result

# What a launch measured: series -> message size in bytes (0 where there are no messages) -> value.
# An experiment that measures one thing has one series, without a name.
Series = dict[str, dict[int, float]]
Values = dict[int, dict[int, float]]  # round -> message size in bytes -> value


def series_of(launch: Launch) -> Series:
    """Return a launch's values, including message sizes that the program added by itself."""
    entry = compared().get(launch.record.experiment)
    return READERS[entry.values](launch) if entry and entry.values else {}


def rate_of(launch: Launch) -> Series:
    """Return the rate that HPL or NPB printed, in operations per second."""
    output = launch.output
    if isinstance(output, list):
        # The check has made sure that a launch solves one system.
        return {"": {0: output[0].rate_flops}} if output else {}
    return {"": {0: output.rate_ops}} if isinstance(output, NpbRun) else {}


def start_up_of(launch: Launch) -> Series:
    """Return how long the start-up took, in s."""
    if not isinstance(launch.output, ProgramOutput):
        return {}
    return {"": {0: start_up_times(launch.output, launch.record.started_s()).start_up}}


def times_of(launch: Launch) -> Series:
    """Return the median times of a program's results, in s."""
    found: Series = defaultdict(dict)
    for result in results_of(launch):
        timed = time_of(result)
        # A collective operation without data may take no time, which gives no ratio.
        if timed and (timed[2] > 0 or not isinstance(result, Communication)):
            found[timed[0]][timed[1]] = timed[2]
    return dict(found)


def bandwidths_of(launch: Launch) -> Series:
    """Return the bandwidth of a program's ping-pongs by message size, in B/s."""
    found: Series = defaultdict(dict)
    for result in results_of(launch):
        if isinstance(result, PingPong) and result.message_bytes > 0:
            bandwidth = one_way_bandwidth(result.message_bytes, result.time_s.median)
            found[""][result.message_bytes] = bandwidth
    return dict(found)


def results_of(launch: Launch) -> list[Result]:
    """Return what one of the project's programs printed; empty for any other program."""
    return launch.output.results if isinstance(launch.output, ProgramOutput) else []


#: How an experiment's values are read, as its entry in records/experiments.yaml says.
READERS: dict[str, Callable[[Launch], Series]] = {
    "time": times_of, "bandwidth": bandwidths_of, "rate": rate_of, "start-up": start_up_of,
}  # fmt: skip


def without_added(launch: Launch, values: dict[int, float]) -> tuple[dict[int, float], ...]:
    """Return the values at the requested sizes, and those at added sizes.

    Which sizes `--refine` adds depends on the times: a mean over them would be over sizes that
    the result chose, different ones in each launch.
    """
    added = launch.output.added_sizes() if isinstance(launch.output, ProgramOutput) else frozenset()
    return (
        {size: value for size, value in values.items() if size not in added},
        {size: value for size, value in values.items() if size in added},
    )


def time_of(result: Result) -> tuple[str, int, float] | None:
    """Return a result's series, message size in bytes (0 without messages) and median time in s."""
    if isinstance(result, PingPong):
        return "", result.message_bytes, result.time_s.median
    if isinstance(result, Communication):
        if result.method in (BESIDE, COMPUTING):
            return None
        return result.series, result.message_bytes, result.time_s.median
    if isinstance(result, EmulationResult):
        return result.series, 0, result.together_s.median
    if isinstance(result, Su3Result):
        return result.series, 0, result.time_s.median
    return None


@dataclass(frozen=True)
class Limited:
    """What the clock cannot time well enough: medians over launches at a message size in bytes.

    `resolution_s` is the coarsest of the launches' clocks.
    """

    message_bytes: int
    value: float
    time_s: float
    resolution_s: float


@dataclass
class MeasuredCell:
    """What a campaign measured in one cell: implementation -> round -> message size -> value.

    `values` are at the requested sizes, which ratios and histories use; those at
    sizes that a program added between them are `refined`, for curves. What is `limited` by the
    clock is in neither. `seconds` are the times of the launches that print a time beside their
    rate.
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
    #: The step of each implementation's mean logarithm over sizes, where a clock made the values.
    steps: dict[str, float] = field(default_factory=dict)

    def step(self, *implementations: str) -> float:
        """Return the coarsest step of these implementations' values, as a fraction of them."""
        return max(PRINTED_STEP, *(self.steps.get(name, 0.0) for name in implementations))


def timed_by_clock(launch: Launch) -> Series:
    """Return the times in s behind a launch's values, if the header's clock took them."""
    if not isinstance(launch.output, ProgramOutput):
        return {}
    found: Series = defaultdict(dict)
    for result in launch.output.results:
        if timed := time_of(result):
            series, size, seconds = timed
            found[series][size] = seconds
    return dict(found)


@dataclass
class Clocked:
    """The times of one series of an implementation by message size, and the coarsest clock.

    `resolution_s` is what it can resolve, including readings; `step_s` is what it counts by.
    """

    times: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    resolution_s: float = 0.0
    step_s: float = 0.0

    def add(self, launch: Launch, times: dict[int, float]) -> None:
        """Add the times of a launch, in s."""
        assert isinstance(launch.output, ProgramOutput)
        self.resolution_s = max(self.resolution_s, clock_resolution(launch.output.header))
        self.step_s = max(self.step_s, clock_step(launch.output.header))
        for size, seconds in times.items():
            self.times[size].append(seconds)


def set_limited_apart(cell: MeasuredCell, clocks: dict[str, Clocked]) -> None:
    """Remove from a cell's values what is limited by the clock.

    Over all launches of an implementation together: leaving out a size only in the round where
    it came out short would be a choice by the result.
    """
    for name, clocked in clocks.items():
        launches = [*cell.values[name].values(), *cell.refined[name].values()]
        squares = []
        for size, times in sorted(clocked.times.items()):
            own = [values[size] for values in launches if size in values]
            if own and limited_by_clock(median(times), clocked.resolution_s):
                point = Limited(size, median(own), median(times), clocked.resolution_s)
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
        timed = timed_by_clock(launch)
        for series, values in series_of(launch).items():
            name = f"{record.cell} {series}".rstrip()
            cell = cells.setdefault(name, MeasuredCell(name, launch, series))
            asked, added = without_added(launch, values)
            cell.values[record.implementation][record.round] = asked
            cell.refined[record.implementation][record.round] = added
            cell.launches.setdefault(record.implementation, launch)
            if series in timed:
                clocks[name][record.implementation].add(launch, timed[series])
            if isinstance(launch.output, list):
                cell.seconds[record.implementation] += [run.time_s for run in launch.output]
            elif isinstance(launch.output, NpbRun):
                cell.seconds[record.implementation].append(launch.output.time_s)
    for name, of_cell in clocks.items():
        set_limited_apart(cells[name], of_cell)
    return sorted(cells.values(), key=lambda cell: cell_order(cell.launch, cell.series))


def cell_order(launch: Launch, series: str) -> tuple[Any, ...]:
    """Return a cell's place in tables, according to its experiment's entry."""
    experiment = launch.record.experiment
    parameters = compared()[experiment].order_of(launch.record.parameters)
    return (list(compared()).index(experiment), *parameters, series)
