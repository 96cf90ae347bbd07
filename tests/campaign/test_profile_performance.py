"""The comparison of profiled with other runs, for real, on every image that it measures."""

import subprocess
import sys
from pathlib import Path

import pytest

from campaign.profile_performance import PROGRAMS
from containers import images

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.real
def test_every_program_is_measured_with_and_without_a_profile() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "campaign.profile_performance", "--rounds", "2"],
        cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    measured = images.default_implementations(PROJECT)
    assert [row[:2] for row in rows] == [
        [name, program.name] for name in measured for program in PROGRAMS
    ]
    for _, _, profiled, without, ratio, _ in rows:
        assert float(profiled) > 0 and float(without) > 0 and float(ratio) > 0
