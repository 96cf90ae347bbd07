"""Which times of launches with more ranks than processors say something about the library.

So do launches whose ranks were all put on fewer cores than they are, as the ranks see it at their
end: an MPI's binding, or the scheduler's, may do that where a site has enough.

Ranks that wait for a processor are not timed waiting for messages. Whether they did is measured
(records/ending.py). A rank that has nothing to do may give its processor away, as MPIs do that are
told to, and then waits most of its time without being late for anything. So what counts is how
late: by how much a message that comes at any moment finds its rank without a processor.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from inference.intervals import median
from records.campaign import Campaign
from records.ending import MOST_WAITED
from records.launch import Launch, LaunchRecord

#: An operation waits for so many messages of each rank, one after the other, at most: a sum of long
#: vectors goes around the ring of ranks twice.
MESSAGES_OF_A_RANK = 2
#: Of these programs an iteration is a computation with any number of messages.
COMPUTING = ("emulator", "su3")


@dataclass
class Waits:
    """What the launches of an implementation in a cell waited for processors.

    That counts where there were more ranks than processors; or where most launches' ranks were put
    on fewer cores than they are, and waited for these. `late_s` is by how much an operation of the
    launch may have been late.
    """

    has_more_ranks: bool = False
    launches: int = 0
    crowded: int = 0
    unknown: int = 0
    shares: list[float] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)

    def add(self, record: LaunchRecord) -> None:
        """Add a launch."""
        self.has_more_ranks |= record.has_more_ranks
        self.launches += 1
        self.crowded += record.oversubscribed
        if record.waiting is None:
            self.unknown += record.has_more_ranks
            return
        self.shares.append(record.waiting.share)
        messages = MESSAGES_OF_A_RANK * record.ranks
        late_s = float("inf") if record.program in COMPUTING else messages * record.waiting.delay_s
        self.late_s.append(late_s)

    def shortest_s(self, has_times: bool) -> float:
        """Return the shortest time that counts: infinite where none does.

        Where there are no times of operations, as of rates, a share of the time that ranks may
        wait decides. Over all launches together: leaving out those that waited longer would be a
        choice by what came of them.
        """
        if not (self.has_more_ranks or 2 * self.crowded > self.launches):
            return 0.0
        if self.unknown or not self.shares:
            return float("inf")
        late_s = median(self.late_s)
        if has_times and math.isfinite(late_s):
            return late_s / MOST_WAITED
        return 0.0 if median(self.shares) < MOST_WAITED else float("inf")


def cells_that_waited(campaign: Campaign) -> frozenset[str]:
    """Return the cells in which some implementation's ranks waited too long for all times to count.

    A model uses all sizes of a cell, so the shortest time decides. By the cell, of all
    implementations: to leave out those launches that waited would leave out an implementation, or
    its slower rounds, and keep what it is held against.
    """
    waits: dict[tuple[str, str], Waits] = defaultdict(Waits)
    for launch in campaign.sound():
        waits[launch.record.cell, launch.record.implementation].add(launch.record)
    late = {key for key, own in waits.items() if own.shortest_s(has_times=True) > 0}
    times: dict[tuple[str, str], dict[tuple[str, int], list[float]]] = {
        key: defaultdict(list) for key in late
    }
    for launch in campaign.sound() if late else ():
        key = launch.record.cell, launch.record.implementation
        for series, of_series in launch.values.times.items() if key in late else ():
            for size, seconds in of_series.items():
                times[key][series, size].append(seconds)
    waited = set()
    for key in late:
        medians = [median(own) for own in times[key].values()]
        if waits[key].shortest_s(bool(medians)) > min(medians, default=0.0):
            waited.add(key[0])
    return frozenset(waited)


def without_waiting(campaign: Campaign) -> list[Launch]:
    """Return the sound launches without those of cells whose ranks waited for processors."""
    waited = cells_that_waited(campaign)
    return [launch for launch in campaign.sound() if launch.record.cell not in waited]
