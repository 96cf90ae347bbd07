"""One at a time: lock files that name their holder, for a checkout and for the whole machine."""

import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from records import processes
from records.acting_user import open_folder, rights_of_owner
from records.causes import one_line
from records.layout import HOME

#: Folders in which all users of a machine may make files; the first that is one is taken.
SHARED = (Path("/run/lock"), Path("/dev/shm"), Path("/tmp"))
#: The lock in it that there is one of on a machine.
OF_MACHINE = "wyeast-campaign.lock"
#: More of a note than this is not shown: in a shared file it may be anybody's.
LONGEST_NOTE = 300
#: The longest path of a file, with some room.
LONGEST_PATH = 5000
#: Longer than a process takes from making a file to locking it, in seconds.
FRESH_S = 2.0
#: The kernel's list of locks; and longer than this, in seconds, a lock is not expected to be held.
LISTED = Path("/proc/locks")
LONG_S = 24 * 3600.0
#: Of more processes than this that share a lock, the others are only counted.
MOST_NAMED = 8
#: How long a lock whose holder has died is waited for, in seconds, and how often it is tried: one
#: that was killed while it started a program leaves the lock to what it started, until that program
#: begins.
LEFT_S, TRIED_S = 20.0, 0.02


class LockHeld(Exception):
    """Another process holds the lock; the text is its note."""


class NoLocks(OSError):
    """A file system lets nobody lock its files; the text is what to say after the file's name."""


class NotShared(Exception):
    """No lock can be shared by all users of this machine; the text says why."""


