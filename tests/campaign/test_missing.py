"""A round is done when its launches are, however ReFrame ends; RESUME measures what is missing."""

import json
import os
import shutil
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaign import __main__ as campaigns
from campaign import (
    beginning,
    concluding,
    leftovers,
    measuring,
    missing,
    provenance,
    reframe_session,
    resuming,
    rounds,
    site_lock,
)
from containers import selection
from containers.images import SCHEMA
from records import files, fold, processes, schedule
from records.base import CampaignError
from records.campaign import read_campaign
from records.events import Reported
from records.journal import FILE, LOCK, JournalError
from records.locks import exclusive, holder_of
from records.manifest import read_manifest, write_manifest
from records.processes import named
from records.proof import proof_in
from records.references import PROPOSED
from tests.campaign.played_reframe import planned
from tests.folders import unpacked
from tests.packed import all_in, take_out

PROJECT = Path(__file__).resolve().parents[2]
ALL = 8
#: As it is where it is not played.
INPUT_DIGESTS = provenance.input_digests


@pytest.fixture
def root(played: Path) -> Path:
    return played


def asked(*words: str) -> Namespace:
    return campaigns.arguments(["--rounds", "2", *words])


def new(root: Path, *plays: dict[str, Any]) -> Path:
    """Begin a campaign whose ReFrame does what it is told, start by start."""
    (root / "plays.json").write_text(json.dumps(plays))
    return beginning.new_campaign(asked())[0]


def test_a_campaign_keeps_the_command_with_its_implementations(root: Path) -> None:
    assert read_manifest(new(root)).commands == [
        "make run SITE=local TIER=quick ROUNDS=2 IMAGES=alpha-1.0"
    ]


def measure(path: Path) -> bool:
    return measuring.measure(path, read_manifest(path))


def resume(path: Path) -> bool:
    (path.parents[1] / "plays.json").unlink(missing_ok=True)
    campaign, manifest = resuming.old_campaign(asked("--resume", path.name))
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


def test_a_manifest_that_was_changed_is_noticed_and_not_gone_on_with(root: Path) -> None:
    path = new(root)
    assert measure(path)
    manifest = read_manifest(path)
    assert schedule.state_of(path) and not proof_in(path).words
    write_manifest(path, manifest.changed(finished_utc=None, commands=["make run"]))
    assert not read_campaign(path).problems
    write_manifest(path, manifest.changed(finished_utc=None, order_seed=manifest.order_seed + 1))
    with pytest.raises(CampaignError, match=r"was changed: it no longer declares .* put it back"):
        resume(path)
    assert [one.where for one in read_campaign(path).problems] == ["manifest.json"]
    assert "manifest damaged" in str(proof_in(path).words)


def test_a_manifest_declares_the_same_when_it_is_read_again(root: Path) -> None:
    """A site's commands may have lines, and its variables anything: none was changed."""
    path = new(root)
    odd = {
        "prepare": ["module purge\n\tmodule load x"],
        "installations": {"a": {"b": "\x1b[1m\x7f"}},
    }
    told = read_manifest(path).changed(site_data=odd)
    write_manifest(path, told)
    assert read_manifest(path).declared_sha256() == told.declared_sha256()


def test_a_round_leaves_one_file_however_often_reframe_is_started(root: Path) -> None:
    path = new(root, {"killed after": 1})
    before = {file for file in path.rglob("*") if file.is_file()}
    assert measure(path)
    more = {file.relative_to(path) for file in path.rglob("*") if file.is_file()} - {
        file.relative_to(path) for file in before
    }
    packed = {file for file in more if file.parent.name == "packs"}
    assert len(packed) == 2 and len(more - packed) <= 2
    messages = reframe_session.log_of(path).read_text()
    assert [messages.count(f"===== round {number}, ") for number in (1, 2)] == [2, 1]


