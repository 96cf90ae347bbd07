"""Nodes with two links: which of them carried messages is told, and the wrong one is caught."""

import re
import shutil
from collections.abc import Iterator

import pytest
import yaml

from cluster import box
from cluster.inside import NODES
from tests.cluster.conftest import PROJECT, Cluster
from tests.cluster.test_site import row_of

pytestmark = pytest.mark.cluster
SITE, IMAGE = "virtual", "openmpi-5.0.11"
#: By which Open MPI's ranks are told which link to take.
LINK = "OMPI_MCA_btl_tcp_if_include"


@pytest.fixture
def two_links(cluster: Cluster) -> Iterator[None]:
    """Lay a second link, eth1, between the first two nodes, and have the site demand it."""
    processes = [f"$(cut -d ' ' -f 1 {NODES}/{number}.process)" for number in (1, 2)]
    first, second = processes
    lay = [f"ip link add eth1 netns {first} type veth peer name eth1 netns {second}"]
    for number, pid in enumerate(processes, start=1):
        inside = f"nsenter --target {pid} --net ip"
        lay += [f"{inside} address add 10.99.0.{number}/24 dev eth1",
                f"{inside} link set eth1 up"]  # fmt: skip
    path = box.state_folder(PROJECT) / box.SITE_OVERRIDES
    before = path.read_text()
    # The second link has no limit of its own.
    wanted = {"fabric": ["eth1"], "variables": [LINK], "link_bytes_per_s": None}
    try:
        cluster.execute(" && ".join(lay), user="root")
        path.write_text(yaml.safe_dump(yaml.safe_load(before) | wanted))
        yield
    finally:
        path.write_text(before)
        # Also where it was laid in part only.
        remove = f"nsenter --target {first} --net ip link delete eth1 || true"
        cluster.execute(remove, user="root")


def test_the_wrong_one_of_two_links_is_caught(cluster: Cluster, two_links: None) -> None:
    before = set((PROJECT / "runs").glob(f"*-{SITE}-check-site*"))
    check = f"python -m campaign.site.check --site={SITE} --images {IMAGE}"
    said = {
        link: cluster.execute(f". ./activate && {LINK}={link} {check}", check=False)
        for link in ("eth0", "eth1")
    }
    for campaign in set((PROJECT / "runs").glob(f"*-{SITE}-check-site*")) - before:
        shutil.rmtree(campaign)
    wrong = " ".join(said["eth0"].replace("│", " ").split())
    # The box's shaper sends frames through their link again, which counts them twice.
    assert re.search(r"eth0 carried \d{3}% and eth1 0%, where the site says", wrong), said["eth0"]
    assert row_of(said["eth1"], IMAGE)[-2:] == ["eth1", "ok"], said["eth1"]
