"""Ratios to the base in one picture, each with its verdict's interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from markupsafe import Markup, escape

from analysis.comparison.verdict import Verdict, VerdictKind
from analysis.figures.axes import Axis
from analysis.report.drawings.ratio_figure import ratio_ticks, reach_of
from analysis.tables.units import interval_text

#: The sign of each kind of verdict, which shows it without colour.
SIGNS: dict[VerdictKind, str] = {
    "faster": "▲", "slower": "▼", "equivalent": "=", "no-difference": "○", "inconclusive": "?",
    "not-judged": "–",
}  # fmt: skip
What = TypeVar("What")
#: Where the axis begins and ends, in percent of the drawing's width.
START, END = 3.0, 97.0


@dataclass(frozen=True)
class ForestRow(Generic[What]):
    """A verdict, with its mark and interval on the picture's axis."""

    what: What
    verdict: Verdict
    drawing: Markup


@dataclass(frozen=True)
class Forest(Generic[What]):
    """The rows of a picture, and the axis that they share."""

    axis: Markup
    rows: list[ForestRow[What]]


def forest(found: Sequence[tuple[What, Verdict]]) -> Forest[What] | None:
    """Return a row for each verdict with its subject; None if there is no verdict.

    The intervals are those of the verdicts: each leaves out 1 exactly where a difference is shown.
    """
    if not found:
        return None
    verdicts = [verdict for _, verdict in found if not math.isnan(verdict.ratio.value)]
    reach = reach_of(
        [one.ratio.value for one in verdicts],
        [end for one in verdicts if one.interval for end in (one.interval.low, one.interval.high)],
    )
    axis = Axis(math.exp(-reach), math.exp(reach), START, END)
    ticks = ratio_ticks(axis)
    return Forest(
        axis_of(axis, ticks),
        [ForestRow(what, one, drawing_of(one, axis, ticks)) for what, one in found],
    )


def drawn(parts: Sequence[str], kind: str) -> Markup:
    """Return parts as a drawing of the available width; the row's words say what it shows."""
    return Markup(f'<svg class="{kind}" aria-hidden="true" height="22">{"".join(parts)}</svg>')


def axis_of(axis: Axis, ticks: Sequence[float]) -> Markup:
    """Return the words of the ticks."""
    words = (
        f'<text x="{axis.place(tick):.1f}%" y="15" text-anchor="middle">{tick:g}</text>'
        for tick in ticks
    )
    return drawn(list(words), "ticks")


def drawing_of(verdict: Verdict, axis: Axis, ticks: Sequence[float]) -> Markup:
    """Return a verdict's sign at its ratio, over its interval; an arrow if the axis cuts it off."""
    parts = [
        f'<line class="{"limit" if tick == 1 else "grid"}" x1="{axis.place(tick):.1f}%" '
        f'x2="{axis.place(tick):.1f}%" y1="0" y2="22"/>'
        for tick in ticks
    ]
    if math.isnan(verdict.ratio.value):
        return drawn(parts, "row")
    ends = ""
    said = f"{verdict.implementation}: ratio {verdict.ratio.words}, {verdict.words}"
    if found := verdict.interval:
        said += f", simultaneous interval {interval_text(found)}"
        low, high = max(found.low, axis.low), min(found.high, axis.high)
        start, end = axis.place(low), axis.place(high)
        parts.append(f'<line class="line" x1="{start:.1f}%" x2="{end:.1f}%" y1="11" y2="11"/>')
        # An interval that is narrower than the sign is seen by its ends.
        ends = "".join(
            f'<text class="arrow" x="{place:.1f}%" y="15" text-anchor="middle">{arrow}</text>'
            if is_cut
            else f'<line class="end" x1="{place:.2f}%" x2="{place:.2f}%" y1="6" y2="16"/>'
            for place, is_cut, arrow in (
                (start, low > found.low, "◂"), (end, high < found.high, "▸"),
            )
        )  # fmt: skip
    x = axis.place(verdict.ratio.value)
    sign = SIGNS[verdict.kind]
    disc = "" if sign in "▲▼" else f'<circle class="paper" cx="{x:.1f}%" cy="11" r="5"/>'
    parts.append(f'{disc}<text class="sign" x="{x:.1f}%" y="15.5" text-anchor="middle">'
                 f"{sign}</text>{ends}")  # fmt: skip
    title = f"<title>{escape(said)}</title>"
    # The whole width is there to be tapped.
    parts.append('<rect class="touch" width="100%" height="22"/>')
    return drawn([f'<g class="value {verdict.kind}">{title}{"".join(parts)}</g>'], "row")
