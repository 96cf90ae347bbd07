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


def test_a_barrier_that_does_not_wait_fails(one: Built, tmp_path: Path) -> None:
    """On the world alone, so that the ranks' beginning together is not what is seen."""
    preloaded = library(
        one, tmp_path, "int MPI_Barrier(MPI_Comm c) { return c == MPI_COMM_WORLD ? PMPI_Barrier(c)"
        " : MPI_SUCCESS; }",
    )  # fmt: skip
    words = ["--operation", "barrier", "--group", "halves", *TINY]
    said = refused(one, preloaded, "collective", *words, ranks=4)
    assert "barrier: a rank left it before rank " in said


def test_a_barrier_is_proved_where_a_receive_from_any_source_never_ends(
    one: Built, tmp_path: Path
) -> None:
    """As MPICH 5.0.2's over UCX, whose message is there before it; here it fails at once."""
    preloaded = library(
        one, tmp_path,
        "int MPI_Recv(void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Status *u)\n"
        "{ if (s == MPI_ANY_SOURCE) MPI_Abort(c, 9);\n"
        "  return PMPI_Recv(b, n, t, s, g, c, u); }",
    )  # fmt: skip
    words = ["--operation", "barrier", *TINY]
    done = one.run("collective", *words, ranks=4, LD_PRELOAD=preloaded)
    assert done.returncode == 0, done.stderr


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


@pytest.mark.parametrize("device", ["nemesis", "mrail"])
def test_a_put_that_would_never_end_is_left_out(one: Built, tmp_path: Path, device: str) -> None:
    """MVAPICH2's over nemesis, of derived datatypes: here a put ends the ranks at once."""
    said = f"MVAPICH2 Version      :\\t2.3.7\\nMVAPICH2 Device       :\\tch3:{device}\\n"
    preloaded = library(
        one, tmp_path,
        "#include <string.h>\n#include <stdlib.h>\n"
        "int MPI_Get_library_version(char *text, int *length)\n"
        f'{{ strcpy(text, "{said}"); *length = (int)strlen(text); return MPI_SUCCESS; }}\n'
        "int MPI_Put(const void *s, int n, MPI_Datatype t, int r, MPI_Aint d, int m,\n"
        "            MPI_Datatype u, MPI_Win w) { _Exit(9); }\n",
    )  # fmt: skip
    words = ["--method", "sendrecv", "--method", "put", "--dimensions", "2", "--extent", "8", *TINY]
    done = one.run("halo", *words, LD_PRELOAD=preloaded)
    left_out = "halo: left out: put: MVAPICH2 over nemesis never ends one of derived datatypes"
    assert (left_out in done.stderr) == (device == "nemesis") == (done.returncode == 0), done.stderr
    assert ('"method":"sendrecv"' in done.stdout) == (device == "nemesis")


@pytest.mark.parametrize("name", ["mtl_psm2_rx_user_bytes", "pml_of_another_kind"])
def test_counters_of_a_device_that_is_not_there_are_left_alone(
    one: Built, tmp_path: Path, name: str
) -> None:
    """Debian's Open MPI ends with a segmentation fault when one of PSM's is allocated."""
    preloaded = library(
        one, tmp_path,
        "#include <string.h>\n#include <stdlib.h>\n"
        "int MPI_T_pvar_get_num(int *count) { *count = 1; return MPI_SUCCESS; }\n"
        "int MPI_T_pvar_get_info(int i, char *name, int *length, int *verbosity, int *kind,\n"
        "                        MPI_Datatype *type, MPI_T_enum *known, char *text, int *other,\n"
        "                        int *bind, int *fixed, int *always, int *atomic)\n"
        f'{{ strcpy(name, "{name}"); *length = (int)strlen(name) + 1; *verbosity = 0;\n'
        "  *kind = MPI_T_PVAR_CLASS_COUNTER; *type = MPI_UNSIGNED_LONG; *known = MPI_T_ENUM_NULL;\n"
        "  *bind = MPI_T_BIND_NO_OBJECT; *fixed = *always = *atomic = 1; return MPI_SUCCESS; }\n"
        "int MPI_T_pvar_handle_alloc(MPI_T_pvar_session s, int i, void *o, MPI_T_pvar_handle *h,\n"
        "                            int *count) { _Exit(9); }\n",
    )  # fmt: skip
    done = one.run("preflight", LD_PRELOAD=preloaded)
    assert (done.returncode == 0) == name.startswith("mtl_psm"), (done.returncode, done.stderr)


