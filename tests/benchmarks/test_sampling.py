"""Windows that ranks begin late, by clocks that the test sets."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.benchmarks.conftest import PROJECT, SANITIZERS, Built

pytestmark = pytest.mark.real
TICK_S = 1e-7
Sampled = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def sampled(one: Built, tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    """Return what samples a case of late_windows.c under the sanitizers."""
    program = tmp_path_factory.mktemp("sampling") / "late_windows"
    common = PROJECT / "benchmarks" / "common"
    sources = [common / f"{name}.c" for name in (
        "arguments", "estimate", "record_pieces", "sampling", "summary",
    )]  # fmt: skip
    subprocess.run(
        [one.prefix / "bin/mpicc", "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror",
         *SANITIZERS.split(), "-o", program, PROJECT / "tests/benchmarks/late_windows.c", *sources,
         "-lm"],
        check=True,
    )  # fmt: skip

    def sample(case: str, ranks: int = 1) -> dict[str, Any]:
        done = one.run_command([str(program), case], ranks, ASAN_OPTIONS="detect_leaks=0")
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    return sample


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_machine_that_is_always_late_gets_a_sentence(sampled: Sampled, ranks: int) -> None:
    """Windows are doubled eight times, then there is no sample and no statistic of it."""
    found = sampled("always", ranks)
    assert found["status"] == -1
    # The window is of 50 µs before it is doubled and ends at 2^8 times that.
    assert found["sentence"].startswith("all 900 iterations began late on some rank"), found


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


def test_the_error_of_the_clocks_is_the_largest_of_all_batches(sampled: Sampled) -> None:
    found = sampled("batches")
    assert found["iterations"] == 60 and found["discarded"] == 0
    assert found["clock_error_s"] == 3e-6
