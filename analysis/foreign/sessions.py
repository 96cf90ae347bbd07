"""Runs that were started together: they share what differs between sessions, such as the day.

So the runs of a session are one draw from what differs between sessions, however many they are.
Where no session is known, runs that begin close together are taken for one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from inference.intervals import median
from records.foreign.run import Run
from records.foreign.times import natural

#: Runs that begin within so many seconds are no independent draws from what differs between days:
#: where no session is known, they are taken for one.
TOGETHER_S = 3600.0


def in_order(runs: Sequence[Run]) -> tuple[list[int], str]:
    """Return the places of runs in order of time, and by what; raises ValueError with a sentence.

    Where no run has a time the names are the order.
    """
    timed = sum(run.began_utc is not None for run in runs)
    if timed == len(runs):
        return sorted(range(len(runs)), key=lambda at: runs[at].began_utc or 0.0), "time"
    if timed:
        first = next(run.where for run in runs if run.began_utc is None)
        raise ValueError(
            f"{len(runs) - timed} of {len(runs)} runs have no time, such as {first}: there is no "
            "order of all of them"
        )
    order = sorted(range(len(runs)), key=lambda at: natural(runs[at].where))
    return order, "their files' names, since they have no time"


def nights_of(runs: Sequence[Run], order: Sequence[int]) -> list[list[int]]:
    """Return the places of a history's runs by session in their order, or by hour.

    A run without a time is one by itself: its file's name is the order.
    """
    groups: dict[str, list[int]] = {}
    since, hour = -math.inf, ""
    for at in order:
        run = runs[at]
        if run.session is not None:
            own = f"session {run.session}"
        elif run.began_utc is None:
            own = f"run {at}"
        else:
            if run.began_utc - since >= TOGETHER_S:
                since, hour = run.began_utc, f"run {at}"
            own = hour
        groups.setdefault(own, []).append(at)
    return list(groups.values())


def sessions_of(runs: Sequence[Run]) -> list[list[int]]:
    """Return the places of a set's runs by session.

    Where none is known, runs of which each begins within an hour of the one before it are one, and
    so are runs without a time that are in one file.
    """
    groups: dict[str, list[int]] = {}
    before, together = -math.inf, ""
    for at in sorted(range(len(runs)), key=lambda at: runs[at].began_utc or 0.0):
        run = runs[at]
        if run.session is not None:
            own = f"session {run.session}"
        elif run.began_utc is None:
            own = f"file {run.source}"
        else:
            if run.began_utc - before >= TOGETHER_S:
                together = f"run {at}"
            before, own = run.began_utc, together
        groups.setdefault(own, []).append(at)
    return list(groups.values())


def medians(levels: Sequence[float], groups: Sequence[Sequence[int]]) -> list[float]:
    """Return the median level of each group."""
    return [median([levels[at] for at in group]) for group in groups]
