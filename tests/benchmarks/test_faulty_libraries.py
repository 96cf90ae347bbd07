"""MPIs that do something wrong, each played by a library between the program and the MPI."""

import subprocess
from pathlib import Path

import pytest

from tests.benchmarks.conftest import Built

pytestmark = pytest.mark.real
TINY = ["--iterations", "3", "--warmup", "1"]


def library(built: Built, folder: Path, source: str) -> str:
    """Return the path of a library that is loaded before the MPI."""
    code, compiled = folder / "faulty.c", folder / "faulty.so"
    code.write_text(f"#include <mpi.h>\n#include <stdint.h>\n{source}")
    compiler = built.prefix / "bin/mpicc"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", compiled, code], check=True)
    return str(compiled)


def refused(built: Built, preloaded: str, *command: str, ranks: int = 2) -> str:
    """Return the one sentence with which a program ends for the fault, before any end record."""
    program, *arguments = command
    done = built.run(program, *arguments, ranks=ranks, LD_PRELOAD=preloaded)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert '"end"' not in done.stdout
    [said] = [line for line in done.stderr.splitlines() if line.startswith(f"{program}: ")]
    return said


# What a rank has received, exchanged with what the same rank of the other half has.
SWAP = """
static void swap(void *b, int n, MPI_Datatype t)
{
    int rank, ranks;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int other = (rank + ranks / 2) % ranks;
    PMPI_Sendrecv_replace(b, n, t, other, 77, other, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
"""
OF_THE_OTHER_HALF = {
    "bcast": """int MPI_Bcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c)
        { int code = PMPI_Bcast(b, n, t, root, c); if (n == 64) swap(b, n, t); return code; }""",
    "alltoall": """int MPI_Alltoall(const void *s, int n, MPI_Datatype t, void *b, int m,
                                    MPI_Datatype u, MPI_Comm c)
        { int code = PMPI_Alltoall(s, n, t, b, m, u, c); swap(b, 2 * m, u); return code; }""",
    "allreduce-sum": """int MPI_Allreduce(const void *s, void *b, int n, MPI_Datatype t, MPI_Op o,
                                          MPI_Comm c)
        { int code = PMPI_Allreduce(s, b, n, t, o, c);
          if (n == 8 && t == MPI_DOUBLE) swap(b, n, t); return code; }""",
}


@pytest.mark.parametrize("operation", OF_THE_OTHER_HALF)
def test_data_of_the_other_half_are_wrong(one: Built, tmp_path: Path, operation: str) -> None:
    """Both halves do the same at once, so what a rank of the other one has is as long."""
    preloaded = library(one, tmp_path, SWAP + OF_THE_OTHER_HALF[operation])
    words = ["--operation", operation, "--group", "halves", "--sizes", "64", *TINY]
    said = refused(one, preloaded, "collective", *words, ranks=4)
    assert f"{operation}, 64 bytes: " in said


def test_a_barrier_that_does_not_wait_is_no_barrier(one: Built, tmp_path: Path) -> None:
    """On the world alone, so that the ranks' beginning together is not what is seen."""
    preloaded = library(
        one, tmp_path, "int MPI_Barrier(MPI_Comm c) { return c == MPI_COMM_WORLD ? PMPI_Barrier(c)"
        " : MPI_SUCCESS; }",
    )  # fmt: skip
    words = ["--operation", "barrier", "--group", "halves", *TINY]
    said = refused(one, preloaded, "collective", *words, ranks=4)
    assert "barrier: a rank left it before rank " in said


def test_wrong_data_in_any_place_are_found(one: Built, tmp_path: Path) -> None:
    """Messages that do not begin with a page, as most that are out of the cache."""
    preloaded = library(
        one, tmp_path,
        "int MPI_Recv(void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Status *u)\n"
        "{ int code = PMPI_Recv(b, n, t, s, g, c, u);\n"
        "  if (n == 1000 && (uintptr_t)b % 4096) ((unsigned char *)b)[417] ^= 1;\n"
        "  return code; }\n",
    )  # fmt: skip
    words = ["pingpong", "--cache-bytes", "100000", "--sizes", "1000", *TINY]
    assert "received wrong data from byte 417 on" in refused(one, preloaded, *words)
    assert one.run("pingpong", "--sizes", "1000", *TINY, LD_PRELOAD=preloaded).returncode == 0


def test_a_key_of_other_buckets_is_found(one: Built, tmp_path: Path) -> None:
    """IS counts keys by their values: one without a place, in the last timed iteration."""
    preloaded = library(
        one, tmp_path,
        "int MPI_Alltoallv(const void *s, const int *n, const int *d, MPI_Datatype t, void *b,\n"
        "                  const int *m, const int *e, MPI_Datatype u, MPI_Comm c)\n"
        "{ static int calls; int code = PMPI_Alltoallv(s, n, d, t, b, m, e, u, c), rank;\n"
        "  PMPI_Comm_rank(c, &rank);\n"
        "  if (++calls == 11 && rank) ((int *)b)[7] = INT32_MIN;\n  return code; }\n",
    )  # fmt: skip
    assert "a rank received a key that is not in its buckets" in refused(one, preloaded, "nas_is")


def test_the_grid_does_not_follow_from_the_library(one: Built, tmp_path: Path) -> None:
    """A library may arrange ranks as it likes; halo's grid is the same with every one."""
    preloaded = library(
        one, tmp_path,
        "int MPI_Dims_create(int ranks, int n, int *sides)\n"
        "{ for (int d = 0; d < n; d++) sides[d] = d ? 1 : ranks; return MPI_SUCCESS; }\n",
    )  # fmt: skip
    words = ["--dimensions", "2", "--extent", "4", *TINY]
    done = one.run("halo", *words, ranks=4, LD_PRELOAD=preloaded)
    assert done.returncode == 0 and '"group":"2x2"' in done.stdout, done.stdout
