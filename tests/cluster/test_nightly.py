"""Nights under Slurm's scrontab on the cluster in a box: two fine ones, and one on slower links."""

import itertools
import json
import shlex
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import PROJECT, Cluster, wait_for

pytestmark = pytest.mark.cluster
NAME = "test-nightly"
IMAGE = "mpich-5.0.2"
CHECKS = "PointToPoint.*=Send/Recv.*=long"
#: Nights that are there before scrontab's: what the others are held against.
BEFORE = 8
#: How many of scrontab's may be needed for two in a row without an alarm.
MOST = 6
NODES = (1, 2, 3, 4)
SCRONTAB = PROJECT / "site_configs" / "templates" / "nightly" / "scrontab"
OPTIONS = f"ROUNDS=1 NAME={NAME} IMAGES={IMAGE} CHECKS='{CHECKS}'"


def decided() -> list[Path]:
    """Return the nights that have come to a verdict, in order of time."""
    found = sorted((PROJECT / "runs").glob(f"*-virtual-{NAME}/night.json"))
    return [path.parent for path in found if verdict(path.parent) != "measure again"]


def told(night: Path) -> dict[str, Any]:
    return dict(json.loads((night / "night.json").read_text()))


def verdict(night: Path) -> str:
    return str(told(night)["verdict"])


def two_fine() -> tuple[Path, Path] | None:
    """Return the first two nights in a row by scrontab that raised no alarm."""
    nights = decided()[BEFORE:]
    fine = [verdict(night) in ("nothing", "noise") for night in nights]
    for number in range(len(nights) - 1):
        if fine[number] and fine[number + 1]:
            return nights[number], nights[number + 1]
    # On a machine that others use, a night that is slow from its begin to its end is a regression
    # by all that it can see (docs/method.md).
    assert len(nights) < MOST, [told(night) for night in nights]
    return None


def accelerated(home: str) -> str:
    """Return the template with this checkout, this site, and a night each minute.

    What the nights print is in the home of the job user, below .wyeast/cluster.
    """
    text = SCRONTAB.read_text().replace("/path/to/wyeast/runs/", f"{home}/")
    text = text.replace("/path/to/wyeast", str(PROJECT))
    text = text.replace("15 1 * * *", "* * * * *").replace("08:00:00", "00:30:00")
    return text.replace("SITE=mycluster ROUNDS=3", f"SITE=virtual {OPTIONS}")


@pytest.fixture
def scrontab(cluster: Cluster) -> Iterator[str]:
    """Return the command; afterwards no night is left to come, and the links are as before."""
    for path in (PROJECT / "runs").glob(f"*-virtual-{NAME}*"):
        shutil.rmtree(path)
    command = shlex.quote(cluster.run("scrontab").strip().splitlines()[-1])
    yield command
    cluster.execute(f"{command} -r", check=False)
    cluster.execute("squeue --me --noheader --format=%i | xargs -r scancel", check=False)
    for number in NODES:
        cluster.run("mend-link", str(number))
    wait_for(cluster.is_idle, 60, "an idle cluster")


def test_third_of_three_nights_has_a_regression(cluster: Cluster, scrontab: str) -> None:
    # The job of a night takes a node, and two links are never quite alike: without it the nights
    # before would be on other nodes, which is a change of its own.
    job = cluster.execute("sbatch --parsable --output=/dev/null --wrap='sleep 1800'").split()[-1]
    for _ in range(BEFORE):
        said = cluster.execute(
            f". ./activate && python -m campaign.nightly --site virtual --rounds 1 --name {NAME} "
            f"--images {IMAGE} --checks {shlex.quote(CHECKS)} || echo ended with $?"
        )
        assert "ended with" not in said, said
    cluster.execute(f"scancel {job}")
    wait_for(cluster.is_idle, 60, "an idle cluster")
    text = accelerated(cluster.execute('printf %s "$HOME"'))
    cluster.execute(f"printf %s {shlex.quote(text)} | {scrontab} -")
    assert "make nightly SITE=virtual" in cluster.execute(f"{scrontab} -l")
    wait_for(lambda: two_fine() is not None, 1800, "two nights by scrontab without an alarm")
    for number in NODES:
        cluster.run("slow-link", str(number))
    slow_utc = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    wait_for(lambda: decided()[-1].name > slow_utc, 900, "a night that began on slower links")

    for night in two_fine() or ():
        assert told(night)["exit_code"] == 0, told(night)
    before, third = next(
        (one, two) for one, two in itertools.pairwise(decided()) if two.name > slow_utc
    )
    found = told(third)
    assert found["verdict"] == "regression" and found["exit_code"] == 3, (
        found, [told(night) for night in decided()]
    )  # fmt: skip
    [cell] = found["findings"]
    assert cell["implementation"] == IMAGE and cell["experiment"] == "PointToPoint"
    # Ten percent by the link; a busy machine may add to it.
    assert len(cell["ratios"]) == 3 and all(0.7 < ratio < 0.95 for ratio in cell["ratios"]), cell
    assert found["previous"] == before.name and len(found["measured_again"]) == 2
    for name in found["measured_again"]:
        again = json.loads((PROJECT / "runs" / name / "manifest.json").read_text())
        assert again["night"]["again_of"] == third.name and again["finished_utc"]
    assert "## Confirmed regressions" in (third / "night.md").read_text()
    assert "<failure" in (third / "night.xml").read_text()
    assert (third / "report.html").is_file()
