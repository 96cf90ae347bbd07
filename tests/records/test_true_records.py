"""A record cannot be changed, or be of what no machine has, without being left out for it."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from records import instants
from records.base import CampaignError, RecordError
from records.campaign import measured_on, read_campaign
from records.kept import FolderLaunch
from records.launch import LaunchRecord, read_launch, record_of
from records.manifest import manifest_of
from tests.folders import write_launch
from tests.reframe_checks.conftest import PREFLIGHT
from tests.whole_records import launch, launch_facts, manifest, manifest_facts, put_manifest


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Return a campaign of one launch, written as checks write it."""
    folder = tmp_path / "20260101T000000Z-local-quick"
    put_manifest(folder)
    stage = tmp_path / "stage"
    stage.mkdir()
    (stage / "out").write_text(PREFLIGHT)
    (stage / "job").write_text("#!/bin/bash\nmpiexec -n 2 preflight\n")
    files = {"stdout": stage / "out", "stderr": stage / "none", "job.sh": stage / "job"}
    write_launch(folder, launch(), files)
    return folder


@pytest.mark.parametrize("name", ["stdout", "stderr", "job.sh"])
def test_a_changed_digit_costs_the_launch_and_is_told(campaign: Path, name: str) -> None:
    assert read_campaign(campaign).problems == []
    file = campaign / "launches/round001_cell" / name
    file.write_bytes(file.read_bytes().replace(b"2", b"3", 1) or b"a digit: 3")
    found = read_campaign(campaign)
    assert found.launches == []
    [problem] = found.problems
    assert problem.where == "round001_cell"
    assert problem.sentence.startswith(f"{file}: was changed after the launch: its sha256 is ")


def test_a_file_of_a_launch_that_is_gone_is_told(campaign: Path) -> None:
    (campaign / "launches/round001_cell/job.sh").unlink()
    [problem] = read_campaign(campaign).problems
    assert "job.sh" in problem.sentence and "was removed after the launch" in problem.sentence


def test_launches_from_before_digests_are_read_and_counted(campaign: Path) -> None:
    assert read_campaign(campaign).unproven() == 0
    file = campaign / "launches/round001_cell/launch.json"
    facts = json.loads(file.read_text())
    assert set(facts.pop("sha256")) == {"stdout", "stderr", "job.sh"}
    file.write_text(json.dumps(facts))
    found = read_campaign(campaign)
    assert (len(found.launches), found.problems, found.unproven()) == (1, [], 1)


def test_digests_are_of_files_of_the_folder_alone(campaign: Path) -> None:
    for name in ("../manifest.json", ".hidden", "/etc/passwd", ""):
        with pytest.raises(RecordError):
            record_of(LaunchRecord, launch_facts(sha256={name: "0" * 64}), "x")


IMPOSSIBLE: list[dict[str, Any]] = [
    {"ranks": -2}, {"ranks": 0}, {"ranks": 10**30}, {"ranks": 2, "nodes": 3}, {"nodes": 0},
    {"round": 0}, {"round": 10**7}, {"position": 0}, {"position": 10**30},
    {"started_utc": "2026-01-01T00:00:02Z"}, {"wall_s": -1.0}, {"wall_s": 1e30},
    {"times_s": {"container": 1e30}}, {"processors_s": {"busy": -1.0}},
    {"processors_s": {"busy": 1e30}}, {"exit_code": 10**9},
    {"node": {"memory_available_bytes": 10**30}}, {"node": {"load_average": -0.5}},
    {"node": {"running": 10**12}}, {"node": {"clock_hz": 1e15}}, {"node": {"running": "many"}},
]  # fmt: skip


@pytest.mark.parametrize("wrong", IMPOSSIBLE, ids=map(str, IMPOSSIBLE))
def test_a_launch_that_no_machine_had_costs_itself_alone(
    campaign: Path, wrong: dict[str, Any]
) -> None:
    file = campaign / "launches/round001_wrong/launch.json"
    file.parent.mkdir()
    file.write_text(json.dumps(launch_facts("round001_wrong", **wrong)))
    found = read_campaign(campaign)
    assert [one.record.launch for one in found.launches] == ["round001_cell"]
    [problem] = found.problems
    assert problem.where == "round001_wrong" and str(file) in problem.sentence
    *_, name = wrong
    assert name.removesuffix("_utc") in problem.sentence and "\n" not in problem.sentence


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 10**30}, {"rounds": -1}, {"order_seed": 10**30},
        {"machine": {"cpu_model": None, "memory_bytes": 10**30}},
        {"machine": {"cpu_model": None, "cores": -2}},
        {"machine": {"cpu_model": None, "numa_nodes": 10**9}},
        {"rounds_done": [{"round": 1, "wall_s": 1e30, "reframe_exit_code": 0}]},
        {"rounds_done": [{"round": 1, "wall_s": 1.0, "reframe_exit_code": 10**9}]},
        {"rounds_done": [{"round": 1, "wall_s": 1.0, "reframe_exit_code": 0, "launches": 10**30}]},
        {"rounds_done": [{"round": 1, "wall_s": 1.0, "reframe_exit_code": 0, "load_average": 1e9}]},
    ],
    ids=str,
)  # fmt: skip
def test_an_impossible_manifest_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(CampaignError) as error:
        manifest_of(manifest_facts(**wrong), "manifest.json")
    [name] = wrong
    assert name in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "wrong", [{"memory_bytes": 10**30}, {"cores": 0}, {"cores": [1]}, {"hostname": 7}], ids=str
)
def test_a_node_that_cannot_be_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    file = tmp_path / "nodes" / "node1-0.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"hostname": "node1", "cpu_model": None, **wrong}))
    with pytest.raises(CampaignError, match=str(file)):
        measured_on(tmp_path, manifest())


