"""What a campaign's time was spent on: how much of it the programs themselves timed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from statistics import quantiles

from analysis.tables.table import COUNT, DURATION, PERCENT, Column, Row, Table
from records.campaign import Campaign
from records.launch import LaunchRecord
from records.timed import timed_s, warm_ups_s


def between_s(records: Iterable[LaunchRecord]) -> list[float]:
    """Return the seconds from each launch's end to the beginning of the next one of its round.

    By the launches' own stamps, which exclude what their jobs do before and after: that is part
    of what measuring costs. Of a launch that another one followed which is not there, or of which
    nobody knows the place, there is none.
    """
    found = []
    timed = [one for one in records if one.wall_s is not None and one.position is not None]
    ordered = sorted(timed, key=lambda one: (one.round, one.position))
    for one, following in pairwise(ordered):
        assert one.position is not None and one.wall_s is not None
        if (following.round, following.position) == (one.round, one.position + 1):
            found.append(following.started_s() - one.started_s() - one.wall_s)
    # Where somebody set the clock, it tells nothing.
    return [seconds for seconds in found if seconds >= 0]


def said_between(records: Iterable[LaunchRecord]) -> str | None:
    """Return a sentence on the time between launches, None of too few to say."""
    found = between_s(records)
    if len(found) < 2:
        return None
    lower, median, upper = quantiles(found, n=4, method="inclusive")
    return (
        f"Between the end of a launch and the beginning of the next in its round: {median:.3g} s "
        f"(median of {len(found)}; middle half {lower:.3g} to {upper:.3g} s)."
    )


def timed_table(campaign: Campaign) -> Table | None:
    """Return the table of launches, their time and the timed part of it, by experiment.

    None where no sound launch says how long it took.
    """
    launches: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for launch in campaign.sound():
        if launch.output is not None and launch.record.wall_s is not None:
            took = launch.record.wall_s, timed_s(launch.output), warm_ups_s(launch.output)
            launches[launch.record.experiment, launch.record.implementation].append(took)
    if not launches:
        return None
    rows = []
    by_time = sorted(launches.items(), key=lambda one: -sum(wall for wall, *_ in one[1]))
    for (experiment, name), found in by_time:
        wall, timed, warm = (math.fsum(part) for part in zip(*found, strict=True))
        share = timed / wall if wall else None
        rows.append(Row((experiment, name, len(found), wall, timed, share, warm), name))
    columns = (
        Column("experiment", "experiment"), Column("implementation", "implementation"),
        Column("launches", "launches", COUNT, "1"),
        Column("wall", "they took", DURATION, "s"), Column("timed", "timed", DURATION, "s"),
        Column("share", "share", PERCENT, "1"),
        Column("warm_ups", "warm-ups, about", DURATION, "s"),
    )  # fmt: skip
    every = [one for found in launches.values() for one in found]
    wall, timed, warm = (math.fsum(part) for part in zip(*every, strict=True))
    # Of a sample, the rounds had other launches too.
    rounds = () if campaign.manifest.sample else campaign.manifest.rounds_done
    whole = math.fsum(one.wall_s for one in rounds)
    notes = [
        "Timed: iterations without warm-ups, the sections that HPL, NPB and su3 time, and all of a "
        "start-up. The rest of a launch is its container, MPI's start, verification, and warm-ups; "
        "the estimate of warm-ups counts those that a program states, each as long as a timed "
        "iteration.",
        f"In total {timed:.0f} s of {wall:.0f} s of sound launches"
        + (f" ({timed / wall:.0%})" if wall else "")
        + (f", and {timed / whole:.0%} of {whole:.0f} s of rounds" if whole else "")
        + (f"; with warm-ups {(timed + warm) / (whole or wall):.0%}" if whole or wall else "")
        + ".",
    ]
    # Of a sample, other launches were between them.
    records = [] if campaign.manifest.sample else [one.record for one in campaign.launches]
    notes += [said] if (said := said_between(records)) else []
    return Table("what-was-timed", "What the time was spent on", columns, rows, notes)
