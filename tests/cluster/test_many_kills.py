"""Campaigns on a cluster that are killed again and again are those that nobody has killed."""

import shlex
import subprocess
import time

import pytest

from tests.campaign.real_campaigns import (
    begin,
    campaigns,
    counts,
    finished,
    measured_with_kills,
    removed,
)
from tests.cluster.conftest import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.long]
KILLS = 50
NAME = "test-kills"
OPTIONS = ["--rounds", "4", "--seed", "5", "--images", "mpich-5.0.2", "--checks",
           "PointToPoint.*=Send/Recv.*=short|EchoTest"]  # fmt: skip


def test_fifty_kills_change_no_count_of_any_cell(cluster: Cluster) -> None:
    """What a kill leaves in the queue, or on the nodes, is ended before anything goes on."""

    def begin_as(*words: str) -> subprocess.Popen[str]:
        options = [] if words[0] == "--resume" else OPTIONS
        command = shlex.join(["python", "-m", "campaign", "--site", "virtual", *options, *words])
        return begin(f"python -m cluster exec -- {command}", SITE="virtual")

    with removed(NAME, "virtual"):
        began = time.monotonic()
        finished(begin_as("--name", f"{NAME}-whole"))
        took = time.monotonic() - began
        [whole] = campaigns(f"{NAME}-whole", "virtual")
        killed = measured_with_kills(begin_as, "virtual", NAME, KILLS, took / 4, seed=5)
        for campaign in killed:
            assert counts(campaign) == counts(whole), campaign.name
    assert cluster.is_idle()
