"""Which times of launches with more ranks than processors say something about the library.

Ranks that wait for a processor are not timed waiting for messages. Whether they did is measured
(records/ending.py). A rank that has nothing to do may give its processor away, as MPIs do that are
told to, and then waits most of its time without being late for anything. So what counts is how
late: by how much a message that comes at any moment finds its rank without a processor.
"""

from __future__ import annotations

import math
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
    """What the launches of an implementation in a cell, with more ranks than processors, waited.

    `late_s` is by how much an operation of the launch may have been late.
    """

    unknown: int = 0
    shares: list[float] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)

    def add(self, record: LaunchRecord) -> None:
        """Add a launch."""
        if record.waiting is None:
            self.unknown += 1
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
        if self.unknown or not self.shares:
            return float("inf")
        late_s = median(self.late_s)
        if has_times and math.isfinite(late_s):
            return late_s / MOST_WAITED
        return 0.0 if median(self.shares) < MOST_WAITED else float("inf")
