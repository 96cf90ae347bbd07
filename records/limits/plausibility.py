"""Impossible numbers. Each function returns a sentence with the numbers, or None.

The thesis found its first program measuring more than 12.5 MB/s over a 100 Mbit/s link; a number
above a physical limit is the most useful alarm that a measurement can have.
"""

from __future__ import annotations

from collections.abc import Sequence

from records.base import Header
from records.communication import Communication, Latency, PingPong
from records.counting import how_many
from records.emulation import RUNS_OF_AN_ITERATION, EmulationResult
from records.hpl import HplRun
from records.limits.links import Message, least_seconds
from records.node_pairs import NodePairsRound
from records.node_rates import DgemmResult, LinpackSolve, StreamResult
from records.npb import NpbRun
from records.program_output import Result
from records.su3 import Su3Result

#: Beside others an application may be quicker by chance, but not twice as quick.
LEAST_SLOWDOWN = 0.5
#: Two loads and a store of the widest vectors: no core moves more in a cycle, even in its cache.
MOST_BYTES_PER_CYCLE = 3 * 64
#: The same for each operation of a core's peak rate: vectors of N numbers are loaded twice and
#: stored once, 24 N bytes, while two units make 4 N operations of them, or 2 N without fused ones.
MOST_BYTES_PER_OPERATION = 12
#: By which two ranks' times of one span may differ: they leave its last barrier one by one.
CLOCKS_DIFFER = 0.01
#: Of the clock, in a time that is compared with another.
FEWEST_STEPS = 10
#: By which a sum of times may be off.
ROUNDING = 1e-6


def one_way_bandwidth(message_bytes: int, round_trip_s: float) -> float:
    """Return the bandwidth in B/s: two messages pass in a round trip."""
    return 2 * message_bytes / round_trip_s


def message_faster_than_memory(result: PingPong) -> str | None:
    """Say so when messages pass faster than memory is copied: one copy at least must happen."""
    one_way = result.time_s.median / 2
    if result.message_bytes == 0 or one_way >= result.memory_copy_s:
        return None
    return (
        f"{result.pair}, {result.message_bytes} bytes: the median one-way time {one_way:.3g} s is "
        f"below the {result.memory_copy_s:.3g} s that memory takes for one plain copy"
    )


def _above_link(message_bytes: int, round_trip_s: float, link_bytes_per_s: float) -> str | None:
    """Return the numbers of a round trip that is quicker than the one-way rate of the link."""
    if message_bytes == 0 or round_trip_s <= 0:
        return None
    bandwidth = one_way_bandwidth(message_bytes, round_trip_s)
    if bandwidth <= link_bytes_per_s:
        return None
    return (
        f"the median bandwidth {bandwidth / 1e6:.4g} MB/s is above the link's "
        f"{link_bytes_per_s / 1e6:.4g} MB/s"
    )


def bandwidth_above_link(result: PingPong, link_bytes_per_s: float) -> str | None:
    """Say so when the median bandwidth is above the one-way rate of the link."""
    numbers = _above_link(result.message_bytes, result.time_s.median, link_bytes_per_s)
    what = f"{result.pair}, {result.message_bytes} bytes, {result.order} order"
    return f"{what}: {numbers}" if numbers else None


def echo_above_link(result: Communication, link_bytes_per_s: float) -> str | None:
    """Say so when an echo's median bandwidth is above the one-way rate of the link."""
    numbers = _above_link(result.message_bytes, result.time_s.median, link_bytes_per_s)
    return f"{result.series}, {result.message_bytes} bytes: {numbers}" if numbers else None


def latency_above_link(result: Latency, link_bytes_per_s: float) -> str | None:
    """Say so when a preflight's messages pass faster than the one-way rate of the link allows.

    This reveals a library that has seen through hosts played by one machine: it communicates by
    shared memory while the ranks seem to be on different nodes.
    """
    numbers = _above_link(result.message_bytes, result.time_s.median, link_bytes_per_s)
    what = f"{result.message_bytes} bytes between ranks {result.source} and {result.to}"
    return f"{what}: {numbers}, so the ranks do not use the link" if numbers else None


def communication_above_link(
    result: Communication,
    hosts: Sequence[str],
    link_bytes_per_s: float,
    *,
    oversubscribed: bool = False,
    messages: Sequence[Message] | None = None,
) -> str | None:
    """Say so when ranks finish before the links between their nodes can have.

    `hosts` has the host of each rank of the world; links.py says what has to pass the links,
    and why that is certain.
    """
    least = least_seconds(
        result, hosts, link_bytes_per_s, oversubscribed=oversubscribed, messages=messages
    )
    if result.time_s.median >= least:
        return None
    return (
        f"{result.series}, {result.message_bytes} bytes: the median time "
        f"{result.time_s.median:.4g} s is below the {least:.4g} s that a link of "
        f"{link_bytes_per_s / 1e6:.4g} MB/s needs for what has to cross it"
    )


