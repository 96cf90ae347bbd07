"""A rank that is stopped from outside says so; nothing that it does itself looks like that."""

import subprocess
from pathlib import Path

import pytest

from records.program_output import disturbances_in, read_program_output
from tests.benchmarks.conftest import PROJECT, Built

pytestmark = pytest.mark.real
ASKED = ["--sizes", "1024", "--iterations", "20"]


@pytest.fixture
def stopping(built: Built, tmp_path: Path) -> str:
    """Return stopped_ranks.c as a library to load before a program."""
    source = PROJECT / "tests/benchmarks/programs/stopped_ranks.c"
    library = tmp_path / "stopped_ranks.so"
    subprocess.run(
        [built.prefix / "bin/mpicc", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o",
         library, source],
        check=True,
    )  # fmt: skip
    return str(library)


def test_ranks_that_were_stopped_are_counted(built: Built, stopping: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for preloaded, expected in (("", 0), (stopping, 2)):
        done = built.run("pingpong", *ASKED, LD_PRELOAD=preloaded)
        assert done.returncode == 0, done.stderr
        out.write_text(done.stdout)
        assert read_program_output(out).results
        assert disturbances_in(out) == {"stopped": expected, "carriers": 0}
