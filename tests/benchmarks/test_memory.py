"""Every byte that the programs read and write, by sanitizers and valgrind; how many they take."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.benchmarks.conftest import PROJECT, Built, Sanitized

pytestmark = pytest.mark.real
TINY = ["--iterations", "3", "--warmup", "1"]
#: Program, ranks, and arguments.
RUNS = [
    ("collective", 4, ["--group", "all", "--sizes", "0", "--sizes", "800", "--scrub-bytes", "4096",
                       "--page-offset", "16",
                       *TINY]),
    ("collective", 2, ["--operation", "alltoall", "--synchronisation", "window", "--raw", *TINY]),
    ("collective", 2, ["--form", "in-place", "--form", "non-blocking", "--form", "persistent",
                       "--operation", "allgatherv", "--operation", "alltoallw", "--operation",
                       "reduce-scatter-sum", "--operation", "scan-sum", "--sizes", "0", "--sizes",
                       "800", "--synchronisation", "dissemination", *TINY]),
    ("collective", 4, ["--operation", "bcast", "--sizes", "8", "--raw-by-rank", *TINY]),
    ("collective", 4, ["--relative-width", "0.5", "--most-iterations", "10", "--sizes", "8",
                       *TINY]),
    ("collective", 2, ["--estimate", "--relative-width", "0.5", *TINY]),
    ("neighbours", 4, ["--graph", "drawn", "--degree", "2", "--sizes", "800", *TINY]),
    ("pairs", 4, ["--method", "all", "--partner", "bisection", "--sizes", "0", "--sizes", "4096",
                  *TINY]),
    ("node_pairs", 3, ["--bandwidth-bytes", "800", "--round-trips", "3", "--windows", "2",
                       "--sweeps", "2", "--seconds", "1", "--alone"]),
    ("some_to_some", 4, ["--style", "all", "--sided", "all", "--most-bytes", "3000", *TINY]),
    ("halo", 4, ["--method", "all", "--dimensions", "1:4:1", "--extent", "3", "--periodic",
                 *TINY]),
    ("one_sided", 2, ["--sizes", "0", "--sizes", "800", *TINY]),
    ("passive_target", 2, ["--window", "all", "--target", "all", "--in-a-row", "3", "--sizes", "0",
                           "--sizes", "800", *TINY]),
    ("layouts", 2, ["--sizes", "128", "--sizes", "6400", *TINY]),
    ("threads", 2, ["--threads", "1", "--threads", "3", "--sizes", "0", "--sizes", "800",
                    "--window", "5", *TINY]),
    ("big_counts", 2, ["--sizes", "0", "--sizes", "1100000", *TINY]),
    ("files", 2, ["--folder", "/tmp", "--sizes", "0", "--sizes", "3072", "--sync", *TINY]),
    ("pingpong", 2, ["--refine", "0.2", "--sizes", "0", "--sizes", "4096", "--stride-bytes", "16",
                     "--cache-bytes", "100000", *TINY]),
    ("pingpong", 2, ["--estimate", "--refine", "0.2", "--sizes", "0", "--sizes", "4096"]),
    ("echo", 2, ["--via", "all", "--sizes", "0", "--sizes", "5", "--sizes", "20000", "--raw",
                 *TINY]),
    ("emulator", 2, ["--application", "farm", "--steps", "3", "--compute-mean", "0.0001",
                     "--distribution", "exponential", "--raw", *TINY]),
    ("preflight", 2, ["--ranks", "2", "--hosts", "1", "--iterations", "5"]),
    ("startup", 2, ["--since", "1"]),
]  # fmt: skip


def test_sanitizers_find_nothing(sanitized: Sanitized) -> None:
    for program, ranks, arguments in RUNS:
        sanitized.check(program, *arguments, ranks=ranks)
    # Not under valgrind: MPICH 5.0.2 itself reads there what it has freed.
    sanitized.check("startup", "--sessions")


VALGRIND = ["valgrind", "-q", "--error-exitcode=9",
            f"--suppressions={PROJECT}/tests/benchmarks/valgrind.supp"]  # fmt: skip


@pytest.mark.parametrize(("program", "ranks", "arguments"), RUNS)
def test_valgrind_finds_nothing(one: Built, program: str, ranks: int, arguments: list[str]) -> None:
    """Reads of what nobody has written, too; what an MPI does so itself, valgrind.supp names."""
    done = one.run_command(
        [*VALGRIND, str(one.build / "bin" / program), *arguments],
        ranks=ranks if "--group" in arguments else 2,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_valgrind_finds_nothing_with_another_mpi(yielding: Built) -> None:
    """Reads and writes only, and of one program: each start takes Open MPI many seconds."""
    [(program, arguments)] = [(name, words) for name, _, words in RUNS if name == "pairs"]
    done = yielding.run_command(
        [*VALGRIND, "--undef-value-errors=no", str(yielding.build / "bin" / program), *arguments]
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_valgrind_finds_what_nobody_has_written(one: Built, tmp_path: Path) -> None:
    """The MPI's suppressions do not cover a program's own reads."""
    source = tmp_path / "unwritten.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "int main(int argc, char **argv)\n"
        "{ MPI_Init(&argc, &argv); int *number = malloc(sizeof *number);\n"
        '  if (*number == 17) puts("17");\n'
        "  free(number); MPI_Finalize(); return 0; }\n"
    )
    program = tmp_path / "unwritten"
    compiler = [str(one.prefix / "bin/mpicc"), "-g", "-O0", "-o", str(program)]
    subprocess.run([*compiler, str(source)], check=True)
    assert one.run_command([*VALGRIND, str(program)]).returncode == 9


# Says what each rank has asked for in pieces of whole pages that are no small ones.
COUNTING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
static size_t asked;
static int is_begun;
void *memalign(size_t alignment, size_t bytes)
{
    void *(*real)(size_t, size_t);
    *(void **)&real = dlsym(RTLD_NEXT, "memalign");
    asked += is_begun ? bytes : 0;
    return real(alignment, bytes);
}
int MPI_Init(int *count, char ***words)
{ int code = PMPI_Init(count, words); is_begun = 1; return code; }
int MPI_Finalize(void)
{ int rank; PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  fprintf(stderr, "rank %d asked for %zu bytes\\n", rank, asked); return PMPI_Finalize(); }
"""
SIZE = 1_000_000


