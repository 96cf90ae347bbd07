"""What programs say last is read from outputs of any length, and refused where it cannot be."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from records.base import numbers_of
from records.ending import SLICE_S, End, ProcessorWait, RankPlaces, ToldAtEnd, by_rank, told_in
from tests.whole_records import launch

PLACEMENT = {
    "hosts": [["node1", 2], ["node2", 2]], "processors": [["0", 1], ["1", 1], ["0-1", 2]],
    "cores": [["0", 2], ["0", 2]], "sockets": [["0", 4]], "numa_nodes": [["", 4]],
}  # fmt: skip
WAITING = {"rank": 3, "counted_s": 2.0, "waited_s": 0.5, "turns": 10}


def end(**more: Any) -> dict[str, Any]:
    return {"record": "end", "results": 1, **more}


def test_the_last_line_is_read_however_long_it_is(tmp_path: Path) -> None:
    out = tmp_path / "out"
    many: dict[str, Any] = {key: [[str(n), 1] for n in range(3000)] for key in PLACEMENT}
    for placement in (PLACEMENT, many | {"hosts": [["n" * 200, 1]] * 3000}):
        last = end(stopped=1, placement=placement, waiting=WAITING)
        out.write_text("of another\n" + json.dumps(last) + "\n")
        told = told_in(out)
        assert told.stopped == 1 and told.carriers is None
        assert told.placement and told.waiting
        assert json.loads(told.placement.model_dump_json()) == placement
    for text in ("", "of another program\n", "{}", json.dumps(end(waiting={}))):
        out.write_text(text)
        assert told_in(out) == ToldAtEnd() and told_in(tmp_path / "none") == ToldAtEnd()


def test_placements_are_of_the_same_ranks_and_equal_ones_are_one() -> None:
    one, other = (End.model_validate(end(placement=PLACEMENT)).placement for _ in range(2))
    assert one is other and one is not None
    assert [*by_rank(one.processors)] == ["0", "1", "0-1", "0-1"]
    assert numbers_of("0-2,8") == {0, 1, 2, 8} and numbers_of("") == frozenset()
    for wrong in (
        {"hosts": [["node1", 3]]}, {"cores": [["a", 4]]}, {"hosts": [["\x1b[2J", 4]]},
        {"sockets": [["0"]]}, {"numa_nodes": [["0", -4]]}, {"processors": [["0", 10**9]]},
    ):  # fmt: skip
        with pytest.raises(ValidationError):
            RankPlaces.model_validate(PLACEMENT | wrong)


def test_a_message_is_as_late_as_waits_that_it_meets_are_long() -> None:
    waiting = ProcessorWait.model_validate(WAITING)
    # A quarter of the time it is without a processor, for 50 ms each time.
    assert waiting.share == 0.25 and waiting.delay_s == pytest.approx(0.25 * 0.05)
    assert ProcessorWait(rank=0, counted_s=0.0, waited_s=0.0, turns=0).delay_s == 0
    # Another rank waited more, in shorter waits.
    told = ProcessorWait.model_validate({**WAITING, "most_share": 0.5})
    assert told.share == 0.5 and told.delay_s == waiting.delay_s


def test_short_waits_may_hide_a_few_long_ones() -> None:
    """Of a million waits of 1 us and a hundred slices the average is 1.4 us: these are met."""
    short, long = [1e-6] * 1_000_000, [SLICE_S] * 100
    waits = [*short, *long]
    waited_s = sum(waits)
    true_s = waited_s / 10.0 * sum(one * one for one in waits) / (2 * waited_s)
    found = ProcessorWait(rank=0, counted_s=10.0, waited_s=waited_s, turns=len(waits))
    assert true_s > 50 * found.share * waited_s / len(waits)
    assert found.delay_s >= true_s


def test_more_ranks_than_processors_are_oversubscribed_where_they_waited() -> None:
    little, much = ({**WAITING, "waited_s": waited} for waited in (0.09, 0.1))
    # On each node of that placement two ranks share one core, and may run nowhere else.
    for crowded, waiting, placement, expected in (
        (True, None, None, True), (True, much, None, True), (True, little, None, False),
        (False, much, None, False), (False, much, PLACEMENT, True),
        (False, little, PLACEMENT, False), (False, None, PLACEMENT, False),
    ):  # fmt: skip
        found = launch(oversubscribed=crowded, waiting=waiting, placement=placement)
        assert found.oversubscribed is expected
        assert found.facts["oversubscribed"] is crowded
    # Of campaigns from before ranks told.
    assert launch().placement is None
