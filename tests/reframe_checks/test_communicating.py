"""The checks of communications pass on exactly what was asked for, and on nothing else."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.models.guidelines.declared import declared
from analysis.models.guidelines.trials import Setting, trials_of
from records.base import Header
from records.communication import Communication
from records.limits.links import drawn_messages
from records.limits.plausibility import time_below_clock_resolution
from records.program_output import read_program_output
from reframe_checks import collective_forms, collectives, halo_exchange
from reframe_checks.mixins.communicating import Communicating, point_of
from reframe_checks.mixins.recording import Suspect
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


def series(of: Record) -> Record:
    """Return the times of a result's iterations, all alike."""
    key = {name: of[name] for name in ("operation", "method", "group", "message_bytes")}
    return {"record": "iterations", **key, "time_s": [1e-5] * int(str(of["iterations"]))}


def output(records: list[Record], program: str = "one_sided", **more: Any) -> str:
    """Return a program's output with the times of all iterations; `more` is of its header."""
    end: Record = {"record": "end", "results": len(records)}
    with_series = [line for one in records for line in (one, series(one))]
    return lines(header(program, **more), *with_series, end)


def test_what_was_asked_for_passes(stand_in: StandIn) -> None:
    stand_in.write(output(results()))
    outcome = stand_in.run(only=ONLY)
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert launch["outcome"] == "sound" and launch["oversubscribed"] is False


def of_ranks(of: Record) -> list[Record]:
    """Return what each of the two ranks took for a result's iterations."""
    return [{**series(of), "record": "rank_iterations", "rank": rank} for rank in (0, 1)]


BY_RANK = ("-S", f"{ONLY}.raw_by_rank=yes")


def test_what_each_rank_took_is_asked_for_and_must_be_there(stand_in: StandIn) -> None:
    records = results()
    end: Record = {"record": "end", "results": len(records)}
    every = [line for one in records for line in (one, series(one), *of_ranks(one))]
    whole, lacking = stand_in.play(
        {"stdout": lines(header("one_sided"), *every, end)},
        {"stdout": output(results())},
        only=ONLY, options=BY_RANK,
    )  # fmt: skip
    assert whole.code == 0, whole.text
    [launch] = whole.launches
    assert "--raw-by-rank" in str(launch["command"])
    assert lacking.code != 0
    assert "the output lacks each rank's time for every iteration" in lacking.reason()


def lacking(*names: str) -> str:
    """Return what the program says where the MPI lacks some ways."""
    return "".join(f"one_sided: left out: {name}: this MPI has no such calls\n" for name in names)


def test_what_the_implementation_lacks_may_be_missing_if_the_program_says_so(
    stand_in: StandIn,
) -> None:
    without = output(results(("fence", "post-start")))
    silent, announced, nothing = stand_in.play(
        {"stdout": without},
        {"stdout": without, "stderr": lacking("lock")},
        {"stdout": output([]), "stderr": lacking("fence", "lock", "post-start")},
        only=ONLY,
    )
    assert silent.code != 0
    assert "12 results, not the 18 requested; missing: " in silent.reason()
    assert "method='lock'" in silent.reason()
    assert announced.code == 0, announced.text
    assert nothing.code != 0 and "nothing is left to measure" in nothing.reason()


def of_suite(name: str, **more: object) -> list[Record]:
    """Return the results of a suite of CollectiveForms on two ranks."""
    return [
        {**result(*point[:2], point.message_bytes), "group": "world", "iterations": 50, **more}
        for point in collective_forms.SUITES[name].asked_points()
    ]


def test_an_operation_may_be_lacking_as_a_method_may(stand_in: StandIn) -> None:
    records = of_suite("reductions")
    without = [one for one in records if one["operation"] != "reduce-scatter-block-sum"]
    said = "collective: left out: reduce-scatter-block-sum: this MPI has no such call\n"
    whole, announced, silent = stand_in.play(
        {"stdout": output(records, "collective")},
        {"stdout": output(without, "collective"), "stderr": said},
        {"stdout": output(without, "collective")},
        only="CollectiveForms.*suite=reductions",
    )
    assert whole.code == announced.code == 0, announced.text
    assert silent.code != 0 and "missing: AskedPoint(operation='reduce-sc" in silent.reason()


def test_windows_may_be_retimed_and_nothing_else(stand_in: StandIn) -> None:
    """As many as began late are timed again; never more than were asked for are kept."""
    asked = [
        {**result(*point[:2], point.message_bytes), "group": "world", "synchronisation": "window",
         "iterations": 50, "discarded": 20}
        for point in collective_forms.BEGUN.asked_points()
    ]  # fmt: skip
    more = [{**one, "iterations": 51} for one in asked]
    retimed, too_many = stand_in.play(
        {"stdout": output(asked, "collective")},
        {"stdout": output(more, "collective")},
        only="Beginnings.*begun=window",
    )
    assert retimed.code == 0, retimed.text
    assert too_many.code != 0 and "not the 50 requested" in too_many.reason()


