"""Mounts in a private namespace: folders are covered, except what is kept visible."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from contextlib import ExitStack
from pathlib import Path


def mount(*arguments: str | Path) -> None:
    """Mount with the command `mount`, which knows every kind of mount and explains failures."""
    subprocess.run(["mount", *map(str, arguments)], check=True)


def mount_points(below: Path) -> list[Path]:
    """Return where something is mounted below a folder, as far as its place can be seen.

    The kernel lists mounts also where a later one covers the folder that they are in.
    """
    places = [
        # Some bytes are octal, as blanks and backslashes; all others are the name's own.
        re.sub(rb"\\([0-3][0-7]{2})", lambda at: bytes([int(at[1], 8)]), line.split(b" ")[4])
        for line in Path("/proc/self/mountinfo").read_bytes().split(b"\n")
        if line
    ]
    found = [Path(os.fsdecode(place)) for place in places]
    # Not by Path.exists, which fails where the server of a mount has died.
    return [path for path in found if below in path.parents and os.path.exists(path)]


def hidden_ancestor(path: Path) -> Path | None:
    """Return the outermost folder above a path that ordinary users may not pass, if any."""
    for folder in reversed(path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None


def _open_parts(path: Path) -> list[Path]:
    """Return a path, or its entries if it is a folder that is closed to ordinary users."""
    mode = path.stat().st_mode
    if mode & stat.S_IXOTH or not stat.S_ISDIR(mode):
        return [path]
    return [entry for entry in path.iterdir() if not entry.is_symlink()]


def cover(kept: list[Path], always: dict[Path, str]) -> None:
    """Cover folders with empty ones, in which only the kept paths are visible.

    The folders in `always` are covered, with the mount options given there, and those that hide a
    kept path from ordinary users: a checkout in root's home or in a temporary folder of root's must
    be open to the jobs, while the folder itself stays as closed as it was.
    """
    kept = [shown for path in kept for shown in _open_parts(path)]
    hiding = {folder for path in kept if (folder := hidden_ancestor(path))}
    covered = sorted(hiding | set(always))
    covered = [f for f in covered if not any(other in f.parents for other in covered)]
    with ExitStack() as stack:
        # Opened before they are covered: through these they can still be reached afterwards.
        handles = {}
        for path in kept:
            if any(folder in path.parents for folder in covered):
                handles[path] = handle_of(path)
                stack.callback(os.close, handles[path])
        for folder in covered:
            mount("-t", "tmpfs", "-o", always.get(folder, "mode=0755"), "none", folder)
        for path, handle in handles.items():
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            bind(handle, path)


def handle_of(path: Path) -> int:
    """Return a descriptor by which what is at a path is reached once that is covered.

    What is there is not opened: a pipe would wait for its other end.
    """
    return os.open(path, os.O_PATH)


def bind(handle: int, path: Path) -> None:
    """Show what a handle is of at a path."""
    # Not canonicalised: the name behind the handle would be that of the cover.
    mount("--no-canonicalize", "--rbind", f"/proc/{os.getpid()}/fd/{handle}", path)
