"""Files of tests in memory: what is written there durably waits for no disk."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

#: Tests that play with files need a part of it; where there is less, they have a disk.
LEAST_BYTES = 4 * 2**30


def with_memory(folder: Path, command: Sequence[str]) -> list[str]:
    """Return what runs a command that has a file system in memory at a folder, and nobody else.

    It goes with the last process of the command, also where that is killed.
    """
    mount = 'mount -t tmpfs -o mode=0755 tests "$0" && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", mount, str(folder), *command]


def available() -> int:
    """Return how many bytes of memory programs can still have."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return 1024 * next(int(one.split()[1]) for one in lines if one.startswith("MemAvailable:"))


@contextmanager
def folder_in_memory(least: int = LEAST_BYTES) -> Iterator[Path | None]:
    """Yield a new folder for it; None where there is too little memory, or we may not mount."""
    if os.geteuid() != 0 or available() < least:
        yield None
        return
    own = Path(tempfile.mkdtemp(prefix="wyeast-tests-"))
    try:
        done = subprocess.run(with_memory(own, ["true"]), capture_output=True)
        yield own if done.returncode == 0 else None
    finally:
        with suppress(OSError):
            own.rmdir()
