"""dgemm, stream and linpack by hand, with two MPIs: right answers, and wrong ones that are seen."""

import json
import math
import re
import subprocess
from pathlib import Path

import pytest

from records.node_rates import DgemmResult, LinpackSolve, Rate, StreamResult
from records.program_output import read_program_output
from tests.benchmarks.conftest import PROJECT, SANITIZERS, Built, Sanitized
from tests.benchmarks.libraries import Libraries
from tests.benchmarks.test_programs import SCHEMA

pytestmark = pytest.mark.real
SHORT = ["--iterations", "3"]
SMALL = [
    ("dgemm", ["--n", "33"]),
    ("stream", ["--array-bytes", "80000"]),
    ("linpack", ["--n", "37"]),
]
# A BLAS of the worst kind: it says that all went well.
WRONG_BLAS = """
void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k,
            const double *alpha, const double *a, const int *lda, const double *b, const int *ldb,
            const double *beta, double *c, const int *ldc)
{
    for (int j = 0; j < *n; j++)
        for (int i = 0; i < *m; i++) {
            double sum = 0;
            for (int l = 0; l + 1 < *k; l++) /* The last term is missing. */
                sum += a[i + l * *lda] * b[l + j * *ldb];
            c[i + j * *ldc] = sum;
        }
}
void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *pivots, double *b,
            const int *ldb, int *info)
{
    for (int i = 0; i < *n; i++)
        b[i] = 1.0 + (i == 3 ? 1e-9 : 0.0);
    *info = 0;
}
"""


# One that fails after the first system, which is solved before anything is timed.
LATE_BLAS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
typedef void solver(const int *, const int *, double *, const int *, int *, double *, const int *,
                    int *);
void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *pivots, double *b,
            const int *ldb, int *info)
{
    static int calls;
    solver *right;
    *(void **)&right = dlsym(RTLD_NEXT, "dgesv_");
    right(n, nrhs, a, lda, pivots, b, ldb, info);
    if (++calls <= 1)
        return;
    if (strcmp(getenv("FAULT"), "solution") == 0)
        b[3] += 1e-6;
    else if (calls == 2)
        *info = 4;
}
"""


def measured(built: Built, path: Path, program: str, *arguments: str, ranks: int = 2) -> list[Rate]:
    """Return a program's results, each line checked against the schema."""
    done = built.run(program, *arguments, *SHORT, ranks=ranks)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        SCHEMA.validate(json.loads(line))
    path.write_text(done.stdout)
    results = read_program_output(path).results
    found: list[Rate] = [result for result in results if isinstance(result, Rate)]
    assert len(found) == len(results) and all(result.ranks == ranks for result in found)
    return found


@pytest.mark.parametrize(("n", "ranks"), [(1, 2), (2, 1), (129, 2), (300, 3)])
def test_dgemm(one: Built, tmp_path: Path, n: int, ranks: int) -> None:
    [product] = measured(one, tmp_path / "out", "dgemm", "--n", str(n), ranks=ranks)
    assert isinstance(product, DgemmResult)
    assert (product.n, product.flop, product.iterations) == (n, 2 * n**3, 3)
    assert product.error < 1 and product.rate_flops > 0


def test_stream(one: Built, tmp_path: Path) -> None:
    loops = measured(one, tmp_path / "out", "stream", "--array-bytes", "8000008")
    assert [loop.kernel for loop in loops if isinstance(loop, StreamResult)] == [
        "copy", "scale", "add", "triad",
    ]  # fmt: skip
    for loop in loops:
        assert isinstance(loop, StreamResult)
        assert loop.verified_elements == 1_000_001
        assert loop.moved_bytes == 1_000_001 * (16 if loop.kernel in ("copy", "scale") else 24)


