"""One installation, which nobody writes, and two users who measure with it."""

import os
import pwd
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from containers import images, store
from containers.apptainer import apptainer_command
from records.manifest import read_manifest
from tests.campaign.test_paths_real import PARTS
from tests.containers.test_centre_real import opened_here
from tests.other_user import needs_root, open_folder, ordinary_users
from tests.packed import records_in

__all__ = ["open_folder"]
pytestmark = [pytest.mark.real, needs_root]
PROJECT = Path(__file__).resolve().parents[1]
NAME = "mpich-5.0.2"
MEASURE = ("run", f"IMAGES={NAME}", "CHECKS=^EchoTest", "ROUNDS=1")
#: A campaign takes a minute or two beside everything else; this only ends what hangs.
PATIENCE_S = 900.0
#: What centres do differently, all at once: /proc shows each user only the own processes, a folder
#: for temporary files starts no program, the installation is mounted read-only, files are for their
#: owner alone, the user's HOME is another's, and modules have set what they set.
ODD_PLACE = """
mount -t proc -o hidepid=2 proc /proc
mkdir -p {aside}/job
mount -t tmpfs -o noexec,nodev,mode=1777 none {aside}/job
mount --bind {installation} {installation}
mount -o remount,bind,ro {installation}
umask 077
"""
ODD_VARIABLES = (
    "TMPDIR={aside}/job", "LC_ALL=POSIX", "PYTHONPATH=/nowhere", "PYTHONSAFEPATH=1",
    "PYTHONSTARTUP=/nowhere", "VIRTUAL_ENV=/nowhere", "LD_LIBRARY_PATH=/usr/lib/lapack",
    "PIP_TARGET=/nowhere", "PIP_INDEX_URL=http://nowhere.invalid", "http_proxy=http://a.invalid:1",
    "https_proxy=http://a.invalid:1", "MAKEFLAGS=-j8", "CDPATH=/", "SHELL=/bin/tcsh",
    "BASH_ENV={aside}/habits", "ENV={aside}/habits", "BASH_FUNC_cat%%=() {{ echo no cat; }}",
    "SHELLOPTS=nounset", "GREP_OPTIONS=--color=always",
)  # fmt: skip


