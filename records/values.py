"""What statistics use of a launch: the values of its series, as its experiment's entry names them.

They are computed when the launch is kept, and kept beside what its program printed (`values.json`),
so that whoever compares launches need not read all that again. They are what the output gives: who
proves a campaign or replays it computes them anew and compares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from records.base import Count, OneOfMany, RecordError, Seconds
from records.communication import BESIDE, COMPUTING, Communication, PingPong
from records.emulation import EmulationResult
from records.experiments import compared
from records.hpl import HplRun
from records.limits.plausibility import clock_resolution, clock_step, one_way_bandwidth
from records.npb import NpbRun
from records.program_output import ProgramOutput, Result, explain
from records.start_up import start_up_times
from records.su3 import Su3Result

FILE = "values.json"
#: Of how values are obtained: whoever changes that gives it another number, and what was kept
#: before is computed anew from what programs printed.
VERSION = 1
#: What a launch printed, by its output_format.
Output = ProgramOutput | list[HplRun] | NpbRun
# What a launch measured: series -> message size in bytes (0 where there are no messages) -> value.
# An experiment that measures one thing has one series, without a name.
BySize = dict[str, dict[int, float]]
SeriesName = Annotated[str, Field(max_length=1000)]
Kept = dict[SeriesName, dict[Count, float]]


class LaunchValues(OneOfMany, BaseModel):
    """What a launch measured; times in s, sizes in bytes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    #: How they were obtained: `read_as` of today, or they are not used.
    read_as: str
    #: In the unit of the experiment's metric.
    series: Kept
    #: The sizes among them that the program added to those that it was asked for.
    added: tuple[Count, ...] = ()
    #: The times behind the values, where the header's clock took them; None if they are the values.
    timed: Kept | None = None
    #: The name of that clock, its resolution and its step; None of what prints no header.
    clock: str | None = None
    resolution_s: Seconds | None = None
    step_s: Seconds | None = None
    #: The times of a program that prints one in addition to its rate.
    seconds: tuple[Seconds, ...] = ()

    @property
    def times(self) -> BySize:
        """Return the times behind the values, by series and size, none of what no clock took."""
        return self.series if self.timed is None else self.timed


def read_as(experiment: str) -> str:
    """Return by what it is known how an experiment's values are obtained."""
    entry = compared().get(experiment)
    return f"{VERSION} {entry.digest if entry else ''}".rstrip()


def values_of(experiment: str, output: Output, started_s: float) -> LaunchValues:
    """Return the values of a launch that began at `started_s` (seconds since the epoch).

    Raises RecordError for a start-up without a time.
    """
    entry = compared().get(experiment)
    series = READERS[entry.values](output, started_s) if entry and entry.values else {}
    if isinstance(output, ProgramOutput):
        timed = timed_by_clock(output)
        return LaunchValues(
            read_as=read_as(experiment), series=series, added=tuple(sorted(output.added_sizes())),
            timed=None if timed == series else timed, clock=output.clock,
            resolution_s=clock_resolution(output.header), step_s=clock_step(output.header),
        )  # fmt: skip
    runs = output if isinstance(output, list) else [output]
    return LaunchValues(
        read_as=read_as(experiment), series=series, timed={},
        seconds=tuple(float(run.time_s) for run in runs),
    )  # fmt: skip


def values_in(text: bytes, where: object) -> LaunchValues:
    """Return the values that a launch's file has; raise RecordError with what is wrong with it."""
    try:
        return LaunchValues.model_validate_json(text)
    except ValidationError as error:
        raise RecordError(f"{where}: {explain(error)}") from None


def rate_of(output: Output, _: float) -> BySize:
    """Return the rate that HPL or NPB printed, in operations per second."""
    if isinstance(output, list):
        # The check has made sure that a launch solves one system.
        return {"": {0: output[0].rate_flops}} if output else {}
    return {"": {0: output.rate_ops}} if isinstance(output, NpbRun) else {}


def start_up_of(output: Output, started_s: float) -> BySize:
    """Return how long the start-up took, in s."""
    if not isinstance(output, ProgramOutput):
        return {}
    return {"": {0: start_up_times(output, started_s).start_up}}


def times_of(output: Output, _: float) -> BySize:
    """Return the median times of a program's results, in s."""
    found: BySize = defaultdict(dict)
    for result in results_of(output):
        timed = time_of(result)
        # A collective operation without data may take no time, which gives no ratio.
        if timed and (timed[2] > 0 or not isinstance(result, Communication)):
            found[timed[0]][timed[1]] = timed[2]
    return dict(found)


def bandwidths_of(output: Output, _: float) -> BySize:
    """Return the bandwidth of a program's ping-pongs by message size, in B/s."""
    found: BySize = defaultdict(dict)
    for result in results_of(output):
        if isinstance(result, PingPong) and result.message_bytes > 0:
            bandwidth = one_way_bandwidth(result.message_bytes, result.time_s.median)
            found[""][result.message_bytes] = bandwidth
    return dict(found)


def results_of(output: Output) -> list[Result]:
    """Return what one of the project's programs printed; empty for any other program."""
    return output.results if isinstance(output, ProgramOutput) else []


#: How an experiment's values are read, as its entry in records/experiments.yaml says.
READERS: dict[str, Callable[[Output, float], BySize]] = {
    "time": times_of, "bandwidth": bandwidths_of, "rate": rate_of, "start-up": start_up_of,
}  # fmt: skip


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


def timed_by_clock(output: ProgramOutput) -> BySize:
    """Return the times in s behind a launch's values, if the header's clock took them."""
    found: BySize = defaultdict(dict)
    for result in output.results:
        if timed := time_of(result):
            series, size, seconds = timed
            found[series][size] = seconds
    return dict(found)
