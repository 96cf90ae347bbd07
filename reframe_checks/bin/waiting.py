"""A job that waits in Slurm's queue says so: what the scheduler waits for, now and then."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

import reframe.core.exceptions as errors

from records.causes import one_line
from reframe_checks.bin.telling import WAITS

#: How long a job waits before that is said, and until it is said again, in seconds.
SPEAK_AFTER_S = 60.0
SPEAK_AGAIN_S = 300.0
#: How long Slurm may take to answer, in seconds: nothing waits for what is only said.
PATIENCE_S = 10.0
#: Node states in which no job starts, without the letters that sinfo adds to them.
UNUSABLE = ("down", "drain", "drng", "fail", "maint", "unk")
PENDING = (None, "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD")


class NoAnswer(Exception):
    """Slurm does not say what it is asked; the text says how not."""


class WaitedTooLong(errors.JobError):  # type: ignore[misc]
    """A job waited in the queue for longer than the site allows, and was cancelled."""


def ask(command: list[str], patience_s: float | None = None) -> str:
    """Return what a command of Slurm's says; raise NoAnswer where it does not."""
    patience_s = PATIENCE_S if patience_s is None else patience_s
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience_s,
            errors="replace", check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"{command[0]} did not answer within {patience_s:g} s") from None
    except OSError as error:
        raise NoAnswer(f"{command[0]} cannot be started: {error.strerror}") from None
    if done.returncode:
        said = one_line(done.stderr) or f"it ended with exit code {done.returncode}"
        raise NoAnswer(f"{command[0]}: {said.removeprefix(f'{command[0]}: ')}")
    return done.stdout


def trouble_of(partition: str) -> str | None:
    """Return why no job starts in a partition whoever asks for what, as far as Slurm says."""
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
        return f"no node of partition {partition} takes jobs: {states}"
    return None


def wait_of(job: str) -> str | None:
    """Return what a job waits for; None where it does not wait. Raises NoAnswer."""
    said = ask(["squeue", "--noheader", f"--jobs={job}", "--format=%T|%P|%r"]).strip()
    state, _, rest = said.partition("|")
    partition, _, reason = rest.partition("|")
    if state not in PENDING:
        return None
    trouble = trouble_of(partition)
    return f"{reason}; {trouble}" if trouble else reason


class Waiting:
    """Says of the job that is polled how long it has waited, and for what."""

    def __init__(
        self,
        say: Callable[[str], None] = lambda text: print(text, flush=True),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.say, self.now = say, now
        self.job: str | None = None
        self.since = self.next = 0.0
        self.silent_since: float | None = None

    def look(self, job: Any, unanswered: str | None = None) -> None:
        """Take note of a job that was polled; say what it waits for when it is time to.

        Also that Slurm does not answer, with `unanswered`: it was asked just now.
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
        # While it runs nothing is asked: that would be beside what is measured.
        if self.now() < self.next or (unanswered is None and job.state not in PENDING):
            return
        self.next = self.now() + SPEAK_AGAIN_S
        try:
            if unanswered is not None:
                raise NoAnswer(unanswered)
            reason = wait_of(job.jobid)
        except NoAnswer as error:
            reason = f"Slurm does not say what has become of it: {error}"
        if reason:
            minutes = (self.now() - self.since) / 60
            self.say(f"{WAITS}job {job.jobid} has waited for {minutes:.0f} min: {reason}")
