"""What a hypervisor took is said where it matters, and only there."""

import json
from pathlib import Path

import pytest

from analysis.comparison.caveats.stolen_time import stolen_time
from records.campaign import Campaign, read_campaign
from tests.analysis.support.synthetic import Synthetic, Truth


def with_processors(folder: Path, stolen: list[float], idle: float = 6.0) -> Campaign:
    """Return a campaign in which launch i lost stolen[i] of the 10 s that it had work for."""
    Synthetic(folder, {"one": Truth(1e-6, 1e9, 1e10)}, rounds=1, pairs=["Send/Recv"]).write()
    records = sorted(folder.glob("launches/*/launch.json"))
    for index, path in enumerate(records):
        lost = stolen[min(index, len(stolen) - 1)]
        processors = {"busy": 10.0 - lost, "idle": idle, "stolen": lost}
        path.write_text(json.dumps(json.loads(path.read_text()) | {"processors_s": processors}))
    return read_campaign(folder)


def test_nothing_is_said_where_nothing_was_stolen(tmp_path: Path) -> None:
    assert stolen_time(with_processors(tmp_path / "c", [0.0, 0.05, 0.0])) == []


@pytest.mark.parametrize("stolen", [[1.0], [1.0, 0.0]])
def test_what_was_stolen_is_said(tmp_path: Path, stolen: list[float]) -> None:
    campaign = with_processors(tmp_path / "c", stolen)
    [sentence] = stolen_time(campaign)
    first = min(launch.record.launch for launch in campaign.launches)
    assert f"10.0% in {first}" in sentence or "took 10.0% of the time" in sentence


def test_who_waits_hides_nothing(tmp_path: Path) -> None:
    """An idle processor loses nothing: what it waits must not make the share smaller."""
    [idle] = stolen_time(with_processors(tmp_path / "idle", [1.0], idle=1000.0))
    [busy] = stolen_time(with_processors(tmp_path / "busy", [1.0], idle=0.0))
    assert idle == busy


def test_a_campaign_that_does_not_say_is_silent(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    Synthetic(folder, {"one": Truth(1e-6, 1e9, 1e10)}, rounds=1, pairs=["Send/Recv"]).write()
    assert stolen_time(read_campaign(folder)) == []