def test_stream_goes_beyond_the_caches(one: Built, tmp_path: Path) -> None:
    """Without a size the arrays of a node's ranks are four times its last-level caches."""
    largest: dict[str, int] = {}
    for cache in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cache/index*"):
        if (cache / "size").read_text().endswith("K\n"):
            kib = int((cache / "size").read_text().strip().removesuffix("K"))
            level = (cache / "level").read_text().strip()
            largest[f"{level} {(cache / 'shared_cpu_list').read_text()}"] = kib * 1024
    if not largest:
        pytest.skip("this kernel says nothing of caches")
    last = max(key.split()[0] for key in largest)
    caches = sum(size for key, size in largest.items() if key.startswith(last))
    [loop] = measured(one, tmp_path / "out", "stream", "--kernel", "copy")
    assert isinstance(loop, StreamResult)
    assert loop.array_bytes * 2 == pytest.approx(4 * caches, rel=1e-6)


@pytest.mark.parametrize(
    ("listed", "caches"),
    [
        # Processor: its caches, each with KiB and who shares it.
        ({0: [(32, "0"), (1024, "0-1")], 1: [(32, "1"), (1024, "0-1")]}, 1024),
        # One in the middle that says nothing, and its share is as large as the others'.
        ({0: [(32, "0"), (1024, "0")], 1: [], 2: [(1024, "2")], 3: [(1024, "3")]}, 4096),
        # The first one is such.
        ({0: [], 1: [(512, "0-1")]}, 512),
        # None says anything.
        ({0: [], 1: []}, 0),
        # Two are offline, so their numbers are missing.
        ({0: [(2048, "0,3")], 3: [(2048, "0,3")], 4: [(1024, "4")]}, 3072),
    ],
)
def test_caches_where_a_processor_says_nothing_of_its_own(
    listed_caches: Path, tmp_path: Path, listed: dict[int, list[tuple[int, str]]], caches: int
) -> None:
    (tmp_path / "online").write_text(",".join(map(str, listed)) + "\n")
    for processor, levels in listed.items():
        for index, (kib, shared) in enumerate(levels):
            folder = tmp_path / f"cpu{processor}/cache/index{index}"
            folder.mkdir(parents=True)
            (folder / "size").write_text(f"{kib}K\n")
            (folder / "shared_cpu_list").write_text(f"{shared}\n")
    done = subprocess.run([listed_caches, tmp_path], capture_output=True, text=True, check=True)
    assert int(done.stdout) == caches * 1024


