"""A folder in memory for files of tests: what is written there durably waits for no disk."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MEMORY = Path("/dev/shm")
PREFIX = "wyeast-tests-"
#: Tests that play with files need a part of it; where there is less, they have a disk.
ROOM_BYTES = 2 * 2**30


def room(memory: Path) -> int:
    """Return how many bytes are free in a folder; none where it is not there or not ours to use."""
    with suppress(OSError):
        if os.access(memory, os.W_OK | os.X_OK) and not os.statvfs(memory).f_flag & os.ST_NOEXEC:
            return shutil.disk_usage(memory).free
    return 0


def remove_left(memory: Path) -> None:
    """Remove folders of ours that nobody holds any more: whoever made them was killed."""
    for left in memory.glob(f"{PREFIX}*"):
        with suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
            finally:
                os.close(descriptor)


@contextmanager
def folder(memory: Path = MEMORY, least: int = ROOM_BYTES) -> Iterator[Path | None]:
    """Yield a new folder in memory, which goes afterwards; None where there is too little of it."""
    remove_left(memory)
    if room(memory) < least:
        yield None
        return
    own = Path(tempfile.mkdtemp(prefix=PREFIX, dir=memory))
    descriptor = os.open(own, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Held until it goes, or this process does. Whoever removes what is left may be at work
        # between these lines; then ours is gone, and tests have a disk.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield own if own.exists() else None
    finally:
        shutil.rmtree(own, ignore_errors=True)
        os.close(descriptor)
