"""Every byte that the programs read and write, by sanitizers and valgrind; how many they take."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.benchmarks.conftest import PROJECT, Built, Sanitized
from tests.benchmarks.libraries import Libraries

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


#: What these do is in how they start themselves.
BY_THEMSELVES = ("preflight", "startup")


def test_sanitizers_find_nothing(sanitized: Sanitized, tmp_path: Path) -> None:
    libraries = Libraries(sanitized)
    for ranks in sorted({ranks for _, ranks, _ in RUNS}):
        runs = [(program, *arguments) for program, of, arguments in RUNS
                if of == ranks and program not in BY_THEMSELVES]  # fmt: skip
        libraries.check(runs, tmp_path, ranks)
    for program, ranks, arguments in RUNS:
        if program in BY_THEMSELVES:
            sanitized.check(program, *arguments, ranks=ranks)
    # Not under valgrind: MPICH 5.0.2 itself reads there what it has freed.
    sanitized.check("startup", "--sessions")


VALGRIND = ["valgrind", "-q", "--error-exitcode=9",
            f"--suppressions={PROJECT}/tests/benchmarks/valgrind.supp"]  # fmt: skip


@pytest.mark.parametrize("ranks", [2, 4])
def test_valgrind_finds_nothing(one: Built, ranks: int, tmp_path: Path) -> None:
    """Reads of what nobody has written, too; what an MPI does so itself, valgrind.supp names.

    Of four ranks where both halves of the world are at work.
    """
    runs = [(program, *arguments) for program, _, arguments in RUNS
            if program not in BY_THEMSELVES
            and ("--group" in arguments) == (ranks == 4)]  # fmt: skip
    done = Libraries(one).run_each(runs, tmp_path, ranks, VALGRIND)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize(
    ("program", "arguments"), [(name, words) for name, _, words in RUNS if name in BY_THEMSELVES]
)
def test_valgrind_finds_nothing_from_the_start(
    one: Built, program: str, arguments: list[str]
) -> None:
    done = one.run_command([*VALGRIND, str(one.build / "bin" / program), *arguments])
    assert done.returncode == 0, done.stderr[-3000:]


def test_valgrind_finds_nothing_with_another_mpi(yielding: Built) -> None:
    """Reads and writes only, and of one program: each start takes Open MPI many seconds."""
    [(program, arguments)] = [(name, words) for name, _, words in RUNS if name == "pairs"]
    done = yielding.run_command(
        [*VALGRIND, "--undef-value-errors=no", str(yielding.build / "bin" / program), *arguments]
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_valgrind_finds_what_nobody_has_written(one: Built, tmp_path: Path) -> None:
    """The MPI's suppressions do not cover a program's own reads, after another program's either."""
    source = tmp_path / "unwritten.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "int main(int argc, char **argv)\n"
        "{ MPI_Init(&argc, &argv); int *number = malloc(sizeof *number);\n"
        '  if (*number == 17) puts("17");\n'
        "  free(number); MPI_Finalize(); return 0; }\n"
    )
    program = tmp_path / "unwritten.so"
    compiler = [str(one.prefix / "bin/mpicc"), "-g", "-O0", "-fPIC", "-shared", "-o", str(program)]
    subprocess.run([*compiler, str(source)], check=True)
    runs = [("one_sided", "--sizes", "8", *TINY), (str(program),)]
    assert Libraries(one).run_each(runs, tmp_path, 2, VALGRIND).returncode == 9


@pytest.mark.parametrize(
    ("body", "code"),
    [("MPI_Init(&argc, &argv); MPI_Finalize(); return 0;", 0),
     ("MPI_Init(&argc, &argv); MPI_Finalize(); return 3;", 1),
     ("MPI_Init(&argc, &argv); MPI_Finalize(); exit(3);", 1),
     ("MPI_Init(&argc, &argv); exit(0);", 1), ("(void)argc, (void)argv; return 0;", 1)],
)  # fmt: skip
def test_of_programs_in_one_start_each_has_to_end_well(
    one: Built, tmp_path: Path, body: str, code: int
) -> None:
    """And to begin and end MPI, also where another one follows that does."""
    sound = "MPI_Init(&argc, &argv); MPI_Finalize(); exit(0);"
    for name, text in (("this", body), ("next", sound)):
        source = tmp_path / f"{name}.c"
        source.write_text(
            f"#include <mpi.h>\n#include <stdlib.h>\nint main(int argc, char **argv) {{ {text} }}\n"
        )
        compiler = [str(one.prefix / "bin/mpicc"), "-fPIC", "-shared"]
        subprocess.run([*compiler, "-o", source.with_suffix(".so"), source], check=True)
    runs = [(str(tmp_path / "this.so"),), (str(tmp_path / "next.so"),)]
    done = Libraries(one).run_each(runs, tmp_path, 1)
    assert (done.returncode, done.stderr.count("one_start: ")) == (code, code), done.stderr


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