def test_what_lasts_the_longer_the_slower_a_call_is_has_no_reference(stand_in: StandIn) -> None:
    stand_in.write(output(of_suite("non-blocking"), "collective"))
    outcome = stand_in.run(only="CollectiveForms.*suite=non-blocking")
    assert outcome.code == 0, outcome.text
    assert "alltoall_non_blocking_world_8192" in outcome.text
    assert "overlapped" not in outcome.text and "computing" not in outcome.text


def unverified(records: list[Record]) -> None:
    records[0]["verified_bytes"] = 7


def another_size(records: list[Record]) -> None:
    records[0].update(message_bytes=16, moved_bytes=16, verified_bytes=16)


def one_twice(records: list[Record]) -> None:
    records.append(records[-1])


def unknown_operation(records: list[Record]) -> None:
    records[0]["operation"] = "gossip"


def cut_short(records: list[Record]) -> None:
    for record in records:
        record["iterations"] = 1


def some_late(records: list[Record]) -> None:
    records[2]["discarded"] = 1


def impossible_time(records: list[Record]) -> None:
    records[3].update(time_s=summary(1e-9))


DAMAGES: list[tuple[Callable[[list[Record]], None], str]] = [
    (unverified, "8 bytes moved and 7 were verified"),
    (another_size, "missing: AskedPoint(operation='put', method='fence', group='pair', "
                   "message_bytes=8)"),
    (one_twice, "19 results, not the 18 requested"),
    (unknown_operation, "the operation 'gossip' is unknown"),
    (cut_short, "put fence [pair], 8 bytes: 1 iterations and 0 discarded, not the 20 requested"),
    (some_late, "get fence [pair], 8 bytes: 20 iterations and 1 discarded, not the 20 requested"),
    (impossible_time, "suspect: get: the shortest time 1e-09 s is below the clock's"),
]  # fmt: skip


def test_anything_else_fails(stand_in: StandIn) -> None:
    plays = []
    for damage, _ in DAMAGES:
        records = results()
        damage(records)
        plays.append({"stdout": output(records)})
    for (_, sentence), outcome in zip(DAMAGES, stand_in.play(*plays, only=ONLY), strict=True):
        assert outcome.code != 0 and sentence in outcome.reason(), outcome.text
        assert outcome.launches[0]["outcome"] != "sound"


def without_times(text: list[str]) -> list[str]:
    return [line for line in text if '"record": "iterations"' not in line]


def one_series_twice(text: list[str]) -> list[str]:
    """As many series as results, of which one has two and another none."""
    return [*text[:3], text[2], text[3], *text[5:]]


def test_each_result_has_the_times_of_its_iterations(stand_in: StandIn) -> None:
    whole = output(results()).splitlines(keepends=True)
    plays = [{"stdout": "".join(damage(whole))} for damage in (without_times, one_series_twice)]
    for outcome in stand_in.play(*plays, only=ONLY):
        assert outcome.code != 0 and "lacks the times of single iterations" in outcome.reason()


def examined(path: Path, text: str, nodes: int, processors: int) -> None:
    """Judge an output as the check does that a site of so many nodes and processors has started."""
    path.write_text(text)
    found = read_program_output(path)
    check: Any = SimpleNamespace(
        read_records=lambda: found,
        left_out=dict,
        asked_points=lambda: map(point_of, found.communications()),
        iterations_wanted=lambda: 20,
        site=lambda: {"link_bytes_per_s": 12.5e6},
        nodes=nodes,
        num_tasks=2,
        raw_by_rank=False,
        oversubscribed=lambda: processors < 2,
        messages_of=lambda result: None,
    )
    check.refuse_other_iterations = lambda of: Communicating.refuse_other_iterations(check, of)
    Communicating.examine(check)
    assert check.measured == found.communications()


def test_a_launch_above_the_link_is_suspect(tmp_path: Path) -> None:
    """A launch on two nodes of a 100 Mbit/s network: 8192 bytes take it 0.655 ms one way."""

    def got_at(rate: float, *hosts: str) -> str:
        records = results()
        for record in records:
            record.update(time_s=summary(8192 / 12.5e6 / rate))
        return output(records, hosts=list(hosts))

    path = tmp_path / "stdout"
    sentence = (
        r"get fence \[pair\], 8192 bytes: the median time 0.0004369 s is below the 0.0006554 s "
        r"that a link of 12.5 MB/s needs for what has to cross it"
    )
    examined(path, got_at(0.97, "node1", "node2"), nodes=2, processors=2)
    for processors in (1, 2):
        with pytest.raises(Suspect, match=sentence):
            examined(path, got_at(1.5, "node1", "node2"), nodes=2, processors=processors)
    examined(path, got_at(1.5, "node1", "node1"), nodes=1, processors=2)


