"""Which times of launches with more ranks than processors say something about the library.

So do launches whose ranks were all put on fewer cores than they are, as the ranks see it at their
end: an MPI's binding, or the scheduler's, may do that where a site has enough.

Ranks that wait for a processor are not timed waiting for messages. Whether they did is measured
(records/ending.py). A rank that has nothing to do may give its processor away, as MPIs do that are
told to, and then waits most of its time without being late for anything. So what counts is how
late: by how much a message that comes at any moment finds its rank without a processor.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from inference.intervals import median
from records.ending import MOST_WAITED
from records.launch import LaunchRecord

#: An operation waits for so many messages of each rank, one after the other, at most: a sum of long
#: vectors goes around the ring of ranks twice.
MESSAGES_OF_A_RANK = 2
#: Of these programs an iteration is a computation with any number of messages.
COMPUTING = ("emulator", "su3")


@dataclass
class Waits:
    """What the launches of an implementation in a cell waited for processors.

    That counts where there were more ranks than processors, or than cores that ranks were put on,
    in any launch. `late_s` is by how much an operation of the launch may have been late.
    """

    shares_cores: bool = False
    unknown: int = 0
    shares: list[float] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)

    def add(self, record: LaunchRecord) -> None:
        """Add a launch."""
        self.shares_cores |= record.shares_cores and (
            record.has_more_ranks or record.waiting is not None
        )
        if record.waiting is None:
            self.unknown += record.has_more_ranks
            return
        self.shares.append(record.waiting.share)
        messages = MESSAGES_OF_A_RANK * record.ranks
        late_s = float("inf") if record.program in COMPUTING else messages * record.waiting.delay_s
        self.late_s.append(late_s)

    def shortest_s(self) -> float:
        """Return the shortest time that counts: infinite where none does.

        Over all launches together: leaving out those that waited longer would be a choice by what
        came of them.
        """
        if not self.shares_cores:
            return 0.0
        if self.unknown or not self.shares:
            return float("inf")
        if median(self.shares) < MOST_WAITED:
            return 0.0
        return median(self.late_s) / MOST_WAITED
