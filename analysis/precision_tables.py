"""The tables of how sure a campaign is: rounds needed, and spread within and between launches."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.campaign import Campaign
from analysis.comparison import Comparison
from analysis.figures import prefixed
from analysis.launch_spread import SHARES, Spread
from analysis.rounds_needed import Plan
from analysis.text_table import TextTable

#: With so many rounds the deviation's upper limit is within a third of what was seen.
ENOUGH_ROUNDS = 10


def duration(seconds: float | None) -> str:
    """Return a duration for people."""
    if seconds is None:
        return "–"
    for factor, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def many(rounds: int | None) -> str:
    """Return a number of rounds for people."""
    return "more than a million" if rounds is None else f"{rounds:,}"


def plan_table(
    comparison: Comparison, rows: Sequence[Plan], precision: float, power: float
) -> TextTable:
    """Return the rounds that each group or cell needs."""
    columns = (
        "what", "implementation", "rounds seen", "deviation", "at most",
        f"rounds for ±{precision:.3g}", "at most", f"to show {precision:.3g}", "a round takes",
        "all of them",
    )  # fmt: skip
    shown: list[tuple[str, ...]] = [
        (
            row.name, row.implementation, str(row.seen), f"{row.deviation:.2%}",
            f"{row.deviation_at_most:.2%}", many(row.rounds), many(row.rounds_at_most),
            many(row.to_show), duration(row.round_s), duration(row.seconds),
        )
        for row in rows
    ]  # fmt: skip
    families = " or ".join(map(str, sorted({row.family for row in rows})))
    notes = [
        f"Against {comparison.base}. Deviation: of one round's ratio; `at most`: its upper 95% "
        "limit, and the rounds that suffice even then, for which the last column has the time.",
        f"`to show`: rounds that show a true difference of {precision:.1%} with a probability of "
        f"{power:.0%}, by the deviation seen and corrected for {families} comparisons, as the "
        "verdicts are.",
    ]
    fewest = min(row.seen for row in rows)
    if fewest < ENOUGH_ROUNDS:
        notes.append(
            f"The deviation comes from {fewest} rounds and is uncertain itself: take the numbers "
            "`at most`, or measure some rounds and ask again."
        )
    needed = [row.rounds_at_most for row in rows]
    wall = sum(launch.record.wall_s or 0.0 for launch in comparison.campaign.launches)
    rounds = len({launch.record.round for launch in comparison.campaign.launches})
    most = None if None in needed else max(n for n in needed if n is not None)
    notes.append(
        f"A whole round of {comparison.campaign.path.name} took {duration(wall / rounds)} of "
        "launches, without what ReFrame and a queue add; for every row "
        + (
            f"at once: {many(most)} rounds, {duration(most * wall / rounds)}."
            if most is not None
            else "at once no number of rounds up to a million suffices."
        )
    )
    return TextTable("Rounds needed", columns, shown, 2, notes)


def spread_table(campaign: Campaign, rows: Sequence[Spread], most: int) -> TextTable:
    """Return the spread of cells, the largest between launches first."""
    ordered = sorted(rows, key=lambda row: -(row.between or 0.0))[:most]
    columns = (
        "cell", "implementation", "bytes", "launches", "within", "between", "explained",
        *(f"{share:.0%} quantile" for share in SHARES),
    )  # fmt: skip
    shown: list[tuple[str, ...]] = []
    for row in ordered:
        quantiles = []
        for share in SHARES:
            value, interval = row.quantiles.get(share, (None, None))
            if value is None or interval is None:
                quantiles.append("–")
            else:
                low, high = prefixed(interval.low, "s"), prefixed(interval.high, "s")
                quantiles.append(f"{prefixed(value, 's')} ({low} – {high})")
        shown.append((
            row.cell, row.implementation, str(row.message_bytes), str(row.launches),
            f"{row.within:.1%}", "–" if row.between is None else f"{row.between:.1%}",
            "–" if row.explained is None else f"{row.explained:.0%}", *quantiles,
        ))  # fmt: skip
    coverages = sorted({i.coverage for row in ordered for _, i in row.quantiles.values()})
    notes = [
        "within: an iteration's deviation from its launch's median; between: a launch's median's "
        "from the others', less what the iterations explain of it (explained: that share of the "
        "variance of medians).",
        f"{len(ordered)} of {len(rows)} rows.",
    ]
    if coverages:
        notes.insert(1, "Quantiles: of each launch's raw iterations, the median over launches, "
                     "with an interval of order statistics that covers "
                     f"{', '.join(f'{c:.1%}' for c in coverages)} of the time; – where a launch "
                     "kept too few iterations, or none.")  # fmt: skip
    return TextTable(f"Spread of {campaign.path.name}", columns, shown, 2, notes)