@contextmanager
def exclusive(path: Path, note: str, wait: bool = False) -> Iterator[None]:
    """Hold a lock file with a note in it; the kernel releases it when this process ends.

    Raises LockHeld while another process holds it, unless that is to be waited for, NoLocks where
    nothing can be locked, and OSError where its folder is another user's or what is in its place is
    no file of its own.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(_open_own(path), "a+", errors="replace") as file:
        try:
            _hold(file, note, wait)
        except NoLocks as error:
            error.filename = str(path)
            raise
        yield


def holder_of(path: Path) -> str | None:
    """Return the content of a lock file that a process holds; None if nobody does.

    Whoever asks and holds a lock of his own first, as the other one does, misses no one.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(descriptor, errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return "".join(filter(str.isprintable, file.read(LONGEST_NOTE))).strip() or "unknown"
        except OSError:
            return None
    return None


def note_in(path: Path) -> str:
    """Return what whoever held a lock file last has left in it; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        return os.fsdecode(file.read(LONGEST_PATH))


@contextmanager
def scratch(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield a new folder that is removed at the end, or by the next user if this is killed.

    Raises OSError where it cannot be made.
    """
    remove_remains(parent, prefix)
    path = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(held)


def remove_remains(parent: Path, prefix: str) -> None:
    """Remove the files and folders with a prefix whose makers were killed.

    The maker of each holds a lock on it, which the kernel releases with the process.
    """
    for path in parent.iterdir() if parent.is_dir() else ():
        if not path.name.startswith(prefix):
            continue
        try:
            # NFS lets only who may write a file hold it alone, and locks folders by themselves.
            access = os.O_RDONLY if path.is_dir() else os.O_RDWR
            found = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            # One that was made this moment may not be locked yet.
            if time.time() - os.fstat(found).st_mtime > FRESH_S:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
        except OSError:
            continue
        finally:
            os.close(found)


def _open_own(path: Path) -> int:
    """Open a lock in a folder that only its owner may write; root uses that owner's rights.

    A link in its place is not followed: a user who may write in the folder could redirect the note
    into any file of the locking user.
    """
    with rights_of_owner(path.parent):
        folder = open_folder(path.parent)
        try:
            found = os.fstat(folder)
            if found.st_uid != os.geteuid():
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                os.fchmod(folder, stat.S_IMODE(found.st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH))
            # What is no file at all does not block.
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(path.name, flags, 0o644, dir_fd=folder)
        finally:
            os.close(folder)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not an ordinary file with one name", str(path))
    return descriptor


def _hold(file: IO[str], note: str, wait: bool = False, shared: bool = False) -> None:
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        if wait:
            fcntl.flock(file, kind)
        else:
            _take(file, kind)
    except BlockingIOError:
        file.seek(0)
        said = one_line(file.read(LONGEST_NOTE)) or "unknown"
        raise LockHeld(f"{said}{by_the_kernel(file.fileno())}") from None
    except OSError as error:
        raise NoLocks(
            error.errno,
            f"its file system has no locks ({error.strerror}), as Lustre that is mounted without "
            f"`flock`: work in a folder elsewhere: {HOME}=<folder>",
        ) from None
    file.truncate(0)
    file.write(note)
    file.flush()


def _take(file: IO[str], kind: int) -> None:
    """Lock a file; raise BlockingIOError where a process holds it that has not died."""
    deadline = time.monotonic() + LEFT_S
    is_left = True
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not is_left or time.monotonic() > deadline:
                raise
        # What is not left any more may have been let go since it was tried.
        if is_left := _is_left(file.fileno()):
            time.sleep(TRIED_S)


def _is_left(descriptor: int) -> bool:
    """Return whether who took a lock has died and left it to a process that is seen here.

    False where the kernel does not tell: who is in another namespace, or on another machine, is not
    listed, as one that has died is not.
    """
    try:
        if any(map(_is_alive, _holders(descriptor))):
            return False
        place = _place(descriptor)
        return any(_has(pid, place) for pid in os.listdir(processes.PROC) if pid.isdigit())
    except (OSError, ValueError, IndexError):
        return False


def _is_alive(pid: int) -> bool:
    try:
        return processes.stat_of(pid)[0] not in "ZX"
    except (OSError, IndexError):
        return False


def _has(pid: str, place: str) -> bool:
    """Return whether a process has a locked file open as who locked it has, as far as it tells."""
    texts = []
    with suppress(OSError), os.scandir(processes.PROC / pid / "fdinfo") as opened:
        for one in opened:
            # It may close others in this moment.
            with suppress(OSError):
                texts.append(Path(one.path).read_text())
    held = (line.split() for text in texts for line in text.splitlines())
    return any("FLOCK" in words and place in words for words in held)


def _place(descriptor: int) -> str:
    """Return how the kernel's lists of locks name a file."""
    found = os.fstat(descriptor)
    return f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"


def _holders(descriptor: int) -> set[int]:
    """Return who has taken a lock; raises OSError, ValueError or IndexError.

    Who has died may be among them, or not; who is in another namespace is not.
    """
    place = _place(descriptor)
    held = [line.split() for line in LISTED.read_text().splitlines()]
    return {int(one[4]) for one in held if one[1] == "FLOCK" and one[5] == place}


def by_the_kernel(descriptor: int) -> str:
    """Return who holds a lock by the kernel's list, to stand behind what its note says.

    Anybody may write the note of a shared file. What is held long raises an alarm. Empty where the
    kernel does not tell, as of a process that is in another namespace.
    """
    try:
        holders = _holders(descriptor)
        if len(holders) > 1:
            # The note is of whoever came last, who may have gone before the others.
            pids = ", ".join(map(str, sorted(holders)[:MOST_NAMED]))
            return f"; by the kernel {len(holders)} processes share it: {pids}"
        [pid] = holders
        owner = (processes.PROC / str(pid)).stat().st_uid
        up = float((processes.PROC / "uptime").read_text().split()[0])
        age = up - processes.started(processes.stat_of(pid)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return ""
    text = f"; by the kernel it is process {pid} of user {owner}, which started {age:.0f} s ago"
    if age > LONG_S:
        text += (
            f". ALARM: that is {age / 3600:.0f} h, longer than a campaign takes: look at it "
            f"(ps -fp {pid}), and end it if it hangs"
        )
    return text


@contextmanager
def on_machine(note: str, shared: bool = False) -> Iterator[None]:
    """Hold this machine's lock, whoever its users and checkouts are.

    Who measures holds it alone; those that only keep others from measuring, as builds do, share it.
    Raises LockHeld while another process holds it, and NotShared where there can be no such lock.
    """
    folder = next((path for path in SHARED if _is_everyones(path)), None)
    if folder is None:
        raise NotShared(f"none of {', '.join(map(str, SHARED))} is a folder for all users")
    path = folder / OF_MACHINE
    try:
        descriptor = _open_shared(path)
    except OSError as error:
        raise NotShared(f"{path}: {error.strerror}") from None
    found = os.fstat(descriptor)
    # Through a second name the note would be written into another file of somebody's.
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(descriptor)
        raise NotShared(f"{path} is not an ordinary file with one name")
    with open(descriptor, "a+", errors="replace") as file:
        try:
            _hold(file, note, shared=shared)
        except NoLocks as error:
            raise NotShared(f"{path}: {error.strerror}") from None
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
    """Open a file that any user may have made; create it for all users if there is none."""
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
