"""A lock file: one at a time, and who it is."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Held(Exception):
    """Another process holds the lock; the text is what it wrote of itself."""


@contextmanager
def exclusive(path: Path, note: str) -> Iterator[None]:
    """Hold a lock file with a note in it; the kernel frees it when this process ends.

    Raises Held while another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Held(file.read().strip() or "unknown") from None
        file.truncate(0)
        file.write(note)
        file.flush()
        yield
