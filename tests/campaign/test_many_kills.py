"""Campaigns that are killed again and again, at random, are those that nobody has killed."""

import os
import subprocess

import pytest

from tests.campaign.real_campaigns import assert_kills_change_no_count, begin

pytestmark = [pytest.mark.real, pytest.mark.serial, pytest.mark.long]
KILLS = 50
OPTIONS = (
    "--rounds 4 --seed 5 --images mpich-5.0.2,openmpi-5.0.11 "
    "--checks 'PointToPoint.*=Send/Recv.*=short|EchoTest'"
)


def test_fifty_kills_change_no_count_of_any_cell() -> None:
    """At any instant: while it begins, measures, reports, or goes on; the report is the same."""
    name = f"test-kills-{os.getpid()}"

    def begin_as(*words: str) -> subprocess.Popen[str]:
        options = "" if words[0] == "--resume" else OPTIONS
        return begin(f"python -m campaign {options} {' '.join(words)}")

    assert_kills_change_no_count(begin_as, "local", name, KILLS, seed=os.getpid())
