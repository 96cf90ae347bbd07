"""A round is done when its launches are, however ReFrame ends; RESUME measures what is missing."""

import json
import shutil
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from campaign import __main__ as campaigns
from campaign import measuring, rounds
from records import files, schedule
from records.base import CampaignError
from records.campaign import read_campaign
from records.journal import FILE, JournalError
from records.manifest import read_manifest

PROJECT = Path(__file__).resolve().parents[2]
ALL = 8


@pytest.fixture
def root(played: Path) -> Path:
    return played


def asked(*words: str) -> Namespace:
    return campaigns.arguments(["--rounds", "2", *words])


def new(root: Path, *plays: dict[str, Any]) -> Path:
    """Begin a campaign whose ReFrame does what it is told, start by start."""
    (root / "plays.json").write_text(json.dumps(plays))
    return measuring.new_campaign(asked())[0]


def measure(path: Path) -> bool:
    return measuring.measure(path, read_manifest(path))


def resume(path: Path) -> bool:
    (path.parents[1] / "plays.json").unlink(missing_ok=True)
    campaign, manifest = measuring.old_campaign(asked("--resume", path.name))
    return measuring.measure(campaign, manifest)


def assert_whole(path: Path) -> None:
    """Fail unless each launch is there once, with a place in the order that no other has."""
    campaign = read_campaign(path)
    assert len(campaign.launches) == ALL and campaign.manifest.finished_utc
    assert not campaign.problems
    state = schedule.state_of(path)
    assert state and not state.left() and state.recorded() == ALL
    for number in (1, 2):
        of = [launch.record for launch in campaign.launches if launch.record.round == number]
        assert len({record.position for record in of}) == 4
    assert [one.round for one in campaign.manifest.rounds_done] == [1, 2]


@pytest.mark.parametrize(
    ("plays", "starts"),
    [
        ([], 2),
        ([{"killed after": 1}], 3),
        ([{"killed before it tells of": 2}], 3),
        # The last one of a round was measured before the kill, so that nothing is left of it.
        ([{"killed before it tells of": 3}], 2),
        ([{"lost after": 1}, {"killed after": 2}, {}, {"killed after": 0}], 5),
    ],
)
def test_what_a_dying_reframe_leaves_is_measured_by_the_next(
    root: Path, plays: list[dict[str, Any]], starts: int
) -> None:
    path = new(root, *plays)
    assert measure(path)
    assert_whole(path)
    assert len((root / "starts").read_text()) == starts


def test_a_launch_that_failed_before_a_resume_is_not_forgotten(root: Path) -> None:
    path = new(root, {"outcome": "failed", "pass over": "beta-1.0"})
    assert not measure(path)
    assert not resume(path), "two launches of the first round have failed"
    done = {one.round: one.reframe_exit_code for one in read_manifest(path).rounds_done}
    assert done == {1: 1, 2: 0} and read_manifest(path).finished_utc


