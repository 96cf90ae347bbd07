"""What happens to a campaign when something breaks: one sentence, and all the rest goes on."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers import images
from tests.cluster.conftest import PROJECT, Campaign, Cluster, wait_for

pytestmark = pytest.mark.cluster
MPICH = "mpich-5.0.2"
# Two launches of some seconds each after the preflight: a fault hits the first.
TWO_LONG = [
    "--checks", "PointToPoint.*=(Send|Isend)/Recv.*=long|Preflight",
    "--images", MPICH,
]  # fmt: skip


def campaign_with_long_launch(cluster: Cluster, name: str) -> Campaign:
    """Return a campaign in whose first long launch the ranks are at work."""
    campaign = cluster.campaign(f"test-{name}", *TWO_LONG)
    cluster.wait_for_launch("pingpong")
    # Past the start-up, so that it is the ranks that are hit.
    time.sleep(1.0)
    return campaign


def one_failed_rest_sound(campaign: Campaign) -> str:
    """Check that only one launch has failed; return its sentence."""
    assert campaign.end() == 1, campaign.text
    launches = campaign.launches("PointToPoint")
    failed = [launch for launch in launches if launch.outcome == "failed"]
    assert len(failed) == 1, campaign.text
    assert [launch.outcome for launch in launches if launch not in failed] == ["sound"]
    assert [launch.outcome for launch in campaign.launches("Preflight")] == ["sound"]
    # The person at the terminal reads it too, and the report lists it.
    assert failed[0].sentence in " ".join(campaign.text.split()), campaign.text
    assert failed[0].sentence.count("\n") == 0
    return failed[0].sentence


def test_a_node_dies_during_a_launch(cluster: Cluster) -> None:
    campaign = campaign_with_long_launch(cluster, "node")
    cluster.run("stop-node", "2")
    try:
        sentence = one_failed_rest_sound(campaign)
    finally:
        cluster.run("start-node", "2")
    assert "node failure" in sentence or "node2" in sentence, sentence
    wait_for(cluster.is_idle, 60, "an idle cluster")


def test_the_batch_node_dies_during_a_launch(cluster: Cluster) -> None:
    campaign = campaign_with_long_launch(cluster, "batch-node")
    cluster.run("stop-node", "1")
    try:
        sentence = one_failed_rest_sound(campaign)
    finally:
        cluster.run("start-node", "1")
    assert "ended by the scheduler" in sentence, sentence
    wait_for(cluster.is_idle, 60, "an idle cluster")


def test_a_link_is_cut_during_a_launch(cluster: Cluster) -> None:
    campaign = campaign_with_long_launch(cluster, "link")
    cluster.run("cut-link", "2")
    try:
        sentence = one_failed_rest_sound(campaign)
    finally:
        cluster.run("mend-link", "2")
    assert "ended by the scheduler" in sentence, sentence
    wait_for(cluster.is_idle, 60, "an idle cluster")


def test_a_rank_aborts(cluster: Cluster) -> None:
    campaign = campaign_with_long_launch(cluster, "abort")
    cluster.execute("pkill -ABRT -x pingpong", user="root", node=2)
    sentence = one_failed_rest_sound(campaign)
    assert "pingpong ended with exit code" in sentence, sentence
    wait_for(cluster.is_idle, 30, "an idle cluster")


def test_a_rank_hangs(cluster: Cluster) -> None:
    campaign = cluster.campaign("test-hang", *TWO_LONG, "--time-limit", "1m")
    cluster.wait_for_launch("pingpong")
    time.sleep(1.0)
    cluster.execute("pkill -STOP -x pingpong", user="root", node=2)
    sentence = one_failed_rest_sound(campaign)
    assert "time limit" in sentence, sentence
    wait_for(cluster.is_idle, 30, "an idle cluster")


def test_the_controller_is_killed_and_restarted(cluster: Cluster) -> None:
    campaign = campaign_with_long_launch(cluster, "controller")
    # Slurm writes down what it knows within five seconds. A controller that is killed before has
    # forgotten the job, on any cluster, so the launch is held up until it is written.
    cluster.execute("pkill -STOP -x pingpong || true", user="root", node=2)
    time.sleep(6)
    cluster.run("stop-controller")
    time.sleep(4)
    cluster.run("start-controller")
    cluster.execute("pkill -CONT -x pingpong || true", user="root", node=2)
    assert campaign.end() == 0, campaign.text
    assert {launch.outcome for launch in campaign.launches()} == {"sound"}
    assert len(campaign.launches("PointToPoint")) == 2
    wait_for(cluster.is_idle, 30, "an idle cluster")


def test_a_nodes_tmp_is_full(cluster: Cluster) -> None:
    fill = "head -c 10G /dev/zero >/tmp/full 2>/dev/null; df --output=avail /tmp | tail -n 1"
    assert cluster.execute(fill, user="root", node=2).strip() == "0"
    try:
        campaign = cluster.campaign(
            "test-full", "--checks", "Preflight", "--images", f"lam-7.1.4,{MPICH}"
        )
        assert campaign.end() == 1, campaign.text
    finally:
        cluster.execute("rm /tmp/full", user="root", node=2)
    outcomes = {launch.name.rpartition("_")[2]: launch for launch in campaign.launches()}
    assert outcomes[MPICH].outcome == "sound", "MPICH needs no room in /tmp"
    assert outcomes["lam-7.1.4"].outcome == "failed"
    assert "node2: no space left in /tmp" in outcomes["lam-7.1.4"].sentence
    wait_for(cluster.is_idle, 30, "an idle cluster")


@pytest.fixture
def image() -> Iterator[Path]:
    """Return an image that may be spoilt; the whole one is put back afterwards."""
    path = images.verify(PROJECT, MPICH)
    whole = path.with_suffix(".whole")
    os.link(path, whole)
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    copy.rename(path)
    yield path
    whole.rename(path)
    images.verify(PROJECT, MPICH)


def test_an_image_is_corrupted_on_disk(cluster: Cluster, image: Path) -> None:
    campaign = campaign_with_long_launch(cluster, "image")
    with image.open("r+b") as file:
        file.seek(-4096, os.SEEK_END)
        file.write(b"spoilt")
    assert campaign.end() == 1, campaign.text
    first, second = campaign.launches("PointToPoint")
    assert (first.outcome, second.outcome) == ("sound", "failed"), "what was running is kept"
    assert "sha256" in second.sentence and "make images" in second.sentence
    wait_for(cluster.is_idle, 30, "an idle cluster")


def test_two_campaigns_at_once(cluster: Cluster) -> None:
    campaign = campaign_with_long_launch(cluster, "first")
    second = cluster.campaign("test-second", *TWO_LONG)
    assert second.end(60) == 1
    assert "another campaign is measuring on site virtual" in second.text
    assert campaign.end() == 0, campaign.text
    assert {launch.outcome for launch in campaign.launches()} == {"sound"}
