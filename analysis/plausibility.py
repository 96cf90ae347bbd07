"""Numbers that cannot be. Each function returns a sentence with the numbers, or None.

The thesis found its first program measuring more than 12.5 MB/s over a 100 Mbit/s link; a number
above a physical limit is the most useful alarm that a measurement can have.
"""

from __future__ import annotations

from analysis.hpl_output import HplRun
from analysis.records import Communication, Header, Latency, PingPong, Result


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


def bandwidth_above_link(result: PingPong, link_bytes_per_s: float) -> str | None:
    """Say so when the median bandwidth is above the one-way rate of the link."""
    if result.message_bytes == 0 or result.time_s.median <= 0:
        return None
    bandwidth = one_way_bandwidth(result.message_bytes, result.time_s.median)
    if bandwidth <= link_bytes_per_s:
        return None
    return (
        f"{result.pair}, {result.message_bytes} bytes, {result.order} order: the median bandwidth "
        f"{bandwidth / 1e6:.4g} MB/s is above the link's {link_bytes_per_s / 1e6:.4g} MB/s"
    )


def echo_above_link(result: Communication, link_bytes_per_s: float) -> str | None:
    """Say so when the median bandwidth of an echo is above the one-way rate of the link."""
    if result.message_bytes == 0 or result.time_s.median <= 0:
        return None
    bandwidth = one_way_bandwidth(result.message_bytes, result.time_s.median)
    if bandwidth <= link_bytes_per_s:
        return None
    return (
        f"{result.series}, {result.message_bytes} bytes: the median bandwidth "
        f"{bandwidth / 1e6:.4g} MB/s is above the link's {link_bytes_per_s / 1e6:.4g} MB/s"
    )


def latency_above_link(result: Latency, link_bytes_per_s: float) -> str | None:
    """Say so when a preflight's messages pass faster than the one-way rate of the link allows.

    It is how a library shows that it has seen through hosts which one machine plays: it talks by
    shared memory while the ranks seem to be on different nodes.
    """
    if result.message_bytes == 0 or result.time_s.median <= 0:
        return None
    bandwidth = one_way_bandwidth(result.message_bytes, result.time_s.median)
    if bandwidth <= link_bytes_per_s:
        return None
    return (
        f"{result.message_bytes} bytes between ranks {result.source} and {result.to}: the median "
        f"bandwidth {bandwidth / 1e6:.4g} MB/s is above the link's {link_bytes_per_s / 1e6:.4g} "
        "MB/s, so the ranks do not use the link"
    )


def time_below_clock_resolution(header: Header, result: Result) -> str | None:
    """Say so when the shortest time is below what the clock can tell apart."""
    time_s = getattr(result, "time_s", None)
    if time_s is None:
        return None
    resolution = max(header.clock_tick_s, header.clock_resolution_s)
    if time_s.min >= resolution:
        return None
    return (
        f"{result.operation}: the shortest time {time_s.min:.3g} s is below the clock's "
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
