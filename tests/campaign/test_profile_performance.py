"""The comparison of profiled with other runs, for real, of one image."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from campaign.places import Place
from campaign.profile_performance import PROGRAMS, ProfiledProgram, alternate

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


@pytest.mark.real
def test_every_program_is_measured_with_and_without_a_profile() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "campaign.profile_performance", "--rounds", "2",
         "--images", IMAGE],
        cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [row[:2] for row in rows] == [[IMAGE, program.name] for program in PROGRAMS]
    for _, _, profiled, without, ratio, _ in rows:
        assert float(profiled) > 0 and float(without) > 0 and float(ratio) > 0