@dataclass(frozen=True)
class Measurer:
    """A user of the installation, in a folder of his own."""

    installation: Path
    name: str

    @property
    def home(self) -> Path:
        return Path(pwd.getpwnam(self.name).pw_dir) / "measure here"

    @property
    def aside(self) -> Path:
        """A folder of root's for what a machine has of one shape."""
        return self.installation.parents[1] / "odd"

    def started(
        self, *command: str, cwd: Path | None = None, is_odd: bool = False
    ) -> subprocess.Popen[str]:
        """Start a command of the user's, who has loaded the modules; maybe in an odd place."""
        # The users' folder, as of a program that is named in a module, and Apptainer.
        modules = self.installation.parents[1] / "module"
        place = cwd or self.home
        variables = [f"PATH={self.installation}/bin:{modules}:/usr/local/bin:/usr/bin:/bin",
                     f"HOME={self.home.parent}", f"PWD={place}"]  # fmt: skip
        script = opened_here(self.installation.parents[1] / "opened")
        if is_odd:
            self.aside.mkdir(exist_ok=True)
            (self.aside / "habits").write_text("echo hello\ncd /\n")
            words = {"aside": self.aside, "installation": self.installation}
            script += ODD_PLACE.format(**words)
            variables += [one.format(**words) for one in ODD_VARIABLES]
            # As of somebody who has become this user and kept the own one.
            variables[1] = "HOME=/root"
        return subprocess.Popen(
            ["unshare", "--mount", "--propagation=private", "sh", "-ec", script + '\nexec "$@"',
             "sh", "setpriv", f"--reuid={self.name}", f"--regid={self.name}", "--init-groups",
             "env", "-i", *variables, *command],
            cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def run(
        self, *command: str, cwd: Path | None = None, is_odd: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Return how a command of the user's ends."""
        process = self.started(*command, cwd=cwd, is_odd=is_odd)
        out, err = process.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(command, process.returncode, out, err)


@pytest.fixture
def installation(open_folder: Path) -> Path:
    """An installation of root's with an image; its users find Apptainer by a module."""
    root = open_folder / "sw" / "wyeast"
    root.mkdir(parents=True)
    without = shutil.ignore_patterns("__pycache__", "images.lock", "build")
    for part in (*PARTS, "benchmarks", "bin", "modulefiles"):
        if (PROJECT / part).is_dir():
            shutil.copytree(PROJECT / part, root / part, ignore=without)
        else:
            shutil.copy(PROJECT / part, root / part)
    os.utime(root / "requirements.lock", (0, 0))
    (root / ".wyeast").mkdir()
    (root / ".wyeast" / "venv").symlink_to(PROJECT / ".wyeast" / "venv")
    image = images.verify(PROJECT, NAME)
    place = store.place_of(root, image.stem)
    place.parent.mkdir(parents=True)
    shutil.copy(image, place)
    images.write_entry(root, NAME, images.entry_of(PROJECT, NAME))
    module = open_folder / "module" / "apptainer"
    module.parent.mkdir()
    module.write_text(f'#!/bin/sh\nexec {shlex.quote(str(apptainer_command()))} "$@"\n')
    module.chmod(0o755)
    subprocess.run(["chmod", "-R", "a+rX,go-w", str(open_folder / "sw")], check=True)
    return root


@pytest.fixture
def users(installation: Path) -> Iterator[list[Measurer]]:
    with ordinary_users(2) as names:
        found = [Measurer(installation, name) for name in names]
        for user in found:
            account = pwd.getpwnam(user.name)
            user.home.mkdir(mode=0o755)
            os.chown(user.home, account.pw_uid, account.pw_gid)
        yield found


def state_of(root: Path) -> dict[str, tuple[int, ...]]:
    """Return all that is in a folder, with what changes if somebody writes it."""
    found: dict[str, tuple[int, ...]] = {}
    for path in sorted(root.rglob("*")):
        seen = path.lstat()
        found[str(path.relative_to(root))] = (
            seen.st_ino, seen.st_mode, seen.st_uid, seen.st_size, seen.st_mtime_ns,
            seen.st_ctime_ns,
        )  # fmt: skip
    return found


def driver_of(user: Measurer, measuring: subprocess.Popen[str]) -> int:
    """Return the process that drives the user's campaign, once it measures."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        notes = list(user.home.glob(".wyeast/reframe/local/campaign-local.lock"))
        if notes and list(user.home.glob("runs/*/journal.jsonl")):
            return int(notes[0].read_text().split()[1])
        assert measuring.poll() is None, "".join(measuring.communicate())
        time.sleep(0.02)
    raise AssertionError("the campaign did not begin")


def campaign_of(user: Measurer) -> Path:
    [campaign] = (user.home / "runs").iterdir()
    outcomes = {(one["experiment"], one["outcome"]) for one in records_in(campaign).values()}
    assert outcomes == {("Preflight", "sound"), ("EchoTest", "sound")}
    assert (campaign / "report.html").stat().st_uid == pwd.getpwnam(user.name).pw_uid
    return campaign


def test_two_users_measure_with_one_installation(installation: Path, users: list[Measurer]) -> None:
    before = state_of(installation)
    first, second = users
    # A site of one's own by the name of the installation's.
    shutil.copytree(installation / "site_configs" / "local", second.home / "site_configs" / "local")
    site = second.home / "site_configs" / "local" / "site.yaml"
    text = site.read_text()
    site.write_text(text.replace("description: ", "description: own, as ", 1))

    done = first.run("make", "run", cwd=installation)
    assert done.returncode != 0 and f"nothing can be written in {installation}" in done.stderr
    assert f"cd ~/wyeast && {installation}/bin/wyeast help" in done.stderr

    # Whatever the first one's umask is, nobody else can write what comes of it.
    measuring = first.started("sh", "-c", 'umask 0; exec wyeast "$@"', "sh", *MEASURE)
    driver = driver_of(first, measuring)
    # It holds the machine for as long as the other one needs to ask.
    os.kill(driver, signal.SIGSTOP)
    try:
        done = second.run("wyeast", *MEASURE)
    finally:
        os.kill(driver, signal.SIGCONT)
    assert done.returncode != 0 and not (second.home / "runs").exists()
    assert f"another campaign is measuring on this machine (process {driver}" in done.stderr
    assert "wait until it has ended" in done.stderr
    out, err = measuring.communicate(timeout=PATIENCE_S)
    assert measuring.returncode == 0, out + err
    assert [
        path
        for path in first.home.rglob("*")
        if path.stat(follow_symlinks=False).st_mode & 0o022 and not path.is_symlink()
    ] == []
    done = second.run("wyeast", *MEASURE, is_odd=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.stat().st_mode & 0o077 for path in second.home.glob("runs/*")} == {0}

    of_first, of_second = (read_manifest(campaign_of(user)) for user in users)
    assert str((of_second.site_data or {})["description"]).startswith("own, as ")
    assert not str((of_first.site_data or {})["description"]).startswith("own, as ")
    # The installation's image is the one that both have run, and neither has a copy.
    assert of_first.images[NAME].sha256 == of_second.images[NAME].sha256
    assert not any((user.home / ".wyeast" / "images").exists() for user in users)
    assert state_of(installation) == before

    second.home.chmod(0o777)
    done = second.run("wyeast", *MEASURE)
    assert done.returncode != 0 and f"others can write in {second.home}" in done.stderr
    done = first.run("sh", "-c", f"cd {shlex.quote(str(second.home))} && exec wyeast report")
    assert done.returncode != 0 and f"belongs to {second.name}" in done.stderr
