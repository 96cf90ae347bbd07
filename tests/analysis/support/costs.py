"""What a process takes, and how that grows: for the benchmarks of the analysis."""

import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inference.means import Mean, mean_of_launches

#: What grows faster than this power of the work is a fault.
MOST_EXPONENT = 1.2
#: What is lost in the scatter of a start, in seconds of a processor and as a share of the start's:
#: below both nothing has grown.
LEAST_S, LEAST_SHARE = 0.2, 0.1


@dataclass(frozen=True)
class Cost:
    """What a command took: seconds on the clock and of processors, the most memory in bytes."""

    wall_s: float
    cpu_s: float
    memory_bytes: int


def cost_of(
    *words: str, allowed: tuple[int, ...] = (0,), environment: Mapping[str, str] | None = None
) -> Cost:
    """Run Python with these words; raise SystemExit where it ends with another code."""
    begun = time.perf_counter()
    child = os.posix_spawn(
        sys.executable, [sys.executable, *words], dict(environment or os.environ),
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )  # fmt: skip
    _, status, usage = os.wait4(child, 0)
    if (code := os.waitstatus_to_exitcode(status)) not in allowed:
        raise SystemExit(f"python {' '.join(words)} ended with {code}")
    seconds = time.perf_counter() - begun
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def exponent(less: Cost, more: Cost, times: float, start_s: float) -> float:
    """Return with which power of the work the processor's time grows, beyond that of a start.

    `times` is how many times as much work `more` was.
    """
    least = max(LEAST_S, LEAST_SHARE * start_s)
    grown = max(more.cpu_s - start_s, least) / max(less.cpu_s - start_s, least)
    return math.log(grown) / math.log(times)


def growth(less: Sequence[Cost], more: Sequence[Cost], times: float, start_s: float) -> Mean:
    """Return the mean exponent of repetitions, each with the one beside it, and its interval."""
    return mean_of_launches(
        [exponent(*pair, times, start_s) for pair in zip(less, more, strict=True)]
    )


def start_of(found: Mapping[int, Sequence[Cost]]) -> Cost:
    """Return what the smallest size costs: its quickest repetition, as what is added is scatter."""
    return min(found[min(found)], key=lambda one: one.cpu_s)


def largest_within(
    found: Mapping[int, Sequence[Cost]], power: float, cpu_s: float, memory_bytes: float
) -> float:
    """Return the largest size that takes at most so long and so much, as the curve goes on.

    The time is that of processors, which other work on the machine changes little. From the two
    largest sizes measured, and never with a power below 1: what seems to grow slower may do so by
    chance.
    """
    smallest, *_, second, last = sorted(found)
    power = max(power, 1.0)
    start, most = start_of(found), found[last]
    beyond_s = max(min(one.cpu_s for one in most) - start.cpu_s, 1e-9)
    longer: float = (max(cpu_s - start.cpu_s, 0.0) / beyond_s) ** (1 / power)
    less, more = (max(one.memory_bytes for one in found[size]) for size in (second, last))
    room = second + (memory_bytes - less) / max((more - less) / (last - second), 1e-9)
    return min(float(smallest + longer * (last - smallest)), room)
