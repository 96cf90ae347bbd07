"""Where the time of profiled programs goes: shares, tables and what a profile cannot say."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from analysis.campaign import Campaign, Problem
from analysis.profile_records import Profile, read_profile
from analysis.record_types import RecordError

#: How profiled experiments and the file with the profile are called; the checks use both.
PREFIX = "Profile"
FILE = "profile.jsonl"
#: Calls are timed to the nanosecond and printed with ten digits.
ROUNDING = 1e-6


def impossible_time(profile: Profile) -> str | None:
    """Say so when a rank was longer in calls of MPI than it ran, over all threads that called."""
    for rank in profile.ranks:
        spent = sum(function.time_s for function in profile.of_rank(rank.rank))
        most = rank.wall_s * rank.threads
        if spent > most * (1 + ROUNDING) + ROUNDING:
            return (
                f"rank {rank.rank} spent {spent:.6g} s in calls of MPI, and {rank.threads} "
                f"thread(s) ran for {most:.6g} s"
            )
    return None


def lost_message(profile: Profile) -> str | None:
    """Say so when a rank did not receive what another sent to it, as far as both were seen."""
    counts: dict[tuple[int, int, str], tuple[int, int]] = {
        (entry.from_, entry.to, entry.counted): (entry.messages, entry.bytes)
        for entry in profile.matrix
        if entry.kind == "message"
    }
    for from_, to in sorted({key[:2] for key in counts}):
        sent = counts.get((from_, to, "sent"), (0, 0))
        received = counts.get((from_, to, "received"), (0, 0))
        all_seen = profile.ranks[to].unseen_receives == 0
        fewer = received[0] <= sent[0] and received[1] <= sent[1]
        if received != sent and (all_seen or not fewer):
            return (
                f"rank {from_} sent {sent[0]} messages of {sent[1]} bytes to rank {to}, which "
                f"received {received[0]} of {received[1]} bytes"
            )
    return None


@dataclass(frozen=True)
class FunctionShare:
    """A function over all ranks and launches: time in seconds, shares of the ranks' time."""

    function: str
    calls: int
    time_s: float
    share_of_mpi: float
    share_of_wall: float
    sent_bytes: int


@dataclass(frozen=True)
class Shares:
    """What the ranks did: each share is of the sum of the ranks' wall time."""

    ranks: int
    #: The slowest rank's, the median over the launches, in seconds.
    wall_s: float
    cpu: float
    communication: float
    #: The ranks with the least and the most communication.
    least: float
    most: float


@dataclass(frozen=True)
class ProfiledCell:
    """One profiled cell with one implementation: the profiles of its launches."""

    cell: str
    implementation: str
    program: str
    oversubscribed: bool
    profiles: tuple[Profile, ...]

    @property
    def title(self) -> str:
        """Return what it is, in words."""
        return f"{self.program}, {self.profiles[0].header.ranks} ranks, {self.implementation}"

    def functions(self) -> list[FunctionShare]:
        """Return the functions, the one that took longest first."""
        calls: dict[str, int] = defaultdict(int)
        seconds: dict[str, float] = defaultdict(float)
        sent: dict[str, int] = defaultdict(int)
        for profile in self.profiles:
            for one in profile.functions:
                calls[one.function] += one.calls
                seconds[one.function] += one.time_s
                sent[one.function] += one.sent_bytes
        wall = sum(rank.wall_s for profile in self.profiles for rank in profile.ranks)
        inside = sum(seconds.values())
        return sorted(
            (
                FunctionShare(
                    name, calls[name], seconds[name],
                    seconds[name] / inside if inside else 0.0,
                    seconds[name] / wall if wall else 0.0, sent[name],
                )
                for name in calls
            ),
            key=lambda share: (-share.time_s, share.function),
        )  # fmt: skip

    def shares(self) -> Shares:
        """Return the shares of processors' time and of communication (Kearns 2003, Table 8).

        Communication is measured: the time inside MPI. The thesis took wall time less CPU time for
        it; a library that polls while it waits has CPU time there.
        """
        wall: dict[int, float] = defaultdict(float)
        inside: dict[int, float] = defaultdict(float)
        cpu = 0.0
        for profile in self.profiles:
            for rank in profile.ranks:
                wall[rank.rank] += rank.wall_s
                cpu += rank.cpu_s
            for one in profile.functions:
                inside[one.rank] += one.time_s
        every = [inside[rank] / wall[rank] if wall[rank] else 0.0 for rank in sorted(wall)]
        total = sum(wall.values())
        return Shares(
            ranks=len(wall),
            wall_s=median(max(rank.wall_s for rank in p.ranks) for p in self.profiles),
            cpu=cpu / total if total else 0.0,
            communication=sum(inside.values()) / total if total else 0.0,
            least=min(every),
            most=max(every),
        )

    def sizes(self) -> list[tuple[str, int, int]]:
        """Return (function, at least so many bytes, messages), the most frequent first."""
        found: dict[tuple[str, int], int] = defaultdict(int)
        for profile in self.profiles:
            for one in profile.sizes:
                for size, count in zip(one.at_least_bytes, one.messages, strict=True):
                    found[one.function, size] += count
        rows = [(function, size, count) for (function, size), count in found.items()]
        return sorted(rows, key=lambda row: (-row[2], row[0], row[1]))

    def matrix(self) -> dict[tuple[int, int], int]:
        """Return the bytes from rank to rank of the first launch, of all kinds together.

        A message counts once, by its sender; what was got from a window counts as sent by the rank
        whose window it is.
        """
        found: dict[tuple[int, int], int] = defaultdict(int)
        for entry in self.profiles[0].matrix:
            if entry.counted == "sent" or entry.kind == "one-sided":
                found[entry.from_, entry.to] += entry.bytes
        return dict(found)


def profiled_cells(campaign: Campaign) -> tuple[list[ProfiledCell], list[Problem]]:
    """Return the profiles of a campaign's sound launches, and which of them cannot be read."""
    found: dict[tuple[str, str, str, bool], list[Profile]] = defaultdict(list)
    problems = []
    for launch in campaign.sound():
        record = launch.record
        if not record.experiment.startswith(PREFIX):
            continue
        path: Path = campaign.path / "launches" / record.launch / FILE
        try:
            profile = read_profile(path)
        except RecordError as error:
            problems.append(Problem(record.launch, str(error)))
            continue
        key = (record.cell, record.implementation, record.program, record.oversubscribed)
        found[key].append(profile)
    return [
        ProfiledCell(*key, profiles=tuple(profiles)) for key, profiles in sorted(found.items())
    ], problems
