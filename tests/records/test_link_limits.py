"""Nothing is through before the links between nodes can be; what can be is never refused."""

import json
from typing import Any

import pytest

from records.communication import Communication
from records.limits.links import (
    Bytes,
    Message,
    bytes_over_links,
    drawn_messages,
    groups_in,
    least_seconds,
    of_collective,
    of_messages,
)
from records.limits.plausibility import communication_above_link
from tests.analysis.support.counts import counted, power_of
from tests.reframe_checks.conftest import summary

LINK = 12.5e6
SIZE = 1_000_000
#: What one message takes on one link, in seconds.
ONE = SIZE / LINK
APART = ["a", "b", "c", "d"]
FILLED = ["a", "a", "b", "b"]
DEALT = ["a", "b", "a", "b"]
EIGHT = ["a"] * 4 + ["b"] * 4


def communication(seconds: float, **more: Any) -> Communication:
    return Communication.model_validate_json(
        json.dumps(
            {
                "record": "result", "operation": "pairs", "method": "", "group": "",
                "message_bytes": SIZE, "ranks": 2, "iterations": 1, "warmup": 0,
                "synchronisation": "barrier", "discarded": 0, "clock_error_s": 0.0,
                "time_s": summary(seconds), "median_by_rank_s": [seconds], "moved_bytes": SIZE,
                "verified_bytes": SIZE,
            } | more
        )
    )  # fmt: skip


def pairs(method: str, group: str) -> dict[str, str]:
    return {"method": method, "group": group}


def one_sided(operation: str, completion: str) -> dict[str, str]:
    return {"operation": operation, "method": completion, "group": "pair"}


def collective(operation: str, group: str = "world") -> dict[str, str]:
    return {"operation": operation, "group": group}


#: How many messages have to pass one link one after the other, by hand.
CASES = [
    # A round trip is two, one after the other: the second one answers the first.
    *((pairs(method, "1 near pair"), ["a", "b"], 2)
      for method in ("send-recv", "irecv-send", "persistent", "partitioned in 4")),
    # Links carry both ways at once.
    (pairs("exchange", "1 near pair"), ["a", "b"], 1),
    (pairs("window of 64", "1 near pair"), ["a", "b"], 64),
    (pairs("send-recv", "ranks 0 and 2"), FILLED, 2),
    # Both pairs' messages leave the same node, then the last one is answered.
    (pairs("send-recv", "2 bisection pairs"), FILLED, 3),
    (pairs("exchange", "2 bisection pairs"), FILLED, 2),
    (pairs("window of 4", "2 bisection pairs"), FILLED, 8),
    (pairs("window of 4", "4 bisection pairs"), EIGHT, 16),
    (pairs("send-recv", "2 bisection pairs"), APART, 2),
    (pairs("send-recv", "2 near pairs"), DEALT, 3),
    (pairs("send-recv", "1 near pair"), DEALT, 2),
    *((one_sided(operation, completion), ["a", "b"], 1)
      for operation in ("put", "get", "accumulate")
      for completion in ("fence", "lock", "post-start")),
    (collective("alltoall"), APART, 3),
    (collective("alltoall"), FILLED, 4),
    (collective("alltoall", "halves"), APART, 1),
    (collective("alltoall", "halves"), DEALT, 2),
    (collective("allgather"), APART, 3),
    (collective("allgather"), FILLED, 2),
    (collective("allgather", "halves"), DEALT, 2),
    (collective("gather"), APART, 3),
    (collective("gather"), FILLED, 2),
    (collective("scatter"), FILLED, 2),
    (collective("bcast"), FILLED, 1),
    (collective("bcast", "halves"), DEALT, 2),
    (collective("reduce-sum"), FILLED, 1),
    (collective("allreduce-min"), APART, 1),
    (collective("allreduce-sum", "halves"), DEALT, 2),
    ({"operation": "halo", "method": "sendrecv", "group": "2x2", "moved_bytes": 8 * SIZE,
      "verified_bytes": 8 * SIZE}, APART, 2),
]  # fmt: skip


