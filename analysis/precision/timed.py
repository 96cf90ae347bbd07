"""What a campaign's time was spent on: how much of it the programs themselves timed."""

from __future__ import annotations

import math
from collections import defaultdict

from analysis.tables.table import COUNT, DURATION, PERCENT, Column, Row, Table
from records.campaign import Campaign
from records.timed import timed_s


def timed_table(campaign: Campaign) -> Table | None:
    """Return the table of launches, their time and the timed part of it, by experiment.

    None where no sound launch says how long it took.
    """
    launches: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for launch in campaign.sound():
        if launch.output is not None and launch.record.wall_s is not None:
            took = launch.record.wall_s, timed_s(launch.output)
            launches[launch.record.experiment, launch.record.implementation].append(took)
    if not launches:
        return None
    rows = []
    by_time = sorted(launches.items(), key=lambda one: -sum(wall for wall, _ in one[1]))
    for (experiment, name), found in by_time:
        wall, timed = (math.fsum(part) for part in zip(*found, strict=True))
        share = timed / wall if wall else None
        rows.append(Row((experiment, name, len(found), wall, timed, share), name))
    columns = (
        Column("experiment", "experiment"), Column("implementation", "implementation"),
        Column("launches", "launches", COUNT, "1"),
        Column("wall", "they took", DURATION, "s"), Column("timed", "timed", DURATION, "s"),
        Column("share", "share", PERCENT, "1"),
    )  # fmt: skip
    every = [one for found in launches.values() for one in found]
    wall, timed = (math.fsum(part) for part in zip(*every, strict=True))
    # Of a sample, the rounds had other launches too.
    rounds = () if campaign.manifest.sample else campaign.manifest.rounds_done
    whole = math.fsum(one.wall_s for one in rounds)
    notes = [
        "Timed: iterations without warm-ups, the sections that HPL, NPB and su3 time, and all of a "
        "start-up. The rest of a launch is its container, MPI's start, warm-ups, verification.",
        f"In all {timed:.0f} s of {wall:.0f} s of sound launches"
        + (f" ({timed / wall:.0%})" if wall else "")
        + (f", and {timed / whole:.0%} of {whole:.0f} s of rounds" if whole else "")
        + ".",
    ]
    return Table("what-was-timed", "What the time was spent on", columns, rows, notes)
