"""A disk that fails when told to and keeps what it was asked for, mounted for a test alone."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.campaign.fuse_disk import CONTROL, KEPT, LIBC

PROJECT = Path(__file__).resolve().parents[2]
#: linux/sched.h and linux/mount.h.
NEW_MOUNTS, RECURSIVE, PRIVATE, DETACH = 0x20000, 1 << 14, 1 << 18, 2
WHY = (
    "needs /dev/fuse and the right to mount, as root has in a container that is given the device "
    "(--device /dev/fuse --cap-add SYS_ADMIN)"
)


@dataclass(frozen=True)
class Mounted:
    """A failing disk as a test has it, used at `path`; `backing` has what it passes on."""

    path: Path
    backing: Path
    aside: Path

    def tell(self, **control: Any) -> None:
        """Have it fail: `error` (a name of errno) for `requests`, of a path with `path` in it.

        From `after` of them on, `count` times. Without words it works well.
        """
        file = self.aside / CONTROL
        before = file.stat().st_mtime_ns
        while file.stat().st_mtime_ns == before:
            # Read again only when it is newer, by a clock that has steps.
            new = file.with_suffix(".new")
            new.write_text(json.dumps(control))
            new.replace(file)

    def requests(self) -> list[dict[str, Any]]:
        """Return what it was asked to change, and has done, in order."""
        return [json.loads(line) for line in (self.aside / KEPT).read_text().splitlines()]


@contextlib.contextmanager
def own_mounts() -> Iterator[None]:
    """Have what is mounted be seen by this thread, and what it starts, alone.

    Whatever else is on the machine would have to do with a disk that fails, and keep it if this
    process is killed.
    """
    before, folder = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY), os.getcwd()
    try:
        done = LIBC.unshare(NEW_MOUNTS)
        assert not done, f"a failing disk {WHY}: unshare: {os.strerror(ctypes.get_errno())}"
        done = LIBC.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None)
        assert not done, f"a failing disk {WHY}: mount: {os.strerror(ctypes.get_errno())}"
        yield
    finally:
        done = LIBC.setns(before, NEW_MOUNTS)
        os.close(before)
        assert not done, f"setns: {os.strerror(ctypes.get_errno())}"
        os.chdir(folder)


@contextlib.contextmanager
def failing_disk(folder: Path, path: Path, **control: Any) -> Iterator[Mounted]:
    """Mount a failing disk, whose files are in a new folder; `control` is as of `tell`.

    Raises AssertionError with what is needed where there can be none.
    """
    found = Mounted(path, folder / "backing", folder / "aside")
    for one in (found.path, found.backing, found.aside):
        one.mkdir(parents=True, exist_ok=True)
    (found.aside / CONTROL).write_text(json.dumps(control))
    words = [str(one) for one in (found.path, found.backing, found.aside)]
    command = [sys.executable, "-m", "tests.campaign.fuse_disk", *words]
    with (
        own_mounts(),
        subprocess.Popen(
            command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as server,
    ):
        assert server.stdout
        try:
            said = server.stdout.readline()
            assert said == "mounted\n", f"a failing disk {WHY}: {said}"
            yield found
        finally:
            LIBC.umount2(os.fsencode(found.path), DETACH)
            server.kill()