@pytest.mark.parametrize(("what", "hosts", "messages"), CASES)
def test_above_and_below_the_link(what: dict[str, Any], hosts: list[str], messages: int) -> None:
    above = communication(messages * ONE / 1.5, **what)
    sentence = communication_above_link(above, hosts, LINK)
    assert sentence and sentence.startswith(f"{above.series}, 1000000 bytes: the median time")
    below = communication(messages * ONE / 0.97, **what)
    assert communication_above_link(below, hosts, LINK) is None


WITHIN_NODES = [
    (pairs("send-recv", "2 near pairs"), FILLED),
    (pairs("window of 64", "2 bisection pairs"), DEALT),
    (pairs("send-recv", "ranks 0 and 1"), FILLED),
    (one_sided("get", "lock"), ["a", "a"]),
    (collective("alltoall", "halves"), FILLED),
    (collective("bcast", "halves"), FILLED),
    (collective("barrier"), APART),
    ({"operation": "cartesian", "method": "datatypes", "group": "2x2"}, APART),
    # The neighbours of a grid's ranks are not known where nodes are shared.
    ({"operation": "halo", "method": "sendrecv", "group": "2x2"}, FILLED),
]


@pytest.mark.parametrize(("what", "hosts"), WITHIN_NODES)
def test_what_does_not_pass_a_link_has_no_limit(what: dict[str, Any], hosts: list[str]) -> None:
    assert communication_above_link(communication(1e-9, **what), hosts, LINK) is None


@pytest.mark.parametrize("hosts", [APART, FILLED, DEALT, EIGHT, ["a", "b", "b", "c", "a", "a"]])
@pytest.mark.parametrize("group", ["world", "halves"])
def test_an_all_to_all_is_counted_as_its_messages_are(group: str, hosts: list[str]) -> None:
    groups = groups_in(group, len(hosts))
    messages = [Message(one, other, SIZE) for of in groups for one in of for other in of]
    found = of_collective(communication(1.0, **collective("alltoall", group)), hosts)
    assert found == of_messages(messages, groups, hosts)


def test_an_all_to_all_of_128_000_ranks_is_counted() -> None:
    hosts = [f"node{rank // 128}" for rank in range(128_000)]
    found = of_collective(communication(1.0, **collective("alltoall")), hosts)
    assert found == Bytes((128_000 - 128) * SIZE, 128 * (128_000 - 128) * SIZE)


