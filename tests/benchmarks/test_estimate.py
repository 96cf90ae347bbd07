"""--estimate and progress, of every program that sweeps: held against runs beside them."""

import json
import time
from collections.abc import Callable

import pytest

from tests.benchmarks.conftest import Built
from tests.benchmarks.test_programs import SCHEMA
from tests.progress import assert_progress

pytestmark = pytest.mark.real
#: How far an estimate may be from a run on a machine that has other work, as a factor.
FAR = 5.0
#: How long a run lasts at least, so that the start of its ranks is little beside it, and by which
#: factors it is made longer until it does. Where two ranks have one processor, a few are enough.
LASTS_S, FIRST, GROWTH, MOST = 0.3, 10, 4, 10240
LONG = ["--sizes", "1000000", "--sizes", "2000000"]


def at_once(number: int) -> list[str]:
    return ["--operation", "bcast", *LONG, "--iterations", str(number)]


#: Programs with their arguments for a number of iterations, and whether all iterations are taken
#: that may be.
SWEEPS = {
    "collective": ("collective", at_once, False),
    "width of one batch": ("collective", lambda number: [
        *at_once(number), "--relative-width", "10", "--most-iterations", str(100 * number)
    ], False),
    "width of none": ("collective", lambda number: [
        *at_once(max(2, number // 5)), "--relative-width", "0.0000001",
        "--most-iterations", str(number),
    ], True),
    "pingpong": ("pingpong", lambda number: [*LONG, "--iterations", str(number)], False),
    "emulator": ("emulator", lambda number: [
        "--steps", "20", "--compute-mean", "0.002", "--iterations", str(number)
    ], False),
}  # fmt: skip


def seconds_of(built: Built, program: str, *arguments: str) -> float:
    """Run a program; return how long it took with the start of its ranks."""
    began = time.monotonic()
    done = built.run(program, *arguments)
    assert done.returncode == 0, done.stderr
    return time.monotonic() - began


def estimate_of(built: Built, program: str, *arguments: str) -> dict[str, float]:
    """Return the record of an estimate, which is checked against the schema."""
    done = built.run(program, "--estimate", *arguments)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    for record in records:
        SCHEMA.validate(record)
    _, estimate, end = records
    assert estimate["record"] == "estimate" and end["results"] == 0
    return dict(estimate)


def long_enough(built: Built, program: str, words: Callable[[int], list[str]]) -> list[str]:
    """Return arguments with which a program takes its time on this machine as it is now."""
    start = seconds_of(built, program, "--version")
    number = FIRST
    while number < MOST and seconds_of(built, program, *words(number)) - start < LASTS_S:
        number *= GROWTH
    return words(number)


@pytest.mark.measures
@pytest.mark.parametrize("sweep", SWEEPS)
def test_estimate_is_what_a_run_takes(one: Built, sweep: str) -> None:
    """Side by side, and again where something else took the processors meanwhile."""
    program, words, to_the_most = SWEEPS[sweep]
    arguments = long_enough(one, program, words)
    ratios: list[float] = []
    while len(ratios) < 6 and not any(1 / FAR < ratio < FAR for ratio in ratios):
        start = seconds_of(one, program, "--version")
        estimate = estimate_of(one, program, *arguments)
        taken = seconds_of(one, program, *arguments) - start
        ratios.append(estimate["at_most_s" if to_the_most else "estimated_s"] / taken)
    print(f"{program}: estimated over taken: {', '.join(f'{ratio:.2f}' for ratio in ratios)}")
    assert any(1 / FAR < ratio < FAR for ratio in ratios), ratios


@pytest.mark.parametrize(
    ("program", "arguments", "points"),
    [
        ("collective", ["--sizes", "8"], 20),
        ("pingpong", ["--sizes", "8", "--sizes", "800"], 2),
        ("emulator", ["--steps", "5", "--compute-mean", "0"], 1),
    ],
)
def test_estimate_measures_nothing_and_has_one_bound(
    one: Built, program: str, arguments: list[str], points: int
) -> None:
    estimate = estimate_of(one, program, "--iterations", "100000", *arguments)
    assert estimate["points"] == estimate["most_points"] == points
    # A hundred thousand iterations of anything take more than a millisecond.
    assert estimate["at_most_s"] == estimate["estimated_s"] > 1e-3


def test_relative_width_has_two_bounds(one: Built) -> None:
    # So long that what else the processor does meanwhile is little beside an iteration.
    sweep = ["--operation", "bcast", "--sizes", "4000000", "--warmup", "0", "--iterations", "100"]
    estimate = estimate_of(
        one, "collective", *sweep, "--relative-width", "0.1", "--most-iterations", "1000000"
    )
    assert estimate["most_points"] == 1
    # Both have the verification.
    assert 1000 < estimate["at_most_s"] / estimate["estimated_s"] < 10001


def test_refinement_is_within_its_bounds(one: Built) -> None:
    sweep = ["--sizes", "0", "--sizes", "100000", "--iterations", "2", "--refine", "0.000001"]
    estimate = estimate_of(one, "pingpong", *sweep)
    done = one.run("pingpong", *sweep)
    points = done.stdout.count('"record":"result"')
    # All times bend a curve of which so little is straight, but for a few that lie on it by chance.
    assert 2 == estimate["points"] < estimate["most_points"] / 2 < points
    assert points <= estimate["most_points"]
    assert estimate["at_most_s"] > estimate["estimated_s"]


MANY = ["--sizes", "8:80000:800"]


@pytest.mark.parametrize(
    ("program", "arguments", "parts", "of"),
    [
        ("collective", ["--operation", "bcast", *MANY], "points", 100),
        ("pairs", MANY, "points", 100),
        ("some_to_some", ["--style", "all", "--sided", "all", "--most-bytes", "100000"],
         "points", 4),
        ("halo", ["--extent", "1:200:2"], "points", 100),
        ("one_sided", ["--operation", "put", "--completion", "fence", *MANY], "points", 100),
        ("echo", ["--via", "tcp", *MANY], "points", 100),
        ("pingpong", MANY, "points", 100),
        ("emulator", ["--iterations", "30", "--warmup", "2"], "iterations", 32),
    ],
)  # fmt: skip
def test_a_long_sweep_says_how_far_it_is(
    one: Built, changed_clock: str, program: str, arguments: list[str], parts: str, of: int
) -> None:
    """By a clock that is a thousand times too fast."""
    done = one.run(program, *arguments, LD_PRELOAD=changed_clock, CHANGED_CLOCK_FACTOR="1000")
    assert done.returncode == 0, done.stderr
    assert_progress(done.stderr, program, parts, of)
