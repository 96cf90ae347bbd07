"""The checks of communications pass on exactly what was asked for, and on nothing else."""

import json
from collections.abc import Callable
from itertools import product

import pytest

from analysis.communication_records import Communication
from analysis.guidelines import Setting, declared, trials_of
from analysis.plausibility import communication_above_link, time_below_clock_resolution
from analysis.record_types import Header
from reframe_checks import collectives
from tests.reframe_checks.conftest import StandIn, header, lines, summary

ONLY = "OneSided"
SIZES = (8, 8192)
Record = dict[str, object]


def result(operation: str, method: str, size: int, seconds: float = 1e-5) -> Record:
    return {
        "record": "result", "operation": operation, "method": method, "group": "pair",
        "message_bytes": size, "ranks": 2, "iterations": 20, "warmup": 10,
        "synchronisation": "barrier", "discarded": 0, "clock_error_s": 0.0,
        "time_s": summary(seconds), "median_by_rank_s": [seconds, seconds],
        "moved_bytes": size, "verified_bytes": size,
    }  # fmt: skip


def results(completions: tuple[str, ...] = ("fence", "lock", "post-start")) -> list[Record]:
    return [
        result(operation, completion, size)
        for completion, operation, size in product(completions, ("put", "get", "accumulate"), SIZES)
    ]


def output(records: list[Record]) -> str:
    end: Record = {"record": "end", "results": len(records)}
    return lines(header("one_sided"), *records, end)


def test_what_was_asked_for_passes(stand_in: StandIn) -> None:
    stand_in.write(output(results()))
    outcome = stand_in.run(only=ONLY)
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert launch["outcome"] == "sound" and launch["oversubscribed"] is False


def test_what_the_implementation_lacks_may_be_missing_if_the_program_says_so(
    stand_in: StandIn,
) -> None:
    without = output(results(("fence", "post-start")))
    stand_in.write(without)
    silent = stand_in.run(only=ONLY)
    assert silent.code != 0
    assert "12 results, not the 18 asked for; missing: " in silent.reason()
    assert "method='lock'" in silent.reason()


def test_announced_gap(stand_in: StandIn) -> None:
    said = "one_sided: left out: lock: this MPI has no such calls\n"
    stand_in.write(output(results(("fence", "post-start"))), stderr=said)
    assert stand_in.run(only=ONLY).code == 0


def test_nothing_left_to_measure(stand_in: StandIn) -> None:
    said = "".join(
        f"one_sided: left out: {name}: this MPI has no such calls\n"
        for name in ("fence", "lock", "post-start")
    )
    stand_in.write(output([]), stderr=said)
    outcome = stand_in.run(only=ONLY)
    assert outcome.code != 0 and "nothing is left to measure" in outcome.reason()


def unverified(records: list[Record]) -> None:
    records[0]["verified_bytes"] = 7


def another_size(records: list[Record]) -> None:
    records[0].update(message_bytes=16, moved_bytes=16, verified_bytes=16)


def one_twice(records: list[Record]) -> None:
    records.append(records[-1])


def unknown_operation(records: list[Record]) -> None:
    records[0]["operation"] = "gossip"


def impossible_time(records: list[Record]) -> None:
    records[3].update(time_s=summary(1e-9))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (unverified, "8 bytes moved and 7 were verified"),
        (another_size, "missing: Point(operation='put', method='fence', group='pair', "
                       "message_bytes=8)"),
        (one_twice, "19 results, not the 18 asked for"),
        (unknown_operation, "the operation 'gossip' is unknown"),
        (impossible_time, "suspect: get: the shortest time 1e-09 s is below the clock's"),
    ],
)  # fmt: skip
def test_anything_else_fails(
    stand_in: StandIn, damage: Callable[[list[Record]], None], sentence: str
) -> None:
    records = results()
    damage(records)
    stand_in.write(output(records))
    outcome = stand_in.run(only=ONLY)
    assert outcome.code != 0 and sentence in outcome.reason(), outcome.text
    assert outcome.launches[0]["outcome"] != "sound"


def test_estimate_is_no_measurement(stand_in: StandIn) -> None:
    estimate: Record = {"record": "estimate", "points": 18, "estimated_s": 1.0}
    stand_in.write(lines(header("one_sided"), estimate, {"record": "end", "results": 0}))
    outcome = stand_in.run(only=ONLY)
    assert outcome.code != 0 and "the record 'estimate' is unknown" in outcome.reason()


def test_output_of_another_program(stand_in: StandIn) -> None:
    stand_in.write(output(results()).replace('"one_sided"', '"pairs"', 1))
    outcome = stand_in.run(only=ONLY)
    assert outcome.code != 0 and "the output is of pairs, not of one_sided" in outcome.reason()


def communication(**more: object) -> Communication:
    return Communication.model_validate(
        {**result("alltoall", "", 1_000_000, 0.2), "moved_bytes": 12_000_000,
         "verified_bytes": 12_000_000, **more}
    )  # fmt: skip


def test_all_to_all_above_the_links() -> None:
    # 4 ranks send 1 MB to 3 others: each link brings 3 MB, which takes 0.24 s at 12.5 MB/s.
    assert communication_above_link(communication(time_s=summary(0.25)), 4, 12.5e6) is None
    sentence = communication_above_link(communication(), 4, 12.5e6)
    assert sentence and "0.2 s is below the 0.24 s that the links take" in sentence


def test_collective_without_data_may_take_no_time() -> None:
    clock = Header.model_validate({**json.loads(lines(header("collective")))})
    nothing = {"message_bytes": 0, "moved_bytes": 0, "verified_bytes": 0, "time_s": summary(0.0)}
    empty = communication(operation="bcast", **nothing)
    assert time_below_clock_resolution(clock, empty) is None
    barrier = communication(operation="barrier", **nothing)
    assert time_below_clock_resolution(clock, barrier) is not None


GUIDELINES = collectives.SUITES["guidelines"]


@pytest.mark.parametrize(
    "ranks",
    # So many ranks share the largest message in pieces of the smallest.
    [n for n in (2, 4, 8) if n <= max(GUIDELINES.sizes) // min(GUIDELINES.sizes)],
)
def test_the_suite_of_guidelines_lets_every_one_be_tested(ranks: int) -> None:
    suite, sizes = GUIDELINES, GUIDELINES.sizes_for(ranks)
    setting = Setting("openmpi", ranks, 1, "world", 0)
    times = {(name, size): {1: 1e-5, 2: 1.1e-5} for name in suite.operations for size in sizes}
    tested = {one.guideline for one in trials_of(setting, times)}
    assert tested >= {one.name for one in declared().guidelines}
    every = declared().every_operation
    assert {f"{name} is monotone in size" for name in every} <= tested
    assert {f"{name} of k n bytes <= k x n bytes" for name in every} <= tested
