"""What is written to a campaign is whole or not there."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import files
from records import launch as records_launch
from records.base import CampaignError
from tests.whole_records import launch


def campaign_at(path: Path) -> Path:
    (path / "launches").mkdir(parents=True)
    return path


def test_launch_is_whole_when_it_has_its_name(tmp_path: Path) -> None:
    campaign = campaign_at(tmp_path / "c")
    stdout = tmp_path / "rfm_job.out"
    stdout.write_text("{}\n")
    written = records_launch.write_launch(
        campaign, launch(), {"stdout": stdout, "stderr": tmp_path / "never-written"}
    )
    assert (written / "stdout").read_text() == "{}\n"
    assert (written / "stderr").read_text() == ""
    assert (
        json.loads((written / "launch.json").read_text())["schema"] == records_launch.LAUNCH_SCHEMA
    )
    assert records_launch.finished_launches(campaign) == {"round001_cell"}


def test_launch_is_never_overwritten(tmp_path: Path) -> None:
    campaign = campaign_at(tmp_path)
    records_launch.write_launch(campaign, launch(position=1), {})
    with pytest.raises(CampaignError, match="never overwritten"):
        records_launch.write_launch(campaign, launch(position=2), {})
    kept = json.loads((campaign / "launches/round001_cell/launch.json").read_text())
    assert kept["position"] == 1
    assert [path.name for path in (campaign / "launches").iterdir()] == ["round001_cell"]


def test_half_written_launch_is_not_a_launch(tmp_path: Path) -> None:
    campaign = campaign_at(tmp_path)
    (campaign / "launches" / ".round001_cell.123").mkdir()
    (campaign / "launches" / "round001_other").mkdir()
    assert records_launch.finished_launches(campaign) == set()


@pytest.mark.real
def test_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    assert os.geteuid() == 0, "mounting a small disk needs root"
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "none", str(disk)], check=True)
    try:
        campaign = campaign_at(disk / "campaign")
        small, large = tmp_path / "small", tmp_path / "large"
        small.write_bytes(b"x")
        large.write_bytes(b"x" * 200_000)
        records_launch.write_launch(campaign, launch("round001_a"), {"stdout": small})
        with pytest.raises(CampaignError, match="No space left on device; make room and resume"):
            records_launch.write_launch(campaign, launch("round001_b"), {"stdout": large})
        assert records_launch.finished_launches(campaign) == {"round001_a"}
        # What was written aside is gone, so there is room again for the rest.
        records_launch.write_launch(campaign, launch("round001_c"), {"stdout": small})
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
