"""The comparison of inside and outside runs, for real."""

import subprocess
import sys
from pathlib import Path

import pytest

from campaign.su3_performance import SIDES

# The one that starts quickest; `make performance` measures every default image.
IMAGE = "mpich-5.0.2"
PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.real
def test_a_missing_image_is_one_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "campaign.performance", "--images", "mpich-0.0"],
        cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("performance: ") and done.stderr.count("\n") == 1


@pytest.mark.real
def test_every_quantity_is_measured_inside_and_outside() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "campaign.performance", "--rounds", "2", "--nas-classes", "S",
         "--images", IMAGE],
        cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table, _, lattices = done.stdout.partition("\n\n")
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    # Three of messages, three of HPL, the start, and five benchmarks on one and two ranks.
    assert [row[0] for row in rows] == [IMAGE] * 17
    assert all(f"| {side}^4 |" in lattices for side in SIDES)
    for _, quantity, inside, outside, ratio, _ in rows:
        assert float(inside) > 0 and float(outside) > 0 and float(ratio) > 0
        if quantity.startswith("start"):
            assert float(inside) > float(outside), "starting a container costs something"
