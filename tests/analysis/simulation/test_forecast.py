"""What a budget would decide is told by what a campaign's rounds have seen."""

from pathlib import Path

import pytest

from analysis.comparison.compare import compare
from analysis.comparison.result import Comparison
from analysis.simulation import forecast
from records.campaign import read_campaign
from tests.analysis.support.synthetic import Synthetic, Truth

PAIRS = ["Send/Recv", "Isend/Irecv", "Ssend/Recv"]


def measured(folder: Path, faster: float, noise: float) -> Comparison:
    """Return a campaign of three rounds whose implementations differ by a factor."""
    truths = {
        "alpha-1.0": Truth(1e-6, 4e9, 30e9),
        "beta-2.0": Truth(1e-6 / faster, 4e9 * faster, 30e9 * faster),
    }
    return compare(read_campaign(Synthetic(folder, truths, pairs=PAIRS, noise=noise).write()))


def share(comparison: Comparison, budget_s: float) -> float:
    found = forecast.share_decided(comparison, 100.0, budget_s, begin=3, fewest=5)
    assert found is not None
    return found


def test_what_differs_beyond_its_noise_is_decided_and_what_does_not_is_not(tmp_path: Path) -> None:
    clear = measured(tmp_path / "a", 2.0, 0.01)
    assert share(clear, 600.0) > 0.9
    # Of a third of a round that everything begins with, at most as much.
    assert share(clear, 100.0) == pytest.approx(share(clear, 300.0) / 3)
    vague = measured(tmp_path / "b", 1.0, 0.5)
    assert share(vague, 600.0) < 0.2


def test_a_block_takes_its_launches_and_its_share_of_what_is_between_them(tmp_path: Path) -> None:
    comparison = measured(tmp_path, 2.0, 0.01)
    seconds = forecast.seconds_of_blocks(comparison, 100.0)
    assert sum(seconds.values()) == pytest.approx(100.0)
    parts, _ = forecast.believed(comparison, seconds)
    assert {part.check for part in parts} == set(seconds) and len(parts) == len(seconds)
