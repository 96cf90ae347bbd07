"""The NAS Parallel Benchmarks with two MPIs: NPB's answers on any number of ranks."""

import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from numpy.typing import NDArray

from records.npb import NpbRun, literature, problem, read_npb_output
from tests.benchmarks.conftest import PROJECT, Built, Sanitized
from tests.benchmarks.libraries import Libraries

pytestmark = pytest.mark.real
BENCHMARKS = ["EP", "IS", "CG", "MG", "FT", "LU", "SP", "BT"]
#: Those whose number of ranks is a square.
SQUARE = ("SP", "BT")
#: Where fewer would measure nothing.
RANKS = {"SP": 4, "BT": 4, "DT": 5}
REFERENCE_VALUES = PROJECT / "benchmarks" / "nas" / "reference_values.c"
#: The graphs of DT, in the order of the enumeration in reference_values.h.
GRAPHS = ("BH", "WH", "SH")


def program_of(benchmark: str) -> str:
    return f"nas_{benchmark.partition('_')[0].lower()}"


def solved(built: Built, path: Path, benchmark: str, size: str, ranks: int) -> NpbRun:
    """Run a benchmark and return what it printed."""
    graph = benchmark.partition("_")[2]
    words = ["--graph", graph] if graph else []
    done = built.run(program_of(benchmark), "--class", size, *words, ranks=ranks)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert done.stderr == ""
    path.write_text(done.stdout)
    run = read_npb_output(path)
    assert (run.benchmark, run.problem_class, run.processes) == (benchmark, size, ranks)
    assert run.verified and not run.wrong
    assert run.hosts is not None and len(run.hosts) == ranks
    assert run.size == problem(benchmark, size).size
    return run


@pytest.mark.parametrize(
    ("benchmark", "ranks"),
    # MG halves its cube: its ranks are a power of two.
    [
        (name, ranks)
        for name in BENCHMARKS
        for ranks in (1, 2, 3, 4)
        if (name, ranks) != ("MG", 3) and (name not in SQUARE or ranks in (1, 4))
    ],
)
def test_class_s_on_any_number_of_ranks(
    one: Built, yielding: Built, tmp_path: Path, benchmark: str, ranks: int
) -> None:
    # More ranks than cores would wait for each other without rest.
    solved(one if ranks <= 2 else yielding, tmp_path / "out", benchmark, "S", ranks)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_class_w(one: Built, tmp_path: Path, benchmark: str) -> None:
    solved(one, tmp_path / "out", benchmark, "W", 1 if benchmark in SQUARE else 2)


@pytest.mark.parametrize(
    ("graph", "size", "ranks"),
    # As many ranks as nodes, and one that is idle.
    [("BH", "S", 5), ("WH", "S", 5), ("WH", "S", 6), ("SH", "S", 12), ("BH", "W", 11)],
)
def test_data_traffic(yielding: Built, tmp_path: Path, graph: str, size: str, ranks: int) -> None:
    run = solved(yielding, tmp_path / "out", f"DT_{graph}", size, ranks)
    assert run.iterations == min(ranks, literature()["DT"]["classes"][size]["nodes"][graph])
    # It is so short that a time of 0 could be printed with fewer decimals.
    assert run.rate_ops > 0


