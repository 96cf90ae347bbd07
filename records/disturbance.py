"""What came from outside while a launch ran: others' work, lost carriers, stopped processes.

A job's script looks just before a launch and just after it (COMMAND), on the launch's first node
and for all implementations alike. What others used is what is certain of it: the time of processes
that were there both times and are neither the launch's nor of its ancestors, and, where launches
are processes of this machine, of what these have waited for. Others may have used more: what came
and went, or cannot be seen from there, counts for nothing.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from records.base import Count, Duration, OneOfMany
from records.causes import one_line

#: Prints the script's process, the time since the node's start, what the kernel says of each
#: process, and how often each link has lost or regained its carrier.
COMMAND = (
    "{ echo $$; cat /proc/uptime /proc/[0-9]*/stat; for link in /sys/class/net/*/carrier_changes; "
    'do read -r count <"$link" && echo "$link:$count"; done; } 2>/dev/null'
)
#: Links that come and go with containers and virtual machines, and the machine's own.
PASSING = ("lo", "veth", "docker", "br-", "virbr", "cni", "tap", "ifb")
#: A launch is marked beyond this share of one processor: less is a machine's own housekeeping.
MARKED_SHARE = 0.1
#: Less than this is not told apart from the kernel's counting in hundredths, in seconds.
LEAST_S = 0.05
#: How many of those who used processors are named, the greatest first.
MOST_NAMED = 5
#: What the kernel's own threads have among their flags (PF_KTHREAD): they work for everybody.
KERNEL_THREAD = 0x00200000

#: What comes from outside the library, so that a block may be measured again for it.
Outside = Literal["stopped", "carriers"]
#: So often each may happen in a launch before its block is measured again.
REPEAT_BEYOND: dict[Outside, int] = {"stopped": 0, "carriers": 0}
Often = Annotated[Count, Field(le=10**9)]
Processors = Annotated[float, Field(ge=0, le=1e15)]


class Disturbance(OneOfMany, BaseModel):
    """What came from outside during a launch; times in seconds."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    #: How long was looked, and what others certainly used of the processors meanwhile: in all, and
    #: the greatest by the names of their programs.
    looked_s: Duration
    others_s: Processors
    others: dict[Annotated[str, Field(max_length=16)], Processors] = {}
    #: How often carriers of the node's links went or came, or, where the program counts that
    #: itself, of all nodes'.
    carriers: Often = 0
    #: How often a rank, or the job's script, went on after a stop; None where the script did not
    #: and nobody counted the ranks' stops.
    stopped: Often | None = None

    @property
    def share(self) -> float:
        """Return what others used, as a share of one processor."""
        return self.others_s / self.looked_s if self.looked_s else 0.0

    @property
    def is_shared(self) -> bool:
        """Return whether others used so much that the launch is marked."""
        return self.others_s >= LEAST_S and self.share > MARKED_SHARE

    def from_outside(self) -> dict[Outside, int]:
        """Return how often each thing happened for which a block may be measured again."""
        counts: dict[Outside, int] = {"stopped": self.stopped or 0, "carriers": self.carriers}
        return {name: count for name, count in counts.items() if count}


def why_again(counts: Mapping[Outside, int], beyond: Mapping[Outside, int]) -> str | None:
    """Return why a launch's block is measured again, None if it is not."""
    said = {
        "stopped": "one of its processes was stopped and continued",
        "carriers": "a link lost or regained its carrier",
    }
    reasons = [
        said[name] for name, count in counts.items() if name in beyond and count > beyond[name]
    ]
    return " and ".join(reasons) or None


@dataclass(frozen=True)
class SeenProcess:
    """A process as COMMAND saw it; times in ticks, `waited_for` of children that have ended."""

    pid: int
    started: int
    parent: int
    name: str
    is_kernel: bool
    own: int
    waited_for: int


