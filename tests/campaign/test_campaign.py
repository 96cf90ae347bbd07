"""A real campaign on real images: measured, killed, gone on with, reported."""

import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign.bundle import sample
from containers import images
from records import files, schedule
from records.campaign import read_campaign
from records.fold import State
from records.kept import kept_launches
from tests.campaign.real_campaigns import (
    campaigns,
    finished,
    kill,
    launches_in,
    removed,
    start,
    working_for,
)
from tests.packed import bytes_of_records, take_out

pytestmark = [pytest.mark.real, pytest.mark.serial]
PROJECT = Path(__file__).resolve().parents[2]
#: Three pairs for each image, and the preflights. Of few round trips, in which ranks wait busily
#: for each other where others have a processor, and that are far above their references.
CHECKS = "PointToPoint.*=(Send|Isend|Ssend)/Recv.*=long"
IMAGES = ["mpich-5.0.2", "openmpi-5.0.11"]
WHOLE_ROUND = 2 * (1 + 3)
SEED = 5


@pytest.fixture
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return a campaign's name, and remove the campaign afterwards."""
    chosen = f"test-{os.getpid()}-{request.node.originalname.replace('_', '-')}"
    with removed(chosen):
        yield chosen


COMMUNICATION = ("Collectives", "Pairs", "SomeToSome", "HaloExchange", "OneSided", "Mpptest",
                 "EagerLimit", "EchoTest", "RawNetwork", "Emulation")  # fmt: skip
OF_A_NODE = ("Dgemm", "Stream", "SerialLinpack")
APPLICATIONS = ("Su3", "Nas")
PROFILED = ("ProfileHaloExchange", "ProfileLinpack", "ProfileSu3", "ProfileNas")
EXPERIMENTS = (*COMMUNICATION, *OF_A_NODE, *APPLICATIONS, *PROFILED)
#: Of experiments that repeat a suite or a benchmark by ranks and sizes: all of them once, and one
#: in every other way.
SHORTER = {
    "Nas": ("size=S%ranks=2%", "benchmark=EP%size=S%ranks=1%", "benchmark=EP%size=W%"),
    "Mpptest": ("ranks_per_node=1%", "suite=short%ranks_per_node=2%"),
}


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.long)])
def test_every_experiment(name: str, is_whole: bool) -> None:
    """All suites of tier quick on one image, with no launch that is not sound.

    Between nodes tests/cluster has those of communication with two others, and NAS's EP. What su3,
    NAS's benchmarks and a profile do in every image is in tests/containers/test_images_real.py.
    """
    shorter = {} if is_whole else SHORTER
    checks = "|".join(
        f"^{experiment}.*{words}"
        for experiment in EXPERIMENTS
        for words in shorter.get(experiment, ("",))
    )
    process = start(
        f"--rounds 1 --images {IMAGES[1]} --name", name, f"--checks '{checks}'", name=name
    )
    out, _ = process.communicate(timeout=3000)
    assert process.returncode == 0, out
    [path] = campaigns(name)
    campaign = read_campaign(path)
    assert not campaign.problems
    measured = {launch.record.experiment for launch in campaign.sound()}
    assert measured == {"Preflight", *EXPERIMENTS}
    # Nothing that jobs and programs have written tells of a machine, or of whoever uses it.
    assert sample.main([path.name, "--dry-run"]) == 0


