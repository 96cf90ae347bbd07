"""Files that a launch has left behind: no link is followed, and no more is read than fits.

A program may leave anything under a name at which its output is expected: a link to a file that
only we may read, a pipe that never ends, a device, more than any disk holds.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path
from typing import IO

from records.base import RecordError

#: More than this no launch may leave in one file, or print, in bytes: a reader has all in memory.
MOST_LEFT_BYTES = 2**30
KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip
CHUNK_BYTES = 2**20
#: Of opening what a program has made of a file and its folder; any other error is of the disk.
OF_THE_PROGRAM = (errno.EACCES, errno.EPERM, errno.ENXIO, errno.ENOTDIR)


def open_left(path: Path, most: int = MOST_LEFT_BYTES) -> IO[bytes]:
    """Open a file that a program has left behind, for reading.

    Raises FileNotFoundError where there is none, and RecordError for what is not a file itself, is
    larger than `most` bytes, or may not be read. Raises any other OSError as it is: it is the
    disk's, and tells of no launch.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
        # Opening a device may do something, so it is not even tried.
        if kind in KINDS:
            raise _not_a_file(path, KINDS[kind])
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_a_file(path, "a link") from None
        if error.errno not in OF_THE_PROGRAM:
            raise
        # The launch may have left it like this.
        raise RecordError(
            f"{path.name}, which the launch left behind, cannot be read: {error.strerror}"
        ) from None
    status = os.fstat(descriptor)
    try:
        if not stat.S_ISREG(status.st_mode):
            raise _not_a_file(path, KINDS.get(stat.S_IFMT(status.st_mode), "something else"))
        if status.st_size > most:
            raise RecordError(
                f"{path.name}, which the launch left behind, has {status.st_size / 1e6:.0f} MB; "
                f"at most {most / 1e6:.0f} MB are read"
            )
    except RecordError:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")


def _not_a_file(path: Path, what: str) -> RecordError:
    return RecordError(
        f"{path.name}, which the launch left behind, is {what} and not a file: it is not read"
    )


def read_left(path: Path, most: int = MOST_LEFT_BYTES) -> bytes:
    """Return the content of a file that a program has left behind; raises as `open_left` does."""
    with open_left(path, most) as file:
        # Python reserves the memory for as much as it is to read, which a limit may not allow.
        return file.read(min(most, os.fstat(file.fileno()).st_size))


def ends_left(path: Path, most: int) -> str:
    """Return the beginning and the end of what a program has left behind, of so many bytes each.

    Raises as `open_left` does, but for the size.
    """
    with open_left(path, sys.maxsize) as file:
        text = file.read(most)
        rest = os.fstat(file.fileno()).st_size - len(text)
        if rest > most:
            text += b"\n"
            file.seek(-most, os.SEEK_END)
        return (text + file.read(most)).decode(errors="replace")


def collect(source: Path, target: Path, most: int = MOST_LEFT_BYTES) -> None:
    """Copy a file that a program has left behind to a place that no program writes.

    Nothing happens where there is none. Raises as `open_left` does, and OSError where the copy
    cannot be written.
    """
    try:
        file = open_left(source, most)
    except FileNotFoundError:
        return
    with file, target.open("xb") as copy:
        left = most
        while chunk := file.read(min(CHUNK_BYTES, left)):
            copy.write(chunk)
            left -= len(chunk)
