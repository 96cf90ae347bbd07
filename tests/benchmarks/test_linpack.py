"""dgemm, stream and linpack by hand, with two MPIs: right answers, and wrong ones that are seen."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from analysis.linpack_records import Dgemm, LinpackSolve, Rate, Stream
from analysis.records import read_program_output
from tests.benchmarks.conftest import PROJECT, Built, Sanitized
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


# One that fails after the first two systems, which are solved before anything is timed.
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
    if (++calls <= 2)
        return;
    if (strcmp(getenv("FAULT"), "solution") == 0)
        b[3] += 1e-6;
    else if (calls == 3)
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
    found = [result for result in results if isinstance(result, Rate)]
    assert len(found) == len(results) and all(result.ranks == ranks for result in found)
    return found


@pytest.mark.parametrize(("n", "ranks"), [(1, 2), (2, 1), (129, 2), (300, 3)])
def test_dgemm(one: Built, tmp_path: Path, n: int, ranks: int) -> None:
    [product] = measured(one, tmp_path / "out", "dgemm", "--n", str(n), ranks=ranks)
    assert isinstance(product, Dgemm)
    assert (product.n, product.flop, product.iterations) == (n, 2 * n**3, 3)
    assert product.error < 1 and product.rate_flops > 0


def test_stream(one: Built, tmp_path: Path) -> None:
    loops = measured(one, tmp_path / "out", "stream", "--array-bytes", "8000008")
    assert [loop.kernel for loop in loops if isinstance(loop, Stream)] == [
        "copy", "scale", "add", "triad",
    ]  # fmt: skip
    for loop in loops:
        assert isinstance(loop, Stream)
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
    assert isinstance(loop, Stream)
    assert loop.array_bytes * 2 == pytest.approx(4 * caches, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 64, 100, 257])
def test_linpack_by_columns_and_by_lapack(one: Built, tmp_path: Path, n: int) -> None:
    """By columns a system is solved as exactly as by LAPACK, at orders with and without edges."""
    results = measured(one, tmp_path / "out", "linpack", "--n", str(n), ranks=1)
    systems = [system for system in results if isinstance(system, LinpackSolve)]
    assert [(system.method, system.n) for system in systems] == [("columns", n), ("lapack", n)]
    for system in systems:
        assert system.residual < 16 and system.operations_per_cycle > 0
        # A timing of many clock steps: the smaller the system, the more of them it takes.
        assert system.repetitions > 1 or n >= 64


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
        ("pivot", r"linpack: rank 0, lapack, N=50: a pivot is 0, and the matrix is not singular"),
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


def test_valgrind_finds_nothing(one: Built) -> None:
    command = ["valgrind", "-q", "--error-exitcode=9", "--undef-value-errors=no",
               f"--suppressions={PROJECT}/tests/benchmarks/valgrind.supp"]  # fmt: skip
    for program, arguments in SMALL:
        done = one.run_command(
            [*command, str(one.build / "bin" / program), *arguments, *SHORT], ranks=1
        )
        assert done.returncode == 0, (program, done.stderr[-3000:])
