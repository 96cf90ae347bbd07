"""Identify a process of this machine: a number alone is reused in time."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: Of a machine's boot: process numbers and start times begin again with it.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PROC = Path("/proc")
#: The variable that marks a campaign's processes: ReFrame has it, and what it starts. Not
#: the one by which somebody may name a campaign to a ReFrame of his own.
MARK = "WYEAST_MEASURED_BY"
#: How long a job's leftovers may take to end by themselves, and how often that is checked, in s.
END_S, POLL_S = 2.0, 0.02


@dataclass(frozen=True)
class Process:
    """One of our user's processes; `works_for` is the campaign that its environment names."""

    session: int
    started: int
    works_for: str | None


def processes(since: int = 0) -> dict[int, Process]:
    """Return our user's processes, without this one and those that have started it.

    Only those that have started `since` some tick: of others nothing more is read.
    """
    found, parents = {}, {}
    user = os.geteuid()
    for name in os.listdir(PROC):
        if not name.isdigit():
            continue
        # Another user's, or one that ended while we looked.
        with suppress(OSError, ValueError, IndexError):
            pid = int(name)
            stat = stat_of(pid)
            state, parent, _, session = stat[:4]
            parents[pid] = int(parent)
            place = PROC / name
            if started(stat) < since or state in "ZX" or place.stat().st_uid != user:
                continue
            words = (place / "environ").read_bytes().split(b"\0")
            marks = [os.fsdecode(word) for word in words if word.startswith(f"{MARK}=".encode())]
            works_for = marks[0].partition("=")[2] if marks else None
            found[pid] = Process(int(session), started(stat), works_for)
    own = os.getpid()
    while own:
        found.pop(own, None)
        own = parents.get(own, 0)
    return found


def running_for(
    campaign: Path, sessions: Collection[int] = (), since: int = 0
) -> dict[int, Process]:
    """Return the processes that work for a campaign, or are of one of these sessions."""
    return {
        pid: one
        for pid, one in processes(since).items()
        if one.works_for == str(campaign) or one.session in sessions
    }


def name_of(pid: int) -> str:
    """Return the name of a process's program."""
    try:
        return (PROC / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return "one that has ended"


def end(ours: Collection[int]) -> None:
    """Kill processes, each held first: a job whose rank ends would continue its script."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in ours:
            with suppress(OSError):
                os.kill(process, number)


def end_what_is_left(campaign: Path, job: int, began: int | None) -> list[str]:
    """End what a job of this machine has left running; return the names of these processes.

    `job` was its process, which led its session and `began` at a tick of the kernel's, if that is
    known. What ends by itself in a moment is not left.
    """
    deadline = time.monotonic() + END_S
    # Whatever a job has started is younger than what has started the job.
    since = max(started(stat_of(os.getpid())), began or 0)
    sessions = {job}
    while left := running_for(campaign, sessions - _of_another(job, began), since):
        # Once nothing is left of a session, its number may become another's.
        sessions &= {one.session for one in left.values()}
        if time.monotonic() > deadline:
            names = sorted(map(name_of, left))
            end(left)
            return names
        time.sleep(POLL_S)
    return []


def _of_another(job: int, began: int | None) -> set[int]:
    """Return a job's number if it is that of a process which is not the job's."""
    try:
        return {job} if started(stat_of(job)) != began else set()
    except (OSError, ValueError, IndexError):
        return set()


def boot_id() -> str:
    """Return what distinguishes this boot of this machine from every other."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return "0"


def stat_of(pid: int) -> list[str]:
    """Return the kernel's fields for a process after its name, its state first (proc(5)).

    Raises OSError if there is none.
    """
    # All processes are asked, between any two launches: this takes a third of what Path does.
    descriptor = os.open(f"{PROC}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
    # The name stands in parentheses and may have any letters.
    return text.rpartition(b")")[2].decode("ascii").split()


def started(stat: list[str]) -> int:
    """Return when a process started, in the kernel's ticks since boot (proc(5), 22)."""
    return int(stat[19])


def named(pid: int) -> str:
    """Return what distinguishes a process from any other with its number: `pid:start:boot`.

    Only the number if it has ended: then it cannot be distinguished from another one.
    """
    try:
        return f"{pid}:{started(stat_of(pid))}:{boot_id()}"
    except (OSError, ValueError, IndexError):
        return str(pid)


def known(names: list[str]) -> dict[int, int]:
    """Return the processes of `named` that may still be here: when each started, by its number.

    Those of an earlier boot are not, and a number alone identifies none.
    """
    parts = [name.split(":") for name in names]
    return {
        int(one[0]): int(one[1])
        for one in parts
        if len(one) == 3 and one[0].isdigit() and one[1].isdigit() and one[2] == boot_id()
    }
