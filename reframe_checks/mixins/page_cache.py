"""Put a file into the page cache, or drop it, and verify that it is there, or gone.

Runs by itself inside a job, on every node, so it needs nothing but Python:
`python page_cache.py warm|cold FILE`.
"""

import ctypes
import errno
import mmap
import os
import sys
import time
from pathlib import Path

# What may be left, or missing: a page or two that another process happens to use.
TOLERATED_FRACTION = 0.01
CHUNK_BYTES = 1 << 20
# How many pages of another user's file are tried.
TRIED_PAGES = 32
# How often the kernel is asked to drop a file: it keeps a page that something, as what moves or
# samples memory, looks at in that moment.
ASKED = 5
# How long to wait, in seconds, before it is asked again where pages can only be tried: on a busy
# virtual machine whose disk is served on the processor that asks, what is tried may have been read
# before the kernel can say that it was not there.
PAUSES_S = (0.1, 0.3, 1.0, 3.0, 5.0)


def resident_fraction(path: Path, attempt: int = 0) -> float:
    """Return the share of a file's pages that is in the page cache, from 0 to 1.

    Linux answers for every page only to those who may write the file; mincore(2) tells others that
    all pages are there, so they can only probe a few: others at each `attempt`.
    """
    size = path.stat().st_size
    if size == 0:
        return 1.0
    if _is_told(path):
        return _share_by_mincore(path, size)
    return _share_by_reading(path, size, attempt)


def _is_told(path: Path) -> bool:
    """Return whether Linux tells this user which pages of a file are in memory."""
    return path.stat().st_uid == os.geteuid() or os.access(path, os.W_OK)


def _share_by_mincore(path: Path, size: int) -> float:
    library = ctypes.CDLL(None, use_errno=True)
    with (
        path.open("rb") as file,
        # Python gives the address of a private mapping without requiring write access.
        mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) as mapped,
    ):
        pages = -(-size // mmap.PAGESIZE)
        found = (ctypes.c_ubyte * pages)()
        start = ctypes.c_char.from_buffer(mapped)
        address = ctypes.c_void_p(ctypes.addressof(start))
        failed = library.mincore(address, ctypes.c_size_t(size), found)
        code = ctypes.get_errno()
        # A mapping cannot be closed while something points into it.
        del start
    if failed:
        raise OSError(code, os.strerror(code), str(path))
    return sum(state & 1 for state in found) / pages


def _share_by_reading(path: Path, size: int, attempt: int) -> float:
    pages = -(-size // mmap.PAGESIZE)
    tried = {(number * pages // TRIED_PAGES + attempt) % pages for number in range(TRIED_PAGES)}
    there = 0
    descriptor = os.open(path, os.O_RDONLY)
    try:
        for page in sorted(tried):
            try:
                # Fails instead of waiting for the disk; the kernel may fetch this page all the
                # same, which is why so few are tried, and never the same twice.
                os.preadv(descriptor, [bytearray(1)], page * mmap.PAGESIZE, os.RWF_NOWAIT)
                there += 1
            except BlockingIOError:
                pass
    finally:
        os.close(descriptor)
    return there / len(tried)


def warm(path: Path) -> str | None:
    """Read a file whole; return a sentence unless it is in the page cache then."""
    with path.open("rb", buffering=0) as file:
        while file.read(CHUNK_BYTES):
            pass
    try:
        there = resident_fraction(path)
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            # What was just read is in memory, as far as can be determined.
            return None
        raise
    if there >= 1 - TOLERATED_FRACTION:
        return None
    return (
        f"only {there:.0%} of {path} stayed in the page cache after it was read: "
        "the memory is too small for a warm launch"
    )


def cold(path: Path) -> str | None:
    """Ask the kernel to drop a file's pages; return a sentence if they are still there.

    An ordinary user may ask it; the kernel keeps pages that are mapped or not yet written.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # Pages that are not on the disk yet are kept, and an image may just have been built.
        os.fsync(descriptor)
        for attempt, pause in enumerate((0.0,) * ASKED + (() if _is_told(path) else PAUSES_S)):
            time.sleep(pause)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            there = resident_fraction(path, attempt)
            if there <= TOLERATED_FRACTION:
                return None
    finally:
        os.close(descriptor)
    return (
        f"{there:.0%} of {path} is still in the page cache after the kernel was asked to drop it, "
        "so no launch is cold: its file system is in memory, or another process uses the file"
    )


STATES = {"warm": warm, "cold": cold}


def put(state: str, path: Path) -> str | None:
    """Put a file into a state of STATES; return a sentence if that cannot be done or determined."""
    try:
        return STATES[state](path)
    except OSError as error:
        return f"whether {path} is in the page cache cannot be determined: {error.strerror}"


def main(arguments: list[str]) -> int:
    """Put a file into the state that the arguments name; return the exit code."""
    if len(arguments) != 2 or arguments[0] not in STATES:
        print("usage: page_cache.py warm|cold FILE", file=sys.stderr)
        return 2
    sentence = put(arguments[0], Path(arguments[1]))
    if sentence:
        print(f"page_cache: {sentence}", file=sys.stderr)
    return 1 if sentence else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
