"""What preflights saw is said once, after the first round, and stays in the manifest."""

import json
from pathlib import Path
from typing import Any

import pytest

from campaign import quiet
from campaign.progress import CampaignProgress
from campaign.quiet import with_quiet
from records.kept import Kept
from records.manifest import Manifest, RoundDone, read_manifest
from tests.analysis.support.synthetic import TWICE, Synthetic
from tests.records.test_noise import noise

HEADER = {
    "record": "header", "format": "wyeast-records-1", "program": "preflight",
    "program_version": "1.0.0", "library": "none", "mpi_standard": "4.1", "ranks": 2,
    "hosts": ["a", "a"], "processors": [[0], [1]], "clock": "MPI_Wtime", "clock_tick_s": 1e-9,
    "clock_resolution_s": 2e-8, "started_utc": "2026", "parameters": {},
}  # fmt: skip


def measured(folder: Path, *seen: dict[str, Any]) -> Manifest:
    """Return the manifest of a campaign whose preflights saw this, after its first round."""
    made = Synthetic(folder, TWICE, rounds=0)
    made.write()
    for name in TWICE:
        lines = [HEADER, *seen, {"record": "end", "results": len(seen)}]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        made.launch(1, name, "Preflight", {"ranks": 2, "nodes": 1},
                    text, program="preflight")  # fmt: skip
    done = RoundDone(round=1, wall_s=60.0, reframe_exit_code=0)
    return read_manifest(folder).changed(rounds=6, rounds_done=[done.model_dump()])


def test_it_is_said_once_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = measured(tmp_path / "c", noise().model_dump())
    progress = CampaignProgress(manifest.rounds)
    found = with_quiet(tmp_path / "c", manifest, progress)
    assert found.quiet and (found.quiet.looks, found.quiet.rounds) == (2, 6)
    assert found.quiet.sentence in capsys.readouterr().out
    assert with_quiet(tmp_path / "c", found, progress) is found
    assert capsys.readouterr().out == ""


def test_images_whose_preflight_does_not_look_say_nothing(tmp_path: Path) -> None:
    manifest = measured(tmp_path / "c")
    assert with_quiet(tmp_path / "c", manifest, CampaignProgress(1)) is manifest


def test_launches_are_looked_through_after_the_first_round_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = measured(tmp_path / "c")
    later = RoundDone(round=2, wall_s=60.0, reframe_exit_code=0).model_dump()
    done = [one.model_dump() for one in manifest.rounds_done]
    looked: list[Path] = []

    def look(campaign: Path) -> list[Kept]:
        looked.append(campaign)
        return []

    monkeypatch.setattr(quiet, "kept_launches", look)
    for rounds in ([], done, [*done, later]):
        before = manifest.changed(rounds_done=rounds)
        assert with_quiet(tmp_path / "c", before, CampaignProgress(1)) is before
    assert len(looked) == 1


def test_a_budget_for_more_rounds_than_there_can_be_is_for_as_many(tmp_path: Path) -> None:
    manifest = measured(tmp_path / "c", noise().model_dump())
    design = {
        "budget_s": 1e9, "seed": 1, "looks": [2], "shares": [1.0], "margins": {}, "begin": 2,
        "fewest": 2.0, "wave_s": 60.0,
    }  # fmt: skip
    done = RoundDone(round=1, wall_s=1e-6, reframe_exit_code=0).model_dump()
    manifest = manifest.changed(design=design, rounds_done=[done])
    found = with_quiet(tmp_path / "c", manifest, CampaignProgress(1)).quiet
    assert found and found.of_budget and found.rounds == 999_999