@pytest.fixture(scope="module")
def listed_caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program that prints the caches that a folder lists."""
    program = tmp_path_factory.mktemp("caches") / "listed_caches"
    subprocess.run(
        ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", *SANITIZERS.split(), "-o", program,
         PROJECT / "tests/benchmarks/programs/listed_caches.c",
         PROJECT / "benchmarks/node_rates/cache_size.c"],
        check=True,
    )  # fmt: skip
    return program


@pytest.mark.parametrize("n", [1, 2, 3, 64, 100, 257])
def test_linpack_by_columns_and_by_lapack(one: Built, tmp_path: Path, n: int) -> None:
    """By columns a system is solved as exactly as by LAPACK, at orders with and without edges."""
    results = measured(one, tmp_path / "out", "linpack", "--n", str(n), ranks=1)
    systems = [system for system in results if isinstance(system, LinpackSolve)]
    assert [(system.method, system.n) for system in systems] == [("columns", n), ("lapack", n)]
    for system in systems:
        assert system.residual < 16 and system.operations_per_cycle > 0
        # A timing of many clock steps: the smaller the system, the more of them it takes.
        assert system.repetitions == min(10_000, math.ceil(5e5 / (2 / 3 * n**3 + 2 * n**2)))


def test_the_working_set_does_not_follow_from_the_clock(one: Built, tmp_path: Path) -> None:
    """Systems lie in memory together; a library whose clock is coarse must not get more of them."""
    (tmp_path / "coarse.c").write_text(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <math.h>\n#include <time.h>\n"
        "extern double PMPI_Wtime(void);\n"
        "double MPI_Wtime(void) { return floor(PMPI_Wtime() * 1e3) / 1e3; }\n"
        "int clock_gettime(clockid_t clock, struct timespec *now)\n"
        "{ int (*fine)(clockid_t, struct timespec *);\n"
        '  *(void **)&fine = dlsym(RTLD_NEXT, "clock_gettime");\n'
        "  int code = fine(clock, now); now->tv_nsec -= now->tv_nsec % 1000000; return code; }\n"
    )
    library = tmp_path / "coarse.so"
    compiler = [str(one.prefix / "bin/mpicc"), "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*compiler, tmp_path / "coarse.c", "-lm"], check=True)
    program = str(one.build / "bin/linpack")
    words = ["--method", "columns", "--n", "40", *SHORT]
    found = []
    for command in ([program], ["env", f"LD_PRELOAD={library}", program]):
        done = one.run_command([*command, *words], ranks=1)
        assert done.returncode == 0, done.stderr
        found += [json.loads(line)["repetitions"]
                  for line in done.stdout.splitlines() if '"result"' in line]  # fmt: skip
    assert len(found) == 2 and found[0] == found[1], found


def test_orders_of_the_report(one: Built, tmp_path: Path) -> None:
    results = measured(one, tmp_path / "out", "linpack", ranks=1)
    found = [(r.method, r.n, r.flop) for r in results if isinstance(r, LinpackSolve)]
    # 2/3 n^3 + 2 n^2: Dongarra's table counts 687 thousand and 669 million.
    assert [(method, n) for method, n, _ in found] == [("columns", 100), ("lapack", 1000)]
    assert [flop for *_, flop in found] == pytest.approx([686_667, 668_666_667], rel=1e-6)


def test_clock_is_that_of_the_processor(one: Built, tmp_path: Path) -> None:
    """What /proc/cpuinfo says may hide turbo or a slower clock, but no factor of three."""
    said = re.findall(r"^cpu MHz\s*:\s*([\d.]+)", Path("/proc/cpuinfo").read_text(), re.M)
    if not said:
        pytest.skip("this processor's clock is not told")
    clocks = [
        clock
        for _ in range(3)
        for result in measured(one, tmp_path / "out", "linpack", "--method", "columns")
        for clock in result.clock_hz_by_rank
    ]
    # Where others use the processor a chain of additions can only be too slow.
    assert max(float(mhz) for mhz in said) * 1e6 / 3 < max(clocks)
    assert max(clocks) < max(float(mhz) for mhz in said) * 1e6 * 3


@pytest.fixture(scope="session")
def wrong_blas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library whose products and solutions are a little wrong."""
    folder = tmp_path_factory.mktemp("blas")
    (folder / "wrong.c").write_text(WRONG_BLAS)
    library = folder / "libwrong.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, folder / "wrong.c"], check=True)
    return library


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["dgemm", "--n", "50"], r"dgemm: rank 0, C\(1,1\) of order 50 is \S+, and the dot product"
         r" .* computed here, is \S+: the product is wrong"),
        (["linpack", "--method", "lapack", "--n", "50"], r"linpack: rank 0, lapack, N=50: the"
         r" residual .* as the LINPACK benchmark has it, is \S+ and must be below 16: the answer"),
    ],
)  # fmt: skip
def test_wrong_answers_are_seen(
    one: Built, wrong_blas: Path, arguments: list[str], sentence: str
) -> None:
    command = ["env", f"LD_PRELOAD={wrong_blas}", str(one.build / "bin" / arguments[0])]
    done = one.run_command([*command, *arguments[1:]])
    assert done.returncode != 0 and '"result"' not in done.stdout
    said = [line for line in done.stderr.splitlines() if line.startswith(arguments[0])]
    assert len(said) == 1 and re.match(sentence, said[0]), done.stderr


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("solution", r"linpack: rank 0, lapack, N=50: the residual .* is \S+ and must be below 16"),
        ("pivot", r"linpack: rank 0, lapack, N=50: a pivot is 0, yet the matrix is not singular"),
    ],
)
def test_timed_answers_are_examined_too(
    one: Built, tmp_path: Path, fault: str, sentence: str
) -> None:
    (tmp_path / "late.c").write_text(LATE_BLAS)
    library = tmp_path / "late.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "late.c"], check=True)
    command = ["env", f"LD_PRELOAD={library}", f"FAULT={fault}", str(one.build / "bin/linpack")]
    done = one.run_command([*command, "--method", "lapack", "--n", "50", *SHORT])
    assert done.returncode != 0 and '"end"' not in done.stdout
    said = [line for line in done.stderr.splitlines() if line.startswith("linpack: ")]
    assert len(said) == 1 and re.match(sentence, said[0]), done.stderr