def lines(utc: float, before: float, after: float) -> list[str]:
    return [f"{utc:.9f}", "cpu 1 2 3 4 5 6 7 8", f"{before:.2f} {after:.2f}"]


def test_a_duration_is_as_fine_as_the_clock_where_nobody_set_it() -> None:
    began = instants.instant(lines(1000.0, 50.0, 50.0))
    ended = instants.instant(lines(1001.234567, 51.23, 51.24))
    assert began and ended and began.step_until(ended) is None
    assert began.seconds_until(ended) == pytest.approx(1.234567)


@pytest.mark.parametrize("step", [-86400.0, -1.0, -0.5, 0.5, 3600.0])
def test_a_clock_that_was_set_is_reported_and_does_not_change_durations(step: float) -> None:
    began = instants.instant(lines(1e6, 50.0, 50.01))
    ended = instants.instant(lines(1e6 + 2.0 + step, 52.0, 52.01))
    assert began and ended
    assert began.step_until(ended) == pytest.approx(step, abs=0.03)
    assert began.seconds_until(ended) == pytest.approx(2.0, abs=0.03)


def test_a_machine_that_stands_still_while_it_reads_its_clocks_has_set_none() -> None:
    """Between the readings of a busy machine there may be seconds: they prove nothing."""
    began = instants.instant(lines(1000.0, 50.0, 57.0))
    ended = instants.instant(lines(1003.0, 58.0, 58.0))
    assert began and ended and began.step_until(ended) is None


def test_without_a_second_clock_a_duration_below_zero_is_none() -> None:
    began, ended = instants.instant(["1000.0"]), instants.instant(["900.0"])
    assert began and ended
    assert began.seconds_until(ended) is None and began.step_until(ended) is None
    assert instants.instant([]) is None and instants.instant(["soon"]) is None
    assert instants.instant(["nan"]) is None


def test_the_machine_is_asked_for_its_clocks(tmp_path: Path) -> None:
    noted = []
    for _ in range(2):
        done = subprocess.run(
            ["bash", "-c", instants.COMMAND], capture_output=True, text=True, check=True
        )
        noted.append(instants.instant(done.stdout.splitlines()))
        assert done.stdout.splitlines()[1].startswith("cpu ")
    began, ended = noted
    assert began and ended and began.step_until(ended) is None
    assert 0 <= (began.seconds_until(ended) or -1) < 600
    assert began.uptime_s and began.uptime_s[0] <= began.uptime_s[1]


def test_a_whole_launch_is_read(campaign: Path) -> None:
    found = read_launch(FolderLaunch(campaign / "launches/round001_cell"))
    assert found.record.outcome == "sound" and found.output is not None


def numbers_in(facts: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where facts have numbers."""
    for key, value in facts.items() if isinstance(facts, dict) else enumerate(facts):
        if isinstance(value, dict | list):
            yield from numbers_in(value, (*place, key))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*place, key)


def with_number(facts: dict[str, Any], place: tuple[Any, ...], number: float) -> dict[str, Any]:
    """Return the facts with another number in a place."""
    changed: Any = json.loads(json.dumps(facts))
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = number
    return dict(changed)


SEEN = {"looked_s": 1.0, "others_s": 1.0, "others": {"make": 1.0}, "carriers": 1, "stopped": 1}
ROUND = {"round": 1, "wall_s": 1.0, "launches": 1, "load_average": 1.0, "reframe_exit_code": 0}
LAUNCH = launch_facts(disturbance=SEEN, left_running=1, times_s={"container": 1.0})
MANIFEST = manifest_facts(rounds_done=[ROUND], night={"number": 1}, repeat_beyond={"stopped": 0})
#: What may be below nothing: times between clocks of which one was set, codes, a seed.
SIGNED = ("times_s", "exit_code", "reframe_exit_code", "order_seed")


@pytest.mark.parametrize("number", [-2, 10**30, 1e30, float("inf"), float("nan")])
def test_no_number_of_a_record_or_manifest_is_beyond_what_can_be(number: float) -> None:
    for facts, read in ((LAUNCH, lambda facts: record_of(LaunchRecord, facts, "x")),
                        (MANIFEST, lambda facts: manifest_of(facts, "x"))):  # fmt: skip
        places = list(numbers_in(facts))
        assert len(places) > 8
        for place in places:
            if number == -2 and set(place) & set(SIGNED):
                continue
            with pytest.raises((RecordError, CampaignError)):
                read(with_number(facts, place, number))
                pytest.fail(f"{place} may be {number}")
