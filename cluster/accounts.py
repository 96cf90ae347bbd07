"""The users of the cluster, who exist only in it, and what they may write in the checkout.

In root's checkout jobs run as a user whose number is unused on this machine, by the name service
and not only by files. It is chosen at the first start and kept, since campaigns belong to it.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import stat
import subprocess
import zlib
from pathlib import Path

from cluster.description import ClusterError
from records.acting_user import give, open_folder
from records.files import write_whole

JOB_USER = "wyeast"
#: A second ordinary user, to see what one user's work looks like to another.
GUEST_USER = "guest"
#: Those of the daemons, whatever numbers the machine's own daemons of these names may have.
DAEMONS = ("munge", "slurm")
NAMES = (JOB_USER, GUEST_USER, *DAEMONS)
#: Numbers that neither distributions nor systemd give to anybody; checkouts begin at different
#: ones, so that the users of two are not one.
NUMBERS = range(61001, 61184)
FILE = "users.json"
#: The sites whose jobs it runs, each with a folder of ReFrame's.
SITES = ("virtual", "box-mpirun", "box-sge")
#: Where in root's checkout the job user may add files, but not remove those of others.
SHARED = ("runs", ".wyeast/bundles")


def file_of(project: Path) -> Path:
    """Return the file with the numbers, in a folder that only root may write."""
    return project / ".wyeast" / "cluster" / FILE


def is_free(number: int) -> bool:
    """Return whether the name service knows neither a user nor a group of a number."""
    for lookup in (pwd.getpwuid, grp.getgrgid):
        try:
            lookup(number)
        except KeyError:
            continue
        return False
    return True


def kept_numbers(project: Path) -> dict[str, int]:
    """Return the chosen numbers; raise ClusterError if anyone but root wrote them.

    Empty before the first start.
    """
    path = file_of(project)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ClusterError(f"{path} cannot be read: {error.strerror}; remove it") from None
    with open(descriptor) as file:
        found = os.fstat(descriptor)
        ours = stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == 0
        if not ours or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ClusterError(f"{path} is not a file that only root can write; remove it")
        try:
            numbers = {str(name): int(number) for name, number in json.load(file).items()}
        except (ValueError, TypeError, AttributeError):
            numbers = {}
    known = {JOB_USER, GUEST_USER} <= numbers.keys() <= set(NAMES)
    if not known or not set(numbers.values()) <= set(NUMBERS):
        raise ClusterError(f"{path} does not contain the numbers of the users; remove it")
    return numbers


def choose_numbers(project: Path) -> None:
    """Choose free numbers for the cluster's users, once per checkout, or check that they still are.

    Raises ClusterError if they have been taken since, or too few are free.
    """
    path = file_of(project)
    kept = kept_numbers(project)
    if taken := [number for number in kept.values() if not is_free(number)]:
        raise ClusterError(
            f"{taken[0]}, the number of a cluster user, now belongs to another user of this "
            f"machine; remove {path} to have a new one chosen (campaigns of the old number "
            "keep it)"
        )
    # A version before this one chose none for the daemons.
    lacking = [name for name in NAMES if name not in kept]
    if not lacking:
        return
    # Where the file is lost, or a version before it was at work, runs/ says whose campaigns are.
    runs = project / "runs"
    found = runs.lstat() if os.path.lexists(runs) else None
    before = (
        [number for number in (found.st_uid, found.st_gid) if number in NUMBERS] if found else []
    )
    start = zlib.crc32(str(project.resolve()).encode()) % len(NUMBERS)
    order = [*before, *NUMBERS[start:], *NUMBERS[:start]]
    free = [n for n in dict.fromkeys(order) if n not in kept.values() and is_free(n)]
    if len(free) < len(lacking):
        raise ClusterError(
            f"no {len(lacking)} of the numbers {NUMBERS[0]} to {NUMBERS[-1]} are free for the "
            "cluster's users"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(kept | dict(zip(lacking, free, strict=False))), 0o644)


def job_user(project: Path) -> tuple[str, int]:
    """Return name and id of the user whose jobs run: the owner of the checkout, never root.

    Raises ClusterError if root's checkout has had no cluster yet.
    """
    owner = project.stat().st_uid
    if owner == 0:
        numbers = kept_numbers(project)
        if not numbers:
            raise ClusterError("the cluster has never been up; start it with: make cluster-up")
        return JOB_USER, numbers[JOB_USER]
    try:
        return pwd.getpwuid(owner).pw_name, owner
    except KeyError:
        return JOB_USER, owner


def users(project: Path) -> dict[str, int]:
    """Return the cluster's users with their ids."""
    name, uid = job_user(project)
    return {name: uid, GUEST_USER: kept_numbers(project)[GUEST_USER]}


def daemons(project: Path) -> dict[str, int]:
    """Return the users of the daemons with their ids."""
    numbers = kept_numbers(project)
    return {name: numbers[name] for name in DAEMONS}


def give_to_job_user(project: Path) -> None:
    """Let the job user write what campaigns write, and nothing that root writes by name.

    Folders that both write to stay root's, and sticky: nobody can replace another's files there.
    """
    _, uid = job_user(project)
    if project.stat().st_uid == 0:
        for place in SHARED:
            give(project / place, 0, uid, 0o1775)
        take_back(project / ".wyeast" / "locks")
    for site in SITES:
        own = project / ".wyeast" / "reframe" / site
        if project.stat().st_uid == 0:
            own.parent.mkdir(parents=True, exist_ok=True)
            # What another user has left there can neither be overwritten nor given away safely.
            if os.path.lexists(own) and not _all_of(own, uid):
                # Whatever a program made: it may have more folders than Python descends.
                subprocess.run(["rm", "-rf", "--", own], check=True)
        give(own, uid, uid, 0o755)


def _all_of(folder: Path, uid: int) -> bool:
    """Return whether a folder and all in it belong to a user."""
    if folder.is_symlink() or folder.lstat().st_uid != uid:
        return False
    try:
        return all(
            os.stat(name, dir_fd=handle, follow_symlinks=False).st_uid == uid
            for _, folders, files, handle in os.fwalk(folder)
            for name in (*folders, *files)
        )
    except RecursionError:
        # Nobody knows of all of it.
        return False


def take_back(folder: Path) -> None:
    """Make a folder root's alone, removing what others have put there."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = open_folder(folder)
    try:
        os.fchown(handle, 0, 0)
        os.fchmod(handle, 0o755)
        for name in os.listdir(handle):
            found = os.stat(name, dir_fd=handle, follow_symlinks=False)
            if found.st_uid and not stat.S_ISDIR(found.st_mode):
                os.unlink(name, dir_fd=handle)
    finally:
        os.close(handle)
