"""What the clock was too coarse for: shown with the reason, but in no ratio, verdict or rank."""

from __future__ import annotations

from analysis.comparison.metrics import metrics
from analysis.comparison.result import Comparison
from analysis.tables.table import COUNT, PREFIXED, Column, Row, Table, formatted
from records.limits.plausibility import FEWEST_STEPS

REASON = (
    f"Limited by the clock: the median over launches is below {FEWEST_STEPS} steps of the clock "
    "(the coarsest of the launches), so it says more about the clock than about the "
    "implementation. It is left out of ratios, verdicts and ranks; the launches' other sizes are "
    "not."
)

NAME = "limited-by-the-clock"


def limited_table(comparison: Comparison, cell: str | None = None) -> Table | None:
    """Return what is limited by the clock, in one cell or in all; None if nothing is."""
    rows = [
        Row(
            (
                one.cell, one.implementation, one.point.message_bytes, one.point.value,
                metrics()[one.experiment]["unit"], one.point.time_s, one.point.resolution_s,
                one.point.time_s / one.point.resolution_s, REASON,
            ),
            one.implementation, (one.measured_in,),
        )
        for one in comparison.limited
        if cell in (None, one.cell)
    ]  # fmt: skip
    columns = (
        Column("cell", "cell"), Column("implementation", "implementation"),
        Column("message_bytes", "bytes", COUNT, "B"),
        Column("median", "median", PREFIXED, "unit", fields=("median",)), Column("unit"),
        Column("time", "time", PREFIXED, "s"),
        Column("clock_resolution", "clock's step", PREFIXED, "s"),
        Column("steps", "steps", formatted(".3g"), "1"), Column("reason"),
    )  # fmt: skip
    table = Table(NAME, "Limited by the clock", columns, rows, [REASON])
    return table if rows else None


def limited_sentence(comparison: Comparison) -> list[str]:
    """Return in one sentence how much is limited by the clock; empty if nothing is."""
    count = len(comparison.limited)
    if not count:
        return []
    of = ", ".join(sorted({one.implementation for one in comparison.limited}))
    return [
        f"Limited by the clock: {count} point{'s' if count > 1 else ''} of {of}, left out of "
        "ratios, verdicts and ranks."
    ]
