"""A machine as centres have it: no apt, no tools for builds, another distribution, nobody root.

Debian is brought to that shape by mounts of a namespace, in which an ordinary user then pulls and
measures. Apptainer is on that user's PATH, as a module has it.
"""

import os
import pwd
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from containers import images
from containers.apptainer import apptainer_command
from records.locks import SHARED
from tests.campaign.test_paths_real import PARTS
from tests.containers import travelling
from tests.other_user import give, needs_root, open_folder, ordinary_user
from tests.packed import records_in

__all__ = ["open_folder"]
pytestmark = [pytest.mark.real, needs_root]
PROJECT = Path(__file__).resolve().parents[2]
NAME, OTHER = "mpich-5.0.2", "openmpi-5.0.11"
HIDDEN = (
    "apt", "apt-cache", "apt-get", "dpkg", "dpkg-deb", "dpkg-query", "mmdebstrap", "debootstrap",
    "mksquashfs", "newuidmap", "newgidmap", "patchelf", "gcc", "cc", "c++", "g++", "cpp", "ld",
)  # fmt: skip
#: What is no program hides one.
STRIP = """
for program in {hidden}; do
    for folder in /usr/bin /usr/sbin /usr/local/bin; do
        [ ! -e "$folder/$program" ] || mount --bind /dev/null "$folder/$program"
    done
done
{open}
mount --bind {release} /etc/os-release
for file in /etc/subuid /etc/subgid; do
    [ ! -e "$file" ] || mount --bind {nobody} "$file"
done
"""

#: Nobody may open /dev/fuse, and a command has no user namespace to make: Linux nests 32 of them.
CLOSED = "mount --bind {nobody} /dev/fuse\nchmod 600 {nobody}"
DEEPEST = """
unshare --user --map-current-user true 2>/dev/null &&
    exec unshare --user --map-current-user sh -c "$0" "$0" "$@"
exec "$@"
"""


def opened(aside: Path, *needed: Path) -> str:
    """Return the commands by which an ordinary user may start what is in these folders.

    Where they are root's own, as a Python or a checkout below /root, what is above is opened: it is
    replaced by folders with nothing else in them.
    """
    closed = {}
    for path in needed:
        if above := [one for one in path.parents if not one.stat().st_mode & stat.S_IXOTH]:
            closed[path] = above[-1]
    places = {path: aside / str(number) for number, path in enumerate(closed)}
    return "\n".join(map(shlex.join, [
        *(["mkdir", "-p", str(place)] for place in places.values()),
        *(["mount", "--bind", str(path), str(place)] for path, place in places.items()),
        *(["mount", "-t", "tmpfs", "-o", "mode=755", "none", str(above)]
          for above in sorted(set(closed.values()))),
        *(["mkdir", "-p", str(path)] for path in places),
        *(["mount", "--bind", str(place), str(path)] for path, place in places.items()),
    ]))  # fmt: skip


