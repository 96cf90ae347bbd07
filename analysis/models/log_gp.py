"""Parameters of LogGP and of a reduction, as far as the programs' measurements tell them.

LogGP (Alexandrov, Ionescu, Schauser, Scheiman 1995): latency L, overheads o_s and o_r of sender and
receiver, gap g between messages and gap G between the bytes of one. A message of n bytes takes
o_s + (n-1) G + L + o_r from one rank to another, and k of them in a row (k-1) max(g, o_s, o_r) and
(k-1)(n-1) G more than one. Parameters that cannot be separated are given together, never guessed.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass

from analysis.models.messages import SizeSweep, SweepModel, slopes_by_round
from analysis.models.one_way_times import medians
from inference.means import Mean, mean_of_launches
from inference.protocol_switch import FittedLine
from records.counting import how_many
from records.experiments import serves

WINDOW = re.compile(r"pairs window of (\d+) \[1 near pair\]")
NOT_TOLD = {
    "L, o_s, o_r": "only their sum is known; each by itself would need separately timed sends, "
    "and round trips of n messages with a delay d between them, PRTT(n, d, s) (Hoefler, Lichei, "
    "Rehm 2007)",
}


@dataclass(frozen=True)
class FittedParameter:
    """A parameter of an implementation in SI units; `value` is None if it is not known."""

    implementation: str
    name: str
    unit: str
    value: Mean | None
    #: Which measurement it comes from, or which one would be needed.
    how: str
    #: The cells of the sweeps that it comes from.
    cells: tuple[str, ...] = ()


def start_up_sum(models: list[SweepModel]) -> FittedParameter | None:
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
    value = mean_of_launches(values)
    return FittedParameter(name, "L + o_s + o_r", "s", value, how, chosen.sweep.cells)


def smallest(sweep: SizeSweep) -> int:
    """Return a sweep's smallest message in bytes."""
    return min(size for times in sweep.rounds.values() for size in times)


def gap_per_byte(models: list[SweepModel]) -> FittedParameter | None:
    """Return G: the time of a byte on the line of the longest messages."""
    chosen = max(models, key=lambda m: longest_line(m).last_bytes, default=None)
    if chosen is None:
        return None
    line, name = longest_line(chosen), chosen.sweep.implementation
    of_line = f"between {line.first_bytes:,} and {line.last_bytes:,} bytes in {chosen.sweep.name}"
    if line in chosen.unfitted:
        # The next shorter line belongs to another protocol.
        why = f"not known: no round has three sizes, one of them twice another, {of_line}"
        return FittedParameter(name, "G", "", None, why, chosen.sweep.cells)
    beta = chosen.segments[-1].beta
    return FittedParameter(name, "G", "s/B", beta, f"beta {of_line}", chosen.sweep.cells)


def longest_line(model: SweepModel) -> FittedLine:
    """Return the line of a sweep's longest messages, whether or not rounds could be fitted."""
    lines = [*(segment.line for segment in model.segments), *model.unfitted]
    return max(lines, key=lambda line: line.last_bytes)


def gaps(sweeps: list[SizeSweep]) -> list[FittedParameter]:
    """Return max(g, o_s, o_r) + (n - 1) G of windows of messages, at each size.

    If a window of fewer messages was measured in the same world, their difference has neither
    latency nor answer in it; without one the whole time is divided, which is an upper bound.
    """
    windows = [
        (int(found[1]), sweep) for sweep in sweeps if (found := WINDOW.fullmatch(sweep.series))
    ]
    most = max((window for window, _ in windows), default=1)
    if most == 1:
        return []
    longs = [sweep for window, sweep in windows if window == most]
    pairs = [
        (long, few, short, rounds)
        for long in longs
        for few, short in windows
        if few < most and (rounds := rounds_alike(long, short))
    ]
    # Of suites with the same windows those with most rounds.
    if pairs:
        long, few, short, rounds = max(pairs, key=lambda pair: (len(pair[3]), -pair[1]))
    else:
        long, few, short, rounds = max(longs, key=lambda one: len(one.rounds)), 0, None, []
    parameters = []
    for size in sorted({size for times in long.rounds.values() for size in times}):
        differences = [
            (long.rounds[number][size] - short.rounds[number][size]) / (most - few)
            for number in rounds
            if short and size in long.rounds[number] and size in short.rounds[number]
        ]
        name = f"max(g, o_s, o_r) + {max(0, size - 1)} G"
        if differences:
            how = (
                f"a window of {most} messages of {size} bytes in {long.cell} less one of {few} in "
                f"{short.cell if short else ''}, by {most - few}"
            )
            values, cells = differences, (*long.cells, *(short.cells if short else ()))
        else:
            name = f"at most: {name}"
            how = (
                f"a window of {most} messages of {size} bytes by {most}, with latency and "
                f"answer; {what_would_do(long, [one for few, one in windows if few < most], size)}"
            )
            values = [times[size] / most for times in long.rounds.values() if size in times]
            cells = long.cells
        value = mean_of_launches(values)
        parameters.append(FittedParameter(long.implementation, name, "s", value, how, cells))
    return parameters


