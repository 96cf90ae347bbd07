"""The tables of a campaign's precision: rounds needed, and spread within and between launches."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.comparison.result import Comparison
from analysis.precision.rounds_needed import PrecisionPlan
from analysis.precision.spread import SHARES, Spread
from analysis.tables.table import (
    COUNT,
    DURATION,
    GROUPED,
    PERCENT,
    Column,
    Kind,
    Row,
    Table,
    Untold,
    formatted,
)
from analysis.tables.units import duration, many, prefixed
from records.campaign import Campaign

#: With so many rounds the deviation's upper limit is within a third of what was seen.
ENOUGH_ROUNDS = 10


def plan_table(
    comparison: Comparison, rows: Sequence[PrecisionPlan], precision: float, power: float
) -> Table:
    """Return the rounds that each group or cell needs."""
    columns = (
        Column("what", "what"), Column("implementation", "implementation"),
        Column("rounds_seen", "rounds seen", COUNT, "1"),
        Column("deviation", "deviation", formatted(".2%"), "1"),
        Column("deviation_at_most", "at most", formatted(".2%"), "1"),
        Column("rounds", f"rounds for ±{precision:.3g}", GROUPED, "1"),
        Column("rounds_at_most", "at most", GROUPED, "1"),
        Column("rounds_to_show", f"to show {precision:.3g}", GROUPED, "1"),
        Column("round", "a round takes", DURATION, "s"),
        Column("all", "all of them", DURATION, "s"),
    )  # fmt: skip
    without_end = Untold(many(None))
    shown = [
        Row(
            (
                row.name, row.implementation, row.seen, row.deviation, row.deviation_at_most,
                *(without_end if one is None else one
                  for one in (row.rounds, row.rounds_at_most, row.to_show)),
                row.round_s, row.seconds,
            ),
            row.implementation,
        )
        for row in rows
    ]  # fmt: skip
    families = ", ".join(map(str, sorted({row.family for row in rows})))
    notes = [
        f"Against {comparison.base}. Deviation: that of one round's ratio; `at most`: its upper "
        "95% limit, and the number of rounds that suffices even then; the last column gives their "
        "time.",
        f"`to show`: rounds that show a true difference of {precision:.1%} with a probability of "
        f"{power:.0%}, over all true deviations consistent with the observed one, corrected for "
        f"the number of comparisons of each experiment ({families}), as the verdicts are.",
    ]
    fewest = min(row.seen for row in rows)
    if fewest < ENOUGH_ROUNDS:
        notes.append(
            f"The deviation comes from {fewest} rounds and is itself uncertain: use the numbers "
            "under `at most`, or measure more rounds and run this again."
        )
    needed = [row.rounds_at_most for row in rows]
    wall = sum(launch.record.wall_s or 0.0 for launch in comparison.campaign.launches)
    rounds = len({launch.record.round for launch in comparison.campaign.launches})
    most = None if None in needed else max(n for n in needed if n is not None)
    notes.append(
        f"A whole round of {comparison.campaign.path.name} took {duration(wall / rounds)} of "
        "launches, without what ReFrame and a queue add; "
        + (
            f"all rows together need {many(most)} rounds, {duration(most * wall / rounds)}."
            if most is not None
            else "for all rows together no number of rounds up to a million suffices."
        )
    )
    return Table("rounds-needed", "Rounds needed", columns, shown, notes)


def quantile_of(row: Spread, share: float) -> tuple[float, float, float] | None:
    """Return a quantile and the ends of its interval, None if too few iterations were kept."""
    value, interval = row.quantiles.get(share, (None, None))
    return None if value is None or interval is None else (value, interval.low, interval.high)


def quantile_words(of: tuple[float, float, float], unit: str) -> str:
    """Return a quantile and its interval as text."""
    value, low, high = (prefixed(one, unit) for one in of)
    return f"{value} ({low} – {high})"


def spread_table(campaign: Campaign, rows: Sequence[Spread], most: int) -> Table:
    """Return the spread of cells, the largest between launches first."""
    ordered = sorted(rows, key=lambda row: -(row.between or 0.0))[:most]
    columns = (
        Column("cell", "cell"), Column("implementation", "implementation"),
        Column("message_bytes", "bytes", COUNT, "B"), Column("launches", "launches", COUNT, "1"),
        Column("within", "within", PERCENT, "1"), Column("between", "between", PERCENT, "1"),
        Column("explained", "explained", formatted(".0%"), "1"),
        *(
            Column(f"quantile_{share:.0%}", f"{share:.0%} quantile", Kind(quantile_words), "s",
                   tuple(f"quantile_{share:.0%}{end} (s)" for end in ("", "_low", "_high")))
            for share in SHARES
        ),
    )  # fmt: skip
    shown = [
        Row(
            (
                row.cell, row.implementation, row.message_bytes, row.launches, row.within,
                row.between, row.explained,
                *(quantile_of(row, share) for share in SHARES),
            ),
            row.implementation,
        )
        for row in ordered
    ]  # fmt: skip
    coverages = sorted({i.coverage for row in ordered for _, i in row.quantiles.values()})
    notes = [
        "within: deviation of an iteration from its launch's median; between: deviation of a "
        "launch's median from the others', without the part that iterations explain (explained: "
        "that part as a share of the variance of medians).",
        f"{len(ordered)} of {len(rows)} rows.",
    ]
    if coverages:
        notes.insert(1, "Quantiles: of each launch's raw iterations, the median over launches, "
                     "with an interval of order statistics that covers "
                     f"{', '.join(f'{c:.1%}' for c in coverages)} of the time; – where a launch "
                     "kept too few iterations, or none.")  # fmt: skip
    return Table("spread", f"Spread of {campaign.path.name}", columns, shown, notes)
