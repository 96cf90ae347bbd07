"""A real campaign in a checkout whose path has a space, a letter beyond ASCII and more."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.packed import records_in
from tests.unmeasured import unmeasured

pytestmark = [pytest.mark.real, pytest.mark.serial]
PROJECT = Path(__file__).resolve().parents[2]
#: What a campaign reads of a checkout; what was installed and built is shared by links.
PARTS = ("Makefile", "activate", "analysis", "campaign", "cluster", "containers", "inference",
         "literature", "records", "reframe_checks", "requirements.lock",
         "site_configs")  # fmt: skip
INSTALLED = ("apptainer", "bin", "images", "tools", "venv")

#: What users of ReFrame and of another Python may have set, by which nothing would be measured.
HABITS = {
    "RFM_CHECK_SEARCH_RECURSIVE": "y", "RFM_USE_LOGIN_SHELL": "y", "RFM_STAGE_DIR": "/nowhere",
    "RFM_SYSTEM": "nowhere", "PYTHONHOME": "/nowhere", "PYTHONIOENCODING": "ascii", "CDPATH": "/",
}  # fmt: skip


def copy_of_the_checkout(target: Path) -> Path:
    for part in PARTS:
        source = PROJECT / part
        if source.is_dir():
            shutil.copytree(source, target / part)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target / part)
    (target / ".wyeast").mkdir()
    for name in INSTALLED:
        if (PROJECT / ".wyeast" / name).exists():
            (target / ".wyeast" / name).symlink_to(PROJECT / ".wyeast" / name)
    return target


def test_a_campaign_is_measured_in_a_path_with_spaces(tmp_path: Path) -> None:
    root = copy_of_the_checkout(tmp_path / "a b" / "größe, & 'so'; touch ran")
    # What this process knows of its own checkout is not the copy's.
    foreign = ("PYTHONPATH", "WYEAST_", "RFM_")
    environment = {k: v for k, v in unmeasured().items() if not k.startswith(foreign)} | HABITS
    done = subprocess.run(
        ["sh", "-c", ". ./activate && exec python -m campaign --rounds 1 --images mpich-5.0.2 "
         "--checks '^(Preflight|EchoTest)'"],
        cwd=root, env=environment, capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    [campaign] = (root / "runs").iterdir()
    launches = list(records_in(campaign).values())
    assert {(launch["experiment"], launch["outcome"]) for launch in launches} == {
        ("Preflight", "sound"), ("EchoTest", "sound"),
    }  # fmt: skip
    assert (campaign / "report.html").is_file()
    assert not list(tmp_path.rglob("ran"))
