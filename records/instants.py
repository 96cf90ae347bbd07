"""When a launch began and ended: by the wall clock, which can be set, and by one that cannot.

A job's script notes both on the launch's first node (COMMAND). The wall clock is precise and says
when; the time since the node's start, from /proc/uptime in hundredths of a second, runs evenly
whatever anybody sets. It is read before and after the wall clock, so that a node that stands
still between the readings, as a virtual machine may for seconds, is not mistaken for one whose
clock was set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: Prints the wall clock, the first line of /proc/stat, and the time since the start of the node
#: before and after the wall clock; without /proc/uptime its last line is empty.
COMMAND = (
    '{ read -r uptime_before _ </proc/uptime; now=$EPOCHREALTIME; [ -n "$now" ] || '
    "now=$(date +%s.%N); read -r uptime_after _ </proc/uptime; read -r processors </proc/stat; "
    "echo ${now%[!0-9]*}.${now#*[!0-9]}; echo $processors; "
    "echo $uptime_before $uptime_after; } 2>/dev/null"
)
#: What a reading of /proc/uptime has cut off at most, in seconds.
CUT_OFF_S = 0.01


@dataclass(frozen=True)
class Instant:
    """A moment by both clocks of a node, in seconds."""

    #: Since the epoch.
    utc_s: float
    #: Since the node's start: the least and the most that it can have been.
    uptime_s: tuple[float, float] | None

    def step_until(self, end: Instant) -> float | None:
        """Return by how much the wall clock was certainly set before another moment, if it was."""
        if self.uptime_s is None or end.uptime_s is None:
            return None
        least, most = self.utc_s - self.uptime_s[1], self.utc_s - self.uptime_s[0]
        least_then, most_then = end.utc_s - end.uptime_s[1], end.utc_s - end.uptime_s[0]
        if least_then <= most and least <= most_then:
            return None
        return (least_then + most_then - least - most) / 2

    def seconds_until(self, end: Instant) -> float | None:
        """Return the time until another moment; None if the clocks do not give it."""
        step = self.step_until(end) or 0.0
        seconds = end.utc_s - self.utc_s - step
        return seconds if seconds >= 0 else None


def instant(lines: Sequence[str]) -> Instant | None:
    """Return the moment that COMMAND noted; None if it did not."""
    try:
        utc_s = float(lines[0])
    except (IndexError, ValueError):
        return None
    if not 0 <= utc_s < math.inf:
        return None
    try:
        before, after = map(float, lines[2].split())
    except (IndexError, ValueError):
        return Instant(utc_s, None)
    if not 0 <= before <= after < math.inf:
        return Instant(utc_s, None)
    return Instant(utc_s, (before, after + CUT_OFF_S))
