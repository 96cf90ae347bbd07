"""Launchers outside of containers start ranks over the cluster's nodes: the site `box-mpirun`."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from records.kept import read_records
from tests.cluster.conftest import PROJECT, Cluster
from tests.cluster.test_site import row_of

pytestmark = pytest.mark.cluster
SITE = "box-mpirun"
STARTED_BY = {
    "openmpi-5.0.11": "Open MPI 5.0.11 (/usr/lib/wyeast/openmpi/bin/mpirun)",
    "mpich-5.0.2": "MPICH's launcher 5.0.2 (/usr/lib/wyeast/mpich/bin/mpiexec)",
}


@pytest.fixture
def campaigns() -> Iterator[set[Path]]:
    """Return the campaigns of the site that are there before; remove those of the test."""
    before = set((PROJECT / "runs").glob(f"*-{SITE}-*"))
    yield before
    for path in set((PROJECT / "runs").glob(f"*-{SITE}-*")) - before:
        shutil.rmtree(path)


def test_each_image_s_own_launcher_makes_one_world_of_two_nodes(
    cluster: Cluster, campaigns: set[Path]
) -> None:
    """And LAM, which no launcher of the machine starts, is refused before any job."""
    check = f"export SITE={SITE} && . ./activate && python -m campaign.site.check --site={SITE}"
    said = cluster.execute(check)
    for image, launcher in STARTED_BY.items():
        assert row_of(said, image)[-1] == "ok", said
        # The table may break a long cell into lines.
        assert launcher.partition(" (")[0] in said
    [campaign] = set((PROJECT / "runs").glob(f"*-{SITE}-*")) - campaigns
    for record in read_records(campaign):
        assert (record.outcome, record.ranks, record.nodes) == ("sound", 2, 2)
        rank = {"openmpi": "PMIX_RANK", "mpich": "PMI_RANK"}[record.implementation.split("-")[0]]
        assert rank in record.environment
        assert not {"PMIX_PREFIX", "OMPI_COMM_WORLD_RANK"} & set(record.environment)
    refused = cluster.execute(f"{check} --images lam-7.1.4", check=False)
    assert "lam-7.1.4: images of lam are not started by a launcher of the machine" in refused
    assert "no job was started" in refused
