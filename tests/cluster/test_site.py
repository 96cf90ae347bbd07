"""The cluster as a site: found by `make new-site`, proved by `make check-site`."""

import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from cluster.description import describe
from tests.cluster.conftest import PROJECT, Checkout, Cluster

pytestmark = pytest.mark.cluster
NAME = "mpich-5.0.2"
#: What the site measures by default, and how that starts.
STARTED_BY = {
    "openmpi-5.0.11": "srun --mpi=pmix",
    "mpich-5.0.2": "srun --mpi=pmi2",
    "intel-mpi-2021.19": "srun --mpi=pmi2",
    "lam-7.1.4": "srun, and its own launcher",
    "pvm-3.4.6": "srun, and its own launcher",
}


def row_of(said: str, image: str) -> list[str]:
    """Return the cells of an image's row in the table of check-site."""
    [row] = [line for line in said.splitlines() if image in line and "│" in line]
    return [cell.strip() for cell in row.split("│")[1:-1]]


@pytest.fixture
def own_campaigns() -> Iterator[None]:
    """Remove the campaigns of check-site that a test has made, and no others."""
    before = set((PROJECT / "runs").glob("*-virtual-check-site*"))
    yield
    for path in set((PROJECT / "runs").glob("*-virtual-check-site*")) - before:
        shutil.rmtree(path)


@pytest.mark.usefixtures("own_campaigns")
def test_check_site_proves_the_cluster(cluster: Cluster) -> None:
    done = subprocess.run(
        ["make", "check-site", "SITE=virtual"],
        cwd=PROJECT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no obstacle found without starting a job" in done.stdout
    for image, launcher in STARTED_BY.items():
        assert row_of(done.stdout, image)[1::2] == [launcher, "ok"], done.stdout


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("--partition=compute", "--partition=batch",
         "no partition or queue `batch`, which `access` asks for; available: compute"),
        ("scheduler: squeue", "scheduler: slurm", "Slurm's accounting, which is off"),
        ("scheduler: squeue", "scheduler: pbs", "`launch: srun` needs Slurm"),
    ],
)  # fmt: skip
def test_check_site_says_what_to_fix(
    cluster: Cluster, checkout: Checkout, old: str, new: str, sentence: str
) -> None:
    checkout.edit_site(old, new)
    done = checkout.run(f"python -m campaign.site.check --site virtual --images {NAME}")
    assert done.returncode == 1 and sentence in done.stdout + done.stderr, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not (checkout.root / "runs").exists()
    assert not cluster.execute("squeue --noheader").strip()


def written_by_new_site(checkout: Checkout) -> dict[str, Any]:
    done = checkout.run("make new-site NAME=boxed")
    assert done.returncode == 0 and "site_configs/boxed is written" in done.stdout, done.stderr
    path = checkout.root / "site_configs" / "boxed" / "site.yaml"
    return dict(yaml.safe_load(path.read_text()))


def test_a_new_site_in_two_commands(cluster: Cluster, checkout: Checkout) -> None:
    done = checkout.run("make new-site NAME=boxed DRY_RUN=1")
    assert done.returncode == 0 and "site.yaml (not written)" in done.stdout, done.stderr
    assert not (checkout.root / "site_configs" / "boxed").exists()

    found = written_by_new_site(checkout)
    virtual = yaml.safe_load((PROJECT / "site_configs" / "virtual" / "site.yaml").read_text())
    for key in ("scheduler", "partition", "access", "launch"):
        assert found[key] == virtual[key], key
    box = describe(str(cluster.describe()["nodes"]))
    assert (found["nodes"], found["cores_per_node"]) == (box.nodes, box.cores_per_node)
    # Slurm counts whole MiB.
    assert 0 <= box.memory_bytes_per_node - found["memory_bytes_per_node"] < 2**20
    # Each PMI was found by which an image of the site `virtual` starts.
    assert "implementations" not in found or set(virtual["implementations"]) <= set(
        found["implementations"]
    )
    # The virtual network has no device that tells a rate; nothing is made up.
    assert found["link_bytes_per_s"] is None

    checkout.give_image(NAME)
    done = checkout.run(f"python -m campaign.site.check --site boxed --images {NAME}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert row_of(done.stdout, NAME)[1::2] == [STARTED_BY[NAME], "ok"]
