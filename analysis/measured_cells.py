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
from analysis.plausibility import one_way_bandwidth
from analysis.records import ProgramOutput
from analysis.start_up import start_up_times
from analysis.su3_records import Su3

# What a launch measured: series -> message size in bytes (0 where there are no messages) -> value.
# An experiment that measures one thing has one series, without a name.
Series = dict[str, dict[int, float]]
Values = dict[int, dict[int, float]]  # round -> message size in bytes -> value


def series_of(launch: Launch) -> Series:
    """Return a launch's values."""
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
        if isinstance(result, PingPong) and result.message_bytes > 0:
            found[""][result.message_bytes] = one_way_bandwidth(
                result.message_bytes, result.time_s.median
            )
        # A collective operation without data may take no time, of which there is no ratio.
        elif isinstance(result, Communication) and result.time_s.median > 0:
            found[result.series][result.message_bytes] = result.time_s.median
        elif isinstance(result, Emulation):
            found[result.series][0] = result.together_s.median
        elif isinstance(result, Su3):
            found[result.series][0] = result.time_s.median
    return dict(found)


@dataclass
class Measured:
    """What a campaign measured in one cell: implementation -> round -> message size -> value.

    `seconds` are the times of the launches that print a time beside their rate.
    """

    name: str
    launch: Launch
    series: str
    values: dict[str, Values] = field(default_factory=lambda: defaultdict(dict))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    #: The first launch of each implementation.
    launches: dict[str, Launch] = field(default_factory=dict)


def measured_cells(campaign: Campaign) -> list[Measured]:
    """Return the values of a campaign's sound launches, the cells in the order of tables."""
    cells: dict[str, Measured] = {}
    for launch in campaign.sound():
        record = launch.record
        for series, values in series_of(launch).items():
            name = f"{record.cell} {series}".rstrip()
            cell = cells.setdefault(name, Measured(name, launch, series))
            cell.values[record.implementation][record.round] = values
            cell.launches.setdefault(record.implementation, launch)
            if isinstance(launch.output, list):
                cell.seconds[record.implementation] += [run.time_s for run in launch.output]
            elif isinstance(launch.output, NpbRun):
                cell.seconds[record.implementation].append(launch.output.time_s)
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
