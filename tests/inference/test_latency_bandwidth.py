"""The line through the times of messages: known ones, noisy ones, and ORNL's own table."""

import csv
import math
from pathlib import Path

import numpy
import pytest

from inference.latency_bandwidth import fit, half_bandwidth_bytes
from records.base import TimeSummary
from records.communication import Communication
from reframe_checks.raw_network import fit_echoes

PROJECT = Path(__file__).resolve().parents[2]
SIZES = [0, 8, 100, 1000, 10_000, 100_000, 1_000_000]
ALPHA, BETA = 35e-6, 1 / 35e6  # IBM SP-2's latency and bandwidth, Table 2.1


def times(sizes: list[int]) -> list[float]:
    return [ALPHA + BETA * size for size in sizes]


def test_line_is_found_exactly() -> None:
    found = fit(SIZES, times(SIZES))
    assert found.alpha_s == pytest.approx(ALPHA, rel=1e-9)
    assert found.beta_s_per_byte == pytest.approx(BETA, rel=1e-9)
    assert found.half_bandwidth_bytes == pytest.approx(1225, rel=1e-9)
    assert (found.latency_s, found.latency_bytes) == (ALPHA, 0)
    assert found.bandwidth_bytes == 1_000_000
    # Less than 1 / beta by the start-up's share: 1 / (1 + n1/2 / n).
    assert found.bandwidth == pytest.approx(35e6 / (1 + 1225e-6), rel=1e-9)


def test_half_of_the_bandwidth_is_reached_there() -> None:
    half = fit(SIZES, times(SIZES)).half_bandwidth_bytes
    assert half is not None
    assert half / (ALPHA + BETA * half) == pytest.approx(0.5 / BETA)


def test_order_does_not_matter() -> None:
    backwards = fit(SIZES[::-1], times(SIZES)[::-1])
    assert backwards == fit(SIZES, times(SIZES))


def test_latency_is_of_the_smallest_message_where_none_is_empty() -> None:
    found = fit([1000, 8], times([1000, 8]))
    assert (found.latency_bytes, found.latency_s) == (8, ALPHA + 8 * BETA)
    assert found.alpha_s == pytest.approx(ALPHA)


def test_noise_of_many_times_averages_out() -> None:
    random = numpy.random.default_rng(1)
    sizes = [int(size) for size in random.integers(0, 10_000, 2000)]
    noisy = [time * (1 + 0.05 * random.standard_normal()) for time in times(sizes)]
    found = fit(sizes, noisy)
    reference = numpy.polyfit(numpy.array(sizes, dtype=float), numpy.array(noisy), 1)
    assert [found.beta_s_per_byte, found.alpha_s] == pytest.approx(list(reference), rel=1e-6)
    assert found.alpha_s == pytest.approx(ALPHA, rel=0.05)
    assert found.half_bandwidth_bytes == pytest.approx(1225, rel=0.1)


def test_line_of_no_message_has_no_half() -> None:
    assert half_bandwidth_bytes(-1e-9, BETA) is None
    assert half_bandwidth_bytes(ALPHA, 0.0) is None
    # A change of protocol: the line through these begins below 0.
    assert fit([0, 1000, 2000], [1e-6, 1e-6, 9e-6]).half_bandwidth_bytes is None


@pytest.mark.parametrize(
    ("sizes", "seconds", "sentence"),
    [
        ([], [], "two message sizes, not 0"),
        ([8, 8], [1e-6, 2e-6], "two message sizes, not 1"),
        ([0, 8], [1e-6], "2 sizes have 1 times"),
        ([0, 8], [1e-6, math.nan], "no message's"),
        ([0, 8], [0.0, 1e-6], "no message's"),
        ([-8, 8], [1e-6, 1e-6], "no message's"),
    ],
)
def test_what_is_not_a_line_is_refused(
    sizes: list[int], seconds: list[float], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        fit(sizes, seconds)


def test_the_table_of_1996() -> None:
    """Its alpha and beta are not printed, only latency and the bandwidth of 1 MB, so few agree.

    For the line through both its points half the bandwidth is near latency times bandwidth. That
    is the printed n1/2, within a fifth, in 8 of the 23 rows that have all three.
    """
    near = []
    with (PROJECT / "literature/ornl1996/latency_bandwidth.csv").open() as table:
        rows = [
            row for row in csv.DictReader(table) if row["bandwidth_mbs"] and row["n_half_bytes"]
        ]
    for row in rows:
        latency = float(row["latency_us"]) * 1e-6
        found = fit([0, 1_000_000], [latency, 1 / float(row["bandwidth_mbs"])])
        assert found.latency_s == latency
        assert found.bandwidth == pytest.approx(float(row["bandwidth_mbs"]) * 1e6)
        half = found.half_bandwidth_bytes
        assert half is not None
        if 0.8 <= half / float(row["n_half_bytes"]) <= 1.2:
            near.append(row["machine_read"])
    assert len(rows) == 23
    assert near == ["Convex SPP1200 (PVM)", "Cray T3D (sm)", "IBM SP-1", "KSR-1", "Meiko CS2",
                    "nCUBE 1", "SGI", "TMC CM-5"]  # fmt: skip


def echo(method: str, size: int, one_way_s: float) -> Communication:
    round_trip = 2 * one_way_s
    return Communication(
        record="result", operation="echo", method=method, group="pair", message_bytes=size,
        ranks=2, iterations=1, warmup=0, synchronisation="none", discarded=0, clock_error_s=0.0,
        time_s=TimeSummary(min=round_trip, quartile1=round_trip, median=round_trip,
                           mean=round_trip, quartile3=round_trip, max=round_trip),
        median_by_rank_s=[round_trip, round_trip], moved_bytes=2 * size, verified_bytes=2 * size,
    )  # fmt: skip


def test_echoes_take_half_a_round_trip_one_way() -> None:
    echoes = [echo("udp", size, time) for size, time in zip(SIZES, times(SIZES), strict=True)]
    assert fit_echoes(echoes) == fit(SIZES, times(SIZES))
    with pytest.raises(ValueError, match="not echoes of one method"):
        fit_echoes([*echoes, echo("tcp", 1, 1e-6)])
