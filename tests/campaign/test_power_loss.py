"""Whenever power is lost, what is recorded is there, and a RESUME measures exactly the rest."""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from campaign import __main__ as campaigns
from campaign import beginning, measuring, resuming
from records.base import CampaignError
from records.campaign import read_campaign
from records.events import Intended
from records.fold import fold
from records.journal import FILE, content_of
from records.manifest import Manifest, read_manifest
from records.schedule import state_of
from tests.campaign.failing_disk import failing_disk
from tests.campaign.played_here import play_here
from tests.campaign.power_loss import Disk, Request, losses

pytestmark = pytest.mark.real
ALL = 4


@pytest.fixture
def requests(
    played: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> list[Request]:
    """Return what a campaign asks of its disk; afterwards ReFrame is played in this process."""
    folder = tmp_path_factory.mktemp("disk")
    with failing_disk(folder, played / "runs") as disk:
        campaign, manifest = beginning.new_campaign(options())
        assert measuring.measure(campaign, manifest)
        found = disk.requests()
    play_here(monkeypatch)
    # Only what is read afterwards counts here, and syncs take most of the time.
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return found


def options(*words: str) -> Any:
    return campaigns.arguments(["--rounds=1", *words])


def digest_of(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(f"{path.relative_to(folder)} {path.is_file()}\n".encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


def after_losses(
    requests: list[Request], runs: Path, places: Iterable[int], drawn: int
) -> Iterator[tuple[str, Disk]]:
    """Yield in words each loss of power after so many requests, which runs/ then is left by.

    What is the same as after an earlier one, of which as much was synced, is passed over.
    """
    disk, wanted, seen, name = Disk(), set(places), set(), campaign_in(requests)
    for place, request in enumerate(requests):
        disk.take(request)
        if place not in wanted:
            continue
        for number, (choice, tear) in enumerate(losses(place, drawn)):
            shutil.rmtree(runs, ignore_errors=True)
            disk.write(runs, choice, tear)
            if (state := (digest_of(runs), disk.synced(name, FILE))) not in seen:
                seen.add(state)
                yield f"after request {place} ({request['request']}), loss {number}", disk


def assert_nothing_is_lost(played: Path, name: str, disk: Disk) -> None:
    """Fail unless what certainly was recorded is there, and a RESUME measures exactly the rest."""
    campaign = played / "runs" / name
    synced = content_of(disk.synced(name, FILE), "the disk")
    try:
        manifest = read_manifest(campaign)
    except CampaignError:
        # It was being made: nothing can have been measured.
        assert not [one for one in synced.events if isinstance(one, Intended)]
        return
    before = state_of(campaign)
    certain = {one.name for one in fold(synced.events).of(None) if one.status == "recorded"}
    recorded = (
        {one.name for one in before.of(None) if one.status == "recorded"} if before else set()
    )
    assert certain <= recorded, "what was recorded is not forgotten"
    found = read_campaign(campaign)
    there = {one.record.launch: one.record for one in found.launches}
    assert recorded <= there.keys(), "what is recorded is there, and is whole"
    assert resumed(campaign, manifest)
    after = read_campaign(campaign)
    assert len(after.launches) == ALL and not after.problems and after.manifest.finished_utc
    assert {one.record.launch: one.record for one in after.launches}.items() >= {
        name: there[name] for name in recorded
    }.items(), "what is recorded is not measured again"
    assert len({one.record.position for one in after.launches}) == ALL


def resumed(campaign: Path, manifest: Manifest) -> bool:
    """Go on with a campaign where anything is left of it; return whether all was measured."""
    try:
        campaign, manifest = resuming.old_campaign(options("--resume", campaign.name))
    except CampaignError as error:
        assert "nothing left to resume" in str(error) and manifest.finished_utc, error
        return True
    return measuring.measure(campaign, manifest)


def campaign_in(requests: list[Request]) -> str:
    [name] = {one["name"] for one in requests if one["request"] == "mkdir" and one["folder"] == 1}
    return str(name)


def check(played: Path, requests: list[Request], places: Iterable[int], drawn: int) -> int:
    """Lose power at some places; return how many states of the disk that has left."""
    name, count = campaign_in(requests), 0
    for words, disk in after_losses(requests, played / "runs", places, drawn):
        count += 1
        try:
            assert_nothing_is_lost(played, name, disk)
        except (AssertionError, CampaignError) as error:
            raise AssertionError(f"{words}: {error}") from error
    return count


def test_power_is_lost_at_any_moment(played: Path, requests: list[Request]) -> None:
    """Nothing, all and some of what was not synced is there, after each request of a campaign."""
    assert {one["request"] for one in requests} >= {"create", "write", "sync", "rename", "mkdir"}
    assert check(played, requests, range(len(requests)), 1) > len(requests)


@pytest.mark.long
def test_power_is_lost_at_any_moment_in_many_ways(played: Path, requests: list[Request]) -> None:
    check(played, requests, range(len(requests)), 20)


@pytest.mark.parametrize("of", ["files", "folders"])
def test_a_sync_that_is_left_out_is_noticed(of: str, played: Path, requests: list[Request]) -> None:
    """Without those of folders, or of files other than the journal, what is recorded is lost."""
    journal = next(one["node"] for one in requests if one.get("name") == FILE)
    folders = {1, *(one["node"] for one in requests if one["request"] == "mkdir")}

    def is_left_out(one: Request) -> bool:
        if one["request"] != "sync" or one["node"] == journal:
            return False
        return (one["node"] in folders) == (of == "folders")

    left = [one for one in requests if not is_left_out(one)]
    with pytest.raises(AssertionError, match=r"request \d+ .*, loss 0: "):
        check(played, left, [len(left) - 1], 0)
