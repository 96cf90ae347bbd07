"""One at a time: a lock file that says who it is, and the one for whoever changes images."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Held(Exception):
    """Another process holds the lock; the text is what it wrote of itself."""


class BuildError(Exception):
    """A build cannot be done; the text is a sentence with the next step."""


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


@contextmanager
def only_build(root: Path) -> Iterator[None]:
    """Keep a second build out; raises BuildError where one is under way."""
    remains = root / ".wyeast" / "build"
    try:
        with exclusive(root / ".wyeast" / "locks" / "build", str(os.getpid())):
            # What an interrupted build has left; nobody else is at work here.
            shutil.rmtree(remains, ignore_errors=True)
            try:
                yield
            finally:
                shutil.rmtree(remains, ignore_errors=True)
    except Held as holder:
        raise BuildError(
            f"another build is under way (process {holder}); wait for it to end, then run this "
            "one again"
        ) from None