# Each call does what it should, and one byte of what a rank receives is another one.
RECEIVED_WRONG = {
    "reduce-scatter-block-sum": "Reduce_scatter_block(const void *s, void *b, int n,"
    " MPI_Datatype t, MPI_Op o, MPI_Comm c)|(s, b, n, t, o, c)",
    "reduce-scatter-sum": "Reduce_scatter(const void *s, void *b, const int n[], MPI_Datatype t,"
    " MPI_Op o, MPI_Comm c)|(s, b, n, t, o, c)",
    "scan-sum": "Scan(const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)"
    "|(s, b, n, t, o, c)",
    "exscan-sum": "Exscan(const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)"
    "|(s, b, n, t, o, c)",
    "gatherv": "Gatherv(const void *s, int n, MPI_Datatype t, void *b, const int m[],"
    " const int d[], MPI_Datatype u, int r, MPI_Comm c)|(s, n, t, b, m, d, u, r, c)",
    "scatterv": "Scatterv(const void *s, const int n[], const int e[], MPI_Datatype t, void *b,"
    " int m, MPI_Datatype u, int r, MPI_Comm c)|(s, n, e, t, b, m, u, r, c)",
    "allgatherv": "Allgatherv(const void *s, int n, MPI_Datatype t, void *b, const int m[],"
    " const int d[], MPI_Datatype u, MPI_Comm c)|(s, n, t, b, m, d, u, c)",
    "alltoallv": "Alltoallv(const void *s, const int n[], const int e[], MPI_Datatype t, void *b,"
    " const int m[], const int d[], MPI_Datatype u, MPI_Comm c)|(s, n, e, t, b, m, d, u, c)",
    "alltoallw": "Alltoallw(const void *s, const int n[], const int e[], const MPI_Datatype t[],"
    " void *b, const int m[], const int d[], const MPI_Datatype u[], MPI_Comm c)"
    "|(s, n, e, t, b, m, d, u, c)",
}


@pytest.mark.parametrize("operation", RECEIVED_WRONG)
def test_a_wrong_byte_of_any_operation_is_found(one: Built, tmp_path: Path, operation: str) -> None:
    declared, passed = RECEIVED_WRONG[operation].split("|")
    name = declared.split("(")[0]
    preloaded = library(
        one, tmp_path,
        f"int MPI_{declared}\n{{ int code = PMPI_{name}{passed};\n"
        "  if (b) ((unsigned char *)b)[5] ^= 64; return code; }\n",
    )  # fmt: skip
    words = ["collective", "--operation", operation, "--sizes", "64", *TINY]
    assert f"{operation}, 64 bytes: " in refused(one, preloaded, *words)


@pytest.mark.parametrize(
    ("form", "source"),
    [
        ("in-place", "int MPI_Allreduce(const void *s, void *b, int n, MPI_Datatype t, MPI_Op o,\n"
                     "                  MPI_Comm c)\n"
                     "{ return s == MPI_IN_PLACE ? 0 : PMPI_Allreduce(s, b, n, t, o, c); }"),
        ("non-blocking", "int MPI_Iallreduce(const void *s, void *b, int n, MPI_Datatype t,\n"
                         "                   MPI_Op o, MPI_Comm c, MPI_Request *r)\n"
                         "{ *r = MPI_REQUEST_NULL; return 0; }"),
        ("persistent", "int MPI_Start(MPI_Request *r) { return 0; }"),
    ],
)  # fmt: skip
def test_a_form_that_does_nothing_is_found(
    one: Built, tmp_path: Path, form: str, source: str
) -> None:
    preloaded = library(one, tmp_path, source)
    words = ["--operation", "allreduce-sum", "--form", form, "--sizes", "64", *TINY]
    assert "allreduce-sum, 64 bytes: element 0 " in refused(one, preloaded, "collective", *words)


def test_the_library_s_barrier_has_no_part_in_ours(one: Built, tmp_path: Path) -> None:
    """One whose ranks do not wait is proved to be none; ours then still is one."""
    preloaded = library(one, tmp_path, "int MPI_Barrier(MPI_Comm c) { return MPI_SUCCESS; }")
    words = ["--synchronisation", "dissemination", *TINY, "--operation"]
    ours = one.run("collective", *words, "dissemination-barrier", ranks=3, LD_PRELOAD=preloaded)
    assert ours.returncode == 0, ours.stderr
    said = refused(one, preloaded, "collective", *words, "barrier", ranks=3)
    assert "barrier: a rank left it before rank " in said


