"""How much of a launch's time its programs timed: the rest is start, warm-up and verification."""

from __future__ import annotations

import math

from records.communication import (
    Communication,
    Latency,
    PingPong,
    Startup,
    StartupDurations,
)
from records.emulation import EmulationResult
from records.node_rates import LinpackSolve, Rate
from records.npb import NpbRun
from records.program_output import ProgramOutput, Result
from records.su3 import Su3Result
from records.values import Output


def timed_s(output: Output) -> float:
    """Return the seconds of a launch that its program timed, by the slowest rank if it says so.

    That is the iterations without warm-ups, the sections that HPL, NPB and su3 time, and of a
    start-up all of it.
    """
    if isinstance(output, NpbRun):
        return math.fsum(output.times_s)
    if not isinstance(output, ProgramOutput):
        return math.fsum(run.time_s for run in output)
    applications = [one for one in output.results if isinstance(one, EmulationResult)]
    # Each runs alone in turn, but all of them run together at once.
    side_by_side = [one.iterations * one.together_s.mean for one in applications]
    return math.fsum(map(of_result, output.results)) + max(side_by_side, default=0.0)


def of_result(result: Result) -> float:
    """Return the seconds of a result; for an emulation without those together with others."""
    if isinstance(result, LinpackSolve):
        return result.iterations * result.repetitions * result.time_s.mean
    if isinstance(result, PingPong | Communication | Rate | Latency):
        return result.iterations * result.time_s.mean
    if isinstance(result, Su3Result):
        return result.wall_s
    if isinstance(result, EmulationResult):
        parts = (result.alone_s, result.messages_s, result.computing_s)
        return result.iterations * math.fsum(part.mean for part in parts)
    if isinstance(result, StartupDurations):
        return result.launch_to_last_integer_s
    if isinstance(result, Startup):
        return max(0.0, result.last_integer_s - min(result.main_s))
    return 0.0


def warm_ups_s(output: Output) -> float:
    """Return about how long the warm-ups of a launch took that its program states.

    As if they were as fast as what was timed after them. What HPL and NPB do before they time is
    unknown.
    """
    if not isinstance(output, ProgramOutput):
        return 0.0
    found = 0.0
    for result in output.results:
        if isinstance(result, PingPong | Communication | Rate):
            found += result.warmup * result.time_s.mean
        elif isinstance(result, Su3Result):
            found += result.warmups * result.time_s.mean
        elif isinstance(result, EmulationResult):
            found += result.warmup * of_result(result) / result.iterations
    return found
