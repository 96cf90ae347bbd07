"""Report now and then what a job in a scheduler's queue is waiting for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import reframe.core.exceptions as errors

from reframe_checks.bin.telling import WAITS
from reframe_checks.mixins.asking import NoAnswer, ask

#: How long a job waits before that is reported, and until it is reported again, in seconds.
SPEAK_AFTER_S = 60.0
SPEAK_AGAIN_S = 300.0
#: Node states in which no job starts, without the letters that sinfo adds to them.
UNUSABLE = ("down", "drain", "drng", "fail", "maint", "unk")
#: ReFrame's names of what is in the queue: Slurm's, and other schedulers'.
PENDING = (None, "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "QUEUED", "HELD", "WAITING")


class WaitedTooLong(errors.JobError):  # type: ignore[misc]
    """A job waited in the queue for longer than the site allows, and was cancelled."""


def trouble_of(partition: str) -> str | None:
    """Return why the partition starts no jobs at all, as far as Slurm says."""
    command = ["sinfo", "--noheader", f"--partition={partition}", "--format=%a|%D|%t"]
    try:
        rows = [line.split("|") for line in ask(command).splitlines()]
    except NoAnswer:
        return None
    found = [(row[0], int(row[1]), row[2]) for row in rows if len(row) == 3 and row[1].isdigit()]
    if not found:
        return None
    if shut := next((state for state, _, _ in found if state != "up"), None):
        return f"partition {partition} is {shut}"
    if all(state.startswith(UNUSABLE) for _, _, state in found):
        states = ", ".join(f"{count} {state}" for _, count, state in found)
        return f"no node of partition {partition} accepts jobs: {states}"
    return None


def wait_of(job: str) -> str | None:
    """Return what a job waits for; None if it does not wait. Raises NoAnswer."""
    said = ask(["squeue", "--noheader", f"--jobs={job}", "--format=%T|%P|%r"]).strip()
    state, _, rest = said.partition("|")
    partition, _, reason = rest.partition("|")
    if state not in PENDING:
        return None
    trouble = trouble_of(partition)
    return f"{reason}; {trouble}" if trouble else reason


class Waiting:
    """Reports how long the polled job has waited, and for what."""

    def __init__(
        self,
        say: Callable[[str], None] = lambda text: print(text, flush=True),
        now: Callable[[], float] = time.monotonic,
        wait_of: Callable[[str], str | None] = wait_of,
    ) -> None:
        self.say, self.now, self.wait_of = say, now, wait_of
        self.job: str | None = None
        self.since = self.next = 0.0
        self.silent_since: float | None = None

    def look(self, job: Any, unanswered: str | None = None) -> None:
        """Take note of a job that was polled; say what it waits for when it is time to.

        Also that the scheduler does not answer, with `unanswered`: it was asked just now.
        """
        if job.jobid != self.job:
            self.job, self.since = job.jobid, self.now()
            self.next = self.since + SPEAK_AFTER_S
            self.silent_since = None
        if unanswered is None:
            self.silent_since = None
        elif self.silent_since is None:
            self.silent_since = self.now()
            self.next = max(self.next, self.silent_since + SPEAK_AFTER_S)
        # Slurm is not queried while the job runs: that could disturb the measurement.
        if self.now() < self.next or (unanswered is None and job.state not in PENDING):
            return
        self.next = self.now() + SPEAK_AGAIN_S
        try:
            if unanswered is not None:
                raise NoAnswer(unanswered)
            reason = self.wait_of(job.jobid)
        except NoAnswer as error:
            reason = f"the scheduler does not say what happened to it: {error}"
        if reason:
            minutes = (self.now() - self.since) / 60
            self.say(f"{WAITS}job {job.jobid} has waited for {minutes:.0f} min: {reason}")
