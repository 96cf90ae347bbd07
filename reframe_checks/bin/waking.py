"""Notice at once that a launch of this machine has ended, and look at it rarely until then.

ReFrame looks at a job in intervals: what passes between a launch's end and the next look is lost to
every launch, and each look is work beside what is measured. It takes the time that has passed from
a clock that can be set: it would end a job that has just begun, or wait for a day.
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
#: From when on Slurm's accounting is asked for a job, in seconds since the epoch.
FIRST_DAY_S = 2 * 86400.0


class SteadyTime:
    """Stands in for the `time` module where ReFrame tells how long something has taken."""

    def __init__(self) -> None:
        self._zero = time.time() - time.monotonic()

    def __getattr__(self, name: str) -> Any:
        """Return what is left as it is."""
        return getattr(time, name)

    def time(self) -> float:
        """Return the time as it would be had nobody set the clock since this was made."""
        return self._zero + time.monotonic()


class TimeOfSlurm(SteadyTime):
    """The same where ReFrame asks Slurm's accounting for jobs since a day: for all since its first.

    It asks by their numbers. A day that a clock has named which was ahead hides a job for ever.
    """

    def localtime(self, _: float) -> time.struct_time:
        """Return the day that accounting is asked from, whenever a job was submitted."""
        # Anywhere on earth it is one of the numbers that Slurm has for times.
        return time.gmtime(FIRST_DAY_S)


class UntilItEnds(SteadyTime):
    """The same where ReFrame waits between two looks at a job."""

    def __init__(self) -> None:
        super().__init__()
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


steady_time, time_of_slurm, until_it_ends = SteadyTime(), TimeOfSlurm(), UntilItEnds()