class SeenProcesses(Mapping[int, SeenProcess]):
    """The processes of a look; what the kernel said of each is only read when it is asked for."""

    def __init__(self, lines: Mapping[int, str]) -> None:
        #: Lines of /proc/PID/stat.
        self.lines = lines

    def __getitem__(self, pid: int) -> SeenProcess:
        if found := process_of(self.lines[pid]):
            return found
        raise KeyError(pid)

    def __iter__(self) -> Iterator[int]:
        return (pid for pid in self.lines if process_of(self.lines[pid]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def changed(self, other: SeenProcesses) -> Iterator[SeenProcess]:
        """Yield those of which another look said something else, or nothing.

        Of most nothing has changed: they have done nothing meanwhile.
        """
        for pid, line in self.lines.items():
            if line != other.lines.get(pid) and (one := process_of(line)):
                yield one


@dataclass(frozen=True)
class Look:
    """What COMMAND printed."""

    script: int
    uptime_s: float
    processes: SeenProcesses
    carriers: Mapping[str, int]


def process_of(line: str) -> SeenProcess | None:
    """Return the process of a line of /proc/PID/stat (proc(5)); None for what is none."""
    head, closed, rest = line.rpartition(")")
    pid, opened, name = head.partition(" (")
    fields = rest.split()
    if not (closed and opened and pid.isdigit()) or len(fields) < 20:
        return None
    try:
        own, waited_for = (int(fields[i]) + int(fields[i + 1]) for i in (11, 13))
        return SeenProcess(
            int(pid), int(fields[19]), int(fields[1]), one_line(name, 16),
            bool(int(fields[6]) & KERNEL_THREAD), own, waited_for,
        )  # fmt: skip
    except ValueError:
        return None


def look_of(lines: Sequence[str]) -> Look | None:
    """Return what COMMAND printed; None where it did not get to do so."""
    try:
        script, uptime_s = int(lines[0]), float(lines[1].split()[0])
    except (IndexError, ValueError):
        return None
    carriers: dict[str, int] = {}
    processes: dict[int, str] = {}
    for line in lines[2:]:
        if line.startswith("/sys/class/net/"):
            path, colon, count = line.rpartition(":")
            if colon and count.isdigit():
                carriers[path.split("/")[4]] = int(count)
        elif (pid := line.partition(" ")[0]).isdigit():
            # A name may have any letters, and so pretend to be another line.
            processes.setdefault(int(pid), line)
    return Look(script, uptime_s, SeenProcesses(processes), carriers)


def used_by_others(before: Look, after: Look, is_local: bool) -> Iterator[tuple[str, int]]:
    """Yield what others certainly used between two looks: a program's name, and its ticks."""
    ours = {1, after.script}
    for look in (before, after):
        pid = look.script
        while pid in look.processes:
            ours.add(pid)
            pid = look.processes[pid].parent
    changed = [
        (one, after.processes.get(one.pid)) for one in before.processes.changed(after.processes)
    ]
    ended: dict[int, list[SeenProcess]] = defaultdict(list)
    for one, now in changed:
        if not is_same(one, now):
            ended[one.parent].append(one)
    for one, now in changed:
        if one.is_kernel or one.pid in ours or one.parent == before.script:
            continue
        if now is None or not is_same(one, now):
            continue
        ticks = now.own - one.own
        if is_local:
            # Of children that had begun before, what they had used until then is not of this time.
            ticks += max(0, now.waited_for - one.waited_for - all_of(one.pid, ended))
        if ticks > 0:
            yield one.name, ticks


def is_same(one: SeenProcess, later: SeenProcess | None) -> bool:
    """Return whether a process is there later, and not another one of its number."""
    return later is not None and later.started == one.started


def all_of(parent: int, ended: Mapping[int, Sequence[SeenProcess]]) -> int:
    """Return what the children of a process that have ended, and theirs, had used before."""
    left, ticks = [parent], 0
    while left:
        children = ended.get(left.pop(), ())
        ticks += sum(child.own + child.waited_for for child in children)
        left += [child.pid for child in children]
    return ticks


def disturbance(
    before: Sequence[str],
    after: Sequence[str],
    is_local: bool,
    stopped: int | None = None,
    carriers: int | None = None,
) -> Disturbance | None:
    """Return what came from outside between two looks; None where the node did not tell.

    `stopped` and `carriers` are what else was counted, None of what nobody did.
    """
    first, last = look_of(before), look_of(after)
    if first is None or last is None or last.uptime_s < first.uptime_s:
        return None
    by_name: dict[str, int] = defaultdict(int)
    for name, ticks in used_by_others(first, last, is_local):
        by_name[name] += ticks
    second = os.sysconf("SC_CLK_TCK")
    greatest = sorted(by_name, key=lambda name: (-by_name[name], name))[:MOST_NAMED]
    of_node = sum(
        abs(last.carriers.get(name, count) - count)
        for name, count in first.carriers.items()
        if not name.startswith(PASSING)
    )
    return Disturbance(
        looked_s=last.uptime_s - first.uptime_s,
        others_s=sum(by_name.values()) / second,
        others={name: by_name[name] / second for name in greatest},
        carriers=max(of_node, carriers or 0),
        stopped=stopped,
    )


def stops_of(script: int, *programs: int | None) -> int | None:
    """Return how often a script and its programs went on after a stop.

    None where that is never as far as it was counted, and a program did not count.
    """
    counted = script + sum(one or 0 for one in programs)
    return None if not counted and None in programs else counted


def stops_noted(path: Path) -> int:
    """Return how often a job's script noted that it went on after a stop."""
    try:
        return path.read_text(errors="replace").count("\n")
    except OSError:
        return 0
