"""What is set outside changes no launch of a real image, unless the site names it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from containers import apptainer, images
from records.kept import read_records
from records.launch import LaunchRecord
from tests.unmeasured import unmeasured

pytestmark = pytest.mark.real
PROJECT = Path(__file__).resolve().parents[2]
IMAGE = "openmpi-5.0.11"
#: By which Open MPI would send messages over TCP where ranks share memory.
SLOW = "APPTAINERENV_OMPI_MCA_btl"


def preflight(folder: Path, more_of_site: str = "", **variables: str) -> LaunchRecord:
    """Run the image's preflight with variables set outside; return its record."""
    images.verify(PROJECT, IMAGE)
    sites, campaign = folder / "site_configs", folder / "campaign"
    shutil.copytree(PROJECT / "site_configs", sites)
    # It would set the same variable.
    data = (sites / "local" / "site.yaml").read_text()
    data = data.replace("spare_init_wait: detect", "spare_init_wait: false")
    (sites / "local" / "site.yaml").write_text(data + more_of_site)
    campaign.mkdir()
    done = subprocess.run(
        [PROJECT / "reframe_checks/bin/reframe", "-C", sites / "settings.py",
         "-c", PROJECT / "reframe_checks/preflight.py", "-r"],
        env={
            **unmeasured(), "PATH": f"{PROJECT}/.wyeast/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT), "WYEAST_ROOT": str(PROJECT), "WYEAST_IMAGES": IMAGE,
            "RFM_CONFIG_PATH": str(sites), "RFM_SYSTEM": "local",
            "RFM_PREFIX": str(folder / "reframe"), "WYEAST_CAMPAIGN": str(campaign), **variables,
        },
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    records = list(read_records(campaign))
    assert records, done.stdout + done.stderr
    return records[0]


def test_what_is_set_outside_reaches_no_rank(tmp_path: Path) -> None:
    found = preflight(
        tmp_path, OMPI_MCA_pml="no-such", APPTAINER_BIND="/opt", SINGULARITY_BIND="/opt",
        **{SLOW: "tcp,self"},
    )  # fmt: skip
    assert (found.outcome, found.sentence) == ("sound", None)
    assert found.environment["OMPI_COMM_WORLD_SIZE"] == "2"
    assert "OMPI_MCA_btl" not in found.environment and "OMPI_MCA_pml" not in found.environment
    assert found.from_elsewhere == []


def test_what_the_site_names_does_and_is_recorded(tmp_path: Path) -> None:
    named = f"variables: [{SLOW}, OMPI_MCA_mpi_yield_when_idle]\n"
    found = preflight(
        tmp_path, named, OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_pml="no-such",
        **{SLOW: "tcp,self"},
    )  # fmt: skip
    assert (found.outcome, found.sentence) == ("sound", None)
    assert found.environment["OMPI_MCA_btl"] == "tcp,self"
    assert found.environment["OMPI_MCA_mpi_yield_when_idle"] == "1"
    assert found.from_elsewhere == []


def test_a_machine_that_binds_its_opt_hides_no_image_s(tmp_path: Path) -> None:
    program = apptainer.apptainer_command().resolve()
    if not (program.parent.parent / "apptainer" / "etc" / "apptainer").is_dir():
        pytest.skip("Apptainer is the machine's own, whose configuration only root may change")
    own = program.parent.parent / "apptainer" / "etc" / "apptainer" / "apptainer.conf"
    (tmp_path / "opt").mkdir()
    configuration = tmp_path / "apptainer.conf"
    configuration.write_text(f"{own.read_text()}\nbind path = {tmp_path}/opt:/opt\n")
    found = preflight(tmp_path, APPTAINER_CONFIG_FILE=str(configuration))
    assert (found.outcome, found.sentence) == ("sound", None)
