"""The thesis' own table is the model of numbers that cannot be."""

import csv
import inspect
from pathlib import Path

from analysis import plausibility
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


#: What docs/method.md says of each, in "Numbers that cannot be".
DOCUMENTED = {
    "message_faster_than_memory": "below the time of one plain copy",
    "bandwidth_above_link": "or its median bandwidth is above the rate of the link",
    "echo_above_link": "of an echo without MPI, by PVM",
    "latency_above_link": "or in a preflight",
    "communication_above_link": "what has to pass it",
    "time_below_clock_resolution": "below what the clock can tell apart",
    "rate_above_peak": "HPL's, that of",
    "npb_rate_above_peak": "NAS Parallel Benchmark by NPB's count",
    "computing_above_peak": "DGEMM's of all ranks together, or that of Linpack 100 or 1000",
    "memory_above_core": "a loop of STREAM",
    "su3_too_fast": "longer in the exchange of borders than all trajectories took",
    "emulation_too_fast": "faster in the mean, alone or beside others",
    "emulation_above_link": "an emulated application's messages",
}


def test_every_limit_is_in_the_method() -> None:
    method = (PROJECT / "docs/method.md").read_text()
    section = method.partition("## Numbers that cannot be\n")[2].partition("The thesis is the")[0]
    limits = {
        name
        for name, function in vars(plausibility).items()
        if inspect.isfunction(function)
        and function.__module__ == plausibility.__name__
        and not name.startswith("_")
        and function.__annotations__["return"] == "str | None"
    }
    assert limits == set(DOCUMENTED)
    said = " ".join(section.split())
    assert {name: words for name, words in DOCUMENTED.items() if words not in said} == {}
    # Those of a profile and of start-up are with their records.
    assert "in calls of MPI, by its profile, than it ran" in said and "are not in order" in said