def test_the_block_of_a_launch_that_was_stopped_is_measured_again_once(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The second time, too: then it stays as it is.
    path = new(root, {"stopped": 1}, {"stopped": 0})
    assert measure(path)
    assert_whole(path)
    assert len((root / "starts").read_text()) == 3
    said = capsys.readouterr().out
    assert said.count("measured again: one of its processes was stopped and continued during") == 1
    state = schedule.state_of(path)
    assert state
    again = [one for one in state.of(None) if one.is_repeat]
    assert len(again) == 2 and len({one.planned.cell for one in again}) == 1
    assert {one.attempts for one in again} == {2}
    kept = [name for file in sorted((path / "packs").iterdir()) for name in all_in(file)]
    assert sorted(name for name in set(kept) if kept.count(name) == 2) == sorted(
        one.name for one in again
    )


def test_a_kill_before_a_block_is_measured_again_forgets_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new(root, {"stopped": 1})

    def die(*_: object) -> list[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(schedule.Schedule, "repeat_blocks", die)
        with pytest.raises(KeyboardInterrupt):
            measure(path)
    state = schedule.state_of(path)
    assert state and state.is_settled(1) and not any(one.is_repeat for one in state.of(1))
    assert resume(path)
    assert_whole(path)
    state = schedule.state_of(path)
    assert state and sum(one.is_repeat for one in state.of(1)) == 2


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
    assert f"1 launch missing; measure them: make run RESUME={path.name}" in out
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


def test_what_reframe_says_of_its_end_is_the_cause_of_the_launch_that_it_loses(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = new(root, {"stopped after": 1})
    assert measure(path)
    said = "ReFrame ended with exit code 1 during the launch: run session stopped: memory error;"
    assert f"({said} the memory limit of a process is too low" in capsys.readouterr().out
    assert_whole(path)


def test_equal_failures_in_a_row_stop_the_campaign_until_somebody_goes_on(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fold, "MOST_ALIKE", 4)
    path = new(root, {"outcome": "failed"})
    sentence = "4 launches in a row ended alike: it is made up; .* fix that and resume: "
    with pytest.raises(CampaignError, match=sentence):
        measure(path)
    assert len((root / "starts").read_text()) == 1, "the second round was not begun"
    sentences = [one.sentence for one in read_campaign(path).problems]
    assert "stopped: 4 launches in a row ended alike: it is made up" in sentences
    before = {one.record.launch for one in read_campaign(path).launches}
    assert len(before) == 4
    assert resume(path)
    assert_whole(path)
    assert {one.record.outcome for one in read_campaign(path).launches} == {"sound"}
    kept = all_in(path / "packs" / "round001.tar")
    assert sorted(kept) == sorted([*before, *before]), "what had failed is kept"
    said = "measured again: 4 launches at which the campaign had stopped"
    assert said in capsys.readouterr().out
    state = schedule.state_of(path)
    assert state and state.stopped is None
    assert not state.stopped_for, "the next RESUME leaves what is sound where it is"


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
    said = r"round 1 measured nothing: no check could be loaded; .*rounds\.log"
    with pytest.raises(CampaignError, match=said):
        measure(path)
    assert len((root / "starts").read_text()) == 1


def test_what_stops_an_image_is_the_cause_of_a_campaign_without_a_launch(root: Path) -> None:
    """It is no launch of the campaign, and only ReFrame's messages have it."""
    refused = {"stopped by an image": "run: permission error: [Errno 13] rfm_job.sh"}
    path = new(root, refused, refused, refused)
    said = (
        r"launches of round 1 left \(run session stopped: run: permission error.*rfm_job\.sh\), 3"
    )
    with pytest.raises(CampaignError, match=said):
        measure(path)


def test_an_image_that_cannot_be_opened_now_is_measured_by_a_resume(root: Path) -> None:
    path = new(root, {"pass over": "beta-1.0"})
    assert not measure(path)
    problems = [one.sentence for one in read_campaign(path).problems]
    assert sum("it waits for ContainerImage, which failed" in one for one in problems) == 2
    assert resume(path)
    assert_whole(path)


def test_what_failed_first_is_said_at_the_end(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(concluding, "report", lambda *_: True)
    (root / "plays.json").write_text(json.dumps([{"pass over": "beta-1.0"}] * 2))
    assert campaigns.work(asked()) == 1
    said = capsys.readouterr().err
    [path] = (root / "runs").iterdir()
    first = str(missing.first_failure(path))
    assert first.startswith("round001_") and first.endswith("which failed")
    assert f"some checks failed or are missing, first {first}; see" in said


def test_what_was_left_out_is_not_said_to_have_failed(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(concluding, "report", lambda *_: True)
    plays = [{"leave out": "beta-1.0", "worse than a reference": True}, {}]
    (root / "plays.json").write_text(json.dumps(plays))
    assert campaigns.work(asked()) == 1
    said = capsys.readouterr().err
    [path] = (root / "runs").iterdir()
    state = schedule.state_of(path)
    assert state and state.recorded() == 6 and missing.first_failure(path) is None
    assert "campaign: every launch is sound, but some checks failed in ReFrame" in said
    assert "share no memory" not in said


#: Of cells that one image is enough for: the first one fails, and no other was asked.
FAILED = {"asks": ["alpha-1.0"], "outcome": "failed"}


def outcomes_of_the_first_round(path: Path) -> list[tuple[str, str | None]]:
    state = schedule.state_of(path)
    assert state and state.is_done(1)
    return sorted((one.planned.implementation, one.outcome) for one in state.of(1))


@pytest.mark.parametrize("play", [{}, {"killed at its end": True}], ids=["ended", "killed"])
def test_another_image_is_asked_where_reframe_did_not_come_to_it(
    root: Path, play: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path = new(root, FAILED | play)
    assert not measure(path), "two launches have failed"
    assert outcomes_of_the_first_round(path) == [
        ("alpha-1.0", "failed"), ("alpha-1.0", "failed"),
        ("beta-1.0", "sound"), ("beta-1.0", "sound"),
    ]  # fmt: skip
    said = "and images that were not asked may measure Dgemm n=a; it is started again"
    assert said in capsys.readouterr().out and read_manifest(path).finished_utc


def test_a_kill_before_another_image_is_asked_forgets_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new(root, FAILED)

    def die(state: fold.State, *_: object) -> list[str]:
        if state.recorded():
            raise KeyboardInterrupt
        return []

    with monkeypatch.context() as dying:
        dying.setattr(rounds, "left_to_others", die)
        with pytest.raises(KeyboardInterrupt):
            measure(path)
    assert {name for name, _ in outcomes_of_the_first_round(path)} == {"alpha-1.0"}
    assert not resume(path), "two launches have failed"
    assert outcomes_of_the_first_round(path)[2:] == 2 * [("beta-1.0", "sound")]


def test_a_reframe_that_cannot_start_has_asked_no_other_image(root: Path) -> None:
    path = new(root, FAILED, {"before": True})
    with pytest.raises(CampaignError, match="round 1 measured nothing: no check could be loaded"):
        measure(path)
    assert not resume(path), "two launches have failed"
    assert outcomes_of_the_first_round(path)[2:] == 2 * [("beta-1.0", "sound")]


def test_images_that_have_no_such_check_are_asked_once(root: Path) -> None:
    path = new(root, FAILED, {"asks": ["alpha-1.0"]})
    assert not measure(path) and read_manifest(path).finished_utc
    assert outcomes_of_the_first_round(path) == 2 * [("alpha-1.0", "failed")]
    assert len((root / "starts").read_text()) == 3, "one more is of the second round"


def test_a_campaign_with_launches_missing_has_its_report(root: Path) -> None:
    path = new(root, {"pass over": "beta-1.0"})
    assert not measure(path) and not read_manifest(path).finished_utc
    command = concluding.conclusion(path, None)
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
        held.add(Reported())
    with pytest.raises(CampaignError, match="is finished; there is nothing left to resume"):
        resume(path)
    take_out(path, "round001_a_beta-1.0")
    (path / "packs" / "round002.tar").unlink()
    campaign = read_campaign(path)
    assert len(campaign.launches) == 3, "those behind the one that was taken out are found"
    said = {one.where: one.sentence for one in campaign.problems}
    gone = "missing: it was measured, and it is no longer in round001.tar"
    assert said["round001_a_beta-1.0"] == gone and len(said) == 5
    folder = (path / "packs").rename(path / "elsewhere")
    with pytest.raises(CampaignError, match=r"packs cannot be read: No such.*put it back"):
        resume(path)
    folder.rename(path / "packs")
    assert resume(path)
    sentence = "measured again: 5 launches no longer in the campaign as recorded, the first of"
    assert f"{sentence} them round001_" in capsys.readouterr().out
    assert_whole(path)
    assert len((root / "starts").read_text()) == 4


def test_a_launch_that_was_changed_is_measured_again_by_a_resume(root: Path) -> None:
    path = new(root)
    assert measure(path)
    with schedule.held(path) as held:
        held.add(Reported())
    pack = path / "packs" / "round002.tar"
    content = bytearray(pack.read_bytes())
    content[content.index(b"round002_b_alpha-1.0/stdout") + 1000] ^= 1
    pack.write_bytes(content)
    assert [one.where for one in read_campaign(path).problems] == ["round002_b_alpha-1.0"]
    assert resume(path)
    assert_whole(path)
    assert len((root / "starts").read_text()) == 3
    with pytest.raises(CampaignError, match="is finished; there is nothing left to resume"):
        with schedule.held(path) as held:
            held.add(Reported())
        resume(path)


@pytest.mark.parametrize("in_folders", [True, False], ids=["older", "without its journal"])
def test_a_campaign_from_before_there_were_journals_is_gone_on_with(
    root: Path, in_folders: bool
) -> None:
    path = new(root)
    assert measure(path)
    (path / FILE).unlink()
    # Its first round was believed done, though a launch of it had been lost.
    lost = "round001_b_beta-1.0"
    if in_folders:
        unpacked(path, path / "launches")
        shutil.rmtree(path / "packs")
        shutil.rmtree(path / "launches" / lost)
    else:
        take_out(path, lost)
    campaign = read_campaign(path)
    assert not campaign.problems and len(campaign.launches) == ALL - 1
    manifest = read_manifest(path)
    first = [one.facts for one in manifest.rounds_done][:1]
    kept = manifest.changed(finished_utc=None, rounds_done=first)
    files.write_json(path / "manifest.json", kept.facts)
    assert resume(path)
    assert_whole(path)
    state = schedule.state_of(path)
    assert state and state.is_converted


def without_the_second_round(path: Path) -> None:
    """Put back a journal from before the second round, as a backup does."""
    lines = (path / FILE).read_bytes().splitlines(keepends=True)
    events = [json.loads(line)["event"] for line in lines]
    cut = next(place for place, event in enumerate(events) if event.get("round") == 2)
    (path / FILE).write_bytes(b"".join(lines[:cut]))


def test_a_round_that_the_journal_does_not_know_is_not_done(root: Path) -> None:
    path = new(root)
    assert measure(path)
    without_the_second_round(path)
    assert missing.done_rounds(path, read_manifest(path)) == {1}
    assert resume(path)
    assert_whole(path)
    assert len((root / "starts").read_text()) == 3
    # What stood in the launches' places is kept, though no journal knows it.
    names = all_in(path / "packs" / "round002.tar")
    assert len(names) == 8 and len(set(names)) == 4


def copied_in(path: Path, root: Path) -> str:
    """Put another campaign's journal into a campaign; return that one's name."""
    (root / "starts").unlink()
    time.sleep(1 - time.time() % 1)
    other = new(root)
    assert measure(other)
    shutil.copy(other / FILE, path / FILE)
    return other.name


def test_another_campaigns_journal_is_refused(root: Path) -> None:
    path = new(root, {"killed after": 2}, *3 * [{"killed at once": True}])
    with pytest.raises(CampaignError):
        measure(path)
    other = copied_in(path, root)
    before = (path / FILE).read_bytes()
    sentence = f"is the journal of {other}, not of {path.name}; put its own back"
    with pytest.raises(JournalError, match=sentence):
        resume(path)
    assert (path / FILE).read_bytes() == before
    assert any(sentence in one.sentence for one in read_campaign(path).problems)


def test_a_campaign_whose_folder_was_renamed_is_not_gone_on_with(root: Path) -> None:
    path = new(root, {"pass over": "beta-1.0"})
    assert not measure(path)
    away = path.rename(path.with_name("elsewhere"))
    before = (away / FILE).read_bytes()
    with pytest.raises(JournalError, match=rf"mv runs/elsewhere runs/{path.name}"):
        resume(away)
    assert (away / FILE).read_bytes() == before
    said = [one.sentence for one in read_campaign(away).problems]
    assert not any("journal" in one for one in said), "it can be read under any name"
    away.rename(path)
    assert resume(path)
    assert_whole(path)


@pytest.mark.parametrize("how", ["renamed after", "deleted after"])
def test_a_folder_that_goes_while_it_is_measured_ends_the_run_with_a_sentence(
    how: str, root: Path
) -> None:
    path = new(root, {how: 1})
    with pytest.raises(CampaignError, match=rf"{path}.* is no longer there"):
        measure(path)
    assert not path.exists(), "it is not made again under its old name"
    if how == "renamed after":
        path.with_name("elsewhere").rename(path)
        assert resume(path)
        assert_whole(path)


def test_what_a_dead_campaign_left_running_is_ended_by_its_resume(root: Path) -> None:
    path = new(root)
    # As a container does, whose processes do not have the job's environment.
    left = subprocess.Popen(["env", "-i", "sleep", "600"], start_new_session=True)
    try:
        with schedule.held(path) as held:
            held.plan(1, planned(1, held))
            held.begin_session(1)
            held.intend(planned(1, held)[0].launch)
            held.submitted(planned(1, held)[0].launch, named(left.pid))
        resuming.old_campaign(asked("--resume", path.name))
        assert left.wait(timeout=60) == -9
    finally:
        left.kill()
        left.wait()


def test_the_reframe_of_a_dead_campaign_that_still_ends_its_launches_holds_up_nobody(
    root: Path,
) -> None:
    path = new(root)
    left = subprocess.Popen(
        ["flock", path / LOCK, "sleep", "600"],
        env={**os.environ, processes.MARK: str(path)}, start_new_session=True,
    )  # fmt: skip
    try:
        while holder_of(path / LOCK) is None:
            time.sleep(0.01)
        assert resume(path)
        assert_whole(path)
        assert left.wait(timeout=60) == -9
    finally:
        left.kill()
        left.wait()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda root: root / "site_configs" / "local" / "references.yaml",
            "references.yaml is new",
        ),
        (lambda root: root / "reframe_checks" / "one.py", "reframe_checks/one.py changed"),
        (lambda root: root / "containers" / "images.lock", "the image alpha-1.0 was replaced"),
        *(
            (lambda root, path=path: root / path, f"{path} is new")
            for path in (
                "records/limits/plausibility.py",
                "containers/apptainer.py",
                "containers/apptainer_setup.py",
                "campaign/reframe_session.py",
                "reframe_checks/launchers/into_container",
                "inference/intervals.py",
            )
        ),
    ],
    ids=[
        "references",
        "a check",
        "an image",
        "what judges a launch",
        "how containers start",
        "what sets the path of Apptainer",
        "what ReFrame is told",
        "a launcher",
        "what judges a reference",
    ],
)
def test_inputs_that_change_in_mid_campaign_are_refused_by_the_next_session_and_named(
    root: Path, change: Callable[[Path], Path], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "input_digests", INPUT_DIGESTS)
    (root / "reframe_checks" / "one.py").write_text("# as it was\n")
    path = new(root, {"killed after": 1})
    lock = {"schema": SCHEMA, "images": {"alpha-1.0": {"file": "a.sif", "sha256": "2" * 64}}}
    changed = change(root)
    changed.parent.mkdir(parents=True, exist_ok=True)
    before = changed.read_text() if changed.exists() else None
    changed.write_text(json.dumps(lock))
    with pytest.raises(CampaignError, match=f"cannot be resumed with .*{said}; put that back"):
        measure(path)
    assert not (root / "starts").exists(), "nothing was measured with it"
    if before is None:
        changed.unlink()
    else:
        changed.write_text(before)
    assert resume(path)
    assert_whole(path)


def test_another_image_and_a_command_that_does_not_answer_change_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "input_digests", INPUT_DIGESTS)
    monkeypatch.setattr(provenance, "software", lambda *_: {"apptainer": "1.3.2"})
    manifest = read_manifest(new(root))
    (root / "containers").mkdir()
    lock = {"schema": SCHEMA, "images": {"gamma-1.0": {"file": "x.sif", "sha256": "2" * 64}}}
    (root / "containers" / "images.lock").write_text(json.dumps(lock))
    monkeypatch.setattr(provenance, "software", lambda *_: {"apptainer": None})
    assert provenance.changes(root, manifest) == []
    monkeypatch.setattr(provenance, "software", lambda *_: {"apptainer": "1.4.0"})
    assert provenance.changes(root, manifest) == ["apptainer was 1.3.2 and is 1.4.0"]
    # It did not answer when the campaign began.
    unknown = manifest.changed(software={"apptainer": None})
    assert provenance.changes(root, unknown) == []
    # Launches that run elsewhere have another one, which their preflight looks at.
    site = root / "site_configs" / "local" / "site.yaml"
    site.write_text(site.read_text().replace("scheduler: local", "scheduler: squeue"))
    elsewhere = manifest.changed(inputs=provenance.input_digests(root, "local", False))
    assert provenance.changes(root, elsewhere) == []


def test_what_only_tells_of_a_campaign_may_change_while_it_is_measured(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "input_digests", INPUT_DIGESTS)
    path = new(root)
    for name in (
        "analysis/report/report.py",
        "campaign/progress.py",
        "analysis/precision/waves.py",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("# another\n")
    assert measure(path)
    # With a budget, the last of them decides what is measured.
    assert "analysis/precision/waves.py" in provenance.input_digests(root, "local", True)


@pytest.mark.parametrize("name", [PROPOSED, ".site.yaml.swp", "site.yaml~", f".{PROPOSED}.12"])
def test_what_lies_beside_the_inputs_is_none_of_them(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As of a calibration, or an editor that looks at the site's file, while a campaign goes on."""
    monkeypatch.setattr(provenance, "input_digests", INPUT_DIGESTS)
    path = new(root)
    beside = root / "site_configs" / "local" / name
    beside.write_text("{}\n")
    assert name not in str(provenance.input_digests(root, "local", False))
    assert measure(path)
    # An older manifest may name it.
    manifest = read_manifest(path)
    known = {**manifest.inputs, f"site_configs/local/{name}": "2" * 64}
    assert provenance.changes(root, manifest.changed(inputs=known)) == []


def test_a_new_campaign_ends_what_dead_ones_left_and_nothing_of_one_that_is_measured(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dead, live = new(root), root / "runs" / "live"
    known = (root / "site_configs" / "local" / "site.yaml").read_text()
    (root / "site_configs" / "other").mkdir()
    (root / "site_configs" / "other" / "site.yaml").write_text(
        known.replace("scheduler: local\n", "scheduler: squeue\n")
    )
    shutil.copytree(dead, live)
    facts = {**read_manifest(dead).facts, "campaign": live.name, "site": "other"}
    files.write_json(live / "manifest.json", facts)
    sleeping = [
        subprocess.Popen(["env", *words, "sleep", "600"], start_new_session=True)
        for words in (["-i"], [f"{processes.MARK}={dead}"], [f"{processes.MARK}={live}"])
    ]
    try:
        with schedule.held(dead) as held:
            held.plan(1, planned(1, held))
            held.intend(planned(1, held)[0].launch)
            held.submitted(planned(1, held)[0].launch, named(sleeping[0].pid))
        before = (dead / FILE).read_bytes()
        while not {dead, live} <= {
            Path(str(one.works_for)) for one in processes.processes().values()
        }:
            time.sleep(0.02)
        with site_lock.only_campaign(root, "other"):
            leftovers.end_leftovers_of_the_dead(root, "local")
            assert [one.wait(timeout=60) for one in sleeping[:2]] == [-9, -9]
            assert sleeping[2].poll() is None
        sentence = f"ended 2 processes that runs/{dead.name} had left running"
        assert sentence in capsys.readouterr().out
        assert (dead / FILE).read_bytes() == before, "its RESUME settles it"
        time.sleep(1 - time.time() % 1)
        new(root)
        assert sleeping[2].wait(timeout=60) == -9
        assert "ended 1 process that runs/live had left" in capsys.readouterr().out
    finally:
        for one in sleeping:
            one.kill()
            one.wait()


def test_a_job_that_came_without_an_answer_is_ended_before_its_launch_is_tried_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = root / "site_configs" / "local" / "site.yaml"
    site.write_text(site.read_text().replace("scheduler: local\n", "scheduler: squeue\n"))
    # The job is there until it is cancelled; whoever starts meanwhile is beside it.
    asked_for = f'echo "$*" >>{root}/asked; [ -e {root}/cancelled ] || echo 21'
    for name, text in (
        ("squeue", f'case "$*" in *--name=wy-*) {asked_for} ;; esac'),
        ("scancel", f'echo "$*" >{root}/cancelled; cp {root}/starts {root}/starts_then'),
    ):
        (root / name).write_text(f"#!/bin/sh\n{text}\n")
        (root / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{root}:{os.environ['PATH']}")
    monkeypatch.setattr(leftovers, "POLL_S", 0.05)
    path = new(root, {"unanswered after": 1})
    assert measure(path)
    assert_whole(path)
    assert (root / "cancelled").read_text().split()[-1] == "21"
    assert (root / "starts_then").read_text() == "x", "nothing was started before"
    with schedule.held(path) as held:
        [name] = held.give_up_unanswered()
        [(one, attempts)] = [(one, one.attempts) for one in held.state.of(None) if one.unanswered]
        assert (one.unanswered, attempts) == ((1,), 2) and held.mark_of(one.name, 1).is_file()
    assert all(f"--name={name} " in line for line in (root / "asked").read_text().splitlines())


def test_a_copied_checkout_does_not_take_the_jobs_of_the_first_for_its_own(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = new(root)
    left = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        with schedule.held(first) as held:
            held.plan(1, planned(1, held))
            held.begin_session(1)
            held.intend(planned(1, held)[0].launch)
            held.submitted(planned(1, held)[0].launch, named(left.pid))
        runs = tmp_path_factory.mktemp("checkout") / "runs"
        shutil.copytree(root / "runs", runs)
        shutil.copytree(root / "site_configs", runs.parent / "site_configs")
        copy = runs / first.name
        with monkeypatch.context() as there:
            there.setattr(beginning, "ROOT", runs.parent)
            with pytest.raises(CampaignError, match=f"{copy} is a copy of {first}, and what that"):
                resuming.old_campaign(asked("--resume", copy.name))
            leftovers.end_leftovers_of_the_dead(runs.parent, "local")
        assert left.poll() is None
        # Where the first has gone, what it has left belongs to what was copied.
        first.rename(root / "away")
        shutil.copytree(copy, first)
        shutil.rmtree(copy)
        assert resume(first)
        assert left.wait(timeout=60) == -9
        assert_whole(first)
    finally:
        left.kill()
        left.wait()


def test_copies_of_a_campaign_have_jobs_of_their_own(root: Path) -> None:
    first = new(root)
    with schedule.held(first) as held:
        held.plan(1, planned(1, held))
    copy = root / "away" / first.name
    shutil.copytree(first, copy)
    names = set()
    for one in (first, copy):
        with schedule.held(one) as held:
            held.begin_session(1)
            launch = planned(1, held)[0].launch
            held.intend(launch)
            names.add(held.job_name(launch, 1))
    assert len(names) == 2 and all(len(name) == 15 for name in names)


def test_a_local_site_that_is_measured_is_spared_where_nobody_can_hold_the_machine(
    root: Path, shared: Path
) -> None:
    shared.chmod(0o755)
    live = new(root)
    shutil.copytree(root / "site_configs" / "local", root / "site_configs" / "other")
    facts = {**read_manifest(live).facts, "site": "other"}
    files.write_json(live / "manifest.json", facts)
    command = ["env", f"{processes.MARK}={live}", "sleep", "600"]
    sleeping = subprocess.Popen(command, start_new_session=True)
    try:
        while not processes.running_for(live):
            time.sleep(0.02)
        with (
            site_lock.only_campaign(root, "local"),
            exclusive(selection.campaign_lock(root, "other"), "a campaign"),
        ):
            leftovers.end_leftovers_of_the_dead(root, "local")
            assert sleeping.poll() is None
        with site_lock.only_campaign(root, "local"):
            leftovers.end_leftovers_of_the_dead(root, "local")
        assert sleeping.wait(timeout=60) == -9
    finally:
        sleeping.kill()
        sleeping.wait()


def test_a_job_that_cannot_be_queried_is_reported_and_blocks_nothing(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = root / "site_configs" / "local" / "site.yaml"
    site.write_text(site.read_text().replace("scheduler: local\n", "scheduler: oar\n"))
    dead = new(root)
    with schedule.held(dead) as held:
        held.plan(1, planned(1, held))
        name = planned(1, held)[0].launch
        held.intend(name)
        held.submitted(name, "18")
        mark = held.mark_of(name, 1)
        with pytest.raises(CampaignError, match="job 18 of a ReFrame that has died may still run"):
            leftovers.end_leftovers("oar", held)
        assert not mark.exists()
    sentence = f"job 18 of {dead.name}, whose ReFrame has died, may still run and disturb "
    capsys.readouterr()
    leftovers.end_leftovers_of_the_dead(root, "local")
    assert sentence in capsys.readouterr().err
    assert mark.is_file(), "a job that has not begun yet starts nothing"
    mark.unlink()
    assert resume(dead)
    assert sentence in capsys.readouterr().err and mark.is_file()
    assert_whole(dead)
    leftovers.end_leftovers_of_the_dead(root, "local")
    assert sentence not in capsys.readouterr().err


def test_a_damaged_journal_is_a_sentence_for_all(root: Path) -> None:
    path = new(root)
    assert measure(path)
    lines = (path / FILE).read_bytes().splitlines(keepends=True)
    (path / FILE).write_bytes(b"".join(lines[:3] + lines[4:]))
    with pytest.raises(JournalError, match="the journal is damaged"):
        resume(path)
    campaign = read_campaign(path)
    assert len(campaign.launches) == ALL
    assert any("so what is missing is unknown" in one.sentence for one in campaign.problems)


def test_a_resume_makes_the_tables_that_failed(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = [1, 0]
    real = subprocess.run

    def run(command: list[str], **options: Any) -> Any:
        if command[1:3] == ["-m", "analysis"]:
            return Namespace(returncode=codes.pop(0))
        return real(command, **options)

    monkeypatch.setattr(subprocess, "run", run)
    assert campaigns.work(asked()) == 1
    [path] = (root / "runs").iterdir()
    said = capsys.readouterr()
    assert f"what was measured of {path.name} is kept" in said.err
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
    with schedule.held(path), pytest.raises(CampaignError, match="another process is measuring"):
        resume(path)


def test_the_end_of_a_process_in_words() -> None:
    assert rounds.how_it_ended(3) == "ended with exit code 3"
    assert rounds.how_it_ended(-9) == "was ended by SIGKILL"
    assert rounds.how_it_ended(-63).startswith("was ended by ")
