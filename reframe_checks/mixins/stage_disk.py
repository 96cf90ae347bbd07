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
#: What is said of output that a disk did not take. The same error has other reasons, such as a
#: limit of namespaces or semaphores; and folders of a node's own an implementation may fill itself.
NOT_WRITTEN = re.compile(
    r"(?i)\bwrit.*no space left on device|no space left on device.*\bwrit|disk quota exceeded"
)
OF_THE_NODE = re.compile(r"/(?:var/)?tmp\b|/dev/shm\b")


def refuse_full_disk(stage: Path, notes: Sequence[str], said: str) -> None:
    """Raise NotKept if the disk did not take, or does not take now, what belongs into a stage.

    `notes` are the names of files that no job leaves empty, `said` is its standard error. A disk
    that was full for a moment only is known by these.
    """
    for name in notes:
        file = stage / name
        if file.is_file() and not file.stat().st_size:
            raise NotKept(
                f"{file} is empty: nothing could be written into the folder of stages; make room "
                "there"
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
    for line in said.splitlines():
        if NOT_WRITTEN.search(line) and not OF_THE_NODE.search(line):
            raise NotKept(f"the launch found a full disk: {one_line(line)}; make room there")
