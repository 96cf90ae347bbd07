"""The cluster in a box with Grid Engine: the site `box-sge`, by ReFrame's own backend."""

import json
import shutil
from collections.abc import Iterator

import pytest

from records.campaign import read_campaign
from records.kept import read_records
from records.program_output import ProgramOutput
from tests.cluster.conftest import PROJECT, Cluster, control
from tests.cluster.test_host_launchers import STARTED_BY
from tests.cluster.test_site import row_of

# It takes the box away from the other tests of this folder, and a minute.
pytestmark = [pytest.mark.cluster, pytest.mark.long]
SITE = "box-sge"


@pytest.fixture
def gridengine() -> Iterator[Cluster]:
    """Return a cluster of four nodes with Grid Engine; one that was up before is up again then."""
    described = PROJECT / ".wyeast" / "cluster" / "cluster.json"
    before = json.loads(described.read_text()) if control("status").returncode == 0 else None
    control("down")
    done = control("up", "--scheduler=sge", "--nodes=4")
    assert done.returncode == 0, done.stderr
    yield Cluster()
    control("down")
    for path in (PROJECT / "runs").glob(f"*-{SITE}-*"):
        shutil.rmtree(path)
    if before:
        link = before["link"]["name"] if before["link"] else "none"
        again = control("up", f"--nodes={before['nodes']}", f"--link={link}",
                        f"--scheduler={before['scheduler']}")  # fmt: skip
        assert again.returncode == 0, again.stderr


def test_jobs_of_grid_engine_make_one_world_of_two_nodes(gridengine: Cluster) -> None:
    """Both launchers reach the second node by its own means."""
    activated = f"export SITE={SITE} && . ./activate"
    said = gridengine.execute(f"{activated} && python -m campaign.site.check --site={SITE}")
    for image in STARTED_BY:
        assert row_of(said, image)[-1] == "ok", said
    [campaign] = (PROJECT / "runs").glob(f"*-{SITE}-check-site")
    for record in read_records(campaign):
        assert (record.outcome, record.ranks, record.nodes) == ("sound", 2, 2)
    # In the order of their numbers, so that they share no core of the machine.
    for launch in read_campaign(campaign).launches:
        assert isinstance(launch.output, ProgramOutput)
        assert launch.output.header.hosts == ["node1", "node2"]
