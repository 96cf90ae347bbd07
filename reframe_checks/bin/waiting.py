"""Report now and then what a job in Slurm's queue is waiting for."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

#: How long a job waits before that is said, and until it is said again, in seconds.
SPEAK_AFTER_S = 60.0
SPEAK_AGAIN_S = 300.0
#: How long Slurm may take to answer, in seconds: nothing should wait for a mere notice.
PATIENCE_S = 10.0
#: The beginning of a line that the campaign also shows as progress.
MARK = "[ WAIT     ] "
#: Node states in which no job starts, without the letters that sinfo adds to them.
UNUSABLE = ("down", "drain", "drng", "fail", "maint", "unk")
PENDING = (None, "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD")


def ask(command: list[str]) -> str:
    """Return the output of a Slurm command; empty if it does not answer."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout


def trouble_of(partition: str) -> str | None:
    """Return why the partition starts no jobs at all, as far as Slurm says."""
    rows = [line.split("|") for line in ask(
        ["sinfo", "--noheader", f"--partition={partition}", "--format=%a|%D|%t"]
    ).splitlines()]  # fmt: skip
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
    """Return what a job waits for; None if it is not waiting, or Slurm does not answer."""
    said = ask(["squeue", "--noheader", f"--jobs={job}", "--format=%T|%P|%r"]).strip()
    state, _, rest = said.partition("|")
    partition, _, reason = rest.partition("|")
    if state not in PENDING:
        return None
    trouble = trouble_of(partition)
    return f"{reason}; {trouble}" if trouble else reason


class Waiting:
    """Reports how long the job that is polled has waited, and for what."""

    def __init__(
        self,
        say: Callable[[str], None] = lambda text: print(text, flush=True),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.say, self.now = say, now
        self.job: str | None = None
        self.since = self.next = 0.0

    def look(self, job: Any) -> None:
        """Note that a job was polled; report what it waits for when that is due."""
        if job.jobid != self.job:
            self.job, self.since = job.jobid, self.now()
            self.next = self.since + SPEAK_AFTER_S
        # Nothing is asked while the job runs: that could disturb the measurement.
        if job.state not in PENDING or self.now() < self.next:
            return
        self.next = self.now() + SPEAK_AGAIN_S
        if reason := wait_of(job.jobid):
            minutes = (self.now() - self.since) / 60
            self.say(f"{MARK}job {job.jobid} has waited for {minutes:.0f} min: {reason}")