def test_a_launch_that_is_always_lost_is_missing_and_said_so(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = new(root, {"lost after": 2}, {"lost after": 0})
    assert not measure(path)
    out = capsys.readouterr().out
    name = "round001_b_alpha-1.0"
    assert f"missing: {name}: No space left on device" in out
    assert f"1 launch(es) missing; measure them: make run RESUME={path.name}" in out
    assert not read_manifest(path).finished_utc
    problems = {one.where: one.sentence for one in read_campaign(path).problems}
    assert problems[name] == "missing: No space left on device; RESUME measures it"
    assert resume(path)
    assert_whole(path)


def test_a_reframe_that_gets_nowhere_is_started_three_times(root: Path) -> None:
    dead = {"killed at once": True}
    path = new(root, {"killed after": 2}, dead, dead, dead)
    sentence = (
        "ReFrame was ended by SIGKILL with 2 of 4 launches of round 1 left .* 3 times .*RESUME="
    )
    with pytest.raises(CampaignError, match=sentence):
        measure(path)
    assert len((root / "starts").read_text()) == 4
    said = [one.sentence for one in read_campaign(path).problems]
    assert any(one.startswith("stopped: ReFrame was ended by SIGKILL") for one in said)
    assert "missing: it was not begun; RESUME begins it" in said
    assert resume(path)
    assert_whole(path)


def test_a_reframe_that_is_killed_before_it_planned_is_started_again(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = {"killed before it planned": True}
    path = new(root, dead)
    assert measure(path)
    sentence = "ReFrame was ended by SIGKILL before it had planned round 1"
    assert f"{sentence}; it is started again" in capsys.readouterr().out
    assert_whole(path)
    (root / "starts").unlink()
    time.sleep(1 - time.time() % 1)
    path = new(root, dead, dead, dead)
    with pytest.raises(CampaignError, match=f"{sentence}, 3 times .*RESUME="):
        measure(path)


def test_a_reframe_that_can_load_nothing_is_not_started_again(root: Path) -> None:
    path = new(root, {"before": True})
    with pytest.raises(CampaignError, match=r"round 1 measured nothing; .*round001\.log"):
        measure(path)
    assert len((root / "starts").read_text()) == 1


def test_an_image_that_cannot_be_opened_now_is_measured_by_a_resume(root: Path) -> None:
    path = new(root, {"pass over": "beta-1.0"})
    assert not measure(path)
    problems = [one.sentence for one in read_campaign(path).problems]
    assert sum("it waits for ContainerImage, which failed" in one for one in problems) == 2
    assert resume(path)
    assert_whole(path)


def test_a_campaign_with_launches_missing_has_its_report(root: Path) -> None:
    path = new(root, {"pass over": "beta-1.0"})
    assert not measure(path) and not read_manifest(path).finished_utc
    [command] = [one for one in measuring.report_commands(path, None) if one[0] == "report"]
    done = subprocess.run(
        [sys.executable, "-m", "analysis", *command],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "it waits for ContainerImage, which failed" in (path / "report.html").read_text()


def test_launches_that_are_deleted_are_noticed_and_measured_again(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = new(root)
    assert measure(path)
    with schedule.held(path) as held:
        held.add(measuring.Reported())
    with pytest.raises(CampaignError, match="is finished; there is nothing left to resume"):
        resume(path)
    shutil.rmtree(path / "launches" / "round001_a_beta-1.0")
    (path / "launches" / "round002_b_alpha-1.0" / "launch.json").unlink()
    said = {one.where: one.sentence for one in read_campaign(path).problems}
    assert said["round001_a_beta-1.0"] == "missing: it was measured, and its folder is gone"
    assert "launch.json: cannot be read" in said["round002_b_alpha-1.0"]
    folder = (path / "launches").rename(path / "elsewhere")
    with pytest.raises(CampaignError, match=r"launches cannot be read: No such.*put it back"):
        resume(path)
    folder.rename(path / "launches")
    assert resume(path)
    sentence = "2 launch(es) that were recorded are no longer in the campaign and are measured "
    assert f"{sentence}again: round001_" in capsys.readouterr().out
    assert_whole(path)
    assert len((root / "starts").read_text()) == 4


def test_a_campaign_from_before_there_were_journals_is_gone_on_with(root: Path) -> None:
    path = new(root)
    assert measure(path)
    (path / FILE).unlink()
    # Its first round was believed done, though a launch of it had been lost.
    shutil.rmtree(path / "launches" / "round001_b_beta-1.0")
    assert not read_campaign(path).problems
    manifest = read_manifest(path)
    first = [one.facts for one in manifest.rounds_done][:1]
    kept = manifest.changed(finished_utc=None, rounds_done=first)
    files.write_json(path / "manifest.json", kept.facts)
    assert resume(path)
    assert_whole(path)
    state = schedule.state_of(path)
    assert state and state.is_converted


def test_a_damaged_journal_is_a_sentence_for_all(root: Path) -> None:
    path = new(root)
    assert measure(path)
    lines = (path / FILE).read_bytes().splitlines(keepends=True)
    (path / FILE).write_bytes(b"".join(lines[:3] + lines[4:]))
    with pytest.raises(JournalError, match="the journal is damaged"):
        resume(path)
    campaign = read_campaign(path)
    assert len(campaign.launches) == ALL
    assert any("so what is missing cannot be told" in one.sentence for one in campaign.problems)


def test_a_resume_makes_the_tables_that_failed(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = [1, 0, 0, 0, 0, 0]
    real = measuring.subprocess.run

    def run(command: list[str], **options: Any) -> Any:
        if command[1:3] == ["-m", "analysis"]:
            return Namespace(returncode=codes.pop(0))
        return real(command, **options)

    monkeypatch.setattr(measuring.subprocess, "run", run)
    assert campaigns.work(asked()) == 1
    [path] = (root / "runs").iterdir()
    said = capsys.readouterr()
    assert f"of {path.name} could not be made: ingest" in said.err
    assert f"make run RESUME={path.name}" in said.err
    assert "report.html" not in said.out and "checks failed" not in said.err
    before = (root / "starts").read_text()
    assert campaigns.work(asked("--resume", path.name)) == 0
    assert (root / "starts").read_text() == before and not codes
    assert f"report: {path / 'report.html'}" in capsys.readouterr().out
    with pytest.raises(CampaignError, match="there is nothing left to resume"):
        campaigns.work(asked("--resume", path.name))


def test_a_campaign_that_is_being_measured_is_not_measured_twice(root: Path) -> None:
    path = new(root)
    with schedule.held(path), pytest.raises(CampaignError, match="another process measures"):
        resume(path)


def test_the_end_of_a_process_in_words() -> None:
    assert rounds.how_it_ended(3) == "ended with exit code 3"
    assert rounds.how_it_ended(-9) == "was ended by SIGKILL"
    assert rounds.how_it_ended(-63).startswith("was ended by ")
