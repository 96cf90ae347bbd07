"""One at a time: a lock file that says who it is, and the one for whoever changes images."""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

#: Folders in which all users of a machine may make files; the first that is one is taken.
SHARED = (Path("/run/lock"), Path("/dev/shm"), Path("/tmp"))
#: More of a note than this is not shown: in a shared file it may be anybody's.
LONGEST_NOTE = 300


class Held(Exception):
    """Another process holds the lock; the text is what it wrote of itself."""


class NotShared(Exception):
    """There is no lock that all users of this machine could hold; the text says why."""


class BuildError(Exception):
    """A build cannot be done; the text is a sentence with the next step."""


@contextmanager
def exclusive(path: Path, note: str) -> Iterator[None]:
    """Hold a lock file with a note in it; the kernel frees it when this process ends.

    Raises Held while another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        _hold(file, note)
        yield


def _hold(file: IO[str], note: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        said = "".join(filter(str.isprintable, file.read(LONGEST_NOTE)))
        raise Held(said.strip() or "unknown") from None
    file.truncate(0)
    file.write(note)
    file.flush()


@contextmanager
def exclusive_on_machine(name: str, note: str) -> Iterator[None]:
    """Hold a lock that there is one of on this machine, whoever its users and checkouts are.

    Raises Held while another process holds it, and NotShared where there can be no such lock.
    """
    folder = next((path for path in SHARED if _is_everyones(path)), None)
    if folder is None:
        raise NotShared(f"none of {', '.join(map(str, SHARED))} is a folder for all users")
    path = folder / name
    try:
        descriptor = _open_shared(path)
    except OSError as error:
        raise NotShared(f"{path}: {error.strerror}") from None
    found = os.fstat(descriptor)
    # Through a second name the note would be written into another file of somebody's.
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(descriptor)
        raise NotShared(f"{path} is not a file of its own")
    with open(descriptor, "a+", errors="replace") as file:
        _hold(file, note)
        yield


def _is_everyones(folder: Path) -> bool:
    """Return whether all users may make files in a folder, and none remove another's."""
    try:
        mode = folder.lstat().st_mode
    except OSError:
        return False
    everyones = stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO | stat.S_ISVTX
    return stat.S_ISDIR(mode) and mode & everyones == everyones


def _open_shared(path: Path) -> int:
    """Open a file that any user may have made; make it for all users where there is none."""
    # Links are not followed, and what is no file at all does not block.
    flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        # Without O_CREAT, with which kernels refuse a file of another user in such a folder.
        return os.open(path, flags)
    except FileNotFoundError:
        before = os.umask(0)
        try:
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            # Somebody was faster.
            return os.open(path, flags)
        finally:
            os.umask(before)


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
