"""Every byte that the programs read and write, watched by the sanitizers and by valgrind."""

import pytest

from tests.benchmarks.conftest import PROJECT, Built, Sanitized

pytestmark = pytest.mark.real
TINY = ["--iterations", "3", "--warmup", "1"]
#: Program, ranks, and arguments.
RUNS = [
    ("collective", 4, ["--group", "all", "--sizes", "0", "--sizes", "800", "--scrub-bytes", "4096",
                       *TINY]),
    ("collective", 2, ["--operation", "alltoall", "--synchronisation", "window", "--raw", *TINY]),
    ("collective", 4, ["--relative-width", "0.5", "--most-iterations", "10", "--sizes", "8",
                       *TINY]),
    ("collective", 2, ["--estimate", "--relative-width", "0.5", *TINY]),
    ("pairs", 4, ["--method", "all", "--partner", "bisection", "--sizes", "0", "--sizes", "4096",
                  *TINY]),
    ("some_to_some", 4, ["--style", "all", "--sided", "all", "--most-bytes", "3000", *TINY]),
    ("halo", 4, ["--method", "all", "--dimensions", "1:4:1", "--extent", "3", "--periodic",
                 *TINY]),
    ("one_sided", 2, ["--sizes", "0", "--sizes", "800", *TINY]),
    ("pingpong", 2, ["--refine", "0.2", "--sizes", "0", "--sizes", "4096", "--stride-bytes", "16",
                     "--cache-bytes", "100000", *TINY]),
    ("pingpong", 2, ["--estimate", "--refine", "0.2", "--sizes", "0", "--sizes", "4096"]),
    ("echo", 2, ["--via", "all", "--sizes", "0", "--sizes", "5", "--sizes", "20000", "--raw",
                 *TINY]),
    ("emulator", 2, ["--application", "ring", "--steps", "3", "--compute-mean", "0.0001",
                     "--distribution", "exponential", "--raw", *TINY]),
    ("preflight", 2, ["--ranks", "2", "--hosts", "1", "--iterations", "5"]),
    ("startup", 2, ["--since", "1"]),
]  # fmt: skip


def test_sanitizers_find_nothing(sanitized: Sanitized) -> None:
    for program, ranks, arguments in RUNS:
        sanitized.check(program, *arguments, ranks=ranks)


@pytest.mark.parametrize(("program", "ranks", "arguments"), RUNS)
def test_valgrind_finds_nothing(
    built: Built, program: str, ranks: int, arguments: list[str]
) -> None:
    """Reads of what nobody has written, too; what an MPI does so itself, valgrind.supp names."""
    command = ["valgrind", "-q", "--error-exitcode=9",
               f"--suppressions={PROJECT}/tests/benchmarks/valgrind.supp"]  # fmt: skip
    done = built.run_command(
        [*command, str(built.build / "bin" / program), *arguments],
        ranks=ranks if "--group" in arguments else 2,
    )
    assert done.returncode == 0, done.stderr[-3000:]
