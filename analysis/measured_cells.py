"""What a campaign's sound launches measured, by cell, implementation, round and message size."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from analysis.campaign import Campaign, Launch
from analysis.communication_records import Communication, PingPong
from analysis.emulation_records import Emulation
from analysis.metrics import metrics
from analysis.npb_output import NpbRun
from analysis.plausibility import clock_resolution, limited_by_clock, one_way_bandwidth
from analysis.records import ProgramOutput, Result
from analysis.start_up import start_up_times
from analysis.statistics import median
from analysis.su3_records import Su3

# What a launch measured: series -> message size in bytes (0 where there are no messages) -> value.
# An experiment that measures one thing has one series, without a name.
Series = dict[str, dict[int, float]]
Values = dict[int, dict[int, float]]  # round -> message size in bytes -> value


def series_of(launch: Launch) -> Series:
    """Return a launch's values, also at message sizes that the program added by itself."""
    output, experiment = launch.output, launch.record.experiment
    if experiment not in metrics():
        return {}
    if isinstance(output, list):
        # The check has made sure that a launch solves one system.
        return {"": {0: output[0].rate_flops}} if output else {}
    if isinstance(output, NpbRun):
        return {"": {0: output.rate_ops}}
    if not isinstance(output, ProgramOutput):
        return {}
    if experiment == "StartUp":
        return {"": {0: start_up_times(output, launch.record.started_s()).start_up}}
    found: Series = defaultdict(dict)
    for result in output.results:
        if not (timed := time_of(result)):
            continue
        series, size, seconds = timed
        if isinstance(result, PingPong):
            if size > 0:
                found[series][size] = one_way_bandwidth(size, seconds)
        # A collective operation without data may take no time, of which there is no ratio.
        elif seconds > 0 or not isinstance(result, Communication):
            found[series][size] = seconds
    return dict(found)


def without_added(launch: Launch, values: dict[int, float]) -> tuple[dict[int, float], ...]:
    """Return the values at the sizes that were asked for, and those at sizes that were added.

    Which sizes `--refine` adds follows from the times: a mean over them would be over sizes that
    the result chose, other ones in each launch.
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
        return result.series, result.message_bytes, result.time_s.median
    if isinstance(result, Emulation):
        return result.series, 0, result.together_s.median
    if isinstance(result, Su3):
        return result.series, 0, result.time_s.median
    return None


@dataclass(frozen=True)
class Limited:
    """What the clock cannot time well enough: medians over launches, at a message size in bytes.

    `resolution_s` is the coarsest that a launch's clock was.
    """

    message_bytes: int
    value: float
    time_s: float
    resolution_s: float


@dataclass
class Measured:
    """What a campaign measured in one cell: implementation -> round -> message size -> value.

    `values` are at the sizes that were asked for, which ratios and histories are made of; those at
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


def timed_by_clock(launch: Launch) -> Series:
    """Return the times in s that a launch's values are made of, if the header's clock took them."""
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
    """The times of one series of an implementation by message size, and the coarsest clock."""

    times: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    resolution_s: float = 0.0

    def add(self, launch: Launch, times: dict[int, float]) -> None:
        """Add the times of a launch, in s."""
        assert isinstance(launch.output, ProgramOutput)
        self.resolution_s = max(self.resolution_s, clock_resolution(launch.output.header))
        for size, seconds in times.items():
            self.times[size].append(seconds)


def set_limited_apart(cell: Measured, clocks: dict[str, Clocked]) -> None:
    """Take out of a cell's values what is limited by the clock.

    Over all launches of an implementation at once: a size that is left out in one round alone, for
    it came out short there, would be a choice by the result.
    """
    for name, clocked in clocks.items():
        launches = [*cell.values[name].values(), *cell.refined[name].values()]
        for size, times in sorted(clocked.times.items()):
            own = [values[size] for values in launches if size in values]
            if own and limited_by_clock(median(times), clocked.resolution_s):
                point = Limited(size, median(own), median(times), clocked.resolution_s)
                cell.limited.setdefault(name, []).append(point)
                for values in launches:
                    values.pop(size, None)
        for of in (cell.values, cell.refined):
            of[name] = {number: values for number, values in of[name].items() if values}
            if not of[name]:
                del of[name]


def measured_cells(campaign: Campaign) -> list[Measured]:
    """Return the values of a campaign's sound launches, the cells in the order of tables.

    A cell of which all is limited by the clock has no values.
    """
    cells: dict[str, Measured] = {}
    clocks: dict[str, dict[str, Clocked]] = defaultdict(lambda: defaultdict(Clocked))
    for launch in campaign.sound():
        record = launch.record
        timed = timed_by_clock(launch)
        for series, values in series_of(launch).items():
            name = f"{record.cell} {series}".rstrip()
            cell = cells.setdefault(name, Measured(name, launch, series))
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


PAIR_ORDER = ["Send", "Isend", "Ssend", "Issend"]
RANGE_ORDER = {"short": 0, "medium": 1, "long": 2}


def cell_order(launch: Launch, series: str) -> tuple[Any, ...]:
    """Return where a cell stands in tables: as in the thesis."""
    parameters = launch.record.parameters
    if launch.record.experiment == "PointToPoint":
        send, receive = str(parameters["pair"]).split("/")
        return (
            0,
            PAIR_ORDER.index(send),
            receive == "Irecv",
            RANGE_ORDER.get(str(parameters["message_range"]), 9),
            str(parameters),
        )
    if "grid" in parameters:
        rows, columns = str(parameters["grid"]).split("x")
        return (1, int(rows) * int(columns), int(rows), int(parameters["n"]), str(parameters))
    if launch.record.experiment == "StartUp":
        return (2, str(parameters["cache"]) == "cold", int(parameters["ranks"]))
    return (3, list(metrics()).index(launch.record.experiment), str(parameters), series)
