"""Another user than root, who plants links where root will pass; and a folder that both enter."""

import fcntl
import json
import os
import shutil
import struct
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: A number of nobody's.
OTHER = 61183
SECRET = "only root may read this"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has no other to become")


def give(path: Path, uid: int = OTHER) -> None:
    """Give a folder with all in it to a user."""
    for one in (path, *path.rglob("*")):
        os.chown(one, uid, uid, follow_symlinks=False)


def give_list(path: Path, uid: int, rights: int, group: int | None = None) -> None:
    """Give a path an access control list that allows a user something, and perhaps a group."""
    named = [] if group is None else [(8, rights, group)]
    # The owner, another user, the group, named groups, the most that all these may, all others.
    entries = [(1, 7, -1), (2, rights, uid), (4, 5, -1), *named, (16, rights, -1), (32, 5, -1)]
    packed = b"".join(struct.pack("<HHi", *entry) for entry in entries)
    os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2) + packed)


def in_child(work: Callable[[], object]) -> Any:
    """Do something in a process of its own, which may become another user; return what it says."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = work()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text)


@contextmanager
def users_stay() -> Iterator[None]:
    """Have no other test make or remove a user of this machine meanwhile."""
    turn = os.open("/dev", os.O_RDONLY)
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield
    finally:
        os.close(turn)


@contextmanager
def ordinary_user() -> Iterator[str]:
    """Make a user who may open /dev/fuse, for root; give the name."""
    with ordinary_users(1) as [name]:
        yield name


@contextmanager
def ordinary_users(count: int) -> Iterator[list[str]]:
    """Make users who may open /dev/fuse, for root; give their names.

    For one test at a time on the machine: another would put back the mode that this one has set,
    and /etc/passwd has one writer.
    """
    names, fuse = [f"wyeast-{uuid.uuid4().hex[:8]}" for _ in range(count)], Path("/dev/fuse")
    with users_stay():
        mode, made = fuse.stat().st_mode & 0o777, list[str]()
        try:
            for name in names:
                subprocess.run(["useradd", "--create-home", name], check=True)
                made.append(name)
            fuse.chmod(0o666)
            yield names
        finally:
            fuse.chmod(mode)
            for name in made:
                subprocess.run(["userdel", "--remove", name], check=True, capture_output=True)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that every user may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="wyeast-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a file of this user's alone."""
    path = tmp_path / "secret"
    path.write_text(SECRET)
    path.chmod(0o600)
    return path
