"""Ranks say where they are and how long they waited for a processor, whatever starts them."""

import os
import subprocess
from pathlib import Path

import pytest

from records.base import numbers_of
from records.ending import ToldAtEnd, by_rank, told_in
from records.noise import Noise
from records.program_output import read_program_output
from tests.benchmarks.conftest import Built

pytestmark = pytest.mark.real
PING_PONG = ["pingpong", "--sizes", "1024", "--iterations", "20"]


def told(built: Built, out: Path, program: list[str], *before: str) -> ToldAtEnd:
    name, *arguments = program
    done = built.run_command([*before, str(built.build / "bin" / name), *arguments])
    assert done.returncode == 0, done.stderr
    out.write_text(done.stdout)
    return told_in(out)


@pytest.mark.parametrize("program", [PING_PONG, ["nas_ep", "--class", "S"]], ids=["ours", "nas"])
def test_ranks_on_one_processor_wait_for_it(
    program: list[str], built: Built, tmp_path: Path
) -> None:
    processor = min(os.sched_getaffinity(0))
    found = told(built, tmp_path / "out", program, "taskset", "-c", str(processor))
    placement, waiting = found.placement, found.waiting
    assert placement and waiting
    assert [*by_rank(placement.processors)] == [str(processor)] * 2
    assert len({*by_rank(placement.hosts)}) == 1
    for runs in (placement.cores, placement.sockets):
        assert all(len(numbers_of(one)) == 1 for one in by_rank(runs))
    # One of two that work on a processor waits for half of the time, or more where others do, too.
    assert waiting.share > 0.2 and waiting.turns and waiting.delay_s > 0


#: A kernel that counts so much from when it is asked first: of rank 0 many short waits, of rank 1
#: few long ones that are less in all, and of threads other than the main one longer ones.
COUNTED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
FILE *fopen(const char *path, const char *mode)
{
    static __thread int asked;
    static __thread char text[99];
    const int is_of_thread = strcmp(path, "/proc/thread-self/schedstat") == 0;
    if (!is_of_thread && strcmp(path, "/proc/self/schedstat") != 0)
        return ((FILE * (*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen"))(path, mode);
    const char *rank = getenv("PMI_RANK");
    const char *counts = is_of_thread ? "3000000000000 100"
                         : rank && *rank == '1' ? "1000000000000 1000" : "2000000000000 2000000000";
    snprintf(text, sizeof text, "0 %s", asked++ ? counts : "0 0");
    return fmemopen(text, strlen(text), "r");
}
"""


@pytest.mark.parametrize(
    ("program", "expected"),
    [(PING_PONG, (1, 1000.0, 1000)), (["threads", "--threads", "1"], (1, 1000.0, 1000)),
     (["threads", "--threads", "3", "--iterations", "5"], (0, 3000.0, 100))],
)  # fmt: skip
def test_what_is_told_is_of_the_thread_for_which_a_message_waits_longest(
    one: Built, tmp_path: Path, program: list[str], expected: tuple[int, float, int]
) -> None:
    code, library, out = (tmp_path / name for name in ("counted.c", "counted.so", "out"))
    code.write_text(COUNTED)
    compiler = one.prefix / "bin/mpicc"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, code, "-ldl"], check=True)
    done = one.run(*program, LD_PRELOAD=str(library))
    assert done.returncode == 0, done.stderr
    out.write_text(done.stdout)
    waiting = told_in(out).waiting
    assert waiting and (waiting.rank, waiting.waited_s, waiting.turns) == expected
    assert waiting.share == 1.0


def test_a_start_says_where_ranks_are_and_counts_nothing(built: Built, tmp_path: Path) -> None:
    found = told(built, tmp_path / "out", ["startup"])
    assert found.placement and found.waiting is None
    assert all(map(numbers_of, by_rank(found.placement.processors)))


#: A kernel that says how much was stolen: of each processor more whenever it is asked, of all much.
STOLEN = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
static int asked, on;
FILE *fopen(const char *path, const char *mode)
{
    static char text[2][999];
    if (strcmp(path, "/proc/stat") != 0)
        return ((FILE * (*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen"))(path, mode);
    char *own = text[asked++ % 2];
    snprintf(own, sizeof text[0], "cpu  9 9 9 9 9 9 9 %d 9\\ncpu1 9 9 9 9 9 9 9 %d 9\\n"
             "cpu11 9 9 9 9 9 9 9 %d 9\\n", 9000 * asked, 10 * asked, 500 * asked);
    return fmemopen(own, strlen(own), "r");
}
int sched_getcpu(void) { return MOVES ? on++ : 1; }
"""


@pytest.mark.parametrize("moves", [False, True])
def test_what_was_stolen_is_of_the_rank_s_processor(
    one: Built, tmp_path: Path, moves: bool
) -> None:
    code, library, out = (tmp_path / name for name in ("stolen.c", "stolen.so", "out"))
    code.write_text(f"#define MOVES {int(moves)}{STOLEN}")
    compiler = one.prefix / "bin/mpicc"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, code, "-ldl"], check=True)
    done = one.run("preflight", "--noise-ms", "200", LD_PRELOAD=str(library))
    assert done.returncode == 0, done.stderr
    out.write_text(done.stdout)
    [seen] = [one for one in read_program_output(out).results if isinstance(one, Noise)]
    expected = None if moves else pytest.approx(10 / os.sysconf("SC_CLK_TCK"))
    assert seen.stolen_s == expected


def test_a_preflight_looks_how_quiet_its_host_is(built: Built, tmp_path: Path) -> None:
    done = built.run("preflight", "--noise-ms", "200")
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    out.write_text(done.stdout)
    [seen] = [one for one in read_program_output(out).results if isinstance(one, Noise)]
    assert seen.looked_s >= 0.2 and seen.time_s.median > 1e-4
    # Faster than any clock that is made, or than a hundredth of one, it is not.
    assert 1e7 < seen.slowest_hz <= seen.fastest_hz < 1e11
    quiet = built.run("preflight")
    assert quiet.returncode == 0 and '"noise"' not in quiet.stdout