def assert_whole(path: Path, out: str) -> None:
    """Fail unless a campaign of two rounds, which has said `out` at its end, has all it should."""
    assert f"report: {path / 'report.html'}" in out and "openmpi-5.0.11" in out
    assert f"{2 * WHOLE_ROUND} launches took" in out
    campaign = read_campaign(path)
    assert not campaign.problems and len(campaign.launches) == 2 * WHOLE_ROUND
    manifest = campaign.manifest
    assert manifest["finished_utc"] and manifest["order_seed"] == SEED
    for image in IMAGES:
        locked = images.load_lock(PROJECT)["images"][image]["sha256"]
        assert manifest["images"][image]["sha256"] == locked
        assert manifest["images"][image]["manifest"]["implementation"] == image
    kept = {one.name: one for one in kept_launches(path)}
    assert sorted(one.name for one in (path / "packs").iterdir()) == [
        "round001.tar", "round002.tar",
    ]  # fmt: skip
    for launch in campaign.launches:
        record = launch.record
        assert launch.output is not None and record.wall_s is not None and record.wall_s > 0
        metrics = set() if record.experiment == "Preflight" else {"metrics.json"}
        assert set(kept[record.launch].names()) == {
            "launch.json", "stdout", "stderr", "job.sh", "values.json", *metrics,
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


def refuse_another_image(path: Path, name: str) -> None:
    """Fail unless a campaign whose image has changed during a pause is not gone on with."""
    paused = (path / "manifest.json").read_bytes()
    manifest = json.loads(paused)
    manifest["images"]["mpich-5.0.2"]["sha256"] = "f" * 64
    files.write_json(path / "manifest.json", manifest)
    process = start("--resume", path.name, name=name)
    out, _ = process.communicate(timeout=1500)
    assert process.returncode == 1
    assert "the image mpich-5.0.2 is not the one" in out
    (path / "manifest.json").write_bytes(paused)


def test_killed_campaign_loses_at_most_the_launch_in_flight(name: str) -> None:
    assert set(IMAGES) <= set(images.available(PROJECT)), "make images builds them"
    process = start(f"--rounds 2 --seed {SEED} --name", name, f"--checks '{CHECKS}'", name=name)
    deadline = time.monotonic() + 3000
    while time.monotonic() < deadline and process.poll() is None:
        found = [launches_in(path) for path in campaigns(name)]
        if found and found[0] >= 4:
            break
        time.sleep(0.05)
    assert process.poll() is None, process.communicate()[0]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    [path] = campaigns(name)
    kept = bytes_of_records(path)
    assert 4 <= len(kept) < 2 * WHOLE_ROUND
    campaign = read_campaign(path)
    assert len(campaign.launches) == len(kept) and campaign.manifest["finished_utc"] is None
    said = {problem.sentence for problem in campaign.problems}
    assert said and all(one.startswith("missing: ") and "RESUME" in one for one in said), said
    # ReFrame ends with the campaign, and its launch with it.
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and working_for(path):
        time.sleep(0.1)
    assert not working_for(path)

    refuse_another_image(path, name)
    kill_all_in_a_launch(start("--resume", path.name, name=name), path)
    kill_before_its_report(start("--resume", path.name, name=name), path)
    out = finished(start("--resume", path.name, name=name))
    assert_whole(path, out)
    again = read_campaign(path)
    assert len(again.launches) == 2 * WHOLE_ROUND and not again.problems
    assert kept.items() <= bytes_of_records(path).items()
    assert again.manifest["finished_utc"] and len(again.manifest["commands"]) == 2

    refused = start("--resume", path.name, name=name)
    out, _ = refused.communicate(timeout=1500)
    assert refused.returncode == 1 and "is finished; there is nothing left to resume" in out


def kill_all_in_a_launch(process: subprocess.Popen[str], path: Path) -> None:
    """Kill a campaign, its ReFrame and its launch at once, once it has measured one more."""
    before, deadline = launches_in(path), time.monotonic() + 600
    while time.monotonic() < deadline and process.poll() is None:
        state = schedule.state_of(path)
        if state and state.recorded() > before and any(one.job for one in state.open()):
            break
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()[0]
    kill([process.pid, *(int(pid) for pid, _ in working_for(path))])
    process.wait()
    state = schedule.state_of(path)
    assert state and before < state.recorded() < 2 * WHOLE_ROUND


def kill_before_its_report(process: subprocess.Popen[str], path: Path) -> None:
    """Kill a campaign that has measured all, while its tables are made."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and process.poll() is None:
        state = schedule.state_of(path)
        if state and state.recorded() == 2 * WHOLE_ROUND:
            break
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    state = schedule.state_of(path)
    assert state and not state.left() and not state.is_reported


def waves_of(name: str) -> tuple[State, int] | None:
    """Return the state of a campaign with a budget and its last round, if it decided any."""
    for path in campaigns(name):
        state = schedule.state_of(path)
        if state and state.waves:
            return state, state.waves[-1].rounds[-1].round
    return None


def test_killed_in_a_wave_a_budget_is_gone_on_with_and_can_be_replayed(name: str) -> None:
    checks = "'PointToPoint.*=Send/Recv.*=long|SomeToSome'"
    process = start("--budget 40s --seed 5 --name", name, f"--checks {checks}", name=name)
    deadline = time.monotonic() + 600
    try:
        while time.monotonic() < deadline and process.poll() is None:
            found = waves_of(name)
            # In a launch of a wave that was chosen after the first one, which is not its last.
            if found and len(found[0].waves) > 1:
                began = [one for one in found[0].of(None) if one.round > 1]
                if any(one.in_flight for one in began) and found[0].open(None):
                    break
            time.sleep(0.02)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    [path] = campaigns(name)
    cut = schedule.state_of(path)
    assert cut and len(cut.waves) > 1 and cut.ended is None
    said = finished(start("--resume", path.name, name=name))
    state, campaign = schedule.state_of(path), read_campaign(path)
    assert state and state.ended and not state.left() and not campaign.problems, said
    assert state.waves[: len(cut.waves)] == cut.waves
    command = f". ./activate && exec python -m analysis replay {path.name}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=PROJECT, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": agrees") == len(state.waves) + 1
    # Implementations of a cell are measured one after the other.
    for number in state.rounds:
        of = sorted(state.of(number), key=lambda one: one.position or 0)
        cells = [one.planned.cell for one in of]
        # What the kill cut is measured after what it had left of its round.
        assert number in cut.rounds or cells[::2] == cells[1::2], cells


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--site nowhere"],
            "site nowhere is unknown; site_configs/ has box-mpirun, box-sge, local, virtual",
        ),
        (["--tier huge"], "TIER=huge is unknown; choose one of: quick, paper, site"),
        (["--rounds 0"], "ROUNDS=0: a campaign has 1 to 999999 rounds"),
        (["--images no-such-1.0"], "no-such-1.0 is not in containers/images.lock; build it"),
        (["--resume no-such"], "is not a campaign"),
    ],
)
def test_mistakes_are_one_sentence(options: list[str], sentence: str) -> None:
    before = set((PROJECT / "runs").glob("*-local-*"))
    process = start(*options, name="mistake")
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 1 and sentence in out
    assert len(out.strip().splitlines()) == 1
    assert set((PROJECT / "runs").glob("*-local-*")) == before, "no folder is left behind"


def wait_for_launches(name: str, process: subprocess.Popen[str], count: int) -> None:
    """Wait until a campaign that runs has so many launches."""
    deadline = time.monotonic() + 3000
    while time.monotonic() < deadline and process.poll() is None:
        if any(launches_in(path) >= count for path in campaigns(name)):
            return
        time.sleep(0.05)
    said = process.communicate()[0] if process.poll() is not None else ""
    pytest.fail(f"the campaign {name} has no {count} launches: {said}")


def kill_reframe(path: Path) -> None:
    """Kill the ReFrame that measures a campaign."""
    reframe = min(
        int(pid) for pid, words in working_for(path) if "reframe_checks.bin.guards" in words
    )
    os.kill(reframe, signal.SIGKILL)


def test_a_reframe_that_dies_and_a_folder_that_goes_cost_nothing(name: str) -> None:
    """ReFrame is killed in mid-round, and launches are deleted, in the campaign and after it."""
    process = start(f"--rounds 2 --seed {SEED} --name", name, f"--checks '{CHECKS}'", name=name)
    wait_for_launches(name, process, 3)
    [path] = campaigns(name)
    kill_reframe(path)
    (path / "packs" / "round001.tar").unlink()
    wait_for_launches(name, process, WHOLE_ROUND + 2)
    kill_reframe(path)
    out = finished(process)
    assert out.count("ReFrame was ended by SIGKILL with") == 2 == out.count("it is started again")
    assert_whole(path, out)
    # A round goes on counting where it was cut.
    positions = [launch.record.position or 0 for launch in read_campaign(path).launches
                 if launch.record.round == 1]  # fmt: skip
    assert len(set(positions)) == WHOLE_ROUND

    others = bytes_of_records(path)
    gone = next(name for name in others if name.startswith("round002") and "pair=Send_Recv" in name)
    del others[gone]
    take_out(path, gone)
    said = {one.where: one.sentence for one in read_campaign(path).problems}
    assert list(said) == [gone] and said[gone].startswith("missing: ")
    out = finished(start("--resume", path.name, name=name))
    assert "round 2/2  3/3" in out and "round 1/2" not in out, out
    assert_whole(path, out)
    assert others.items() <= bytes_of_records(path).items()


def test_stages_and_tables_that_cannot_be_written_are_reported_and_made_later(
    name: str, request: pytest.FixtureRequest
) -> None:
    stages = PROJECT / ".wyeast" / "reframe" / "local" / "stage"
    aside = stages.with_name("stage.aside")
    stages.mkdir(parents=True, exist_ok=True)
    stages.rename(aside)
    stages.write_text("")

    def put_back() -> None:
        if aside.exists():
            stages.unlink(missing_ok=True)
            aside.rename(stages)

    request.addfinalizer(put_back)
    process = start("--rounds 1 --images mpich-5.0.2 --name", name,
                    "--checks 'PointToPoint.*=Send/Recv.*=long'", name=name)  # fmt: skip
    out, _ = process.communicate(timeout=1500)
    [path] = campaigns(name)
    assert process.returncode == 1 and f"make run RESUME={path.name}" in out, out
    assert "3 times without measuring anything" in out and "report.html" not in out

    put_back()
    # In the place of the tables is what no folder can be made of.
    (path / "tables").write_text("")
    process = start("--resume", path.name, name=name)
    out, _ = process.communicate(timeout=1500)
    assert process.returncode == 1 and "Traceback" not in out, out
    assert f"{path.name}: could not make tables" in out
    assert "checks failed" not in out and len(read_campaign(path).sound()) == 2

    (path / "tables").unlink()
    out = finished(start("--resume", path.name, name=name))
    assert "round 1/1" not in out and f"report: {path / 'report.html'}" in out
    assert (path / "tables" / "launches.parquet").is_file()