def test_messages_that_are_not_waited_for_make_no_barrier(one: Built, tmp_path: Path) -> None:
    preloaded = library(
        one, tmp_path,
        "int MPI_Sendrecv(const void *s, int n, MPI_Datatype t, int to, int g, void *b, int m,\n"
        "                 MPI_Datatype u, int from, int h, MPI_Comm c, MPI_Status *status)\n"
        "{ return MPI_SUCCESS; }\n",
    )  # fmt: skip
    words = ["--operation", "dissemination-barrier", *TINY]
    said = refused(one, preloaded, "collective", *words, ranks=3)
    assert "dissemination-barrier: a rank left it before rank " in said


@pytest.mark.parametrize(
    ("method", "operation", "source"),
    [
        ("isend-irecv", "alltoall",
         "int MPI_Isend(const void *b, int n, MPI_Datatype t, int to, int g, MPI_Comm c,\n"
         "              MPI_Request *r)\n"
         "{ static char other[800]; return PMPI_Isend(n == 800 ? other : b, n, t, to, g, c, r); }"),
        ("neighbourhood", "allgather",
         "int MPI_Neighbor_allgatherv(const void *s, int n, MPI_Datatype t, void *b,\n"
         "                            const int m[], const int d[], MPI_Datatype u, MPI_Comm c)\n"
         "{ return MPI_SUCCESS; }"),
        ("neighbourhood-non-blocking", "alltoall",
         "int MPI_Ineighbor_alltoallv(const void *s, const int n[], const int e[],\n"
         "                            MPI_Datatype t, void *b, const int m[], const int d[],\n"
         "                            MPI_Datatype u, MPI_Comm c, MPI_Request *r)\n"
         "{ *r = MPI_REQUEST_NULL; return MPI_SUCCESS; }"),
        ("neighbourhood-persistent", "alltoall",
         "int MPI_Start(MPI_Request *r) { return MPI_SUCCESS; }"),
    ],
)  # fmt: skip
def test_what_neighbours_did_not_send_is_found(
    one: Built, tmp_path: Path, method: str, operation: str, source: str
) -> None:
    preloaded = library(one, tmp_path, source)
    words = ["--method", method, "--operation", f"neighbour-{operation}", "--sizes", "800", *TINY]
    said = refused(one, preloaded, "neighbours", *words)
    assert f"{method}, 800 bytes: rank " in said and "data wrong from byte 0 on" in said