# One that leaves the result of its last product unwritten: those before are right.
LAZY_BLAS = """
#define _GNU_SOURCE
#include <dlfcn.h>
typedef void product(const char *, const char *, const int *, const int *, const int *,
                     const double *, const double *, const int *, const double *, const int *,
                     const double *, double *, const int *);
void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k,
            const double *alpha, const double *a, const int *lda, const double *b, const int *ldb,
            const double *beta, double *c, const int *ldc)
{
    static int calls;
    product *right;
    *(void **)&right = dlsym(RTLD_NEXT, "dgemm_");
    if (++calls != 5) /* The proof, a warm-up, and three that are timed. */
        right(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
"""


def test_a_timed_product_that_is_not_computed_is_seen(one: Built, tmp_path: Path) -> None:
    (tmp_path / "lazy.c").write_text(LAZY_BLAS)
    library = tmp_path / "lazy.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "lazy.c"], check=True)
    command = ["env", f"LD_PRELOAD={library}", str(one.build / "bin/dgemm"), "--n", "50"]
    done = one.run_command([*command, *SHORT])
    assert done.returncode != 0 and '"end"' not in done.stdout
    said = [line for line in done.stderr.splitlines() if line.startswith("dgemm: ")]
    assert len(said) == 1 and "C(1,1) of order 50 is nan" in said[0], done.stderr


def test_a_timed_loop_that_does_not_run_is_seen(one: Built, tmp_path: Path) -> None:
    """Played by loops that leave out what is behind the first quarter once they are timed."""
    kernels, loop = "node_rates/stream_kernels.c", "for (size_t i = 0; i < s->count; i++)"
    assert (one.sources / kernels).read_text().count(loop) == 4
    a_quarter = (
        "static int runs;\n    const size_t end = runs++ ? s->count / 4 : s->count;\n"
        "    for (size_t i = 0; i < end; i++)"
    )
    changed = one.with_another(tmp_path, kernels, (loop, a_quarter))
    done = changed.make(f"{changed.build}/bin/stream")
    assert done.returncode == 0, done.stderr
    for kernel in ("copy", "scale", "add", "triad"):
        done = changed.run("stream", "--array-bytes", "80000", "--kernel", kernel, *SHORT, ranks=1)
        assert done.returncode == 1 and '"end"' not in done.stdout
        assert f"stream: rank 0, {kernel}: element " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["dgemm", "--n", "0"], 2, "dgemm: --n 0"),
        (["dgemm", "--n", "200000"], 2, "dgemm: --n 200000"),
        (["stream", "--array-bytes", "7"], 2, "stream: --array-bytes 7: not a multiple of 8"),
        (["stream", "--array-bytes", "8000000000000"], 1, "stream: 2 rank(s) of a node need"),
        (["stream", "--kernel", "dot"], 2, "stream: --kernel dot"),
        (["linpack", "--method", "rows"], 2, "linpack: --method rows"),
        (["linpack", "--iterations", "0"], 2, "linpack: --iterations 0"),
    ],
)
def test_bad_arguments_are_one_sentence(
    one: Built, arguments: list[str], code: int, sentence: str
) -> None:
    done = one.run(*arguments)
    assert done.returncode == code
    said = [line for line in done.stderr.splitlines() if line.startswith(arguments[0])]
    assert len(said) == 1 and said[0].startswith(sentence), done.stderr


def test_sanitizers_find_nothing(sanitized_one: Sanitized) -> None:
    for program, arguments in SMALL:
        sanitized_one.check(program, *arguments, *SHORT)


def test_valgrind_finds_nothing(one: Built, tmp_path: Path) -> None:
    command = ["valgrind", "-q", "--error-exitcode=9", "--undef-value-errors=no",
               f"--suppressions={PROJECT}/tests/benchmarks/valgrind.supp"]  # fmt: skip
    runs = [(program, *arguments, *SHORT) for program, arguments in SMALL]
    done = Libraries(one).run_each(runs, tmp_path, 1, command)
    assert done.returncode == 0, done.stderr[-3000:]
