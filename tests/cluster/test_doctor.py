"""The doctor looks at nodes by a job, and names the one that ails."""

import shutil

import pytest

from tests.cluster.conftest import PROJECT, Cluster

pytestmark = pytest.mark.cluster


def test_a_node_with_a_full_shared_memory_is_named(cluster: Cluster) -> None:
    before = set((PROJECT / "runs").glob("*-virtual-check-site*"))
    fill = "fallocate -l $(df -P -k /dev/shm | awk 'END {print $4 - 1000}')KiB /dev/shm/left"
    cluster.execute(fill, user="root", node=2)
    try:
        command = "python -m campaign.site.doctor --site=virtual --images=mpich-5.0.2"
        said = cluster.execute(f". ./activate && {command}", check=False)
    finally:
        cluster.execute("rm /dev/shm/left", user="root", node=2)
    for campaign in set((PROJECT / "runs").glob("*-virtual-check-site*")) - before:
        shutil.rmtree(campaign)
    assert "doctor: checked 2 nodes" in said, said
    [line] = [line for line in said.splitlines() if "/dev/shm has" in line]
    assert line.startswith("fix: node2: ") and "https://" in line
