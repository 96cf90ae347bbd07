"""A campaign for which there is no room does not begin."""

import math
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from campaign import beginning, room
from campaign.room import LEAST_BYTES, LEAST_FILES
from records.base import CampaignError
from records.manifest import read_manifest
from tests.campaign.test_missing import asked, measure, new


def full(monkeypatch: pytest.MonkeyPatch, free: float, files: float, all_files: int = 1) -> None:
    """Have each file system tell that it has so much room."""
    told = SimpleNamespace(f_bavail=free, f_frsize=1, f_favail=files, f_files=all_files)
    monkeypatch.setattr(os, "statvfs", lambda _: told)


@pytest.mark.parametrize(
    ("free", "files", "said"),
    [(LEAST_BYTES - 1, 10**9, "room for 50 MB and"), (1e12, LEAST_FILES - 1, "and 999 files, and")],
)
def test_without_room_nothing_is_begun(
    played: Path, monkeypatch: pytest.MonkeyPatch, free: float, files: float, said: str
) -> None:
    full(monkeypatch, free, files)
    with pytest.raises(CampaignError, match=said):
        beginning.new_campaign(asked())
    assert not list((played / "runs").iterdir())


def test_what_it_will_take_is_what_the_last_one_like_it_took(
    played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new(played)
    assert measure(path)
    took = room.taken_by(path)
    names = [name for _, folders, names in os.walk(path) for name in (*folders, *names)]
    assert took.files == len(names) + 1 and took.bytes > 1000
    manifest = read_manifest(path).changed(campaign="another")
    twice = room.needed(played, manifest, 4)
    assert twice.files == LEAST_FILES + 2 * room.RESERVE * took.files
    full(monkeypatch, twice.bytes, twice.files)
    room.refuse_too_little(played, manifest, 4)
    with pytest.raises(CampaignError, match="and 5 round"):
        room.refuse_too_little(played, manifest, 5)
    with pytest.raises(CampaignError, match="make room, or measure less"):
        beginning.new_campaign(asked("--rounds", "9", "--name", "next"))


def test_a_file_system_that_counts_no_files_has_room_for_them(
    played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(monkeypatch, 1e12, 0, all_files=0)
    assert room.there_is(played / "runs" / "not" / "yet").files == math.inf
    assert beginning.new_campaign(asked())
