"""Where the time of profiled programs goes: shares, tables and the limits of a profile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from statistics import median
from typing import Any

from analysis.comparison.oversubscription import cells_that_waited
from analysis.tables.table import (
    COUNT,
    PERCENT,
    PREFIXED,
    Column,
    Kind,
    Row,
    Table,
    unseen,
)
from records.base import RecordError
from records.campaign import Campaign, LeftOut
from records.launch import text_in
from records.profile import FILE, Profile, is_profiled, profile_of

#: The name of the table of shares.
SHARES = "profile-shares"
SHARE = "of the sum of the ranks' wall time, over all launches"


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
    """What the ranks did, each as a share of the sum of the ranks' wall time."""

    ranks: int
    #: The slowest rank's, the median over the launches, in seconds.
    wall_s: float
    cpu: float
    communication: float
    #: The ranks, or of a profile by node the nodes, with the least and the most communication.
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
        """Return its name in words."""
        return f"{self.program}, {self.profiles[0].header.ranks} ranks, {self.implementation}"

    @cached_property
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

    @cached_property
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
            ranks=self.profiles[0].header.ranks,
            wall_s=median(max(rank.slowest_s for rank in p.ranks) for p in self.profiles),
            cpu=cpu / total if total else 0.0,
            communication=sum(inside.values()) / total if total else 0.0,
            least=min(every),
            most=max(every),
        )

    @cached_property
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

        A message counts once, at its sender; what was read from a window counts as sent by the rank
        whose window it is. Of a profile by node it is from node to node, numbered by their lowest
        ranks.
        """
        first = self.profiles[0]
        number = {one.rank: place for place, one in enumerate(first.ranks)}
        found: dict[tuple[int, int], int] = defaultdict(int)
        for entry in first.matrix:
            if entry.counted == "sent" or entry.kind == "one-sided":
                found[number[entry.from_], number[entry.to]] += entry.bytes
        return dict(found)


def profiled_cells(campaign: Campaign) -> tuple[list[ProfiledCell], list[LeftOut]]:
    """Return the profiles of a campaign's sound launches, and those that cannot be read."""
    found: dict[tuple[str, str, str, bool], list[Profile]] = defaultdict(list)
    problems = []
    waited = cells_that_waited(campaign)
    for launch in campaign.sound():
        record = launch.record
        if not is_profiled(record.experiment):
            continue
        kept = campaign.kept[record.launch]
        try:
            profile = profile_of(partial(text_in, kept, FILE), kept.where / FILE)
        except RecordError as error:
            problems.append(LeftOut(record.launch, str(error)))
            continue
        key = (record.cell, record.implementation, record.program, record.cell in waited)
        found[key].append(profile)
    return [
        ProfiledCell(*key, profiles=tuple(profiles)) for key, profiles in sorted(found.items())
    ], problems


def name_of_profiled(of: tuple[str, bool], _: str) -> str:
    """Return a profiled cell as text."""
    cell, oversubscribed = of
    return cell + (" (oversubscribed)" if oversubscribed else "")


PROFILED_CELL = Column(
    "cell", "cell", Kind(name_of_profiled, is_number=False), fields=("cell", "oversubscribed")
)
#: What a table of one cell has in its title.
OF_CELL = (unseen(PROFILED_CELL), Column("implementation"))


def of_profile(cell: ProfiledCell, *values: Any) -> Row:
    """Return a row of numbers of a profiled cell."""
    about = ((cell.cell, cell.oversubscribed), cell.implementation)
    return Row((*about, *values), cell.implementation, (cell.cell,))


def shares_table(cells: Sequence[ProfiledCell]) -> Table:
    """Return the shares of the ranks' time of each cell."""
    columns = (
        PROFILED_CELL, Column("implementation", "implementation"),
        Column("ranks", "ranks", COUNT, "1"), Column("launches", None, COUNT, "1"),
        Column("wall", "wall time", PREFIXED, "s"), Column("cpu", "CPU", PERCENT, "1"),
        Column("inside_mpi", "inside MPI", PERCENT, "1"),
        Column("least_rank", "least rank", PERCENT, "1"),
        Column("most_rank", "most rank", PERCENT, "1"),
    )  # fmt: skip
    rows = [
        of_profile(
            cell, one.ranks, len(cell.profiles), one.wall_s, one.cpu, one.communication,
            one.least, one.most,
        )
        for cell in cells
        for one in (cell.shares,)
    ]  # fmt: skip
    title = "Shares of the ranks' time, as in Table 8 of the thesis"
    formula = f"shares {SHARE}; wall: median of the slowest rank's"
    return Table(SHARES, title, columns, rows, formula=formula)


#: What the report has of a cell's shares beside its name, and the headings there.
IN_REPORT = {
    "ranks": "Ranks", "launches": "Launches", "wall": "Wall time", "cpu": "CPU",
    "inside_mpi": "Inside MPI", "least_rank": "Least rank", "most_rank": "Most rank",
}  # fmt: skip


def shares_beside_names(shares: Table) -> Table:
    """Return the numbers of `shares_table` alone, for rows that the report names itself."""
    numbers = shares.view(*IN_REPORT)
    columns = (replace(one, heading=IN_REPORT[one.name]) for one in numbers.columns)
    return replace(numbers, columns=tuple(columns))


def functions_table(cells: Sequence[ProfiledCell]) -> Table:
    """Return every function that was called, those of a cell by their time."""
    columns = (
        *OF_CELL, Column("function", "function"), Column("calls", "calls", COUNT, "1"),
        Column("time", "time", PREFIXED, "s"), Column("share_of_mpi", "of MPI", PERCENT, "1"),
        Column("share_of_wall", "of wall", PERCENT, "1"),
        Column("sent", "bytes sent or given", PREFIXED, "B"),
    )  # fmt: skip
    rows = [
        of_profile(
            cell, of.function, of.calls, of.time_s, of.share_of_mpi, of.share_of_wall,
            of.sent_bytes,
        )
        for cell in cells
        for of in cell.functions
    ]  # fmt: skip
    formula = f"sums over ranks and launches; share_of_wall {SHARE}"
    return Table("profile-functions", "Calls of MPI by time", columns, rows, formula=formula)


def sizes_table(cells: Sequence[ProfiledCell]) -> Table:
    """Return how many messages each function sent by size, the most frequent of a cell first."""
    columns = (
        *OF_CELL, Column("function", "function"),
        Column("at_least", "at least bytes", COUNT, "B"),
        Column("messages", "messages", COUNT, "1"),
    )  # fmt: skip
    rows = [of_profile(cell, *size) for cell in cells for size in cell.sizes]
    formula = "sums over ranks and launches"
    return Table("profile-sizes", "Most frequent message sizes", columns, rows, formula=formula)


def profile_tables(cells: Sequence[ProfiledCell], most: int) -> list[Table]:
    """Return the shares of all cells, and each one's leading functions and sizes."""
    tables = [shares_table(cells)]
    for cell in cells:
        for table, title in (
            (functions_table([cell]), "Calls of MPI by time, as in Figure 14"),
            (sizes_table([cell]), "Most frequent message sizes"),
        ):
            title = f"{title}: {cell.title}"
            tables.append(replace(table, title=title, rows=table.rows[:most]))
    return tables


def profile_data(cells: Sequence[ProfiledCell]) -> list[Table]:
    """Return the shares of the ranks' time, every function that was called, and all sizes."""
    return [shares_table(cells), functions_table(cells), sizes_table(cells)]