def rounds_alike(one: SizeSweep, other: SizeSweep) -> list[int]:
    """Return the rounds in which both had the same ranks, nodes and placement of the pair.

    In a larger world the others wait in a barrier, and by blocks ranks 0 and 1 of it are on one
    node, those of a world of two on two: the difference would be of two networks.
    """
    return [
        number
        for number in sorted(one.rounds.keys() & other.rounds.keys())
        if number in one.worlds and one.worlds[number] == other.worlds.get(number)
    ]


def what_would_do(long: SizeSweep, shorts: list[SizeSweep], size: int) -> str:
    """Return what is missing for a difference of windows of messages of so many bytes."""
    own = {world.words for world in long.worlds.values()}
    others = {
        world.words
        for short in shorts
        if any(size in times for times in short.rounds.values())
        for world in short.worlds.values()
    }
    if others and own and not own & others:
        return (
            f"a smaller window was measured in another world ({', '.join(sorted(others))}; this "
            f"one: {', '.join(sorted(own))}), so the difference would not be due to messages"
        )
    return "a window of 1 message of as many bytes, in the same world and round, would remove them"


def refused(one: FittedParameter) -> FittedParameter:
    """Return a parameter, without its value if that cannot be a time: 0 or below."""
    if one.value is None or one.value.value > 0:
        return one
    why = (
        f"not known: the result is {one.value.value:.3g} {one.unit}, which cannot be a time; "
        f"launches differ by more than it. By {one.how}"
    )
    return FittedParameter(one.implementation, one.name, "", None, why, one.cells)


def reduction_per_byte(sweeps: list[SizeSweep]) -> list[FittedParameter]:
    """Return gamma, the time to reduce a byte: an allreduce's slope minus a broadcast's, by stages.

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
                f"slopes of allreduce-sum less bcast in {cell}, over {how_many(stages, 'stage')}, "
                f"if they are by recursive doubling and a binomial tree; {sizes[0]} to "
                f"{sizes[-1]:,} bytes"
            )
            name, value = reduction.implementation, mean_of_launches(values)
            parameters.append(FittedParameter(name, "gamma", "s/B", value, how, reduction.cells))
    return parameters


def parameters_of(sweeps: list[SizeSweep], models: list[SweepModel]) -> list[FittedParameter]:
    """Return each implementation's known parameters, and for unknown ones what they would need."""
    of_name: dict[str, list[SizeSweep]] = defaultdict(list)
    for sweep in sweeps:
        of_name[sweep.implementation].append(sweep)
    found = []
    for name, own in sorted(of_name.items()):
        # The ping-pongs that LogGP describes: blocking, one message each way, nothing else done.
        plain = [
            model
            for model in models
            if model.sweep.implementation == name
            and serves("loggp-round-trip", model.sweep.experiment, model.sweep.parameters)
        ]
        sum_, per_byte, messages, gamma = (
            start_up_sum(plain), gap_per_byte(plain), gaps(own), reduction_per_byte(own),
        )  # fmt: skip
        told = [*(one for one in (sum_, per_byte) if one), *messages, *gamma]
        found += [refused(one) for one in told]
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
            FittedParameter(name, key, "", None, f"not known: {why}")
            for key, why in lacking.items()
        ]
    return found
