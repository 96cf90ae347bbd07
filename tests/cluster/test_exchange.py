"""Two sites exchange a campaign: measured on this machine, bundled, repeated on the cluster."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import PROJECT, Cluster
from tests.packed import records_in

pytestmark = pytest.mark.cluster
NAME = f"test-exchange-{os.getpid()}"
# Messages in memory and between nodes are two things, and one rank is the same on both sites. No
# reference holds for these: a launch beside others' work may miss one.
CHECKS = "^EchoTest|^Nas.*=EP.*=S.*ranks=1"


def command(words: str) -> str:
    """Run a command line of the project, which must end well; return what it printed."""
    done = subprocess.run(
        ["sh", "-c", words], cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=1500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def only(site: str) -> Path:
    [path] = (PROJECT / "runs").glob(f"*-{site}-{NAME}")
    return path


def manifest_of(campaign: Path) -> dict[str, Any]:
    return dict(json.loads((campaign / "manifest.json").read_text()))


def cells(campaign: Path) -> list[str]:
    """Return ReFrame's names of the launches, in the order of measuring."""
    records = records_in(campaign).values()
    return [one["reframe"]["name"] for one in sorted(records, key=lambda one: one["ended_utc"])]


@pytest.fixture
def measured(cluster: Cluster) -> Iterator[Path]:
    """Return a campaign of this machine; afterwards it is gone, and what repeats it as well."""
    command(
        f". ./activate && python -m campaign --site local --rounds 1 --name {NAME} "
        f"--images mpich-5.0.2 --checks '{CHECKS}'"
    )
    yield only("local")
    for path in (PROJECT / "runs").glob(f"*-{NAME}"):
        shutil.rmtree(path)


def test_the_cluster_repeats_a_campaign_of_this_machine(measured: Path, tmp_path: Path) -> None:
    before, order = manifest_of(measured), cells(measured)
    bundle = tmp_path / "campaign.tar.gz"
    command(f"make bundle CAMPAIGN={measured.name} OUT={bundle} KEEP='(?s).*'")
    # The site that receives it has nothing else.
    shutil.rmtree(measured)
    said = command(f"make rerun BUNDLE={bundle} SITE=virtual")
    assert f"runs/{measured.name} is imported" in said
    assert (measured / "imported.json").is_file() and cells(measured) == order
    again = only("virtual")
    after = manifest_of(again)
    assert after["like"] == measured.name and after["site"] == "virtual"
    for key in ("order_seed", "rounds", "tier", "checks"):
        assert after[key] == before[key], key
    assert cells(again) == order
    digests = {name: image["sha256"] for name, image in before["images"].items()}
    assert {name: image["sha256"] for name, image in after["images"].items()} == digests
    assert "nodes: 1 and 2" in said, "messages of the two are not compared"
    assert "What differs, the largest suspect first:" in said
    assert "site: local and virtual" in said
    command(f"make rerun BUNDLE={bundle} SITE=virtual | grep 'repeats it already'")
