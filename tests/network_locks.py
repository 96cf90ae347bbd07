"""Locks of files as network file systems have them, in place of this machine's."""

import errno
import fcntl
import os
import struct
from typing import IO

import pytest


def like_nfs(file: int | IO[str], operation: int) -> None:
    """Lock a file as flock does on NFS: as a part of it, and alone only if it may be written."""
    number = file if isinstance(file, int) else file.fileno()
    if os.path.isdir(f"/proc/self/fd/{number}"):
        return
    access = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
    if operation & fcntl.LOCK_EX and access == os.O_RDONLY:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    kind = fcntl.F_WRLCK if operation & fcntl.LOCK_EX else fcntl.F_RDLCK
    asked = struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0)
    fcntl.fcntl(number, fcntl.F_OFD_SETLK, asked)


def like_lustre(_file: int | IO[str], _operation: int) -> None:
    """Fail as on a Lustre that is mounted without `flock`."""
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


@pytest.fixture
def nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", like_nfs)


@pytest.fixture
def lustre(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", like_lustre)
