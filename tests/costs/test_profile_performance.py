"""The comparison of profiled with other runs, for real, of one image."""

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from containers import trust
from costs import profiling
from costs.places import Place
from costs.profiling import PROGRAMS, ProfiledProgram, alternate
from tests.campaign.played_programs import Played

PROJECT = Path(__file__).resolve().parents[2]
IMAGE = "mpich-5.0.2"


class Started:
    """A place that keeps the commands it is asked for, and profiles where it is told to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands: list[list[str]] = []

    def keep(self, command: list[str]) -> Path:
        self.commands.append(command)
        if "profiled" in command:
            (self.folder / "profile.jsonl").touch()
        return self.folder


def test_who_is_first_changes_and_both_are_the_same_program(tmp_path: Path) -> None:
    place = Started(tmp_path)
    program = ProfiledProgram("one", "su3 --nx 4", lambda path: float(len(place.commands)))
    pairs = alternate(program, cast(Place, place), ["mpiexec"], 3)
    assert pairs == [(1, 2), (4, 3), (5, 6)]
    assert {tuple(command[-3:]) for command in place.commands} == {("su3", "--nx", "4")}
    assert all(command[:3] == ["mpiexec", "-n", "2"] for command in place.commands)


def test_the_applications_of_the_two_percent_have_more_alternations() -> None:
    more = {shlex.split(one.command)[0] for one in PROGRAMS if one.alternations > 1}
    assert more == {"su3", "nas_cg"}


def assert_whole(printed: str, programs: Sequence[ProfiledProgram] = PROGRAMS) -> None:
    """Fail unless there is a row for each program."""
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines()[2:]]
    assert [row[:2] for row in rows] == [[IMAGE, program.name] for program in programs]
    for _, _, profiled, without, ratio, _ in rows:
        assert float(profiled) > 0 and float(without) > 0 and float(ratio) > 0


def test_every_program_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that the command prints, of programs that are played."""
    place = Played(tmp_path)
    monkeypatch.setattr(profiling, "inside", lambda image, folder: place)
    monkeypatch.setattr(profiling, "mpiexec_of", lambda image: ["mpiexec"])
    monkeypatch.setattr(trust, "admit", lambda *_: tmp_path)
    monkeypatch.setattr(sys, "argv", ["profile_performance", "--rounds=2", "--images", IMAGE])
    assert profiling.main() == 0
    assert_whole(capsys.readouterr().out)
    started = [command for command in place.commands if command[0] == "mpiexec"]
    assert len(started) == sum(2 * 2 * program.alternations for program in PROGRAMS)


@pytest.mark.real
@pytest.mark.serial
def test_a_program_is_measured_with_and_without_a_profile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(profiling, "PROGRAMS", PROGRAMS[:1])
    monkeypatch.setattr(sys, "argv", ["profile_performance", "--rounds=2", "--images", IMAGE])
    assert profiling.main() == 0
    assert_whole(capsys.readouterr().out, PROGRAMS[:1])


@pytest.mark.real
@pytest.mark.serial
@pytest.mark.long
def test_every_program_is_measured_with_and_without_a_profile() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "costs.profiling", "--rounds", "2",
         "--images", IMAGE],
        cwd=PROJECT, capture_output=True, text=True, timeout=3000, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert_whole(done.stdout)
