"""What is written to a campaign is whole or not there."""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import files, schedule
from records import launch as records_launch
from records.base import NotKept
from records.events import PlannedLaunch
from records.kept import kept_launches
from tests.whole_records import launch


@pytest.mark.real
def test_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    assert os.geteuid() == 0, "mounting a small disk needs root"
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "none", str(disk)], check=True)
    try:
        campaign = disk / "campaign"
        campaign.mkdir()
        schedule.begin(campaign)
        names = [f"round001_{letter}" for letter in "abc"]
        small, large = b"x", random.Random(1).randbytes(200_000)
        with schedule.held(campaign) as book:
            book.plan(1, [PlannedLaunch(launch=name, cell="x", implementation="alpha-1.0")
                          for name in names])  # fmt: skip
            for name in names[:2]:
                book.intend(name)
            book.keep(launch(names[0]), {"stdout": small})
            with pytest.raises(NotKept, match="No space left on device; make room and resume"):
                book.keep(launch(names[1]), {"stdout": large})
            book.lost(names[1], "the disk is full")
            # What was written of it is gone, so there is room again for the rest.
            book.intend(names[2])
            book.keep(launch(names[2]), {"stdout": small})
        assert [one.name for one in kept_launches(campaign)] == [names[0], names[2]]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@given(st.text(max_size=60), st.text(max_size=30), st.integers(1, 999))
def test_launch_names_stay_inside_their_folder(cell: str, implementation: str, number: int) -> None:
    name = records_launch.launch_name(number, cell, implementation)
    assert "/" not in name and "\0" not in name and name.startswith(f"round{number:03d}_")
    assert Path("x", name).name == name


def test_json_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    files.write_json(path, {"rounds": 1})
    files.write_json(path, {"rounds": 2})
    assert json.loads(path.read_text()) == {"rounds": 2}
    assert [entry.name for entry in tmp_path.iterdir()] == ["manifest.json"]


def test_times_are_utc_with_milliseconds() -> None:
    assert files.utc_of(0.0) == "1970-01-01T00:00:00.000000Z"
    assert files.utc_now().endswith("Z") and len(files.utc_now()) == 24
