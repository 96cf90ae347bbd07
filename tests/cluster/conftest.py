"""The cluster in a box, started once for all tests of this folder, and campaigns on it."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cluster import accounts, box
from containers import images, store
from containers.apptainer import apptainer_command
from tests import processes
from tests.packed import records_in
from tests.unmeasured import unmeasured

PROJECT = Path(__file__).resolve().parents[2]
CLUSTER = [sys.executable, "-m", "cluster"]
#: The first process of the cluster that is up, and of the one that tests started, with their mark.
PROCESS, OF_TESTS = PROJECT / ".wyeast" / "cluster" / "process", PROJECT / ".wyeast" / "of_tests"


def control(*arguments: str, project: Path = PROJECT) -> subprocess.CompletedProcess[str]:
    """Run the cluster's command."""
    return subprocess.run(
        [*CLUSTER, *arguments],
        cwd=project,
        env={**unmeasured(), "PYTHONPATH": str(project)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        if condition():
            return
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        # Who asks by starting programs leaves as much time to what it waits for.
        time.sleep(max(0.1, time.monotonic() - asked))


@dataclass
class Launch:
    """A launch that a campaign has kept."""

    outcome: str
    sentence: str
    name: str


@dataclass
class Campaign:
    """A campaign under way on the cluster."""

    process: subprocess.Popen[str]
    name: str
    root: Path = PROJECT
    text: str = field(default="")

    def end(self, seconds: float = 1200) -> int:
        """Wait until it has ended; return its exit code."""
        self.text, _ = self.process.communicate(timeout=seconds)
        return self.process.returncode

    def stop(self) -> None:
        """End it, where it has not ended by itself."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.communicate(timeout=1200)

    def folder(self) -> Path:
        # An earlier one of this name is of tests that were killed.
        return max((self.root / "runs").glob(f"*-virtual-{self.name}"))

    def launches(self, experiment: str = "") -> list[Launch]:
        """Return what it has kept, in the order of measuring."""
        records = [
            record
            for name, record in records_in(self.folder()).items()
            if name.partition("_")[2].startswith(experiment)
        ]
        records.sort(key=lambda record: record["ended_utc"])
        return [Launch(r["outcome"], r["sentence"] or "", r["launch"]) for r in records]


class Cluster:
    """The running cluster, and the campaigns that a test has begun on it."""

    def __init__(self) -> None:
        self.begun: list[Campaign] = []

    def run(self, *arguments: str, check: bool = True) -> str:
        """Run the cluster's command; return what it printed."""
        done = control(*arguments)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def execute(
        self, command: str, user: str = "", node: int | None = None, check: bool = True
    ) -> str:
        """Run a shell command as a user of the cluster; return what it printed."""
        options = [f"--user={user}"] if user else []
        options += [f"--node={node}"] if node else []
        return self.run("exec", *options, "--", "sh", "-c", command, check=check)

    def campaign(self, name: str, *options: str, checkout: "Checkout | None" = None) -> Campaign:
        """Start a campaign as `make run SITE=virtual` does, in this checkout or another."""
        words = ["--site", "virtual", "--rounds", "1", "--name", name, *options]
        command = f"python -m campaign {shlex.join(words)}"
        if checkout:
            command = f"sh -c {shlex.quote(checkout.at_work('exec ' + command))}"
        process = subprocess.Popen(
            ["bash", "-c", f". ./activate && exec python -m cluster exec -- {command}"],
            cwd=PROJECT,
            env={**unmeasured(), "SITE": "virtual"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.begun.append(Campaign(process, name, checkout.root if checkout else PROJECT))
        return self.begun[-1]

    def give_back(self) -> None:
        """End the campaigns that are under way, and their jobs, as where an assertion failed."""
        for campaign in self.begun:
            campaign.stop()
        self.begun.clear()
        # Each command that enters the cluster starts Python.
        if not self.is_idle(check=False):
            self.execute("squeue --me --noheader --format=%i | xargs -r scancel", check=False)

    def is_idle(self, check: bool = True) -> bool:
        """Tell whether no job is left, no process of a user, and all nodes take the next job."""
        # The command that asks is root's. What has ended, and is not yet waited for, is no process.
        asked = (
            "squeue --noheader; echo of users:; ps -o stat=,args= -u wyeast,guest; "
            "echo nodes:; sinfo --noheader --format=%T"
        )
        said = self.execute(asked, user="root", check=check)
        jobs, _, rest = said.partition("of users:\n")
        running, _, states = rest.partition("nodes:\n")
        left = [line for line in running.splitlines() if not line.startswith("Z")]
        return not jobs.strip() and not left and states.split() == ["idle"]

    def describe(self) -> dict[str, Any]:
        """Return what `up` has written."""
        text = (PROJECT / ".wyeast" / "cluster" / "cluster.json").read_text()
        return dict(json.loads(text))


def is_left() -> bool:
    """Tell whether the cluster that is up was started by tests that were killed."""
    try:
        box, mark = OF_TESTS.read_text().splitlines()
        return box == PROCESS.read_text().strip() and processes.is_abandoned(mark)
    except (OSError, ValueError):
        return False


@pytest.fixture(scope="session")
def running_cluster() -> Iterator[Cluster]:
    """Return the cluster; one that was up before stays up afterwards, unless it was left."""
    was_up = control("status").returncode == 0
    if was_up and is_left():
        control("down")
        was_up = False
    if not was_up:
        done = control("up")
        assert done.returncode == 0, done.stderr
        OF_TESTS.parent.mkdir(parents=True, exist_ok=True)
        OF_TESTS.write_text(f"{PROCESS.read_text().strip()}\n{os.environ[processes.MARK]}\n")
    yield Cluster()
    if not was_up:
        control("down")


@pytest.fixture
def cluster(running_cluster: Cluster) -> Iterator[Cluster]:
    """Return the cluster, idle before the test and again afterwards."""
    # What a campaign for many tests has left that did not come to its end.
    running_cluster.give_back()
    wait_for(running_cluster.is_idle, 300, "an idle cluster")
    yield running_cluster
    running_cluster.give_back()
    for path in (PROJECT / "runs").glob("*-virtual-test-*"):
        shutil.rmtree(path)


@dataclass(frozen=True)
class Checkout:
    """A checkout of the cluster's user, who may change it and has nothing of this one's."""

    root: Path

    def at_work(self, command: str) -> str:
        """Return a shell command as it is to be given to its owner, where jobs are submitted."""
        own = f"export HOME={self.root} PATH={apptainer_command().parent}:$PATH"
        return f"cd {self.root} && {own} && . ./activate && {command}"

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a shell command there."""
        return control("exec", "--", "sh", "-c", self.at_work(command))

    def edit_site(self, old: str, new: str) -> None:
        """Replace words of its site.yaml."""
        path = self.root / "site_configs" / "virtual" / "site.yaml"
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))

    def give(self, path: Path, place: str) -> None:
        """Give it a copy of a file."""
        target = self.root / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)

    def give_image(self, name: str) -> Path:
        """Give it a copy of an image that was built here; return that."""
        self.give(images.verify(PROJECT, name), f".wyeast/images/{name}.sif")
        images.write_entry(self.root, name, images.entry_of(PROJECT, name))
        return store.folder(self.root) / f"{name}.sif"


@contextmanager
def new_checkout() -> Iterator[Checkout]:
    """Yield a checkout in the home of the job user, which all nodes see; it has no image."""
    name, uid = accounts.job_user(PROJECT)
    root = box.state_folder(PROJECT) / "home" / name / "checkout"
    shutil.rmtree(root, ignore_errors=True)
    of_here = (".git", ".wyeast", "runs", "images.lock", "*.asc")
    made = ("build", "build-*", "__pycache__", ".*_cache")
    shutil.copytree(PROJECT, root, ignore=shutil.ignore_patterns(*of_here, *made))
    found = Checkout(root)
    found.give(box.state_folder(PROJECT) / box.SITE_OVERRIDES, ".wyeast/cluster/site.yaml")
    # The Python packages are no part of what sites exchange.
    (root / ".wyeast" / "venv").symlink_to(PROJECT / ".wyeast" / "venv")
    for path in (root, *root.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)
    yield found
    shutil.rmtree(root)


@pytest.fixture
def checkout(cluster: Cluster) -> Iterator[Checkout]:
    """Return such a checkout of a test's own."""
    with new_checkout() as found:
        yield found