def node_pairs_above_link(result: NodePairsRound, link_bytes_per_s: float) -> str | None:
    """Say so when a pair's messages pass faster than the one-way rate of the nodes' links."""
    ways = 2 if result.measure == "latency" else 1
    least = ways * result.messages * result.message_bytes / link_bytes_per_s
    for source, to, seconds in zip(result.source, result.to, result.median_s, strict=True):
        if seconds < least:
            return (
                f"{result.measure} from rank {source} to {to}: the median {seconds:.4g} s is below "
                f"the {least:.4g} s that a link of {link_bytes_per_s / 1e6:.4g} MB/s needs for "
                f"{how_many(ways * result.messages, 'message')} of {result.message_bytes} bytes"
            )
    return None


COLLECTIVES_OF_DATA = ("bcast", "gather", "scatter", "allgather", "alltoall", "reduce-min",
                       "reduce-sum", "allreduce-min", "allreduce-sum")  # fmt: skip


def clock_resolution(header: Header) -> float:
    """Return the shortest time in s that a launch's clock can resolve."""
    return max(header.clock_tick_s, header.clock_resolution_s)


#: A clock that is read in so short a time in s counts finer than two readings can follow.
READING_S = 1e-7


def clock_step(header: Header) -> float:
    """Return the step in s of a launch's clock.

    If two readings differ by no more than a reading costs, that is the tick; else the
    clock was seen to stand still for its resolution, whatever tick it reports.
    """
    fine = header.clock_resolution_s <= READING_S
    return header.clock_tick_s if fine else clock_resolution(header)


def limited_by_clock(seconds: float, resolution_s: float) -> bool:
    """Return whether a time has too few steps of the clock for comparing it.

    Hoefler and Belli (SC'15): the resolution should be ten times finer than what is timed.
    """
    return seconds < FEWEST_STEPS * resolution_s


def time_below_clock_resolution(header: Header, result: Result) -> str | None:
    """Say so when the shortest time is below what the clock can resolve.

    A collective operation without data need not do anything (but a barrier), and may take no time;
    nor need a rank wait for others to make a grid or a datatype, which clocks of 1 us cannot time.
    """
    if isinstance(result, NodePairsRound):
        shortest = min(result.min_s)
    elif time_s := getattr(result, "time_s", None):
        shortest = time_s.min
    else:
        return None
    if isinstance(result, Communication) and (
        result.operation == "cartesian"
        or (result.operation in COLLECTIVES_OF_DATA and not result.message_bytes)
    ):
        return None
    resolution = clock_resolution(header)
    if shortest >= resolution:
        return None
    return (
        f"{result.operation}: the shortest time {shortest:.3g} s is below the clock's "
        f"resolution of {resolution:.3g} s"
    )


def rate_above_peak(run: HplRun, peak_flops: float) -> str | None:
    """Say so when HPL reports more than the processors' peak."""
    if run.rate_flops <= peak_flops:
        return None
    return (
        f"HPL N={run.n} on {run.p}x{run.q}: {run.rate_flops / 1e9:.4g} GFLOPS is above the "
        f"processors' peak of at most {peak_flops / 1e9:.4g} GFLOPS"
    )


def computing_above_peak(result: DgemmResult | LinpackSolve, peak_flops: float) -> str | None:
    """Say so when ranks compute more than the peak of the processors that they have."""
    all_ranks = result.ranks if isinstance(result, LinpackSolve) else 1
    rate = all_ranks * result.rate_flops
    if rate <= peak_flops:
        return None
    return (
        f"{result.operation} N={result.n}: {rate / 1e9:.4g} GFLOPS is above the processors' peak "
        f"of at most {peak_flops / 1e9:.4g} GFLOPS"
    )


def moved_bytes(result: Result) -> int:
    """Return the bytes that a result's timed iterations moved; 0 for other results."""
    match result:
        case PingPong():
            return 2 * result.message_bytes * result.iterations
        case StreamResult():
            return result.ranks * result.moved_bytes * result.iterations
        case Communication():
            return result.moved_bytes * result.iterations
        case NodePairsRound():
            return result.moved_bytes * result.iterations
    return 0


def moved_beyond_launch(results: Sequence[Result], wall_s: float, peak_flops: float) -> str | None:
    """Say so when results moved more than the cores can have moved in the launch's own wall time.

    That time is the job's, by the node's clocks: a program's own clock, and with it all that it
    measures of the machine to compare with, may be off by any factor.
    """
    moved, most = sum(map(moved_bytes, results)), MOST_BYTES_PER_OPERATION * peak_flops
    if moved <= most * wall_s:
        return None
    return (
        f"the results moved {moved / 1e9:.4g} GB, and the whole launch took {wall_s:.4g} s: these "
        f"{moved / wall_s / 1e9:.4g} GB/s are above the {most / 1e9:.4g} GB/s that its cores' "
        "loads and stores can move"
    )


