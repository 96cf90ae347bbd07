"""Nights on the cluster in a box: by Slurm's scrontab, a fine one, and one on slower links."""

import hashlib
import json
import math
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from tests.cluster.conftest import PROJECT, Cluster, wait_for
from tests.cluster.test_experiments import bandwidths_of
from tests.folders import unpacked
from tests.packed import records_in

pytestmark = pytest.mark.cluster
NAME = "test-nightly"
IMAGE = "mpich-5.0.2"
CHECKS = "PointToPoint.*=Send/Recv.*=long"
#: Nights that are there before the fine one where all of them are measured.
BEFORE = 8
#: Else one is measured, and as many more are that one with levels that are this much (a standard
#: deviation, of logarithms) off. So many that the few which are measured beside other work do not
#: decide how much nights differ: where that is more than a hundredth, a tenth is no regression.
MADE, SPREAD = 24, 0.004
#: What frames leave of a link for 2 MB, in B/s, and how often a night that has far less of it is
#: measured anew: it ran beside others' work.
UNDISTURBED, TRIES = 0.97 * 11.77e6, 4
#: How many may be needed for one without an alarm.
MOST = 5
#: What a night ends with, by its verdict; beside other work it may have any of these.
EXIT_CODES = {"nothing": 0, "noise": 0, "regression": 3, "not judged": 7, "blind": 7}
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


def fine(before: int) -> Path | None:
    """Return the first night, after others, that raised no alarm."""
    nights = decided()[before:]
    for night in nights:
        if verdict(night) in ("nothing", "noise"):
            return night
    # On a machine that others use, a night that is slow from its begin to its end is a regression
    # by all that it can see (docs/method/nights.md).
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
def no_nights(cluster: Cluster) -> Iterator[None]:
    """Have no night before; afterwards none is under way, and the links are as before."""
    for path in (PROJECT / "runs").glob(f"*-virtual-{NAME}*"):
        shutil.rmtree(path)
    yield
    cluster.execute("squeue --me --noheader --format=%i | xargs -r scancel", check=False)
    for number in NODES:
        cluster.run("mend-link", str(number))
    wait_for(cluster.is_idle, 300, "an idle cluster")


@pytest.fixture
def scrontab(cluster: Cluster, no_nights: None) -> Iterator[str]:
    """Return the command; afterwards no night is left to come."""
    command = shlex.quote(cluster.run("scrontab").strip().splitlines()[-1])
    yield command
    cluster.execute(f"{command} -r", check=False)


def measure(cluster: Cluster, *codes: int) -> Path:
    """Measure a night as the cluster's user, which ends with one of the codes; return it."""
    said = cluster.execute(
        f". ./activate && python -m campaign.nightly --site virtual --rounds 1 --name {NAME} "
        f"--images {IMAGE} --checks {shlex.quote(CHECKS)}; echo ended with $?"
    )
    ended = re.search(r"^ended with (\d+)$", said, re.MULTILINE)
    # The first nights have none before them to be judged by.
    assert ended and int(ended[1]) in (codes or (0, 7)), said
    return decided()[-1]


@contextmanager
def one_node_less(cluster: Cluster) -> Iterator[None]:
    """Have a job keep a node, as that of a night by scrontab does.

    Two links are never quite alike: without it nights would be on other nodes, which is a change of
    its own.
    """
    job = cluster.execute("sbatch --parsable --output=/dev/null --wrap='sleep 1800'").split()[-1]
    yield
    cluster.execute(f"scancel {job}")
    wait_for(cluster.is_idle, 300, "an idle cluster")


def level(night: Path) -> float:
    """Return the bandwidth of the longest messages of a night, in B/s."""
    [launch] = [name for name in records_in(night) if "PointToPoint" in name]
    bandwidths = bandwidths_of(night, launch)
    return bandwidths[max(bandwidths)]


def undisturbed(cluster: Cluster) -> Path:
    """Measure until a night has what the link has; return it, as the only one."""
    night = measure(cluster)
    for _ in range(TRIES - 1):
        if level(night) >= UNDISTURBED:
            break
        shutil.rmtree(night)
        night = measure(cluster)
    return night


def scaled(record: dict[str, Any], factor: float) -> dict[str, Any]:
    """Return a record of a program with all its times longer by a factor."""
    times = record.get("time_s")
    if isinstance(times, dict):
        return {**record, "time_s": {name: factor * value for name, value in times.items()}}
    if isinstance(times, list):
        return {**record, "time_s": [factor * value for value in times]}
    return record


