"""What the NAS programs ask for in classes that no machine at hand holds: found without a run."""

import math
import re
import subprocess
from pathlib import Path

import pytest

from records.npb import problem
from reframe_checks.nas import BYTES_PER_POINT
from tests.benchmarks.conftest import PROJECT, Built, Sanitized

pytestmark = pytest.mark.real
MOST_COUNTED = 2**31 - 1
#: Of all, with the largest number of ranks that each of them may have in class E and is tried.
BENCHMARKS = ("IS", "CG", "MG", "FT", "LU", "SP", "BT")
Demands = dict[str, tuple[int, int]]


class Asking:
    """The program that finds what others would ask for, watched by the sanitizers."""

    def __init__(self, program: Path) -> None:
        self.program = program

    def run(self, *words: object) -> list[str]:
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return done.stdout.splitlines()

    def of(self, size: str, ranks: int) -> Demands:
        """Return the bytes of all ranks, and the elements that one counts at most, by benchmark."""
        found = {}
        for line in self.run(size, ranks):
            name, asked, counted = line.split()
            found[name] = int(asked), int(counted)
        return found


@pytest.fixture(scope="module")
def asking(sanitized_one: Sanitized, tmp_path_factory: pytest.TempPathFactory) -> Asking:
    """Return nas_demands.c, linked with the programs' own functions."""
    programs = [f"{sanitized_one.build}/bin/nas_{name.lower()}" for name in BENCHMARKS]
    made = sanitized_one.make("-j2", *programs)
    assert made.returncode == 0, made.stderr
    mains = {f"{name.lower()}.o" for name in (*BENCHMARKS, "EP", "DT")}
    parts = [path for path in (sanitized_one.build / "nas").glob("*.o") if path.name not in mains]
    common = [path for path in (sanitized_one.build / "common").glob("*.o")
              if not re.search(r"\b(MPI_|PMPI_)?main\b", path.stem)]  # fmt: skip
    program = tmp_path_factory.mktemp("demands") / "nas_demands"
    subprocess.run(
        [sanitized_one.prefix / "bin/mpicc", "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra",
         "-Werror", *sanitized_one.flags.split(), "-o", program,
         PROJECT / "tests/benchmarks/programs/nas_demands.c", *parts, *common,
         sanitized_one.build / "hpl/node_memory.o", "-lm"],
        check=True,
    )  # fmt: skip
    return Asking(program)


def test_memory_of_large_classes_is_what_their_arrays_have(asking: Asking) -> None:
    """By the sizes of the literature, and by what the check leaves out a class for."""
    for size in "DE":
        # One row, which no MPI has to hold; a square that divides no dimension; a power of two.
        for ranks in (1, 529, 1024):
            found = asking.of(size, ranks)
            assert set(found) == set(BENCHMARKS) - ({"MG"} if ranks == 529 else set())
            for name, (asked, _) in found.items():
                points = math.prod(problem(name, size).size)
                if name == "CG":
                    nonzeros = 27 if size == "E" else 22
                    # All vectors on every rank, and the matrix once.
                    least = points * (12 * nonzeros * ranks + 12 * nonzeros**2)
                    assert least < asked < 1.2 * least + 40 * points * ranks
                    continue
                # SP and BT keep on one rank what LU does, and a line.
                alone = ranks == 1 and name in ("SP", "BT")
                whole = BYTES_PER_POINT["LU" if alone else name] * points
                # Each rank has a border of its own.
                assert 0.85 * whole < asked < (1.15 if ranks == 1 else 3) * whole, (
                    name,
                    size,
                    ranks,
                )


@pytest.mark.parametrize(
    ("size", "ranks", "too_few"),
    [
        ("D", 1, {"IS"}),
        ("D", 2, {"FT"}),
        ("D", 4, set()),
        ("E", 4, {"IS", "FT"}),
        ("E", 16, {"IS", "FT"}),
        # More would be fewer than one z plane or bucket a rank; none of these is counted wrongly.
        ("E", 64, set()),
        ("E", 1024, set()),
    ],
)
def test_messages_are_counted_whole(
    asking: Asking, size: str, ranks: int, too_few: set[str]
) -> None:
    """An element too many for MPI's int is found, on few ranks, before anything is reserved."""
    found = asking.of(size, ranks)
    assert {name for name, (_, counted) in found.items() if counted > MOST_COUNTED} == too_few


def drawn_keys(log2_largest: int, first: int, count: int) -> list[int]:
    """Return IS' keys by whole numbers alone."""
    x = 314159265 * pow(1220703125, 4 * first, 2**46) % 2**46
    keys = []
    for _ in range(count):
        total = 0
        for _ in range(4):
            x = x * 1220703125 % 2**46
            total += x
        keys.append(total * 2**log2_largest >> 48)
    return keys


def test_keys_of_class_e_fill_31_bits(asking: Asking) -> None:
    """Of the first rank and of the last ones of 64; the sums of the program are exact."""
    for size, log2_largest, keys in (("D", 27, 2**31), ("E", 31, 2**35)):
        for first in (0, keys - 500):
            said = [int(line) for line in asking.run("--keys", size, first, 500)]
            assert said == drawn_keys(log2_largest, first, 500)
        assert max(said) > 2 ** (log2_largest - 1)


#: Says how much larger each rank has become since the world was there.
GROWING = """
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static double begun;
static double kilobytes(const char *name)
{ char line[200]; double found = 0; FILE *file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file))
    if (!strncmp(line, name, strlen(name))) sscanf(line + strlen(name), "%lf", &found);
  fclose(file); return found; }
int MPI_Init(int *count, char ***words)
{ int code = PMPI_Init(count, words); begun = kilobytes("VmRSS:"); return code; }
int MPI_Finalize(void)
{ fprintf(stderr, "grew by %.0f\\n", (kilobytes("VmHWM:") - begun) * 1024);
  return PMPI_Finalize(); }
"""


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_what_is_asked_for_is_what_is_taken(
    one: Built, asking: Asking, tmp_path: Path, benchmark: str
) -> None:
    """In a class that runs: by the kernel's count of pages, less what an MPI takes by itself."""
    (tmp_path / "growing.c").write_text(GROWING)
    library = tmp_path / "growing.so"
    compiler = [str(one.prefix / "bin/mpicc"), "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*compiler, tmp_path / "growing.c"], check=True)
    size = "A" if benchmark in ("IS", "CG") else "W"
    [asked, _] = asking.of(size, 1)[benchmark]
    program = f"nas_{benchmark.lower()}"
    done = one.run(program, "--class", size, ranks=1, LD_PRELOAD=str(library))
    assert done.returncode == 0, done.stderr
    [grown] = [int(found) for found in re.findall(r"grew by (\d+)", done.stderr)]
    # At least; IS has a table of its keys' values, and what it checks their order with.
    assert 0.9 * asked < grown < 1.8 * asked + 4e6


def test_too_little_memory_is_a_sentence(one: Built) -> None:
    """Before anything is reserved: no node that runs tests has class E's 200 GB and more."""
    for name, ranks in (("CG", 2), ("MG", 2), ("LU", 2), ("SP", 1), ("BT", 1)):
        program = f"nas_{name.lower()}"
        done = one.refuse(program, ["--class", "E"], ranks, "GB of memory on host ")
        assert re.search(r"class E on \d rank\(s\) needs at least [\d.]+ GB", done.stderr)
    for name, elements in (("IS", 2**34), ("FT", 2**34)):
        program = f"nas_{name.lower()}"
        one.refuse(program, ["--class", "E"], 2, f"counts {elements} elements for MPI in one call")