def exchange(moved: int = 0, mean: int = 0) -> str:
    """Return the output of SomeToSome, with so many bytes more than the seed has."""
    records = []
    for sided, style in product(("single", "double"), ("asynchronous", "synchronous")):
        drawn = drawn_messages(1, 2, 6, 32_768, double=sided == "double")
        total = sum(message.size_bytes for message in drawn)
        one = result("some-to-some", f"{style} {sided}-sided", total // len(drawn) + mean)
        one |= {
            "group": "world, 6 messages a rank, seed 1", "iterations": 5,
            "moved_bytes": total + moved, "verified_bytes": total + moved,
        }  # fmt: skip
        records.append(one)
    return output(records, "some_to_some")


#: Damages of a random exchange, and what the check says of each.
EXCHANGES: list[tuple[dict[str, int], str]] = [
    ({}, ""),
    ({"mean": 1}, "the output has 4 results, not the 4 requested; missing: "),
    ({"moved": 1}, "bytes moved, but the messages of seed 1 have"),
]


def test_a_random_exchange_is_the_one_of_its_seed(stand_in: StandIn) -> None:
    two_cores = stand_in.settings(
        lambda text: text.replace("cores_per_node: detect", "cores_per_node: 2")
    )
    plays = [{"stdout": exchange(**damage)} for damage, _ in EXCHANGES]
    outcomes = stand_in.play(*plays, only="^SomeToSome", options=["-C", two_cores])
    for (damage, sentence), outcome in zip(EXCHANGES, outcomes, strict=True):
        assert (outcome.code == 0) is (not damage), outcome.text
        assert sentence in outcome.reason()


def test_an_estimate_and_the_output_of_another_program_are_no_measurement(
    stand_in: StandIn,
) -> None:
    estimate: Record = {"record": "estimate", "points": 18, "estimated_s": 1.0}
    estimated, other = stand_in.play(
        {"stdout": lines(header("one_sided"), estimate, {"record": "end", "results": 0})},
        {"stdout": output(results()).replace('"one_sided"', '"pairs"', 1)},
        only=ONLY,
    )
    assert estimated.code != 0 and "the record 'estimate' is unknown" in estimated.reason()
    assert other.code != 0 and "the output is from pairs, not from one_sided" in other.reason()


def communication(**more: object) -> Communication:
    return Communication.model_validate({**result("alltoall", "", 1_000_000, 0.2), **more})


@pytest.mark.parametrize(
    ("only", "sentence"),
    [
        # Two buffers of 8 messages each: of 20 MB, and of an eighth of 512 MB with 64 MiB beside.
        ("Collectives.*suite=ata", "suite=ata ranks=8 needs 2.56 GB"),
        ("Collectives.*suite=ntnu-alltoall-large", "ranks=8 needs 8.73 GB"),
        # 40,000 x 40,000 doubles, and the borders of 4 x 2 parts.
        ("HaloExchange.*suite=cartesian", "suite=cartesian ranks=8 needs 12.80 GB"),
    ],
)
def test_buffers_that_a_node_has_no_memory_for_are_left_out(
    stand_in: StandIn, only: str, sentence: str
) -> None:
    stand_in.variables["WYEAST_TIER"] = "paper"
    eight_cores = stand_in.settings(
        lambda text: text.replace("cores_per_node: detect", "cores_per_node: 8").replace(
            "memory_bytes_per_node: detect", "memory_bytes_per_node: 3000000000"
        )
    )
    outcome = stand_in.run("-C", eight_cores, only=only)
    assert outcome.launches == [] and "FAIL" not in outcome.text
    assert (
        f"{sentence} for the buffers of 8 ranks on a node, but 80% of the memory of 1 node "
        "is 2.40 GB; it is left out" in outcome.text
    ), outcome.text


def test_what_a_rank_reserves_by_hand() -> None:
    suite = collectives.CollectiveSuite(("alltoall",), (8, 800), 4, 1, scrub_bytes=1000)
    assert suite.bytes_of_a_rank(4) == 2 * 4 * 800 + 1000
    assert (
        collectives.CollectiveSuite(("barrier", "allreduce-sum"), (800,), 4, 1).bytes_of_a_rank(4)
        == 1600
    )
    assert (
        collectives.CollectiveSuite(("bcast", "gather"), (800,), 4, 1).bytes_of_a_rank(4) == 5 * 800
    )
    parts = halo_exchange.HaloSuite((), (1, 2), (8, 100), 8, 1, whole=True)
    # A grid of 4 x 2: 25 and 50 points, each with two of the border.
    assert parts.bytes_of_a_rank(8) == 8 * 27 * 52
    assert halo_exchange.HaloSuite((), (3,), (10,), 8, 1).bytes_of_a_rank(8) == 8 * 12**3


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
