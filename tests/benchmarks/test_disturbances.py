"""A rank that is stopped from outside says so; nothing that it does itself looks like that."""

import subprocess
from pathlib import Path

import pytest

from records.ending import ToldAtEnd, told_in
from records.program_output import read_program_output
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


@pytest.mark.parametrize(
    ("program", "carriers"),
    # Before start-up's time nothing is looked at that takes longer than a call of the system.
    [(["nas_ep", "--class", "S"], 0), (["startup"], None)],
    ids=["nas_ep", "startup"],
)
def test_other_formats_count_stops_too(
    program: list[str], carriers: int | None, built: Built, stopping: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    counted = []
    for preloaded in ("", stopping):
        done = built.run(*program, LD_PRELOAD=preloaded)
        assert done.returncode == 0, done.stderr
        out.write_text(done.stdout)
        found = told_in(out)
        assert found.carriers == carriers
        counted.append(found.stopped)
    # One of the ranks is stopped as often as it gathers something.
    assert counted[0] == 0 and (counted[1] or 0) >= 2
    out.write_text("of another program\n")
    assert told_in(out) == ToldAtEnd()


def test_ranks_that_were_stopped_are_counted(built: Built, stopping: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for preloaded, expected in (("", 0), (stopping, 2)):
        done = built.run("pingpong", *ASKED, LD_PRELOAD=preloaded)
        assert done.returncode == 0, done.stderr
        out.write_text(done.stdout)
        assert read_program_output(out).results
        assert (told_in(out).stopped, told_in(out).carriers) == (expected, 0)
