"""How much of a non-blocking collective operation passes during a computation.

As IMB-NBC and the OSU benchmarks have it: the computation lasts as long as the call does by itself,
and overlap = 1 - (t_total - t_cpu) / t_coll, below 0 as 0 and above 1 as 1. Each of the three is
the median of a launch's iterations; a launch is one value, as everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from analysis.comparison.oversubscription import without_waiting
from analysis.tables.table import (
    COUNT,
    GROUPED,
    PERCENT,
    PREFIXED,
    Column,
    Kind,
    Row,
    Table,
    ends,
    interval,
)
from inference.intervals import Interval, median, median_interval
from records.campaign import Campaign
from records.communication import ALONE, BESIDE, COMPUTING, Communication
from records.program_output import ProgramOutput

#: The cell, implementation, operation, group, ranks and message size in bytes.
Where = tuple[str, str, str, str, int, int]


@dataclass(frozen=True)
class Overlapped:
    """Medians of one launch, in s: the call by itself, the computation, and both together."""

    call_s: float
    computing_s: float
    together_s: float

    @property
    def overlap(self) -> float:
        """Return the part of the call that the computation hid, from 0 to 1."""
        exposed = self.together_s - self.computing_s
        return min(1.0, max(0.0, 1.0 - exposed / self.call_s))


def overlapped_in(results: Iterable[Communication]) -> dict[tuple[str, str, int, int], Overlapped]:
    """Return a launch's calls by themselves, with a computation, and the computation alone."""
    times: dict[tuple[str, str, int, int], dict[str, float]] = defaultdict(dict)
    for one in results:
        key = (one.operation, one.group, one.ranks, one.message_bytes)
        times[key][one.method] = one.time_s.median
    return {
        key: Overlapped(of[ALONE], of[COMPUTING], of[BESIDE])
        for key, of in times.items()
        if of.get(ALONE, 0.0) > 0 and {COMPUTING, BESIDE} <= of.keys()
    }


def overlaps_in(campaign: Campaign) -> dict[Where, list[Overlapped]]:
    """Return the launches' values, without cells whose ranks waited for processors."""
    found: dict[Where, list[Overlapped]] = defaultdict(list)
    for launch in without_waiting(campaign):
        record = launch.record
        if not isinstance(launch.output, ProgramOutput):
            continue
        for key, value in overlapped_in(launch.output.communications()).items():
            found[(record.cell, record.implementation, *key)].append(value)
    return dict(sorted(found.items()))


def overlap_table(campaign: Campaign) -> Table | None:
    """Return the overlap of every non-blocking operation and size; None where none was measured."""
    rows = []
    for (cell, name, operation, group, ranks, size), launches in overlaps_in(campaign).items():
        shares = [one.overlap for one in launches]
        of: Interval | None = median_interval(shares) if len(shares) > 1 else None
        rows.append(
            Row(
                (
                    name, operation, group, ranks, size, len(launches),
                    median([one.call_s for one in launches]),
                    median([one.computing_s for one in launches]),
                    median([one.together_s for one in launches]), median(shares), ends(of),
                ),
                name, (cell,),
            )
        )  # fmt: skip
    if not rows:
        return None
    shares_between = Kind(lambda of, _: f"{of[0]:.1%} – {of[1]:.1%}")
    columns = (
        Column("implementation", "implementation"), Column("operation", "operation"),
        Column("group", "group"), Column("ranks", "ranks", COUNT, "1"),
        Column("message_bytes", "bytes", GROUPED, "B"),
        Column("launches", "launches", COUNT, "1"),
        Column("call", "the call", PREFIXED, "s"),
        Column("computing", "computation", PREFIXED, "s"),
        Column("together", "together", PREFIXED, "s"),
        Column("overlap", "overlap", PERCENT, "1"),
        interval("overlap", "interval of the median", "1", shares_between),
    )  # fmt: skip
    formula = "1 - (together - computation) / the call, from 0 to 1, the median over launches"
    notes = [
        "How much of a non-blocking operation overlaps with a computation that is started after "
        "it and lasts as long as the operation alone (as in IMB-NBC and the OSU benchmarks). The "
        "computation does not call MPI. Times are medians. The slower the call, the longer the "
        "computation, so the times of both together are not compared between implementations."
    ]
    return Table("overlap", "Overlap of non-blocking operations", columns, rows, notes,
                 formula=formula)  # fmt: skip