@pytest.mark.parametrize(
    "what",
    [
        pairs("send-recv", "{half} bisection pairs"), pairs("window of 64", "{half} near pairs"),
        *(collective(operation, group) for operation in ("alltoall", "allgather", "bcast", "gather")
          for group in ("world", "halves")),
        {"operation": "halo", "method": "sendrecv", "group": "2x2"},
        {"operation": "some-to-some", "method": "listed", "group": "world"},
    ],
)  # fmt: skip
def test_what_is_counted_is_linear_in_the_ranks(what: dict[str, Any]) -> None:
    """By calls and memory, on ten nodes; the ranks are dealt, so that almost all pairs cross."""
    sizes, calls, memory = (2000, 4000, 8000), [], []
    for ranks in sizes:
        named = {name: word.format(half=ranks // 2) for name, word in what.items()}
        one, hosts = communication(1.0, **named), [f"node{rank % 10}" for rank in range(ranks)]
        is_listed = one.method == "listed"
        listed = drawn_messages(1, ranks, 1, 100, double=True) if is_listed else None
        with counted() as counts:
            bytes_over_links(one, hosts, listed)
        calls.append(counts.calls)
        memory.append(counts.memory_bytes)
    assert power_of(sizes, calls, least=100) < 1.1
    assert power_of(sizes, memory, least=10_000) < 1.2


def test_bytes_of_random_messages_are_counted_by_node() -> None:
    drawn = drawn_messages(7, 4, 6, SIZE, double=False)
    out = {
        host: sum(m.size_bytes for m in drawn if FILLED[m.source] == host != FILLED[m.destination])
        for host in ("a", "b")
    }
    what = {"operation": "some-to-some", "group": "world"}
    truth = max(out.values()) / LINK
    for factor, refused in ((1.5, True), (0.97, False)):
        one = communication(truth / factor, **what)
        assert bool(communication_above_link(one, FILLED, LINK, messages=drawn)) is refused


@pytest.mark.parametrize(
    ("what", "certain"),
    [
        # Rank 1 may come to the barrier's end when all is there, if it waited for a processor.
        (one_sided("put", "fence"), 0),
        (collective("bcast"), 0),
        (collective("gather"), 0),
        (one_sided("put", "lock"), 1),
        (one_sided("get", "fence"), 1),
        (pairs("window of 64", "1 near pair"), 64),
        (pairs("exchange", "1 near pair"), 1),
        (collective("alltoall"), 1),
        (collective("allreduce-sum"), 1),
    ],
)
def test_late_ranks_make_no_false_alarm(what: dict[str, Any], certain: int) -> None:
    least = least_seconds(communication(1.0, **what), ["a", "b"], LINK, oversubscribed=True)
    assert least == pytest.approx(certain * ONE)


def test_a_rank_may_be_late_by_a_short_while() -> None:
    # Of 12,500 bytes, which take 1 ms, a rank that leaves the barrier 1 ms late may find all.
    short = {**collective("bcast"), "message_bytes": 12_500}
    assert communication_above_link(communication(0.0, **short), ["a", "b"], LINK) is None


def test_a_window_is_as_sure_as_its_clocks() -> None:
    what = {**collective("bcast"), "synchronisation": "window", "clock_error_s": ONE / 4}
    assert least_seconds(communication(1.0, **what), APART, LINK) == pytest.approx(ONE / 2)


def beginnings(ranks: int) -> list[list[float]]:
    """Return some orders in which ranks begin, one message's time apart."""
    return [[ONE * ((rank * step + shift) % ranks) for rank in range(ranks)]
            for step in (1, 3) for shift in range(ranks)]  # fmt: skip


def longest_own_time(messages: list[Message], hosts: list[str], begin: list[float]) -> float:
    """Return the slowest rank's own time where a message takes what its links take, in order."""
    free = {(way, host): 0.0 for host in hosts for way in ("out", "in")}
    end = list(begin)
    for message in sorted(messages, key=lambda m: begin[m.source]):
        source, destination = hosts[message.source], hosts[message.destination]
        there = begin[message.source]
        if source != destination:
            start = max(there, free["out", source], free["in", destination])
            there = start + message.size_bytes / LINK
            free["out", source] = free["in", destination] = there
        # The sender does not wait; the receiver may come when all is there.
        end[message.destination] = max(end[message.destination], there)
    return max(stop - start for start, stop in zip(begin, end, strict=True))


@pytest.mark.parametrize("hosts", [APART, FILLED, DEALT])
def test_no_order_of_beginnings_is_below_what_is_certain(hosts: list[str]) -> None:
    all_to_all = [Message(one, other, SIZE) for one in range(4) for other in range(4)]
    what = communication(1.0, **collective("alltoall"))
    least = least_seconds(what, hosts, LINK, oversubscribed=True)
    assert least > 0
    for begin in beginnings(4):
        assert longest_own_time(all_to_all, hosts, begin) >= least - 1e-12


@pytest.mark.parametrize("group", ["4 far pairs", "world of wonders", "ranks 1 and 2"])
def test_an_unknown_group_is_not_guessed(group: str) -> None:
    with pytest.raises(ValueError, match="are not pairs of ranks"):
        least_seconds(communication(1.0, **pairs("send-recv", group)), APART, LINK)
