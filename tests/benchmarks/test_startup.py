"""startup by hand, with two MPIs: every rank's times, and an integer that is not the sender's."""

import subprocess
import time
from pathlib import Path

import pytest

from records.communication import Startup, StartupDurations
from records.program_output import read_program_output
from tests.benchmarks.conftest import Built
from tests.benchmarks.test_programs import read

pytestmark = pytest.mark.real


@pytest.mark.parametrize(("ranks", "how"), [(2, []), (5, []), (3, ["--sessions"])])
def test_times_of_every_rank(built: Built, ranks: int, how: list[str], tmp_path: Path) -> None:
    began = time.time()
    done = built.run("startup", *how, ranks=ranks)
    ended = time.time()
    assert done.returncode == 0, done.stderr
    read(done.stdout, tmp_path / "out")
    output = read_program_output(tmp_path / "out")
    [result] = output.results
    assert isinstance(result, Startup)
    assert result.ranks == output.header.ranks == ranks
    for entered, initialised in zip(result.main_s, result.initialised_s, strict=True):
        # Times in the output are cut to microseconds.
        assert began - 1e-5 <= entered < initialised <= ended
    assert result.initialised_s[0] <= result.last_integer_s <= ended
    assert output.header.parameters == {"since_s": None, "sessions": bool(how)}


def test_durations_since_the_launch(built: Built, tmp_path: Path) -> None:
    since = time.time()
    done = built.run("startup", "--since", f"{since:.6f}")
    assert done.returncode == 0, done.stderr
    read(done.stdout, tmp_path / "out")
    points, durations = read_program_output(tmp_path / "out").results
    assert isinstance(points, Startup) and isinstance(durations, StartupDurations)
    assert durations.since_s == pytest.approx(since, abs=2e-6)
    to_main = [entered - since for entered in points.main_s]
    within = [i - m for i, m in zip(points.initialised_s, points.main_s, strict=True)]
    found = [
        durations.launch_to_main_s.min, durations.launch_to_main_s.max,
        durations.main_to_initialised_s.min, durations.main_to_initialised_s.max,
        durations.launch_to_last_integer_s,
    ]  # fmt: skip
    expected = [min(to_main), max(to_main), min(within), max(within),
                points.last_integer_s - since]  # fmt: skip
    assert found == pytest.approx(expected, abs=3e-6)


def test_wrong_integer_is_found(built: Built, tmp_path: Path) -> None:
    """A library that changes what rank 2 sends stands between program and MPI."""
    source = tmp_path / "wrong.c"
    source.write_text(
        "#include <mpi.h>\n"
        "int MPI_Recv(void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Status *u)\n"
        "{ int code = PMPI_Recv(b, n, t, s, g, c, u);\n"
        "  if (s == 2) *(int *)b = 17;\n"
        "  return code; }\n"
    )
    library = tmp_path / "wrong.so"
    subprocess.run(
        [built.prefix / "bin/mpicc", "-shared", "-fPIC", "-o", library, source], check=True
    )
    done = built.run("startup", ranks=3, LD_PRELOAD=str(library))
    assert done.returncode == 1 and done.stdout == ""
    assert "startup: rank 0 received 17 from rank 2" in done.stderr
    assert built.run("startup", ranks=2, LD_PRELOAD=str(library)).returncode == 0