@dataclass(frozen=True)
class Centre:
    """A checkout of a user, on a machine that commands of a shell have brought to some shape."""

    root: Path
    user: str
    shaped: str

    def make(
        self, *words: str, more: str = "", deep: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Return how a make of the user's ends there, or `deep`, with no user namespace left."""
        folder = self.root.parent
        become = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups"]
        home = pwd.getpwnam(self.user).pw_dir
        variables = [f"PATH={folder}/module:/usr/local/bin:/usr/bin:/bin", f"HOME={home}"]
        return subprocess.run(
            ["unshare", "--mount", "--propagation=private", "sh", "-ec",
             f'{self.shaped}\n{more}\nexec "$@"', "sh", *become, "env", "-i", *variables,
             *(["sh", "-c", DEEPEST, DEEPEST] if deep else []), "make", *words],
            cwd=self.root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip


def opened_here(aside: Path) -> str:
    """Return the commands by which an ordinary user may start what is installed here.

    As on another machine: its campaigns and builds have the machine's lock of their own, and run
    beside those of other tests.
    """
    lock = shlex.quote(str(aside / "lock"))
    own_lock = f"mkdir -p {lock}\nchmod 1777 {lock}\nmount --bind {lock} {SHARED[0]}\n"
    return own_lock + opened(aside, Path(sys.base_prefix), PROJECT.resolve())


def own_checkout(folder: Path) -> Path:
    """Return a checkout in a folder, without an image; Apptainer is on PATH, as a module has it."""
    root = folder / "checkout"
    root.mkdir()
    without = shutil.ignore_patterns("__pycache__", "images.lock", "build")
    for part in (*PARTS, "benchmarks"):
        if (PROJECT / part).is_dir():
            shutil.copytree(PROJECT / part, root / part, ignore=without)
        else:
            shutil.copy(PROJECT / part, root / part)
    # What is installed is current.
    os.utime(root / "requirements.lock", (0, 0))
    (root / ".wyeast").mkdir()
    (root / ".wyeast" / "venv").symlink_to(PROJECT / ".wyeast" / "venv")
    module = folder / "module" / "apptainer"
    module.parent.mkdir()
    module.write_text(f'#!/bin/sh\nexec {shlex.quote(str(apptainer_command()))} "$@"\n')
    module.chmod(0o755)
    return root


@pytest.fixture
def centre(open_folder: Path) -> Iterator[Centre]:
    root, release, nobody = own_checkout(open_folder), open_folder / "release", open_folder / "no"
    release.write_text('ID="rocky"\nVERSION_ID="9.5"\n')
    nobody.touch()
    shaped = STRIP.format(hidden=" ".join(HIDDEN), release=release, nobody=nobody,
                          open=opened_here(open_folder / "opened"))  # fmt: skip
    with ordinary_user() as user:
        give(root, pwd.getpwnam(user).pw_uid)
        yield Centre(root, user, shaped)


def test_a_user_pulls_and_measures(centre: Centre, open_folder: Path) -> None:
    lock = open_folder / "images.lock"
    shutil.copy(PROJECT / images.LOCK, lock)
    with travelling.plainly_served(open_folder / "served") as port:
        address = f"oras://localhost:{port}/centre"
        subprocess.run(
            [sys.executable, "-m", "containers.sharing.registry", "push",
             f"--registry={address}", f"--images={NAME}"],
            env={**os.environ, "WYEAST_ROOT": str(PROJECT), "PYTHONPATH": str(PROJECT)}, check=True,
        )  # fmt: skip
        # Nothing in an image is started for that.
        closed = CLOSED.format(nobody=open_folder / "closed")
        (open_folder / "closed").touch()
        done = centre.make(
            "pull", f"REGISTRY={address}", f"LOCK={lock}", f"IMAGES={NAME}", more=closed, deep=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"pulled from {address} and verified: {NAME}" in done.stdout
        done = centre.make("run", f"IMAGES={NAME}", "CHECKS=^EchoTest", "ROUNDS=1", deep=True)
        assert done.returncode != 0 and not (centre.root / "runs").exists()
        assert "the kernel gives no user namespace (No space left" in done.stderr
        done = centre.make(
            "run", f"IMAGES={NAME}", "CHECKS=^EchoTest", "ROUNDS=1", f"IMAGES_FROM={address}"
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"images are up to date: {NAME}" in done.stdout
    [campaign] = (centre.root / "runs").iterdir()
    outcomes = {(one["experiment"], one["outcome"]) for one in records_in(campaign).values()}
    assert outcomes == {("Preflight", "sound"), ("EchoTest", "sound")}
    assert (campaign / "report.html").is_file()
    # Only a build asks for more, and says by what it can be spared.
    done = centre.make("images", f"IMAGES={OTHER}")
    assert done.returncode != 0 and "since this machine is not Debian" in done.stdout
    assert "newuidmap is missing, and only root can install it" in done.stderr
    assert "make pull" in done.stderr
