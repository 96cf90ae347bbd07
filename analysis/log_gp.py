"""Parameters of LogGP and of a reduction, as far as the programs' measurements tell them.

LogGP (Alexandrov, Ionescu, Schauser, Scheiman 1995): latency L, overheads o_s and o_r of sender and
receiver, gap g between messages and gap G between the bytes of one. A message of n bytes takes
o_s + (n-1) G + L + o_r from one rank to another, and k of them in a row (k-1) max(g, o_s, o_r) and
(k-1)(n-1) G more than one. What a parameter cannot be told from is told with it, never guessed.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass

from analysis.launch_means import Mean, mean_of_launches
from analysis.message_models import Sweep, SweepModel, slopes_by_round
from analysis.one_way_times import medians
from analysis.protocol_switch import Line

WINDOW = re.compile(r"pairs window of (\d+) \[1 near pair\]")
#: The ping-pongs that LogGP describes: blocking, one message each way, nothing else done.
PLAIN = re.compile(r"EchoTest|Mpptest suite=(short|long|protocols)|PointToPoint pair=Send/Recv")
NOT_TOLD = {
    "L, o_s, o_r": "only their sum is told; each for itself needs sends that are timed by "
    "themselves, and round trips of n messages with a delay d between them, PRTT(n, d, s) "
    "(Hoefler, Lichei, Rehm 2007)",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of an implementation in SI units; `value` is None where it is not told."""

    implementation: str
    name: str
    unit: str
    value: Mean | None
    #: Which measurement it comes from, or which one would be needed.
    how: str


def start_up_sum(models: list[SweepModel]) -> Parameter | None:
    """Return L + o_s + o_r: the one-way time of the smallest message."""
    # The smallest message of all, and of cells that have it that with the most rounds.
    chosen = min(models, key=lambda m: (smallest(m.sweep), -len(m.sweep.rounds)), default=None)
    if chosen is None:
        return None
    size = smallest(chosen.sweep)
    values = [times[size] for times in chosen.sweep.rounds.values() if size in times]
    how = f"half the round trip of {size} bytes in {chosen.sweep.name}"
    if size > 1:
        how += f"; (n - 1) G with n = {size} is in it"
    name = chosen.sweep.implementation
    return Parameter(name, "L + o_s + o_r", "s", mean_of_launches(values), how)


def smallest(sweep: Sweep) -> int:
    """Return a sweep's smallest message in bytes."""
    return min(size for times in sweep.rounds.values() for size in times)


def gap_per_byte(models: list[SweepModel]) -> Parameter | None:
    """Return G: the time of a byte on the line of the longest messages."""
    chosen = max(models, key=lambda m: longest_line(m).last_bytes, default=None)
    if chosen is None:
        return None
    line, name = longest_line(chosen), chosen.sweep.implementation
    of_line = f"between {line.first_bytes:,} and {line.last_bytes:,} bytes in {chosen.sweep.name}"
    if line in chosen.unfitted:
        # The next shorter line is of another protocol.
        why = f"not told: no round has three sizes, one of them twice another, {of_line}"
        return Parameter(name, "G", "", None, why)
    return Parameter(name, "G", "s/B", chosen.segments[-1].beta, f"beta {of_line}")


def longest_line(model: SweepModel) -> Line:
    """Return the line of a sweep's longest messages, whether rounds could be fitted or not."""
    lines = [*(segment.line for segment in model.segments), *model.unfitted]
    return max(lines, key=lambda line: line.last_bytes)


