"""A real campaign on real images: measured, killed, gone on with, reported."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.campaign import read_campaign
from campaign import folder
from containers import images

pytestmark = pytest.mark.real
PROJECT = Path(__file__).resolve().parents[2]
CHECKS = "PointToPoint.*=Send/Recv"  # three ranges for each image, and the preflights
IMAGES = ["mpich-5.0.2", "openmpi-5.0.11"]
WHOLE_ROUND = 2 * (1 + 3)


def start(*options: str, name: str) -> subprocess.Popen[str]:
    """Start a campaign as `make run` does, in a process group of its own."""
    command = f". ./activate && exec python -m campaign {' '.join(options)}"
    return subprocess.Popen(
        ["bash", "-c", command],
        cwd=PROJECT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True, env={**os.environ, "NAME": name},
    )  # fmt: skip


def campaigns(name: str) -> list[Path]:
    return sorted((PROJECT / "runs").glob(f"*-local-{name}"))


@pytest.fixture
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return a campaign's name, and remove the campaign afterwards."""
    chosen = f"test-{os.getpid()}-{request.node.name.replace('_', '-')}"
    yield chosen
    for path in campaigns(chosen):
        shutil.rmtree(path)


def finished(process: subprocess.Popen[str]) -> str:
    """Wait for a campaign that must end well; return what it printed."""
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    return out


COMMUNICATION = ("Collectives", "Pairs", "SomeToSome", "HaloExchange", "OneSided", "Mpptest",
                 "EagerLimit", "EchoTest", "RawNetwork", "Emulation")  # fmt: skip
OF_A_NODE = ("Dgemm", "Stream", "SerialLinpack")
APPLICATIONS = ("Su3", "Nas")
PROFILED = ("ProfileHaloExchange", "ProfileLinpack", "ProfileSu3", "ProfileNas")
EXPERIMENTS = (*COMMUNICATION, *OF_A_NODE, *APPLICATIONS, *PROFILED)


def test_every_experiment(name: str) -> None:
    """All suites of tier quick on one image, with no launch that is not sound.

    Between nodes tests/cluster has those of communication with two others, and NAS's EP. What su3,
    NAS's benchmarks and a profile do in every image is in tests/containers/test_images_real.py.
    """
    checks = "|".join(f"^{experiment}" for experiment in EXPERIMENTS)
    process = start(
        f"--rounds 1 --images {IMAGES[1]} --name", name, f"--checks '{checks}'", name=name
    )
    out, _ = process.communicate(timeout=900)
    assert process.returncode == 0, out
    [path] = campaigns(name)
    campaign = read_campaign(path)
    assert not campaign.problems
    measured = {launch.record.experiment for launch in campaign.sound()}
    assert measured == {"Preflight", *EXPERIMENTS}


def test_campaign_is_whole(name: str) -> None:
    assert set(IMAGES) <= set(images.available(PROJECT)), "make images builds them"
    out = finished(start("--rounds 2 --seed 5 --name", name, f"--checks '{CHECKS}'", name=name))
    [path] = campaigns(name)
    assert f"report: {path / 'report.html'}" in out and "openmpi-5.0.11" in out
    assert f"{2 * WHOLE_ROUND} launches took" in out
    campaign = read_campaign(path)
    assert not campaign.problems and len(campaign.launches) == 2 * WHOLE_ROUND
    manifest = campaign.manifest
    assert manifest["finished_utc"] and manifest["order_seed"] == 5
    for image in IMAGES:
        locked = images.load_lock(PROJECT)["images"][image]["sha256"]
        assert manifest["images"][image]["sha256"] == locked
        assert manifest["images"][image]["manifest"]["implementation"] == image
    for launch in campaign.launches:
        record = launch.record
        assert launch.output is not None and record.wall_s is not None and record.wall_s > 0
        metrics = set() if record.experiment == "Preflight" else {"metrics.json"}
        assert {p.name for p in (path / "launches" / record.launch).iterdir()} == {
            "launch.json", "stdout", "stderr", "job.sh", *metrics,
        }  # fmt: skip
    # Each rank bound to a core of its own, in every image alike.
    for launch in campaign.launches:
        bound = launch.output.header.processors  # type: ignore[union-attr]
        assert [len(processors) for processors in bound] == [1, 1], launch.record.launch
        assert bound[0] != bound[1], launch.record.launch
    for table in ("launches", "results", "iterations", "rank_iterations", "problems"):
        assert (path / "tables" / f"{table}.parquet").stat().st_size > 0
    # One launch at a time: none began before the one before it had ended.
    spans = sorted((launch.record.started_utc, launch.record.ended_utc)
                   for launch in campaign.launches)  # fmt: skip
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
    orders = [
        [launch.record.launch.split("_", 1)[1]
         for launch in sorted(campaign.launches, key=lambda one: one.record.started_utc)
         if launch.record.round == number and launch.record.experiment != "Preflight"]
        for number in (1, 2)
    ]  # fmt: skip
    assert sorted(orders[0]) == sorted(orders[1]) and orders[0] != orders[1]


