"""The thesis' own table is the model of numbers that cannot be."""

import csv
import inspect
from pathlib import Path

from records.base import TimeSummary
from records.communication import Communication, PingPong
from records.limits import plausibility
from records.limits.plausibility import (
    bandwidth_above_link,
    echo_above_link,
    memory_above_core,
    message_faster_than_memory,
    moved_beyond_launch,
)
from records.node_rates import StreamResult

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


def test_program_and_yardstick_scaled_alike_are_above_the_peak_of_the_site() -> None:
    """A program's clock that is off by a thousand makes its cores' clocks as quick as its times."""
    loop = StreamResult(
        record="result", operation="stream", kernel="copy", ranks=2, iterations=5, warmup=1,
        time_s=summary(1e-6), median_by_rank_s=[1e-6] * 2, clock_hz_by_rank=[3e12] * 2,
        array_bytes=8_000_000, moved_bytes=16_000_000, verified_elements=1_000_000,
    )  # fmt: skip
    peak = 2 * 16 * 3e9
    sentence = memory_above_core(loop, None, peak)
    assert sentence is not None and "3.2e+04 GB/s is above what the cores'" in sentence
    slower = loop.model_copy(update={"time_s": summary(1e-3)})
    assert memory_above_core(slower, None, peak) is None
    # Of its own times or not: what it says that it moved does not fit into the launch.
    assert moved_beyond_launch([slower], 1.0, peak) is None
    assert moved_beyond_launch([slower] * 100, 1e-3, peak) == (
        "the results moved 16 GB, and the whole launch took 0.001 s: these 1.6e+04 GB/s are above "
        "the 1152 GB/s that its cores' loads and stores can move"
    )
    messages = result(10**9, 11.8e12)
    assert moved_beyond_launch([messages], 0.1, peak) is not None
    assert moved_beyond_launch([messages], 10.0, peak) is None


#: What docs/method/plausibility.md says of each, in "Impossible numbers".
DOCUMENTED = {
    "message_faster_than_memory": "below the time of one plain copy",
    "bandwidth_above_link": "or its median bandwidth is above the rate of the link",
    "echo_above_link": "of an echo without MPI, by PVM",
    "latency_above_link": "or in a preflight",
    "communication_above_link": "what has to cross it",
    "time_below_clock_resolution": "below what the clock can resolve",
    "rate_above_peak": "HPL's, that of",
    "npb_rate_above_peak": "NAS Parallel Benchmark by NPB's count",
    "npb_timed_beyond_launch": "together took longer than the launch's own wall time",
    "computing_above_peak": "DGEMM's of all ranks together, or that of Linpack 100 or 1000",
    "memory_above_core": "a loop of STREAM",
    "moved_beyond_launch": "in the launch's own wall time",
    "su3_too_fast": "longer in the exchange of borders than all trajectories took",
    "emulation_too_fast": "faster on average, alone or with others",
    "node_pairs_above_link": "between two nodes, of those that are tried in pairs",
    "emulation_above_link": "an emulated application's messages",
}


def test_every_limit_is_in_the_method() -> None:
    method = (PROJECT / "docs/method/plausibility.md").read_text()
    section = method.partition("## Impossible numbers\n")[2].partition("The thesis is the")[0]
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
    assert "in calls of MPI, by its profile, than it ran" in said and "are out of order" in said