def gaps(sweeps: list[Sweep]) -> list[Parameter]:
    """Return max(g, o_s, o_r) + (n - 1) G of windows of messages, at each size.

    Where a window of fewer messages was measured too, their difference has neither latency nor
    answer in it; without one the whole time is divided, which is an upper bound.
    """
    by_window: dict[int, Sweep] = {}
    for sweep in sweeps:
        if found := WINDOW.fullmatch(sweep.series):
            # Of suites with the same window the one with most rounds.
            window = int(found[1])
            if window not in by_window or len(sweep.rounds) > len(by_window[window].rounds):
                by_window[window] = sweep
    if not by_window or max(by_window) == 1:
        return []
    most = max(by_window)
    long, short = by_window[most], by_window.get(min(by_window))
    parameters = []
    for size in sorted({size for times in long.rounds.values() for size in times}):
        differences = [
            (times[size] - short.rounds[number][size]) / (most - min(by_window))
            for number, times in long.rounds.items()
            if short and short is not long
            and size in times and size in short.rounds.get(number, {})
        ]  # fmt: skip
        name = f"max(g, o_s, o_r) + {max(0, size - 1)} G"
        if differences:
            how = (
                f"a window of {most} messages of {size} bytes less one of {min(by_window)}, "
                f"by {most - min(by_window)}"
            )
            values = differences
        else:
            name = f"at most: {name}"
            how = (
                f"a window of {most} messages of {size} bytes by {most}: latency and answer are "
                "in it; a window of 1 message of as many bytes would take them out"
            )
            values = [times[size] / most for times in long.rounds.values() if size in times]
        parameters.append(Parameter(long.implementation, name, "s", mean_of_launches(values), how))
    return parameters


def reduction_per_byte(sweeps: list[Sweep]) -> list[Parameter]:
    """Return gamma, the time to reduce a byte: an allreduce's slope less a broadcast's, by stages.

    By recursive doubling an allreduce takes log2 p (alpha + n beta + n gamma), by a binomial tree a
    broadcast takes log2 p (alpha + n beta) (Thakur, Rabenseifner, Gropp 2005); for short messages
    libraries do that. Both are of the same launch, so the difference is taken by rounds.
    """
    parameters = []
    by_series = {(sweep.cell, sweep.series): sweep for sweep in sweeps}
    for (cell, series), reduction in sorted(by_series.items()):
        broadcast = by_series.get((cell, "bcast [world]"))
        if series != "allreduce-sum [world]" or not broadcast or reduction.ranks < 2:
            continue
        sizes = sorted(
            set(medians(reduction.rounds)).intersection(
                *reduction.rounds.values(), *broadcast.rounds.values()
            )
        )
        slopes, others = slopes_by_round(reduction, sizes), slopes_by_round(broadcast, sizes)
        stages = math.ceil(math.log2(reduction.ranks))
        values = [(slopes[r] - others[r]) / stages for r in sorted(slopes.keys() & others.keys())]
        if values:
            how = (
                f"slopes of allreduce-sum less bcast in {cell}, by {stages} stage(s), if they are "
                f"by recursive doubling and a binomial tree; {sizes[0]} to {sizes[-1]:,} bytes"
            )
            parameters.append(
                Parameter(reduction.implementation, "gamma", "s/B", mean_of_launches(values), how)
            )
    return parameters


def parameters_of(sweeps: list[Sweep], models: list[SweepModel]) -> list[Parameter]:
    """Return what is told of each implementation, and what is not with what it would need."""
    of_name: dict[str, list[Sweep]] = defaultdict(list)
    for sweep in sweeps:
        of_name[sweep.implementation].append(sweep)
    found = []
    for name, own in sorted(of_name.items()):
        plain = [
            model
            for model in models
            if model.sweep.implementation == name and PLAIN.match(model.sweep.cell)
        ]
        sum_, per_byte, messages, gamma = (
            start_up_sum(plain), gap_per_byte(plain), gaps(own), reduction_per_byte(own),
        )  # fmt: skip
        found += [parameter for parameter in (sum_, per_byte) if parameter]
        found += [*messages, *gamma]
        lacking = dict(NOT_TOLD)
        if not plain:
            lacking["L + o_s + o_r, G"] = "measure with CHECKS='EchoTest|Mpptest'"
        if not messages:
            lacking["g"] = "measure with CHECKS='Pairs.*suite=(rate|ohio-ping)'"
        if not gamma:
            lacking["gamma"] = (
                "bcast and allreduce-sum of one launch at three sizes: measure with "
                "CHECKS='Collectives.*suite=goptest'"
            )
        found += [
            Parameter(name, key, "", None, f"not told: {why}") for key, why in lacking.items()
        ]
    return found
