"""A campaign on a disk that fails for a while stops with a sentence, and loses nothing."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign import __main__ as campaigns
from campaign import beginning, measuring, resuming
from records import schedule
from records.base import CampaignError
from records.campaign import read_campaign
from records.events import Resumed, Stopped
from records.journal import FILE, read_journal
from records.manifest import FILE as MANIFEST
from records.manifest import read_manifest
from tests.campaign.failing_disk import Mounted, failing_disk
from tests.campaign.played_here import play_here
from tests.whole_records import put_manifest

pytestmark = pytest.mark.real
ALL = 4
CHANGES = ["write", "sync", "create", "mkdir", "rename", "change", "unlink"]


@pytest.fixture
def disk(
    played: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Mounted]:
    """Return the disk that has runs/, and play ReFrame in this process."""
    play_here(monkeypatch)
    with failing_disk(tmp_path_factory.mktemp("disk"), played / "runs") as found:
        yield found


def measured_through(disk: Mounted, name: str) -> Path | None:
    """Measure a campaign as far as the disk lets it; it may say why not, and nothing else."""
    try:
        campaign, manifest = beginning.new_campaign(
            campaigns.arguments(["--rounds=1", f"--name={name}"])
        )
        measuring.measure(campaign, manifest)
    except CampaignError as error:
        assert str(error).strip() and "\n" not in str(error)
    return next(disk.path.glob(f"*-{name}"), None)


def assert_a_resume_makes_it_whole(campaign: Path | None) -> None:
    """Fail unless a campaign has, or gets by RESUME, each launch once and no problem."""
    if campaign is None:
        return
    try:
        manifest = read_manifest(campaign)
    except CampaignError:
        content = read_journal(campaign)
        assert content is None or len(content.events) <= 1, "it was being made"
        return
    state = schedule.state_of(campaign)
    recorded = {one.name for one in state.of(None) if one.status == "recorded"} if state else set()
    before = {one.record.launch: one.record for one in read_campaign(campaign).launches}
    assert recorded <= before.keys()
    if not manifest.finished_utc:
        options = campaigns.arguments(["--resume", campaign.name])
        assert measuring.measure(*resuming.old_campaign(options))
    found = read_campaign(campaign)
    assert len(found.launches) == ALL and not found.problems
    after = {one.record.launch: one.record for one in found.launches}
    assert {name: after[name] for name in recorded} == {name: before[name] for name in recorded}


def fail_at(disk: Mounted, error: str, count: int, first: int = 0, step: int = 1) -> None:
    """Have so many changes fail, from each of some of a campaign on; then all works again."""
    whole = measured_through(disk, "undisturbed")
    assert whole and read_manifest(whole).finished_utc
    shutil.rmtree(whole)
    # Removing it is not of the campaign, and makes less than a tenth of that.
    for place in range(first, int(0.8 * len(disk.requests())), step):
        name = f"{error}{place}"
        disk.tell(error=error, requests=CHANGES, after=place, count=count)
        campaign = measured_through(disk, name)
        disk.tell()
        try:
            assert_a_resume_makes_it_whole(campaign)
        except (AssertionError, CampaignError) as wrong:
            raise AssertionError(
                f"{error}, {count} times from change {place} on: {wrong}"
            ) from wrong
        if campaign:
            shutil.rmtree(campaign)


@pytest.mark.parametrize("count", [1, 10**6], ids=["once", "until it is mended"])
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_nothing_is_lost_on_a_disk_that_fails(disk: Mounted, error: str, count: int) -> None:
    # Of each error and count other places.
    fail_at(disk, error, count, first=2 * len(error) % 9 + count % 2, step=9)


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 2, 10**6])
@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EROFS", "ESTALE"])
def test_nothing_is_lost_wherever_a_disk_fails(disk: Mounted, error: str, count: int) -> None:
    fail_at(disk, error, count)


def test_a_disk_without_locks_is_refused_and_nothing_is_measured(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_here(monkeypatch)
    with failing_disk(tmp_path / "disk", played / "runs", no_locks=True) as disk:
        with pytest.raises(CampaignError, match="cannot be written: its file system has no locks"):
            beginning.new_campaign(campaigns.arguments(["--rounds=1"]))
        [campaign] = disk.path.iterdir()
        assert not (campaign / FILE).exists() and not (campaign / MANIFEST).exists()


def test_nobody_else_sees_a_failing_disk(tmp_path: Path) -> None:
    """What looks through all that is mounted, as a cluster in a box, has nothing to do with it."""
    there = ["sh", "-c", 'read line; ls -A "$0"', str(tmp_path / "here")]
    with (
        subprocess.Popen(there, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other,
        failing_disk(tmp_path / "disk", tmp_path / "here") as disk,
    ):
        (disk.path / "file").touch()
        assert other.communicate("\n")[0] == "" and not other.returncode
        assert str(disk.path) in Path("/proc/thread-self/mountinfo").read_text()
    assert str(disk.path) not in Path("/proc/thread-self/mountinfo").read_text()
    assert (disk.backing / "file").exists() and not list(disk.path.iterdir())


def test_attributes_that_are_stale_show_an_earlier_state_and_spoil_nothing(tmp_path: Path) -> None:
    """Of two nodes with the same folder, one believes for an hour what it once saw of a file."""
    with failing_disk(tmp_path / "disk", tmp_path / "here", attributes_valid_s=3600) as disk:
        here, there = disk.path / "c", disk.backing / "c"
        put_manifest(there)
        schedule.begin(there)
        assert schedule.state_of(here)
        size = (here / FILE).stat().st_size
        with schedule.held(there) as other:
            other.add(Stopped(cause="the other node has ended"))
        assert (here / FILE).stat().st_size == size, "as this node believes"
        # Whoever opens it sees what is there, and what it adds stands after that.
        state = schedule.state_of(here)
        assert state and state.stopped
        with schedule.held(there) as other:
            other.add(Stopped(cause="and once more"))
        with schedule.held(here) as own:
            own.add(Resumed())
        content = read_journal(there)
        assert content and [event.kind for event in content.events] == [
            "begun",
            "stopped",
            "stopped",
            "resumed",
        ]
