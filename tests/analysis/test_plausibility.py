"""The thesis' own table is the model of numbers that cannot be."""

import csv
from pathlib import Path

from analysis.communication_records import Communication, PingPong
from analysis.plausibility import (
    bandwidth_above_link,
    echo_above_link,
    message_faster_than_memory,
)
from analysis.record_types import TimeSummary

PROJECT = Path(__file__).resolve().parents[2]
LINK = 12.5e6  # 100 Mbit/s, Table 2


def summary(seconds: float) -> TimeSummary:
    return TimeSummary(min=seconds, quartile1=seconds, median=seconds, mean=seconds,
                       quartile3=seconds, max=seconds)  # fmt: skip


def result(message_bytes: int, bandwidth: float, memory_copy: float = 0.0) -> PingPong:
    seconds = 2 * message_bytes / bandwidth
    return PingPong(
        record="result", operation="pingpong", pair="Isend/Irecv", order="original",
        message_bytes=message_bytes, iterations=100, warmup=0, time_s=summary(seconds),
        verified_bytes=0, memory_copy_s=memory_copy,
    )  # fmt: skip


def above_link(program: str) -> int:
    """Count the mean bandwidths of a program that the link cannot carry."""
    found = 0
    with (PROJECT / "literature/kearns2003/bandwidth.csv").open() as table:
        for row in csv.DictReader(table):
            if row["program"] == program and row["avg_mbs"]:
                one = result(int(row["message_bytes"]), float(row["avg_mbs"]) * 1e6)
                found += bandwidth_above_link(one, LINK) is not None
    return found


def test_original_program_exceeds_the_link_and_the_modified_does_not() -> None:
    assert above_link("modified") == 0
    assert above_link("original") > 50


def test_sentence_has_the_numbers() -> None:
    sentence = bandwidth_above_link(result(2_000_000, 22.95e6), LINK)
    assert sentence == (
        "Isend/Irecv, 2000000 bytes, original order: the median bandwidth 22.95 MB/s is above the "
        "link's 12.5 MB/s"
    )
    assert bandwidth_above_link(result(2_000_000, 12.5e6), LINK) is None


def test_message_needs_one_copy() -> None:
    assert message_faster_than_memory(result(1000, 1e9, memory_copy=1e-6)) is None
    assert message_faster_than_memory(result(1000, 1e9, memory_copy=1.1e-6)) is not None
    assert message_faster_than_memory(result(1000, 1e9, memory_copy=0.0)) is None


def test_echo_above_the_link_has_the_numbers() -> None:
    seconds = 2 * 32768 / 12.6e6
    echo = Communication(
        record="result", operation="echo", method="udp", group="pair", message_bytes=32768, ranks=2,
        iterations=1, warmup=0, synchronisation="none", discarded=0, clock_error_s=0.0,
        time_s=summary(seconds), median_by_rank_s=[seconds, seconds], moved_bytes=65536,
        verified_bytes=65536,
    )  # fmt: skip
    assert echo_above_link(echo, LINK) == (
        "echo udp [pair], 32768 bytes: the median bandwidth 12.6 MB/s is above the link's 12.5 MB/s"
    )
    assert echo_above_link(echo, 12.7e6) is None
    assert echo_above_link(echo.model_copy(update={"message_bytes": 0}), LINK) is None
