"""What a launch leaves running here when ReFrame has died: nothing is measured beside it.

Processes are known by a variable of ReFrame's environment, which a job and its children have and
which nobody else sets, and by the session of the job, which ranks have that were started without
that environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from records.base import CampaignError

#: How long a process that was killed may take to go.
LONGEST_S = 30.0
#: How long a scheduler may take to answer, and ReFrame's names of Slurm.
ANSWER_S = 60.0
SLURM = ("slurm", "squeue")
#: The variable: not the one by which somebody may name a campaign to a ReFrame of his own.
MARK = "WYEAST_MEASURED_BY"


def running_for(campaign: Path, sessions: Collection[int] = ()) -> set[int]:
    """Return the processes that work for a campaign, or are of one of these sessions.

    They are our user's, and none of them has started this one.
    """
    mark = f"{MARK}={campaign}".encode()
    found, parents = set(), {}
    for place in Path("/proc").glob("[0-9]*"):
        # Another user's, or one that ended while we looked.
        with suppress(OSError, ValueError, IndexError):
            stat = (place / "stat").read_text().rpartition(")")[2].split()
            state, parent, _, session = stat[:4]
            parents[int(place.name)] = int(parent)
            if state in "ZX" or place.stat().st_uid != os.geteuid():
                continue
            known = mark in (place / "environ").read_bytes().split(b"\0")
            if known or int(session) in sessions:
                found.add(int(place.name))
    own = os.getpid()
    while own:
        found.discard(own)
        own = parents.get(own, 0)
    return found


def end_all(campaign: Path, sessions: Collection[int] = ()) -> int:
    """End what still works for a campaign whose ReFrame has ended; return how many there were.

    Raises CampaignError where it does not end.
    """
    all_of_them: set[int] = set()
    deadline = time.monotonic() + LONGEST_S
    while left := running_for(campaign, sessions):
        all_of_them |= left
        if time.monotonic() > deadline:
            raise CampaignError(
                f"process {min(left)} of a launch of {campaign.name} does not end, and nothing is "
                "measured beside it; end it and resume"
            )
        # Held first: a job whose rank ends would go on with the next line of its script.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in left:
                with suppress(OSError):
                    os.kill(process, number)
        time.sleep(0.05)
    return len(all_of_them)


def end_queued(campaign: Path, scheduler: str, jobs: Sequence[str]) -> None:
    """Cancel the jobs of a ReFrame that has died, and wait until the scheduler has none of them.

    Raises CampaignError where one stays, and where the scheduler is not one that is asked here.
    """
    left = list(jobs)
    if left and scheduler in SLURM:
        # An answer that does not come is none: what counts is what squeue says next.
        ask(["scancel", "--quiet", f"--user={os.geteuid()}", *left])
        deadline = time.monotonic() + LONGEST_S
        while (left := queued(jobs)) and time.monotonic() < deadline:
            time.sleep(1)
    if left:
        raise CampaignError(
            f"job {', '.join(left)} of a ReFrame that has died may still run, and nothing is "
            f"measured beside it; end it and resume: make run RESUME={campaign.name}"
        )


def queued(jobs: Sequence[str]) -> list[str]:
    """Return which jobs Slurm still has; all of them where it does not answer."""
    done = ask(["squeue", "--noheader", f"--jobs={','.join(jobs)}", "--format=%i"])
    if done is None or (done.returncode and "Invalid job id" not in done.stderr):
        return list(jobs)
    return done.stdout.split()


def ask(command: list[str]) -> subprocess.CompletedProcess[str] | None:
    """Return what a command of the scheduler says; None where it does not answer in time."""
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ANSWER_S,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
