"""Notice at once that a launch of this machine has ended, and look at it rarely until then.

ReFrame looks at a job in intervals: what passes between a launch's end and the next look is lost to
every launch, and each look is work beside what is measured.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import Any

#: How often a job is looked at that has not ended, in seconds: for how much it has printed, and for
#: its time limit.
LOOK_AGAIN_S = 1.0


class UntilItEnds:
    """Stands in for the `time` module where ReFrame waits between two looks at a job."""

    def __init__(self) -> None:
        #: The process of the job of this machine that was looked at last and has not ended.
        self.process: int | None = None

    def noting(self, poll: Callable[..., None]) -> Callable[..., None]:
        """Return a local scheduler's poll after which it is known whose end is waited for."""

        def poll_and_note(scheduler: Any, *jobs: Any) -> None:
            poll(scheduler, *jobs)
            left = [one for one in jobs if one is not None and not scheduler.finished(one)]
            # The end of one of several says nothing of the others.
            self.process = int(left[0].jobid) if len(left) == 1 else None

        return poll_and_note

    @staticmethod
    def time() -> float:
        """Return the time, as the module does."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Return when the job has ended, or for a look at it.

        Of a scheduler's jobs, and where the kernel does not tell (before Linux 5.3), that is after
        the time that ReFrame asks for.
        """
        process, self.process = self.process, None
        try:
            descriptor = os.pidfd_open(process) if process else None
        except OSError:
            descriptor = None
        if descriptor is None:
            time.sleep(seconds)
            return
        try:
            end = select.poll()
            end.register(descriptor, select.POLLIN)
            end.poll(max(seconds, LOOK_AGAIN_S) * 1000)
        finally:
            os.close(descriptor)


until_it_ends = UntilItEnds()