@pytest.fixture(scope="module")
def counting(one: Built, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return that as a library to load before a program."""
    source = tmp_path_factory.mktemp("counting") / "counting.c"
    source.write_text(COUNTING)
    library = source.with_suffix(".so")
    compiler = one.prefix / "bin/mpicc"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return str(library)


@pytest.mark.parametrize(
    ("command", "messages"),
    [
        # Of the root and of another rank of four: messages in both buffers.
        ("collective --operation allreduce-sum", (2, 2)),
        ("collective --operation reduce-min --operation bcast", (2, 2)),
        ("collective --operation gather", (5, 1)),
        ("collective --operation scatter", (5, 1)),
        ("collective --operation allgather", (5, 5)),
        ("collective --operation alltoall", (8, 8)),
        ("collective --operation alltoall --group halves", (4, 4)),
        ("collective --operation reduce-scatter-block-sum", (5, 5)),
        ("collective --operation reduce-scatter-block-sum --form in-place", (8, 8)),
        ("collective --operation barrier", (0, 0)),
        ("pingpong", (2, 2)),
        ("pingpong --cache-bytes 100", (4, 4)),
    ],
)
def test_no_more_memory_than_an_operation_needs(
    one: Built, counting: str, command: str, messages: tuple[int, int]
) -> None:
    """A launch is left out where a node has less than what is asked for."""
    program, *words = command.split()
    ranks = 2 if program == "pingpong" else 4
    done = one.run(program, *words, "--sizes", str(SIZE), *TINY, ranks=ranks, LD_PRELOAD=counting)
    assert done.returncode == 0, done.stderr
    said = re.findall(r"rank (\d) asked for (\d+) bytes", done.stderr)
    found = {int(rank): int(asked) for rank, asked in said}
    assert len(found) == ranks
    for rank, expected in ((0, messages[0]), (1, messages[1])):
        # Besides messages: a cache line for each, and one byte of what is empty.
        assert expected * SIZE <= found[rank] <= expected * SIZE + 1000