def another_night(night: Path, days: int, off: float) -> None:
    """Put a night into runs/ that is one of some days before, whose times were a little off."""
    stamp, _, name = night.name.partition("-")
    created = datetime.strptime(stamp, "%Y%m%dT%H%M%S%z") - timedelta(days=days)
    copy = night.with_name(f"{created:%Y%m%dT%H%M%SZ}-{name}")
    # Its tables are made of what it measured, as those of any other.
    # Of a time before there were packs, so that it can be changed.
    left_out = ("tables", "report.html", "packs", "journal.jsonl")
    shutil.copytree(night, copy, ignore=shutil.ignore_patterns(*left_out))
    unpacked(night, copy / "launches")
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest |= {"campaign": copy.name, "created_utc": created.isoformat()}
    (copy / "manifest.json").write_text(json.dumps(manifest))
    [output] = copy.glob("launches/*PointToPoint*/stdout")
    records = [scaled(json.loads(line), math.exp(off)) for line in output.read_text().splitlines()]
    output.write_text("".join(json.dumps(record) + "\n" for record in records))
    # As if this were what the launch had left behind.
    launch = output.with_name("launch.json")
    said = json.loads(launch.read_text())
    said["sha256"]["stdout"] = hashlib.sha256(output.read_bytes()).hexdigest()
    launch.write_text(json.dumps(said))
    owner = night.stat()
    for path in (copy, *copy.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)


def test_scrontab_begins_a_night(cluster: Cluster, scrontab: str) -> None:
    """Which is judged, as is one that somebody begins; beside other work, by whatever it has."""
    text = accelerated(cluster.execute('printf %s "$HOME"'))
    cluster.execute(f"printf %s {shlex.quote(text)} | {scrontab} -")
    assert "make nightly SITE=virtual" in cluster.execute(f"{scrontab} -l")
    wait_for(lambda: bool(decided()), 1800, "a night by scrontab")
    cluster.execute(f"{scrontab} -r")
    wait_for(cluster.is_idle, 300, "an idle cluster")
    night = decided()[0]
    assert told(night)["exit_code"] == EXIT_CODES.get(verdict(night)), told(night)
    assert (night / "night.md").is_file() and (night / "report.html").is_file()


@pytest.mark.measures
@pytest.mark.parametrize("history", ["made", pytest.param("measured", marks=pytest.mark.long)])
def test_third_of_three_nights_has_a_regression(
    cluster: Cluster, no_nights: None, history: str
) -> None:
    """Only where nothing else takes the processors.

    A rank that waits for one leaves the link idle, and nights then differ by more than the tenth of
    the link that is to be found.
    """
    with one_node_less(cluster):
        if history == "measured":
            for _ in range(BEFORE):
                measure(cluster)
        else:
            night = undisturbed(cluster)
            spread = NormalDist(sigma=SPREAD)
            for days in range(1, MADE + 1):
                # Not in order of size, which would be a change with time.
                place = (7 * days % MADE + 0.5) / MADE
                another_night(night, days, spread.inv_cdf(place))
        before = len(decided())
        assert before == (BEFORE if history == "measured" else 1 + MADE)
        while (calm := fine(before)) is None:
            measure(cluster, *EXIT_CODES.values())
        second = decided()[-1]
        assert told(calm)["exit_code"] == 0, told(calm)
        for number in NODES:
            cluster.run("slow-link", str(number))
        third = measure(cluster, 3)
    found = told(third)
    assert found["verdict"] == "regression" and found["exit_code"] == 3, (
        found, [(night.name, verdict(night), level(night)) for night in decided()]
    )  # fmt: skip
    [cell] = found["findings"]
    assert cell["implementation"] == IMAGE and cell["experiment"] == "PointToPoint"
    # Ten percent by the link; a busy machine may add to it.
    assert len(cell["ratios"]) == 3 and all(0.7 < ratio < 0.95 for ratio in cell["ratios"]), cell
    assert found["previous"] == second.name and len(found["measured_again"]) == 2
    for name in found["measured_again"]:
        again = json.loads((PROJECT / "runs" / name / "manifest.json").read_text())
        assert again["night"]["again_of"] == third.name and again["finished_utc"]
    assert "## Confirmed regressions" in (third / "night.md").read_text()
    assert "<failure" in (third / "night.xml").read_text()
    assert (third / "report.html").is_file()