PUT = "const void *o, int n, MPI_Datatype t, int r, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w"
# Calls that do nothing, or something else than what they should: program and arguments, what is
# said, and the calls.
NOT_DONE = {
    "put": ("passive_target --operation put", "put, allocate, 64 bytes: rank 1 has wrong data",
            f"int MPI_Put({PUT}) {{ return 0; }}"),
    "rput in another place": (
        "passive_target --operation rput --in-a-row 2", "rput, allocate, 64 bytes: rank 1 has wr",
        f"int MPI_Rput({PUT}, MPI_Request *q)\n{{ return PMPI_Rput(o, n, t, r, 0, m, u, w, q); }}"),
    "get": ("passive_target --operation rget", "rget, allocate, 64 bytes: rank 0 has wrong data",
            f"int MPI_Rget({PUT.replace('const void', 'void')}, MPI_Request *q)\n"
            "{ *q = MPI_REQUEST_NULL; return 0; }"),
    "fetch without a sum": (
        "passive_target --operation fetch-and-op", "fetch-and-op, allocate, 8 bytes: number 0 is",
        "int MPI_Fetch_and_op(const void *o, void *b, MPI_Datatype t, int r, MPI_Aint d,\n"
        "MPI_Op p, MPI_Win w) { return PMPI_Fetch_and_op(o, b, t, r, d, MPI_NO_OP, w); }"),
    "a swap whatever is there": (
        "passive_target --operation compare-and-swap", "compare-and-swap, allocate, 8 bytes: num",
        "int MPI_Compare_and_swap(const void *o, const void *c, void *b, MPI_Datatype t, int r,\n"
        "MPI_Aint d, MPI_Win w) { *(long long *)b = -2; return 0; }"),
    "unpacking": ("layouts --layout vector --method pack", "vector, 128 bytes: rank 0 has wrong da",
                  "int MPI_Unpack(const void *b, int n, int *p, void *o, int m, MPI_Datatype t,\n"
                  "MPI_Comm c) { return 0; }"),
    "what lies between": (
        "layouts --layout struct --method datatype", "byte 24 between its data overwritten",
        "int MPI_Recv(void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Status *u)\n"
        "{ int code = PMPI_Recv(b, n, t, s, g, c, u);\n"
        "  if (n == 4) ((unsigned char *)b)[24] ^= 1; return code; }"),
    "a thread's messages": (
        "threads --threads 2 --method tags", "from byte 0 of message 0 of thread 1 on",
        "int MPI_Isend(const void *b, int n, MPI_Datatype t, int to, int g, MPI_Comm c,\n"
        "MPI_Request *r) { static char other[64];\n"
        "  return PMPI_Isend(g == 3 ? other : b, n, t, to, g, c, r); }"),
    "parts that were said to be there": (
        "threads --threads 2 --method partitioned", "64 bytes: rank 1 has wrong data from byte",
        "int MPI_Precv_init(void *b, int p, MPI_Count n, MPI_Datatype t, int s, int g,\n"
        "MPI_Comm c, MPI_Info i, MPI_Request *r)\n"
        "{ static char other[64 * 64 * 2];\n"
        "  return PMPI_Precv_init(other, p, n, t, s, g, c, i, r); }"),
    "large counts": ("big_counts --operation bcast --method count", "count, 64 bytes: rank 1 has w",
                     "int MPI_Bcast_c(void *b, MPI_Count n, MPI_Datatype t, int r, MPI_Comm c)\n"
                     "{ return 0; }"),
    "another reduction": (
        "big_counts --operation allreduce-bxor --method pieces", "pieces, 64 bytes: rank 0 has wr",
        "int MPI_Allreduce(const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)\n"
        "{ return PMPI_Allreduce(s, b, n, t, o == MPI_BXOR ? MPI_BAND : o, c); }"),
    "writing": ("files --operation write-all", "finds rank 1's part of the file wrong from byte 0",
                "int MPI_File_write_at_all(MPI_File f, MPI_Offset o, const void *b, int n,\n"
                "MPI_Datatype t, MPI_Status *s) { return 0; }"),
    "reading": ("files --operation read", "finds rank 1's part of the file wrong from byte 5 on",
                "int MPI_File_read_at(MPI_File f, MPI_Offset o, void *b, int n, MPI_Datatype t,\n"
                "MPI_Status *s) { int code = PMPI_File_read_at(f, o, b, n, t, s);\n"
                "  ((unsigned char *)b)[5] ^= 1; return code; }"),
    "a view of one's own": (
        "files --operation read-all --arrangement interleaved", "part of the file wrong from byte",
        "int MPI_File_set_view(MPI_File f, MPI_Offset o, MPI_Datatype e, MPI_Datatype t,\n"
        "const char *r, MPI_Info i)\n"
        "{ return PMPI_File_set_view(f, 0, e, MPI_BYTE, r, i); }"),
}  # fmt: skip


@pytest.mark.parametrize("what", NOT_DONE)
def test_what_was_not_done_is_found(one: Built, tmp_path: Path, what: str) -> None:
    """What applications call beyond the reports' operations is proved before it is timed."""
    command, sentence, source = NOT_DONE[what]
    size = {"layouts": "128", "files": "1024"}.get(command.split()[0], "64")
    folder = ["--folder", str(tmp_path)] if command.startswith("files") else []
    preloaded = library(one, tmp_path, source)
    said = refused(one, preloaded, *command.split(), *folder, "--sizes", size, *TINY)
    assert sentence in said


def test_each_swap_that_is_timed_finds_what_it_expects(one: Built, tmp_path: Path) -> None:
    preloaded = library(
        one, tmp_path,
        "#include <stdio.h>\n"
        "static int calls, swaps;\n"
        "int MPI_Compare_and_swap(const void *o, const void *c, void *b, MPI_Datatype t, int r,\n"
        "MPI_Aint d, MPI_Win w)\n"
        "{ int code = PMPI_Compare_and_swap(o, c, b, t, r, d, w); PMPI_Win_flush(r, w); calls++;\n"
        "  swaps += *(long long *)b == *(const long long *)c; return code; }\n"
        "int MPI_Finalize(void)\n"
        '{ if (calls) fprintf(stderr, "%d of %d\\n", swaps, calls); return PMPI_Finalize(); }',
    )  # fmt: skip
    words = ["--operation", "compare-and-swap", "--in-a-row", "2", "--iterations", "9"]
    done = one.run("passive_target", *words, "--warmup", "2", LD_PRELOAD=preloaded)
    assert done.returncode == 0, done.stderr
    # One run of both is proved, and those that are not timed count as well.
    assert "24 of 24\n" in done.stderr, done.stderr
