"""An image that does not say what it is, and whose shell leaves a mark when anything starts it.

It gets the mark into a folder that the caller's APPTAINER_BIND binds, with the caller's secret.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from containers.apptainer import apptainer_command, call
from tests.other_user import ordinary_user

PROJECT = Path(__file__).resolve().parents[2]
SECRET = "of-the-caller-alone"
#: What `inspect` takes for labels, so that all goes on as if the image were a right one.
LABELS = {"org.wyeast.implementation": "mpich-5.0.2"}
SHELL = """#!/bin/dash
echo "$AWS_SECRET_ACCESS_KEY" >/mnt/mark
echo '{"attributes": {"labels": {"org.wyeast.implementation": "mpich-5.0.2"}}}'
"""


def new_sif(folder: Path) -> Path:
    """Make the image: a file system, and nothing else."""
    tree = folder / "tree"
    for name in ("bin", "mnt", "proc", "sys", "dev", "tmp", "etc", "root", "home"):
        (tree / name).mkdir(parents=True)
    dash = Path("/bin/dash")
    linked = subprocess.run(["ldd", dash], capture_output=True, text=True, check=True).stdout
    for path in (str(dash), *re.findall(r"/\S+", linked)):
        (tree / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tree / path[1:])
    for name in ("sh", "cat", "true"):
        (tree / "bin" / name).write_text(SHELL)
        (tree / "bin" / name).chmod(0o755)
    packed, sif = folder / "tree.sqfs", folder / "foreign.sif"
    subprocess.run(["mksquashfs", tree, packed, "-quiet", "-no-progress"], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    call("sif", "new", sif)
    call("sif", "add", "--datatype", "4", "--parttype", "2", "--partfs", "1", "--partarch", "2",
         "--groupid", "1", sif, packed)  # fmt: skip
    return sif


@dataclass(frozen=True)
class Person:
    """Who runs a command, and in which folder of his or her own."""

    prefix: list[str]
    folder: Path

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the project's with a secret in the environment."""
        environment = {
            "PATH": f"{apptainer_command().parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
            "HOME": str(self.folder),
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "APPTAINER_BIND": f"{self.folder}/bound:/mnt",
            **variables,
        }
        return subprocess.run(
            [*self.prefix, sys.executable, *words], env=environment, cwd=self.folder,
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600,
        )  # fmt: skip

    def mark(self) -> str | None:
        """Return what the image's shell has left, or None."""
        path = self.folder / "bound" / "mark"
        return path.read_text().strip() if path.exists() else None

    def own(self) -> None:
        """Give the folder to who runs commands in it."""
        if user := next((word for word in self.prefix if word.startswith("--reuid=")), None):
            number = pwd.getpwnam(user.removeprefix("--reuid=")).pw_uid
            for path in (self.folder, *self.folder.rglob("*")):
                os.lchown(path, number, number)


@contextmanager
def person(who: str) -> Iterator[Person]:
    """Root, who may do all in a namespace of his own, or a user who may open /dev/fuse."""
    folder = Path(tempfile.mkdtemp(prefix="wyeast-foreign-"))
    folder.chmod(0o755)
    (folder / "bound").mkdir()
    try:
        if os.geteuid() != 0:
            yield Person([], folder)
        elif who == "root":
            # Containers that tests run in may lack what Apptainer needs of root elsewhere.
            yield Person(["unshare", "--map-root-user", "--mount"], folder)
        else:
            with ordinary_user() as name:
                become = ["setpriv", f"--reuid={name}", f"--regid={name}", "--init-groups"]
                yield Person(become, folder)
    finally:
        shutil.rmtree(folder)
