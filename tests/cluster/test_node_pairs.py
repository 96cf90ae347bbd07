"""A link that lost a fifth of its rate, and a node whose core is busy, are named."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from analysis.models.node_pairs import NodePairs, node_pairs_in
from records.campaign import read_campaign
from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.cluster
BUSY = "while :; do :; done"


def measured(cluster: Cluster, name: str) -> NodePairs:
    """Return what a campaign says of the nodes."""
    campaign = cluster.campaign(
        f"test-{name}", "--images", "openmpi-5.0.11", "--checks", "NodePairs%pairs=together"
    )
    code = campaign.end()
    [found] = node_pairs_in(read_campaign(campaign.folder()))
    assert code == 0 and found.rounds == found.all_rounds == 3, campaign.text
    return found


@contextmanager
def busy(cluster: Cluster, node: int) -> Iterator[None]:
    """Have another process use a node's core, of which the nodes may have one in common."""
    cluster.execute(f"setsid sh -c '{BUSY}' >/dev/null 2>&1 & echo $! >/tmp/busy", "root", node)
    try:
        yield
    finally:
        cluster.execute("kill $(cat /tmp/busy)", "root", node)


def named(found: NodePairs) -> dict[str, str]:
    return {one.name: one.verdict for one in found.named}


def test_a_slow_link_and_a_busy_node_are_named(cluster: Cluster) -> None:
    cluster.run("slow-link", "2", "--by", "0.2")
    try:
        slowed = measured(cluster, "slow-link")
    finally:
        cluster.run("mend-link", "2")
    [node] = [one for one in slowed.of_nodes if one.name == "node2"]
    assert node.verdict == "slow" and "bandwidth" in node.because, named(slowed)
    with busy(cluster, 3):
        crowded = named(measured(cluster, "busy"))
    assert "node3" in crowded, crowded
    # The machine's cores are dealt to the nodes in turn.
    cores = len(os.sched_getaffinity(0))
    sharing = {f"node{number}" for number in range(1, 5) if number % cores == 3 % cores}
    assert {name for name in crowded if " – " not in name} <= sharing, crowded
