"""The images' store: each image is in it under its digest, read-only and never replaced.

Locks (`containers/images.lock`, and that of a bundle's images) map names to digests. What runs an
image so has the same file from its beginning to its end, whatever is built or signed meanwhile.
"""

import errno
import fcntl
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from containers.sources import sha256_of
from records import layout
from records.files import NO_LINKS, aside_of, put_in_place, put_where_nothing_is

STORE = "sha256"
#: C's `struct flock`, of which the first is the kind of lock.
_PART = "hhqqi4x"


def folder(root: Path) -> Path:
    """Return the folder of the images."""
    return layout.state(root) / "images"


def by_digest(root: Path) -> Path:
    """Return the folder that has each image under its digest, read-only and never replaced."""
    return folder(root) / STORE


def place_of(root: Path, sha256: str) -> Path:
    """Return where the store has the image of a digest, or would have it."""
    return by_digest(root) / f"{sha256}.sif"


def path_of(root: Path, entry: Mapping[str, Any]) -> Path:
    """Return the path of an entry's image: in the store, by its digest.

    One that was built before there was a store is still under its name, until `take_over`.
    """
    # The installation's store is read where a user's has no such image.
    place = layout.seen(place_of(root, str(entry["sha256"])))
    named = folder(root) / str(entry["file"])
    return named if named.exists() and not place.exists() else place


def keep(root: Path, aside: Path, sha256: str) -> Path:
    """Move a complete file of a digest into the store, read-only; return its path there.

    A campaign may be running what is there, so it stays as it is, unless it is damaged; other
    checkouts may share the store.
    """
    place = place_of(root, sha256)
    place.parent.mkdir(parents=True, exist_ok=True)
    # As executable as Apptainer makes them.
    aside.chmod(0o555)
    while not put_where_nothing_is(aside, place):
        with suppress(FileNotFoundError):
            found = place.lstat()
            if _has(place, sha256):
                aside.unlink()
                break
            # Unless somebody has mended it meanwhile.
            if os.path.samestat(found, place.lstat()):
                place.unlink()
    return place


@contextmanager
def in_use(root: Path, digests: Iterable[str]) -> Iterator[None]:
    """Have nobody remove images meanwhile who keeps the store, whoever's it is.

    What is not there is not kept, nor what is on a file system without locks.
    """
    with ExitStack() as held:
        for digest in digests:
            with suppress(OSError):
                # Whoever may read a file may lock it.
                image = os.open(layout.seen(place_of(root, digest)), os.O_RDONLY | os.O_CLOEXEC)
                held.callback(os.close, image)
                fcntl.flock(image, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield


def remove_unused(path: Path) -> bool:
    """Remove an image unless somebody uses it, or none can tell; return whether it is gone."""
    try:
        image = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        if _is_used(image):
            return False
        path.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        os.close(image)
    return True


def _is_used(image: int) -> bool:
    """Return whether somebody holds an open image; raises OSError where none can tell."""
    try:
        fcntl.flock(image, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        # NFS, which has such locks as those of a file's parts, gives an exclusive one only to who
        # may write the file. It tells everybody whether another holds one, on any of its clients.
        if error.errno != errno.EBADF:
            raise
        asked = struct.pack(_PART, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        held = fcntl.fcntl(image, fcntl.F_GETLK, asked)
        return bool(struct.unpack(_PART, held)[0] != fcntl.F_UNLCK)
    return False


def take_over(root: Path, entry: Mapping[str, Any]) -> None:
    """Move an entry's image that is under its name into the store, and leave a link there."""
    named, place = folder(root) / str(entry["file"]), place_of(root, str(entry["sha256"]))
    if place.exists() or named.is_symlink() or not named.is_file():
        return
    found = named.lstat()
    # A file of another digest is none of the lock's; whoever asks for the image is told.
    if not _has(named, str(entry["sha256"])):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    aside = aside_of(place)
    aside.unlink(missing_ok=True)
    try:
        os.link(named, aside)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        aside = named
    # Meanwhile somebody may have given the name to another file.
    if os.path.samestat(found, aside.lstat()):
        keep(root, aside, str(entry["sha256"]))
        if not named.exists() or os.path.samestat(found, named.lstat()):
            name_in_folder(root, entry)
    if aside != named:
        aside.unlink(missing_ok=True)


def _has(path: Path, sha256: str) -> bool:
    try:
        return sha256_of(path) == sha256
    except FileNotFoundError:
        return False


def name_in_folder(root: Path, entry: Mapping[str, Any]) -> None:
    """Have people find an image under its name, by a link; nothing here uses it."""
    link = folder(root) / str(entry["file"])
    aside = aside_of(link)
    aside.unlink(missing_ok=True)
    aside.symlink_to(place_of(root, str(entry["sha256"])).relative_to(folder(root)))
    put_in_place(aside, link)
