"""How much a launch may print: one that prints without end is ended before it fills the disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import reframe.core.exceptions as errors

from records.left_behind import MOST_LEFT_BYTES

#: The most that a launch may print, in bytes: its reader has all of it in memory. If it prints
#: more, this much is kept.
MOST_OUTPUT_BYTES, MOST_KEPT_BYTES = MOST_LEFT_BYTES, 2**20


class PrintedTooMuch(errors.JobError):  # type: ignore[misc]
    """A launch printed so much that it was ended."""


def bounded(poll: Callable[..., None]) -> Callable[..., None]:
    """Return a scheduler's poll that ends jobs which print without end; it reads no content."""

    def poll_and_bound(scheduler: Any, *jobs: Any) -> None:
        poll(scheduler, *jobs)
        for job in jobs:
            if job is None or job._exception is not None:
                continue
            for stream in (job.stdout, job.stderr):
                try:
                    size = os.stat(os.path.join(job.workdir, stream)).st_size
                except OSError:
                    continue
                if size > MOST_OUTPUT_BYTES and not scheduler.finished(job):
                    job._exception = PrintedTooMuch(
                        f"it printed more than {MOST_OUTPUT_BYTES / 1e6:.0f} MB on {stream}, and "
                        "was ended", job.jobid,
                    )  # fmt: skip
                    scheduler.cancel(job)
                    break

    return poll_and_bound


def cut(path: Path) -> None:
    """Cut the output of a launch to the part that is kept, if it is too long."""
    with suppress(OSError):
        if path.lstat().st_size > MOST_OUTPUT_BYTES:
            os.truncate(path, MOST_KEPT_BYTES)
