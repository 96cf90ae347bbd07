"""A look uses the blocks that were finished first, for each two implementations by themselves."""

import json
import math
from pathlib import Path

import pytest

from analysis.comparison.compare import compare
from analysis.precision import waves
from inference.intervals import Ratio
from inference.looks import AnytimeRatio
from records.campaign import read_campaign
from tests.analysis.support.synthetic import Synthetic, Truth

THREE = {name: Truth(1e-6, 4e9, 30e9) for name in ("alpha-1.0", "beta-2.0", "gamma-3.0")}


def set_end(path: Path, minute: int) -> None:
    file = path / "launch.json"
    times = {"started_utc": f"2026-01-01T00:{minute:02}:00Z",
             "ended_utc": f"2026-01-01T00:{minute:02}:01Z"}  # fmt: skip
    file.write_text(json.dumps(json.loads(file.read_text()) | times))


def first_look(folder: Path, base: str, other: str) -> tuple[Ratio, dict[int, float]]:
    """Return what the first look of three blocks saw, and each round's log ratio."""
    [comparison] = [one for one in compare(read_campaign(folder)).pairs if one.base == base]
    cell = next(one for one in comparison.cells if one.experiment == "Linpack")
    ratio = cell.verdicts[other].ratio
    assert isinstance(ratio, AnytimeRatio)
    return ratio.looks[0][1], cell.log_ratios[other]


def test_a_launch_that_was_filled_changes_no_look_of_the_others(tmp_path: Path) -> None:
    facts = {"design": waves.declared(900.0, 7).model_dump(), "all_pairs": True}
    folder = Synthetic(tmp_path / "c", THREE, rounds=5, pairs=[], noise=0.3, facts=facts).write()
    for path in folder.glob("launches/*"):
        set_end(path, int(path.name[5:8]))
    pairs = [("alpha-1.0", "beta-2.0"), ("alpha-1.0", "gamma-3.0"), ("beta-2.0", "gamma-3.0")]
    before = {pair: first_look(folder, *pair) for pair in pairs}
    # Of round 2 the third one's launch was lost, and a RESUME measured it.
    for path in folder.glob("launches/round002*gamma*"):
        set_end(path, 50)
    for pair in pairs:
        ratio, logarithms = first_look(folder, *pair)
        used = (1, 3, 4) if "gamma-3.0" in pair else (1, 2, 3)
        mean = sum(logarithms[number] for number in used) / len(used)
        assert math.log(ratio.value) == pytest.approx(mean), pair
        assert (ratio == before[pair][0]) == ("gamma-3.0" not in pair)
