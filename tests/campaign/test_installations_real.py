"""A campaign of an image and of what a site has installed: our programs, compiled here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from analysis.comparison.caveats.image_caveats import image_caveats
from analysis.comparison.compare import compare
from campaign import provenance
from campaign.bundle import rerun
from records.archive import BundleError
from records.campaign import read_campaign
from records.manifest import OUTSIDE, read_manifest
from tests.bare_mpi import install
from tests.packed import records_in

pytestmark = [pytest.mark.real, pytest.mark.serial]
PROJECT = Path(__file__).resolve().parents[2]
IMAGE = "mpich-5.0.2"
NAME = f"{IMAGE}+site"
#: A campaign takes a minute or two beside everything else; this only ends what hangs.
PATIENCE_S = 2400.0


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the project as somebody does who has a home of the own."""
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=PROJECT, capture_output=True, text=True, check=False,
        timeout=PATIENCE_S,
        env={**os.environ, "WYEAST_ROOT": str(PROJECT), "PYTHONPATH": str(PROJECT),
             "WYEAST_HOME": str(home)},
    )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a site `bare`, which has what two programs need installed."""
    mpi = install(PROJECT, IMAGE)
    prefix = tmp_path / "prefix"
    subprocess.run(
        ["make", "-C", PROJECT / "benchmarks", f"CC={mpi}/bin/mpicc", f"BUILD={tmp_path}/build",
         f"PREFIX={prefix}", "CFLAGS=-O1", "PROGRAMS=preflight pingpong", "install"],
        check=True, capture_output=True, timeout=PATIENCE_S,
    )  # fmt: skip
    site = yaml.safe_load((PROJECT / "site_configs/local/site.yaml").read_text())
    entry = {"prefix": str(prefix), "family": "mpich", "version": "5.0.2",
             "mpiexec": f"{mpi}/bin/mpiexec"}  # fmt: skip
    place = tmp_path / "home" / "site_configs" / "bare"
    place.mkdir(parents=True)
    more = {"hostnames": ["nowhere"], "installations": {IMAGE: entry}}
    (place / "site.yaml").write_text(yaml.safe_dump({**site, **more}))
    (place / "references.yaml").write_text("{}\n")
    return tmp_path / "home"


def test_a_site_s_installation_is_measured_beside_an_image(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["campaign", "--site", "bare", "--images", f"{IMAGE},{NAME}",
             "--checks", "^(Preflight|EchoTest)", "--rounds", "3"]  # fmt: skip
    done = run(home, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    [campaign] = (home / "runs").iterdir()
    records = records_in(campaign).values()
    assert {(one["implementation"], one["experiment"]) for one in records} == {
        (name, experiment) for name in (IMAGE, NAME) for experiment in ("Preflight", "EchoTest")
    }
    assert {one["outcome"] for one in records} == {"sound"}
    assert {one.get("runs") for one in records if one["implementation"] == NAME} == {OUTSIDE}
    assert all("runs" not in one for one in records if one["implementation"] == IMAGE)
    manifest = read_manifest(campaign)
    assert manifest.images[NAME].runs == OUTSIDE and manifest.images[IMAGE].runs is None
    said = [one.sentence for one in image_caveats(compare(read_campaign(campaign)))]
    [place] = [one for one in said if "place:" in one]
    assert f"in a container ({IMAGE}); outside a container ({NAME})" in place
    assert "outside a container (" in (campaign / "report.html").read_text()
    with pytest.raises(BundleError, match="an installation of site bare outside of containers"):
        rerun.refuse_installations(manifest)
    # A new one in its place is not measured with what the campaign began with.
    program = home.parent / "prefix" / "bin" / "pingpong"
    program.write_bytes(program.read_bytes() + b"\0")
    monkeypatch.setenv("WYEAST_HOME", str(home))
    assert f"the installation {NAME} was replaced" in provenance.changes(PROJECT, manifest)
    # Nor is anything begun with one that is gone.
    program.with_name("preflight").unlink()
    done = run(home, *words)
    assert done.returncode != 0 and "has no program preflight" in done.stderr
    assert len(list((home / "runs").iterdir())) == 1
