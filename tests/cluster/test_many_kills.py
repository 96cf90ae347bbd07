"""Campaigns on a cluster that are killed again and again are those that nobody has killed."""

import shlex
import subprocess

import pytest

from tests.campaign.real_campaigns import assert_kills_change_no_count, begin
from tests.cluster.conftest import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.long]
KILLS = 50
NAME = "test-kills"
OPTIONS = ["--rounds", "2", "--seed", "5", "--images", "mpich-5.0.2", "--checks",
           "PointToPoint.*=Send/Recv.*=short|EchoTest"]  # fmt: skip


def test_fifty_kills_change_no_count_of_any_cell(cluster: Cluster) -> None:
    """What a kill leaves in the queue, or on the nodes, is ended before anything goes on."""

    def begin_as(*words: str) -> subprocess.Popen[str]:
        options = [] if words[0] == "--resume" else OPTIONS
        command = shlex.join(["python", "-m", "campaign", "--site", "virtual", *options, *words])
        return begin(f"python -m cluster exec -- {command}", SITE="virtual")

    assert_kills_change_no_count(begin_as, "virtual", NAME, KILLS, seed=5)
    assert cluster.is_idle()
