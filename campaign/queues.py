"""Our jobs in a scheduler's queue: found by the names that we gave them, and cancelled.

Numbers are reused, and may now belong to other users' jobs; no other job has such a name.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

#: How long a scheduler may take to answer.
ANSWER_S = 60.0
#: ReFrame's names of Slurm.
SLURM = ("slurm", "squeue")
#: What LSF says where no job has a name.
NONE_OF_LSF = re.compile(r"is not found|No unfinished job found|No matching job found")
#: A job of SGE's list, and what is in it.
OF_SGE = re.compile(
    r"<JB_job_number>(?P<number>\d+)</JB_job_number>(?:(?!</job_list>).)*"
    r"<JB_name>(?P<name>[^<]*)</JB_name>",
    re.DOTALL,
)


def ask(command: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    """Return the output of a scheduler command; None if it does not answer in time."""
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=ANSWER_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None


def user() -> str:
    """Return the name of this process' user, or its number where it has none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def of_slurm(names: Collection[str]) -> list[str] | None:
    """Return the numbers of Slurm's jobs with these names; None if it does not answer."""
    done = ask(["squeue", "--noheader", f"--user={os.geteuid()}", f"--name={','.join(names)}",
                "--format=%i"])  # fmt: skip
    return None if done is None or done.returncode else done.stdout.split()


def of_each(
    names: Iterable[str], numbers_of: Callable[[str], list[str] | None]
) -> list[str] | None:
    """Return the numbers of jobs with these names, asked for one by one; None without an answer."""
    found = []
    for name in names:
        numbers = numbers_of(name)
        if numbers is None:
            return None
        found += numbers
    return found


def of_pbs(name: str) -> list[str] | None:
    """Return the numbers of PBS' jobs of a name."""
    # ReFrame gives it names without other characters.
    done = ask(["qselect", "-u", user(), "-N", re.sub(r"[^A-Za-z0-9]", "_", name)])
    return None if done is None or done.returncode else done.stdout.split()


def of_torque(name: str) -> list[str] | None:
    """Return the numbers of Torque's jobs of a name, without those that it remembers as ended."""
    called = re.sub(r"[^A-Za-z0-9]", "_", name)
    done = ask(["qselect", "-u", user(), "-s", "EHQRTW", "-N", called])
    return None if done is None or done.returncode else done.stdout.split()


def of_lsf(name: str) -> list[str] | None:
    """Return the numbers of LSF's jobs of a name that have not ended."""
    done = ask(["bjobs", "-noheader", "-w", "-u", user(), "-J", name])
    if done is None or (done.returncode and not NONE_OF_LSF.search(done.stdout + done.stderr)):
        return None
    first = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    return [word for word in first if word.isdigit()]


def of_sge(names: Collection[str]) -> list[str] | None:
    """Return the numbers of SGE's jobs with these names."""
    done = ask(["qstat", "-xml", "-u", user()])
    if done is None or done.returncode:
        return None
    return [one["number"] for one in OF_SGE.finditer(done.stdout) if one["name"] in names]


@dataclass(frozen=True)
class Queue:
    """A scheduler's program that lists jobs, how those of names are found by it, and cancelled."""

    lists: str
    find: Callable[[Collection[str]], list[str] | None]
    cancel: str


OF_PBS = Queue("qselect", lambda names: of_each(names, of_pbs), "qdel")
#: By ReFrame's name of a scheduler.
QUEUES: dict[str, Queue] = {
    **dict.fromkeys(SLURM, Queue("squeue", of_slurm, "scancel")),
    **dict.fromkeys(("pbs", "pbspro"), OF_PBS),
    "torque": Queue("qselect", lambda names: of_each(names, of_torque), "qdel"),
    "lsf": Queue("bjobs", lambda names: of_each(names, of_lsf), "bkill"),
    "sge": Queue("qstat", of_sge, "qdel"),
}


def can_be_asked(scheduler: str) -> bool:
    """Return whether a scheduler's jobs can be found by their names here.

    Slurm's always can: where it does not answer, one waits until it does.
    """
    return scheduler in SLURM or (
        scheduler in QUEUES and shutil.which(QUEUES[scheduler].lists) is not None
    )


def queued(scheduler: str, names: Collection[str]) -> list[str] | None:
    """Return the numbers of a scheduler's jobs with these names; None if it does not answer."""
    return QUEUES[scheduler].find(names) if names else []


def cancel(scheduler: str, jobs: Sequence[str]) -> None:
    """Have a scheduler cancel jobs, by its numbers.

    A missing answer means nothing: whether they are there is asked again.
    """
    # An operator may cancel anybody's.
    options = ["--quiet", f"--user={os.geteuid()}"] if scheduler in SLURM else []
    ask([QUEUES[scheduler].cancel, *options, *jobs])