def test_killed_campaign_loses_at_most_the_launch_in_flight(name: str) -> None:
    process = start("--rounds 2 --name", name, f"--checks '{CHECKS}'", name=name)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        found = [len(folder.finished_launches(path)) for path in campaigns(name)]
        if found and found[0] >= 4:
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    [path] = campaigns(name)
    kept = {name: (path / "launches" / name / "launch.json").read_bytes()
            for name in folder.finished_launches(path)}  # fmt: skip
    assert 4 <= len(kept) < 2 * WHOLE_ROUND
    campaign = read_campaign(path)
    assert not campaign.problems and len(campaign.launches) == len(kept)
    assert campaign.manifest["finished_utc"] is None
    # ReFrame ends with the campaign, and its launch with it.
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and running_in(path):
        time.sleep(0.1)
    assert not running_in(path)

    finished(start("--resume", path.name, name=name))
    again = read_campaign(path)
    assert len(again.launches) == 2 * WHOLE_ROUND and not again.problems
    for launch, content in kept.items():
        assert (path / "launches" / launch / "launch.json").read_bytes() == content
    assert again.manifest["finished_utc"] and len(again.manifest["commands"]) == 2

    refused = start("--resume", path.name, name=name)
    out, _ = refused.communicate(timeout=60)
    assert refused.returncode == 1 and "is finished; there is nothing to go on with" in out


def running_in(campaign: Path) -> list[str]:
    """Return the command lines of processes that work for a campaign."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"WYEAST_CAMPAIGN={campaign}".encode() in environment.read_bytes():
                command = (environment.parent / "cmdline").read_bytes()
                found.append(command.replace(b"\0", b" ").decode())
        except OSError:
            continue  # it ended while we looked
    return found


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--site nowhere"], "site nowhere is unknown; site_configs/ has local"),
        (["--tier huge"], "TIER=huge is unknown; choose one of: quick, paper, site"),
        (["--rounds 0"], "ROUNDS=0: a campaign has at least one round"),
        (["--images no-such-1.0"], "no-such-1.0 is not in containers/images.lock; build it"),
        (["--resume no-such"], "is no campaign"),
    ],
)
def test_mistakes_are_one_sentence(options: list[str], sentence: str) -> None:
    before = set((PROJECT / "runs").iterdir())
    process = start(*options, name="mistake")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1 and sentence in out
    assert len(out.strip().splitlines()) == 1
    assert set((PROJECT / "runs").iterdir()) == before, "no folder is left behind"


def test_image_changed_during_a_pause_is_refused(name: str) -> None:
    finished(start("--rounds 1 --name", name, "--checks 'Preflight'", name=name))
    [path] = campaigns(name)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["images"]["mpich-5.0.2"]["sha256"] = "f" * 64
    manifest["finished_utc"] = None
    folder.write_json(path / "manifest.json", manifest)
    process = start("--resume", path.name, name=name)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the image mpich-5.0.2 is another than the one" in out
