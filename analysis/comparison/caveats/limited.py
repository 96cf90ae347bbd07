"""What is too short to be compared: shown with the reason, but in no ratio, verdict or rank.

The clock was too coarse for it, or ranks without a processor may have been late for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.comparison.metrics import metrics
from analysis.comparison.result import Comparison, LimitedPoint
from analysis.tables.table import COUNT, PREFIXED, Column, Row, Table, formatted
from records.ending import MOST_WAITED
from records.limits.plausibility import FEWEST_STEPS


@dataclass(frozen=True)
class TooShort:
    """Why something is too short: what its table is called, its step, and the reason."""

    name: str
    title: str
    column: Column
    reason: str

    @property
    def late(self) -> bool:
        """Return whether it is about ranks that were late."""
        return self is WAITING


CLOCK = TooShort(
    "limited-by-the-clock", "Limited by the clock",
    Column("clock_resolution", "clock's step", PREFIXED, "s"),
    f"Limited by the clock: the median over launches is below {FEWEST_STEPS} steps of the clock "
    "(the coarsest of the launches), so it says more about the clock than about the "
    "implementation. It is left out of ratios, verdicts and ranks; the launches' other sizes are "
    "kept.",
)  # fmt: skip
WAITING = TooShort(
    "limited-by-waiting", "Limited by waiting for processors",
    Column("late", "late by", PREFIXED, "s"),
    "Limited by waiting for processors: with more ranks than processors, messages reached ranks "
    f"that had none, which may have delayed the operation by {MOST_WAITED:.0%} of the median over "
    "launches or more. It is left out of ratios, verdicts and ranks; longer ones are kept.",
)  # fmt: skip
LIMITS = (CLOCK, WAITING)


def limited_by(comparison: Comparison, limit: TooShort) -> list[LimitedPoint]:
    """Return what is too short for one reason."""
    return [one for one in comparison.limited if one.point.late == limit.late]


def limited_tables(comparison: Comparison, cell: str | None = None) -> list[Table]:
    """Return what is too short, in one cell or in all, a table for each reason that there is."""
    tables = []
    for limit in LIMITS:
        rows = [
            Row(
                (
                    one.cell, one.implementation, one.point.message_bytes, one.point.value,
                    metrics()[one.experiment]["unit"], one.point.time_s, one.point.step_s,
                    one.point.time_s / one.point.step_s, limit.reason,
                ),
                one.implementation, (one.measured_in,),
            )
            for one in limited_by(comparison, limit)
            if cell in (None, one.cell)
        ]  # fmt: skip
        columns = (
            Column("cell", "cell"), Column("implementation", "implementation"),
            Column("message_bytes", "bytes", COUNT, "B"),
            Column("median", "median", PREFIXED, "unit", fields=("median",)), Column("unit"),
            Column("time", "time", PREFIXED, "s"), limit.column,
            Column("steps", "steps", formatted(".3g"), "1"), Column("reason"),
        )  # fmt: skip
        if rows:
            tables.append(Table(limit.name, limit.title, columns, rows, [limit.reason]))
    return tables


def limited_sentences(comparison: Comparison) -> list[str]:
    """Return in a sentence for each reason how much is too short."""
    said = []
    for limit in LIMITS:
        if points := limited_by(comparison, limit):
            of = ", ".join(sorted({one.implementation for one in points}))
            said.append(
                f"{limit.title}: {len(points)} point{'s' if len(points) > 1 else ''} of {of}, left "
                "out of ratios, verdicts and ranks."
            )
    return said
