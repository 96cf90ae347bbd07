"""A campaign that jobs of Slurm's drive, one after the other."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign import driver
from cluster import box
from records import schedule
from records.manifest import read_manifest
from tests.cluster.conftest import PROJECT, Cluster, wait_for

pytestmark = pytest.mark.cluster
NAME = "test-driver"
CHECKS = "PointToPoint.*=Send/Recv.*=short"
#: Of a job, of which three quarters are to begin launches: less than four rounds take on a machine
#: with nothing else to do, each with its preflight, and more than a launch takes on a busy one.
TIME_S, ROUNDS = 28.0, 4


def campaigns() -> list[Path]:
    return list((PROJECT / "runs").glob(f"*-virtual-{NAME}"))


@pytest.fixture
def short_jobs(cluster: Cluster) -> Iterator[None]:
    """Have the site's drivers hand over after some seconds; afterwards none is left."""
    for path in campaigns():
        shutil.rmtree(path)
    overrides = box.state_folder(PROJECT) / box.SITE_OVERRIDES
    before = overrides.read_text()
    overrides.write_text(f"{before}driver_time_s: {TIME_S}\n")
    yield
    overrides.write_text(before)
    cluster.execute("squeue --me --noheader --format=%i | xargs -r scancel", check=False)
    wait_for(cluster.is_idle, 300, "an idle cluster")


@pytest.mark.usefixtures("short_jobs")
def test_jobs_drive_a_campaign(cluster: Cluster) -> None:
    # As some centres have it for all of their users.
    asked = (
        "SBATCH_EXPORT=NONE python -m campaign --site virtual --driver job "
        f"--rounds {ROUNDS} --name {NAME} --images mpich-5.0.2 --checks '{CHECKS}'"
    )
    said = cluster.execute(f". ./activate && {asked}")
    [campaign] = campaigns()
    assert re.search(rf"campaign runs/{campaign.name}: driven by job \d+ ", said), said

    def is_over() -> bool:
        # Tables and report come last, and then the job that was to follow is called off.
        name = driver.name_of(campaign)
        return not cluster.execute(f"squeue --noheader --name={name}").strip()

    wait_for(is_over, 1800, "the end of the driver's jobs")
    log = (campaign / driver.LOG).read_text()
    assert len(re.findall("continues in the next job: job [0-9]+", log)) >= 1, log
    assert read_manifest(campaign).finished_utc, log
    state = schedule.state_of(campaign)
    assert state and not state.left() and state.is_reported
    # Nothing was lost where one job went on for another.
    assert {one.attempts for one in state.of(None)} == {1}
    assert (campaign / "report.html").is_file()
