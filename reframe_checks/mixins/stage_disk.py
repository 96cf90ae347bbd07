"""Whether the disk with the stage folder took what a launch wrote: if not, no launch has failed."""

from __future__ import annotations

import errno
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from records.base import NotKept
from records.causes import one_line

#: Errors that a disk has with anybody's files; and how much it must take, in bytes.
OF_A_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ESTALE)
PROBED_BYTES = 2**16
#: What is said of a file that could not be written. The same error has other reasons, such as a
#: limit of namespaces or semaphores.
FULL = re.compile(r"(?i)no space left on device|disk quota exceeded")
WRITTEN = re.compile(r"(?i)writ")
#: A path as it stands in a message. What programs are called by is no file that they write.
PATH = re.compile(r"(?<![\w.~/-])(/[\w.,+~@%=-]+(?:/[\w.,+~@%=-]+)*)")
OF_PROGRAMS = re.compile(r"/(?:usr|opt|bin|sbin|lib|lib64|proc|sys|dev/std(?:out|err))(?:/|$)")
#: The exit code of a job's script that was asked to end: it may have been about to write a note.
ASKED_TO_END = "143"


def refuse_full_disk(stage: Path, places: Sequence[str], notes: Sequence[str], said: str) -> None:
    """Raise NotKept if the disk did not take, or does not take now, what belongs into a stage.

    `places` is where containers see their part of it, `said` is the job's standard error. Of
    the `notes`, none of which a job leaves empty, the last has its script's exit code. A disk that
    was full for a moment only is known by both.
    """
    for name in unwritten(stage, notes):
        raise NotKept(
            f"{stage / name} is empty: nothing could be written into the folder of stages; make "
            "room there"
        )
    try:
        with tempfile.NamedTemporaryFile(dir=stage, prefix=".room-") as probe:
            probe.write(bytes(PROBED_BYTES))
    except OSError as error:
        if error.errno in OF_A_DISK:
            raise NotKept(
                f"nothing can be written into the folder of stages ({stage}): {error.strerror}; "
                "make room there"
            ) from None
    places = [*places, str(stage), str(stage.resolve())]
    for line in said.splitlines():
        if is_of_stage(line, places, notes):
            raise NotKept(f"the launch found a full disk: {one_line(line)}; make room there")


def unwritten(stage: Path, notes: Sequence[str]) -> list[str]:
    """Return the notes that a job's script began and could not write.

    A script that was killed, or asked to end, has not written all; its exit code is its last words.
    """
    *before, last = notes
    code = content(stage / last)
    if code == "":
        return [last]
    if code in (None, ASKED_TO_END):
        return []
    return [name for name in before if content(stage / name) == ""]


def content(file: Path) -> str | None:
    """Return what stands in a note, None if there is none."""
    try:
        return file.read_text(errors="replace").strip() if file.stat().st_size else ""
    except OSError:
        return None


def is_of_stage(line: str, places: Sequence[str], notes: Sequence[str]) -> bool:
    """Return whether a message says that a disk did not take a file of the stage.

    It is where it names one; where it names no file, if something was written. Whatever else a disk
    has no room for, such as a node's `/tmp` or a folder that a site binds, is the program's matter.
    """
    if not FULL.search(line):
        return False
    files = [path for path in PATH.findall(line) if not OF_PROGRAMS.match(path)]
    if files:
        return any(path == place or path.startswith(f"{place}/")
                   for path in files for place in places)  # fmt: skip
    return bool(WRITTEN.search(line)) or any(name in line for name in notes)
