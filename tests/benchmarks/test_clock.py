"""One clock for all implementations: no program times by the MPI's own."""

import subprocess
from pathlib import Path

import pytest

from records.node_pairs import NodePairsRound
from records.program_output import read_program_output
from tests.benchmarks.conftest import Built

pytestmark = pytest.mark.real
#: A few iterations of every program that prints records of times.
PROGRAMS = {
    "pingpong": ["--sizes", "1024", "--iterations", "20"],
    "collective": ["--operation", "bcast", "--sizes", "8", "--iterations", "20"],
    "neighbours": ["--sizes", "8", "--iterations", "20"],
    "pairs": ["--sizes", "8", "--iterations", "20"],
    "node_pairs": ["--bandwidth-bytes", "800", "--windows", "2", "--sweeps", "1"],
    "some_to_some": ["--iterations", "5"],
    "halo": ["--extent", "4", "--iterations", "5"],
    "one_sided": ["--operation", "put", "--completion", "fence", "--sizes", "8",
                  "--iterations", "20"],
    "echo": ["--via", "memory", "--sizes", "8", "--iterations", "20"],
    "emulator": ["--steps", "2", "--iterations", "2"],
    "stream": ["--iterations", "2", "--array-bytes", "1000000"],
    "su3": ["--nx", "4", "--ny", "4", "--nz", "4", "--nt", "4", "--trajectories", "2"],
    "preflight": ["--ranks", "2"],
}  # fmt: skip


@pytest.mark.each_library
def test_no_object_but_the_one_that_describes_it_calls_mpi_wtime(built: Built) -> None:
    # HPL is not ours, and is there once its own test has built it.
    objects = [path for path in sorted(built.build.rglob("*.o"))
               if "hpcc" not in path.relative_to(built.build).parts]  # fmt: skip
    said = subprocess.run(
        ["nm", "-uA", *objects], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {line.partition(":")[0] for line in said} <= {str(path) for path in objects}
    callers = {
        Path(line.partition(":")[0]).name for line in said if line.split()[-1] == "MPI_Wtime"
    }
    assert callers == {"records.o"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_mpi_whose_clock_stands_still_is_measured_all_the_same(
    one: Built, changed_clock: str, tmp_path: Path, program: str
) -> None:
    """By MPI_Wtime every time would be 0.

    The program's own clock is faster: by it the header looks for a step of MPI_Wtime for a second.
    """
    done = one.run(program, *PROGRAMS[program], LD_PRELOAD=changed_clock, CHANGED_CLOCK_FACTOR="20")
    assert done.returncode == 0, done.stderr
    (tmp_path / "out").write_text(done.stdout)
    output = read_program_output(tmp_path / "out")
    assert output.clock == output.header.clock == "CLOCK_MONOTONIC"
    assert output.header.mpi_wtime is not None and output.header.mpi_wtime.resolution_s == 0
    times = [result.time_s for result in output.results if hasattr(result, "time_s")]
    shortest = [time_s.min for time_s in times]
    for result in output.results:
        if isinstance(result, NodePairsRound):
            shortest += result.min_s
    assert shortest or program == "emulator"
    assert all(seconds > 0 for seconds in shortest)


@pytest.mark.each_library
def test_the_header_describes_both_clocks(built: Built, tmp_path: Path) -> None:
    done = built.run("collective", "--operation", "barrier", "--iterations", "20")
    assert done.returncode == 0, done.stderr
    (tmp_path / "out").write_text(done.stdout)
    header = read_program_output(tmp_path / "out").header
    # Linux' own resolution of it, and what a reading takes on any machine that measures.
    assert header.clock_tick_s == 1e-9 and 0 < header.clock_resolution_s < 1e-4
    assert header.mpi_wtime is not None
    assert 0 < header.mpi_wtime.tick_s <= 1e-3
    assert 0 < header.mpi_wtime.resolution_s < 1e-2 and 0 < header.mpi_wtime.cost_s < 1e-4
