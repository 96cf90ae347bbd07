"""Tier quick has many iterations where messages are quick, and few where a link is slow."""

import pytest

from reframe_checks import echo_test, mpptest, pairs
from reframe_checks.mixins.ping_pong import Sweep, fitting_iterations

SLOW, FAST = 12.5e6, 12.5e9


def echoes() -> Sweep:
    count = echo_test.ITERATIONS
    return Sweep("Send/Recv", "modified", echo_test.SIZES, count, count // 5)


def long_messages() -> Sweep:
    suite = mpptest.SUITES["long"]
    return Sweep(suite.pair, "modified", suite.sizes, suite.iterations, 10)


@pytest.mark.parametrize(
    ("sweep", "seconds", "most", "on_a_slow_link"),
    [(echoes(), echo_test.QUICK_SECONDS, 200, 28), (long_messages(), mpptest.QUICK_SECONDS, 50, 9)],
)
def test_iterations_follow_from_the_link(
    sweep: Sweep, seconds: float, most: int, on_a_slow_link: int
) -> None:
    assert sweep.iterations == most == sweep.shortened(FAST, seconds).iterations
    slow = sweep.shortened(SLOW, seconds)
    assert (slow.iterations, slow.warmup) == (on_a_slow_link, on_a_slow_link // 5)
    # What the messages alone take of a link that is used one way at a time.
    assert slow.iterations * 2 * sum(slow.sizes) / SLOW <= seconds


def test_some_iterations_are_always_left() -> None:
    assert fitting_iterations(50, 10**9, SLOW, 1.0) == 5


@pytest.mark.parametrize(("suite", "seconds"), [("bisection", 2.0), ("load", 2.0), ("lbw", 2.0)])
def test_pairs_have_iterations_that_a_slow_link_has_room_for(suite: str, seconds: float) -> None:
    asked = pairs.SUITES[suite]
    messages = {"send-recv": 2, "irecv-send": 2, "exchange": 1, "window": asked.window}
    one = sum(messages[method] for method in asked.methods) * sum(asked.sizes) / SLOW
    groups = len(asked.groups(asked.ranks))
    assert asked.iterations >= 20 and asked.iterations * groups * one <= seconds
