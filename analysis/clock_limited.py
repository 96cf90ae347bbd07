"""What the clock was too coarse for: shown with the reason, and in no ratio, verdict or rank."""

from __future__ import annotations

from analysis.comparison import Comparison
from analysis.data_tables import DataTable
from analysis.figures import prefixed
from analysis.metrics import metrics
from analysis.plausibility import FEWEST_STEPS
from analysis.text_table import TextTable

REASON = (
    f"Limited by the clock: the median over launches is below {FEWEST_STEPS} steps of the clock "
    "(the coarsest of the launches), so it says more of the clock than of the implementation. It "
    "is in no ratio, verdict or rank; the other sizes of the launches are."
)
TITLE = "Limited by the clock"


def limited_table(comparison: Comparison, cell: str | None = None) -> TextTable | None:
    """Return what is limited by the clock, of one cell or of all; None where nothing is."""
    rows: list[tuple[str, ...]] = [
        (
            one.cell, one.implementation, str(one.point.message_bytes),
            prefixed(one.point.value, metrics()[one.experiment]["unit"]),
            prefixed(one.point.time_s, "s"), prefixed(one.point.resolution_s, "s"),
            f"{one.point.time_s / one.point.resolution_s:.3g}",
        )
        for one in comparison.limited
        if cell in (None, one.cell)
    ]  # fmt: skip
    columns = ("cell", "implementation", "bytes", "median", "time", "clock's step", "steps")
    return TextTable(TITLE, columns, rows, 2, [REASON]) if rows else None


def limited_data(comparison: Comparison) -> DataTable:
    """Return what is limited by the clock as data."""
    columns = ("campaign", "cell", "implementation", "message_bytes (B)", "median", "unit",
               "time (s)", "clock_resolution (s)", "reason")  # fmt: skip
    rows = [
        (
            comparison.campaign.path.name, one.cell, one.implementation, one.point.message_bytes,
            one.point.value, metrics()[one.experiment]["unit"], one.point.time_s,
            one.point.resolution_s, REASON,
        )
        for one in comparison.limited
    ]  # fmt: skip
    return DataTable("limited-by-the-clock", TITLE, columns, rows)


def limited_sentence(comparison: Comparison) -> list[str]:
    """Return in one sentence how much is limited by the clock; nothing where nothing is."""
    count = len(comparison.limited)
    if not count:
        return []
    of = ", ".join(sorted({one.implementation for one in comparison.limited}))
    return [
        f"Limited by the clock: {count} point{'s' if count > 1 else ''} of {of}, in no ratio, "
        "verdict or rank."
    ]
