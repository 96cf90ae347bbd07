"""Windows that ranks begin late, and clocks that drift, by clocks that the test sets."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.conftest import PROJECT, SANITIZERS, Built

pytestmark = pytest.mark.real
TICK_S = 1e-7
Sampled = Callable[..., dict[str, Any]]


def compiled(one: Built, folder: Path, name: str) -> Path:
    """Return a program of tests/benchmarks/programs with what samples, under the sanitizers."""
    common = PROJECT / "benchmarks" / "common"
    sources = [common / f"{part}.c" for part in (
        "arguments", "clock_offsets", "dissemination", "estimate", "ranks_alike", "record_pieces",
        "sampling", "summary", "windows", "written",
    )]  # fmt: skip
    subprocess.run(
        [one.prefix / "bin/mpicc", "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror",
         *SANITIZERS.split(), "-o", folder / name,
         PROJECT / f"tests/benchmarks/programs/{name}.c", *sources, "-lm"],
        check=True,
    )  # fmt: skip
    return folder / name


def said(one: Built, program: Path, *arguments: str, ranks: int = 1) -> dict[str, Any]:
    done = one.run_command([str(program), *arguments], ranks, ASAN_OPTIONS="detect_leaks=0")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def sampled(one: Built, tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    """Return what samples a case of late_windows.c."""
    program = compiled(one, tmp_path_factory.mktemp("sampling"), "late_windows")
    return lambda case, ranks=1: said(one, program, case, ranks=ranks)


@pytest.fixture(scope="module")
def drifting(one: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return drifting_clocks.c as a program."""
    return compiled(one, tmp_path_factory.mktemp("drifting"), "drifting_clocks")


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_machine_that_is_always_late_gets_a_sentence(sampled: Sampled, ranks: int) -> None:
    """Windows of 50 µs are doubled until 10 s are over: 100 each of ten lengths, and 95 more."""
    found = sampled("always", ranks)
    assert found["status"] == -1
    assert found["sentence"].startswith("all 1095 iterations began late on some rank"), found


def test_windows_grow_to_what_an_iteration_takes(sampled: Sampled) -> None:
    """Of 1 ms in windows of 50 µs and the next four lengths one iteration a batch is in time."""
    found = sampled("longer")
    assert found["status"] == 0
    assert found["iterations"] == 100
    assert found["discarded"] == 99 + 98 + 97 + 96 + 95
    assert found["longest_s"] == pytest.approx(1e-3, rel=0.01)


def test_what_another_rank_begins_late_is_in_no_median(sampled: Sampled) -> None:
    """Each iteration takes longer than the one before, and the first ones are late on rank 1."""
    found = sampled("one-rank", ranks=2)
    late = found["discarded"]
    assert 20 <= late <= 25 and found["iterations"] == 100 - late
    in_time = [(i + 1) * 3 * TICK_S + TICK_S for i in range(late, 100)]
    middle = (in_time[0] + in_time[-1]) / 2
    assert found["median_s"] == pytest.approx(middle, abs=TICK_S / 2)


def test_one_slow_iteration_of_the_warm_up_makes_no_long_windows(sampled: Sampled) -> None:
    """Of 1 s among others of 1 µs; four times the longest would be windows of 4 s."""
    found = sampled("outlier")
    assert found["iterations"] == 100 and found["discarded"] == 0
    assert 1.0 < found["elapsed_s"] < 1.1


def test_all_windows_together_are_bounded(sampled: Sampled) -> None:
    """Of 4 ms at first and always late: 100 each of 4, 8, 16 and 32 ms, then 10 s are over."""
    found = sampled("capped")
    assert found["status"] == -1
    assert found["sentence"].startswith("all 462 iterations began late on some rank"), found


def test_ranks_of_one_clock_know_it_to_its_step(sampled: Sampled) -> None:
    assert sampled("one-rank", ranks=2)["clock_error_s"] == TICK_S
    assert sampled("outlier")["clock_error_s"] == 0


@pytest.mark.parametrize("ranks", [2, 4])
def test_clocks_that_drift_are_wrong_by_no_more_than_is_said(
    one: Built, drifting: Path, ranks: int
) -> None:
    """A time is from one clock's reading to another's, so it is wrong by both errors at most.

    Of four the last is compared with the second alone, which is compared with the first.
    """
    found = said(one, drifting, ranks=ranks)
    # Few take as long as another one to the nanosecond; none of them is known again.
    assert found["iterations"] >= found["known"] > found["iterations"] / 2 > 0, found
    # The program tells its times again to a nanosecond or two.
    assert found["wrong_s"] <= 2 * found["clock_error_s"] + 5e-9, found


def test_lines_from_clock_to_clock_lead_to_the_first(one: Built, drifting: Path) -> None:
    """Of three that drift by up to 1e-3 s a second against the next, 50 s later."""
    found = said(one, drifting, "chain")
    assert found["wrong_s"] < 1e-9
    assert found["rate_error"] == pytest.approx(3 * 2e-9 / 3, rel=1e-2)


@pytest.mark.parametrize("change", [0.0, 1e-5, -1e-4, 5e-4])
def test_a_clock_that_changes_its_rate_is_found(one: Built, drifting: Path, change: float) -> None:
    """By what the line between two comparisons misses in the middle."""
    found = said(one, drifting, "rates", str(change))
    assert found["wrong_s"] <= found["error_s"]
    assert found["error_s"] == pytest.approx(1e-6 + abs(change) * 50, rel=1e-3)