@pytest.mark.parametrize("size", ["S", "W", "A", pytest.param("B", marks=pytest.mark.long)])
def test_streams_of_every_graph_have_the_published_sums(
    sanitized_one: Sanitized, tmp_path: Path, size: str
) -> None:
    """Node by node in one process: the larger graphs have more nodes than a machine at hand."""
    parts = ("streams", "traffic", "random_numbers", "reference_values")
    sources = [f"benchmarks/nas/{name}.c" for name in parts]
    program = tmp_path / "nas_streams"
    subprocess.run(
        [sanitized_one.prefix / "bin/mpicc", "-std=c11", "-Wall", "-Wextra", "-Werror",
         *sanitized_one.flags.split(), "-o", program, "tests/benchmarks/programs/nas_streams.c",
         *sources, "-lm"],
        check=True, cwd=PROJECT,
    )  # fmt: skip
    of_class = literature()["DT"]["classes"][size]
    for number, graph in enumerate(GRAPHS):
        done = subprocess.run(
            [program, str("SWAB".index(size)), str(number)], capture_output=True, text=True
        )
        assert done.returncode == 0 and done.stderr == "", done.stderr
        found = [int(word) for word in done.stdout.split()]
        assert found == [of_class[key][graph] for key in ("nodes", "arcs", "checksums")]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_timed_section_is_repeated_and_verified_each_time(
    one: Built, tmp_path: Path, benchmark: str
) -> None:
    once = solved(one, tmp_path / "once", benchmark, "S", 1)
    assert once.times_s == (once.time_s,)
    # Longer than it took, if a tenth as long as then is the least that it ever takes.
    asked = min(1.0, 3 * once.time_s)
    done = one.run(program_of(benchmark), "--class", "S", "--least-seconds", str(asked), ranks=1)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "out").write_text(done.stdout)
    run = read_npb_output(tmp_path / "out")
    assert run.verified
    assert len(run.times_s) % 2 == 1
    # It goes on until the time is used up or the times are as many as may be, and then ends.
    assert sum(run.times_s) >= asked - 1e-6 or len(run.times_s) == 99
    assert sum(run.times_s[:-2]) < asked
    assert run.time_s == sorted(run.times_s)[len(run.times_s) // 2]


@pytest.mark.parametrize(
    ("benchmark", "size", "ranks"),
    # A grid of ranks 2 x 3, ranks in two dimensions of a cube, pencils that are cut unevenly, and
    # three blocks a rank.
    [
        ("CG", "S", 6),
        ("MG", "S", 8),
        ("FT", "S", 7),
        ("IS", "S", 5),
        ("LU", "S", 6),
        ("SP", "S", 9),
        ("BT", "S", 9),
    ],
)
def test_more_ranks(yielding: Built, tmp_path: Path, benchmark: str, size: str, ranks: int) -> None:
    solved(yielding, tmp_path / "out", benchmark, size, ranks)


def test_pencils(yielding: Built, tmp_path: Path) -> None:
    """With more ranks than planes a box is divided in two dimensions: played with fewer planes."""
    fewer = ("smaller(points[1], points[2])", "2")
    changed = yielding.with_another(tmp_path, "nas/pencils.c", fewer)
    done = changed.make(f"{changed.build}/bin/nas_ft")
    assert done.returncode == 0, done.stderr
    for ranks in (4, 6):  # Two along z, two or three across.
        solved(changed, tmp_path / "out", "FT", "S", ranks)


def test_reference_values_are_the_literature() -> None:
    """The table in C is what its generator writes from literature/npb_verification.yaml."""
    script = REFERENCE_VALUES.with_suffix(".py")
    written = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert written.stdout == REFERENCE_VALUES.read_text()


#: Of a benchmark a value of class S, a wrong one in its place, and what its program then says.
WRONG = [
    ("EP", "-3247.83465203474", "-3247.83475203474", "the sum of X is -3.24783465203"),
    ("EP", "1648,", "1649,", "annulus 4 is 1648, expected is 1649"),
    ("IS", "48427", "48428", "in iteration 1 the rank of key 48428 is "),
    ("CG", "8.5971775078648", "8.5971785078648",
     "zeta is 8.5971775078648e+00, expected is 8.5971785078648e+00 within 1e-10"),
    ("MG", "5.307707005734e-05", "5.307717005734e-05", "expected is 5.3077170057340e-05"),
    ("FT", "484.5363331978", "484.5363332978", "checksum 1 is 5.546087004964e+02 +4.84536333"),
    ("LU", "7.841892886593708", "7.841893886593708", "the surface integral is 7.8418928865937"),
    ("SP", "0.01036074670528541", "0.01036084670528541", "the norm of residual 2 is 1.0360746"),
    ("BT", "0.000499769133458115", "0.000499769143458115", "the norm of error 1 is 4.99769133"),
    ("DT", "30892725.0", "30892726.0", "the checksum is 30892725, expected is 30892726"),
]  # fmt: skip


def changed_once(text: str, changes: list[tuple[str, str]]) -> str:
    """Return a text in which the first place of each old word has the new one."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def test_a_wrong_value_is_said(one: Built, tmp_path: Path) -> None:
    """Of each program one value, all at once; of EP another one by itself."""
    text, [_, annulus, *_] = REFERENCE_VALUES.read_text(), WRONG
    for number, wrong in enumerate(([one for one in WRONG if one != annulus], [annulus])):
        whole = changed_once(text, [(old, new) for _, old, new, _ in wrong])
        changed = one.with_another(tmp_path / str(number), "nas/reference_values.c", (text, whole))
        programs = {program_of(benchmark) for benchmark, *_ in wrong}
        done = changed.make(*(f"{changed.build}/bin/{program}" for program in sorted(programs)))
        assert done.returncode == 0, done.stderr
        # All else was compiled before.
        assert done.stdout.count(" -c -o ") == 1, done.stdout
        for benchmark, _, _, sentence in wrong:
            assert_wrong(changed, tmp_path / "out", benchmark, sentence)


def assert_wrong(changed: Built, path: Path, benchmark: str, sentence: str) -> None:
    """Fail unless a benchmark fails, and says so itself and in its output."""
    program = program_of(benchmark)
    done = changed.run(program, ranks=5 if benchmark == "DT" else 1)
    assert done.returncode == 1
    [said] = [line for line in done.stderr.splitlines() if line.startswith(f"{program}: ")]
    assert sentence in said and "NPB3.4.1-MPI" in said
    path.write_text(done.stdout)
    run = read_npb_output(path)
    assert not run.verified and any(sentence in wrong for wrong in run.wrong)


def drawn_keys(log2_keys: int, log2_largest: int) -> NDArray[numpy.int64]:
    """Return IS' keys in the order in which they are drawn, by whole numbers alone."""
    draws = numpy.empty(4 * 2**log2_keys, dtype=numpy.uint64)
    draws[0], step, filled = 314159265 * 1220703125 % 2**46, 1220703125, 1
    while filled < len(draws):
        # Products that are cut to 64 bits still have the 46 that count.
        draws[filled : 2 * filled] = draws[:filled] * numpy.uint64(step) & numpy.uint64(2**46 - 1)
        filled, step = 2 * filled, step * step % 2**46
    totals = draws.reshape(-1, 4).sum(axis=1).astype(object)
    keys: NDArray[numpy.int64] = (totals * 2**log2_largest // 2**48).astype(numpy.int64)
    return keys


def test_fewer_keys_of_class_d_s_values(one: Built, tmp_path: Path) -> None:
    """Class D's 27 bits and buckets, of 2^16 keys instead of 2^31, ranked by counting."""
    keys = drawn_keys(16, 27)
    in_order = [int(place) for place in numpy.argsort(keys) if place > 20]
    # In each iteration a small key and a large one replace two others, so that the smallest keys'
    # ranks rise by one, and the largest keys' fall by one.
    tested, signs = [*in_order[:2], *in_order[-3:]], [1, 1, -1, -1, -1]
    ranks = []
    for iteration in range(1, 11):
        keys[iteration], keys[iteration + 10] = iteration, 2**27 - iteration
        ranks.append([int((keys < keys[place]).sum()) for place in tested])
    assert [[rank - sign * number for rank, sign in zip(row, signs, strict=True)]
            for number, row in enumerate(ranks)] == [ranks[0]] * 10  # fmt: skip
    text = REFERENCE_VALUES.read_text()
    before, after = text.split("    {\n        31,\n        27,\n        10,\n", 1)
    rows = [tested, ranks[0], signs, [-1] * 5]
    members = ["16", "27", "10", *(f"{{{', '.join(map(str, row))}}}" for row in rows), "{{0}}"]
    rest = after.split("    },\n    /* E */", 1)[1]
    fewer = f"{before}    {{{', '.join(members)}}},\n    /* E */{rest}"
    changed = one.with_another(tmp_path, "nas/reference_values.c", (text, fewer))
    assert changed.make(f"{changed.build}/bin/nas_is").returncode == 0
    for number in (1, 2):
        done = changed.run("nas_is", "--class", "D", ranks=number)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr


def test_no_pass_over_the_keys_is_timed_that_npb_has_not(one: Built, tmp_path: Path) -> None:
    """Keys are kept inside this rank's buckets: by instructions, a small part of ranking them."""
    instructions = []
    count = "of_value[((unsigned)received[i] - smallest){}]++;"
    unguarded = (count.format(" & inside"), count.format(""))
    bare = one.with_another(tmp_path, "nas/is.c", unguarded)
    assert bare.make(f"{bare.build}/bin/nas_is").returncode == 0
    for built in (one, bare):
        counts = tmp_path / "counts"
        done = one.run_command(
            ["valgrind", "--tool=callgrind", "--toggle-collect=rank_keys*",
             f"--callgrind-out-file={counts}", str(built.build / "bin/nas_is")],
            ranks=1,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        [total] = re.findall(r"^(?:summary|totals): (\d+)", counts.read_text(), re.M)[:1]
        instructions.append(int(total))
    guarded_ones, bare_ones = instructions
    assert bare_ones > 11 * 2**16  # As many times were so many keys ranked.
    assert guarded_ones < 1.04 * bare_ones


CALLS = {
    "EP": ("MPI_Allreduce(const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)",
           "int code = PMPI_Allreduce(s, b, n, t, o, c); if (t == MPI_DOUBLE) *(double *)b += 1;"),
    "IS": ("MPI_Alltoallv(const void *s, const int *n, const int *d, MPI_Datatype t, void *b, "
           "const int *m, const int *e, MPI_Datatype u, MPI_Comm c)",
           "int code = PMPI_Alltoallv(s, n, d, t, b, m, e, u, c), rank; PMPI_Comm_rank(c, &rank); "
           "if (rank == 1) ((int *)b)[7] ^= 1;"),
    "CG": ("MPI_Isend(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, "
           "MPI_Request *r)",
           "((double *)b)[n / 2] += 1e-3; int code = PMPI_Isend(b, n, t, to, tag, c, r);"),
    "FT": ("MPI_Alltoallv(const void *s, const int *n, const int *d, MPI_Datatype t, void *b, "
           "const int *m, const int *e, MPI_Datatype u, MPI_Comm c)",
           "int code = PMPI_Alltoallv(s, n, d, t, b, m, e, u, c); ((double *)b)[7] = 0;"),
}  # fmt: skip
CALLS["MG"] = CALLS["CG"]
CALLS["DT"] = (
    "MPI_Send(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c)",
    "if (t == MPI_DOUBLE) ((double *)b)[n / 2] += 1000; int code = PMPI_Send(b, n, t, to, tag, c);",
)
#: The middle of a border is at the surface, whose values on the other rank nobody needs.
CALLS["LU"] = (CALLS["CG"][0], CALLS["CG"][1].replace("n / 2", "n / 2 + 5"))
#: What is handed from block to block along lines.
CALLS["SP"] = CALLS["BT"] = (
    "MPI_Sendrecv(const void *s, int n, MPI_Datatype t, int to, int tag, void *b, int m, "
    "MPI_Datatype u, int from, int other, MPI_Comm c, MPI_Status *status)",
    "int code = PMPI_Sendrecv(s, n, t, to, tag, b, m, u, from, other, c, status); "
    "((double *)b)[7] += 1e-3;",
)


@pytest.mark.parametrize("benchmark", [*BENCHMARKS, "DT"])
def test_corrupted_messages_are_found(one: Built, tmp_path: Path, benchmark: str) -> None:
    """A library that changes one number of a message stands between program and MPI."""
    signature, body = CALLS[benchmark]
    source, library = tmp_path / "corrupt.c", tmp_path / "corrupt.so"
    source.write_text(f"#include <mpi.h>\nint {signature}\n{{ {body} return code; }}\n")
    subprocess.run(
        [one.prefix / "bin/mpicc", "-shared", "-fPIC", "-o", library, source], check=True
    )
    program = program_of(benchmark)
    done = one.run(program, ranks=RANKS.get(benchmark, 2), LD_PRELOAD=str(library))
    assert done.returncode == 1, done.stdout
    assert f"{program}: wrong answer: " in done.stderr and ", expected is " in done.stderr
    assert "UNSUCCESSFUL" in done.stdout


@pytest.mark.parametrize(
    ("program", "arguments", "ranks", "sentence"),
    [
        ("nas_ep", ["--class", "X"], 2, "must be one of: S, W, A, B, C"),
        ("nas_cg", ["--class"], 2, "--class"),
        ("nas_is", ["--sizes", "8"], 2, "--sizes"),
        ("nas_ft", ["S"], 2, "S"),
        ("nas_mg", ["--class", "S"], 3, "3 ranks: must be a power of two"),
        ("nas_sp", ["--class", "S"], 2, "2 ranks: must be a square number"),
        ("nas_dt", ["--graph", "SH"], 2, "2 rank(s) for the 12 nodes of graph SH in class S"),
        ("nas_dt", ["--class", "C"], 2, "must be one of: S, W, A, B"),
        ("nas_dt", ["--graph", "XH"], 2, "must be one of: BH, WH, SH"),
    ],
)
def test_bad_arguments_are_one_sentence(
    one: Built, program: str, arguments: list[str], ranks: int, sentence: str
) -> None:
    done = one.refuse(program, arguments, ranks, sentence)
    assert "Verification" not in done.stdout


def test_more_levels_than_fit_are_refused_and_class_e_has_no_more(
    one: Built, tmp_path: Path
) -> None:
    changed = one.with_another(tmp_path, "nas/mg.c", ("MOST_LEVELS = 11", "MOST_LEVELS = 4"))
    assert changed.make(f"{changed.build}/bin/nas_mg").returncode == 0
    changed.refuse("nas_mg", ["--class", "S"], 1, "class S has 32 points in a dimension")
    one.refuse("nas_mg", ["--class", "E"], 1, "class E on 1 rank(s) needs at least ")
    # A process may have less than its node.
    program = one.build / "bin" / "nas_mg"
    done = one.run_command(["sh", "-c", f"ulimit -v 1000000; exec {program} --class C"], ranks=1)
    assert "nas_mg: no memory for " in done.stderr, done.stderr


@pytest.mark.parametrize("benchmark", [*BENCHMARKS, "DT"])
def test_help(one: Built, benchmark: str) -> None:
    program = program_of(benchmark)
    shown = one.run(program, "--help", ranks=1)
    assert shown.returncode == 0 and "usage:" in shown.stdout and "--class" in shown.stdout
    assert one.run(program, "--version", ranks=1).stdout == f"{program} 1.0.0\n"


def test_sanitizers_find_nothing(sanitized_one: Sanitized) -> None:
    for benchmark in (*BENCHMARKS, "DT"):
        sanitized_one.check(program_of(benchmark), ranks=RANKS.get(benchmark, 2))


def test_valgrind_finds_nothing(one: Built, tmp_path: Path) -> None:
    """Reads and writes only: what the libraries leave undefined on their way is not ours."""
    command = ["valgrind", "-q", "--error-exitcode=9", "--undef-value-errors=no",
               f"--suppressions={PROJECT}/tests/benchmarks/valgrind.supp"]  # fmt: skip
    # EP has no memory but a few arrays of fixed size, and takes minutes.
    runs = [(program_of(benchmark),) for benchmark in ("IS", "MG", "FT", "CG", "LU")]
    done = Libraries(one).run_each(runs, tmp_path, 2, command)
    assert done.returncode == 0, done.stderr[-3000:]