def memory_above_core(
    result: StreamResult, memory_bytes_per_s: float | None, peak_flops: float
) -> str | None:
    """Say so when memory is faster than the site states, or than the cores could use.

    `memory_bytes_per_s` is the limit of the node's memory, None where the site does not state it.
    The cores' clocks are the program's own measurement, by the same clock as its times, and wrong
    where these are: the ranks' `peak_flops` is the site's.
    """
    clocks, what = sum(result.clock_hz_by_rank), "what the cores' loads and stores can move"
    limits = [
        (MOST_BYTES_PER_CYCLE * clocks, what), (MOST_BYTES_PER_OPERATION * peak_flops, what),
    ]  # fmt: skip
    if memory_bytes_per_s:
        limits.append((memory_bytes_per_s, "the memory's limit"))
    limit, what = min(limits)
    if result.best_bandwidth <= limit:
        return None
    return (
        f"stream {result.kernel}: {result.best_bandwidth / 1e9:.4g} GB/s is above {what}, "
        f"{limit / 1e9:.4g} GB/s"
    )


def npb_rate_above_peak(run: NpbRun, peak_flops: float) -> str | None:
    """Say so when a NAS Parallel Benchmark reports more operations than the processors' peak.

    EP's random numbers and IS' keys are no floating-point operations, but take some instructions
    each.
    """
    if run.rate_ops <= peak_flops:
        return None
    return (
        f"{run.benchmark}, class {run.problem_class}: {run.rate_ops / 1e6:.6g} Mop/s is above the "
        f"processors' peak of at most {peak_flops / 1e6:.6g}"
    )


def npb_timed_beyond_launch(run: NpbRun, wall_s: float) -> str | None:
    """Say so when a NAS Parallel Benchmark timed more than the launch's own wall time in s.

    Its times are one after the other, and that of the launch is the job's, by the node's clocks.
    """
    timed = sum(run.times_s)
    if timed <= wall_s * (1 + CLOCKS_DIFFER):
        return None
    return (
        f"{run.benchmark}, class {run.problem_class}: the times that it reports add up to "
        f"{timed:.4g} s, more than the {wall_s:.4g} s that the whole launch took"
    )


def su3_too_fast(result: Su3Result, peak_flops: float) -> str | None:
    """Say so when a lattice is updated above the processors' peak, or waited for too long."""
    rate = result.flops / result.wall_s if result.wall_s else float("inf")
    if rate > peak_flops:
        return (
            f"su3 on {'x'.join(map(str, result.lattice))}: {rate / 1e9:.4g} GFLOP/s is above the "
            f"processors' peak of at most {peak_flops / 1e9:.4g} GFLOP/s"
        )
    longest = max(result.exchange_by_rank_s)
    if longest > result.wall_s * (1 + CLOCKS_DIFFER):
        return (
            f"a rank spent {longest:.4g} s in exchanges, but the whole run took "
            f"{result.wall_s:.4g} s"
        )
    return None


def emulation_too_fast(result: EmulationResult) -> str | None:
    """Say so when an emulated application is faster than its own computing, or than alone."""
    drawn = max(result.drawn_by_rank_s)
    for name, mean in (("alone", result.alone_s.mean), ("together", result.together_s.mean)):
        if mean < drawn * (1 - ROUNDING):
            return (
                f"{result.series}: the mean time {name}, {mean:.6g} s, is below the {drawn:.6g} s "
                "that one of its ranks computes"
            )
    if result.slowdown.median < LEAST_SLOWDOWN:
        return (
            f"{result.series}: alongside the other applications it takes "
            f"{result.slowdown.median:.3g} of the time that it takes alone"
        )
    return None


def emulation_above_link(result: EmulationResult, link_bytes_per_s: float) -> str | None:
    """Say so when messages pass faster than the link of a rank that has a node of its own."""
    runs = result.iterations * RUNS_OF_AN_ITERATION
    most = max(*result.sent_by_rank_bytes, *result.received_by_rank_bytes) / runs
    if most == 0 or result.messages_s.median <= 0:
        return None
    rate = most / result.messages_s.median
    if rate <= link_bytes_per_s:
        return None
    return (
        f"{result.series}: a rank moves {most:.6g} bytes one way in {result.messages_s.median:.3g} "
        f"s; these {rate / 1e6:.4g} MB/s are above the link's {link_bytes_per_s / 1e6:.4g} MB/s"
    )
