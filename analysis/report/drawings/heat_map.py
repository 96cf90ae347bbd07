"""Ratios of many curves in one picture: a row for each curve, a column for each message size.

Colours and signs are those of verdicts: at a size of a cell without a shown difference there is
none, nor at one whose ratio points the other way than the difference that is shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from analysis.comparison.result import Cell, Comparison
from analysis.comparison.verdict import Verdict
from analysis.report.differences import MOST_ROWS, difference, foremost
from analysis.report.drawings.forest import SIGNS, drawn
from analysis.report.drawings.size_figures import RatioCurves, caption_of, cells_of_curves
from analysis.tables.units import prefixed

#: With more columns than this there is no room for numbers in them, nor for all sizes above them.
MOST_NUMBERS = 16
#: The least factor that has the full colour.
LEAST_FACTOR = 1.1
#: So many rows the pictures of an experiment have together: with many implementations each has
#: fewer than a table.
MOST_PICTURED = 400


@dataclass(frozen=True)
class HeatRow:
    """A curve, with the cells it is of, and a rectangle for each size."""

    name: str
    cells: list[Cell]
    drawing: Markup


@dataclass(frozen=True)
class HeatMap:
    """The ratios of an implementation to the base; `full` is the factor of the full colour.

    `left` is how many curves have no row, those that differ least.
    """

    implementation: str
    sizes: Markup
    rows: list[HeatRow]
    full: float
    left: int


def heat_maps(comparison: Comparison, experiment: str, ratios: RatioCurves) -> list[HeatMap]:
    """Return a picture for each implementation but the base, as long as a table is at most."""
    every = list(cells_of_curves(comparison, experiment).values())
    found = []
    for other in comparison.implementations:
        if other == comparison.base:
            continue
        of_curves = foremost_curves(
            every, other, MOST_PICTURED // (len(comparison.implementations) - 1)
        )
        rows = []
        for cells in of_curves:
            points = {
                point.message_bytes: (point.ratio, cell)
                for cell in cells
                for point in ratios.of(cell, other)
            }
            if points:
                rows.append((cells, points))
        if not rows:
            continue
        sizes = sorted({size for _, points in rows for size in points})
        farthest = max(abs(math.log(ratio)) for _, points in rows for ratio, _ in points.values())
        full = max(math.log(LEAST_FACTOR), farthest)
        found.append(HeatMap(
            other,
            sizes_of(sizes),
            [
                HeatRow(
                    caption_of(cells[0]).removeprefix(f"{experiment} "), cells,
                    row_of(other, points, sizes, full),
                )
                for cells, points in rows
            ],
            math.exp(full),
            len(every) - len(of_curves),
        ))  # fmt: skip
    return found


def foremost_curves(every: list[list[Cell]], other: str, most: int) -> Sequence[list[Cell]]:
    """Return the curves of which an implementation differs most, at most as many as a table has."""

    def subject(cells: list[Cell]) -> tuple[Cell, str]:
        return max(cells, key=lambda cell: difference(cell, other)), other

    return foremost(every, subject, min(MOST_ROWS, max(1, most)))


def sizes_of(sizes: list[int]) -> Markup:
    """Return the message sizes above the columns; those that a narrow page leaves out are `odd`."""
    width = 100 / len(sizes)
    step = -(-len(sizes) // MOST_NUMBERS)
    narrow = max(step, -(-len(sizes) // 5))
    words = [
        f'<text class="{"even" if number % narrow == 0 else "odd"}" '
        f'x="{(number + 0.5) * width:.2f}%" y="15" text-anchor="middle">'
        f"{prefixed(size, 'B')}</text>"
        for number, size in enumerate(sizes)
        if number % step == 0
    ]
    return drawn(words, "ticks")


def row_of(
    other: str, points: dict[int, tuple[float, Cell]], sizes: list[int], full: float
) -> Markup:
    """Return a curve's rectangles."""
    width = 100 / len(sizes)
    return drawn(
        [
            rectangle(number * width, width, size, points[size][0],
                      points[size][1].verdicts[other], full, len(sizes) <= MOST_NUMBERS)
            for number, size in enumerate(sizes)
            if size in points
        ],
        "row",
    )  # fmt: skip


def rectangle(
    left: float, width: float, size: int, ratio: float, verdict: Verdict, full: float,
    with_number: bool,
) -> str:  # fmt: skip
    """Return the rectangle of a size, which has colour and sign where a difference is shown.

    Of the whole range one is shown, and not of each size: where the ratio at a size points the
    other way, nothing is shown there.
    """
    is_shown = verdict.is_different and math.log(ratio) * math.log(verdict.ratio.value) > 0
    way = ("faster" if ratio > 1 else "slower") if is_shown else "no-difference"
    share = abs(math.log(ratio)) / full
    said = (
        f"{verdict.implementation}, {size} bytes: ratio {ratio:.3f}; of its range of sizes: "
        f"{verdict.words}"
    )
    number = (
        f'<text class="inside" x="{left + width / 2:.2f}%" y="15" text-anchor="middle">'
        f"{SIGNS[verdict.kind] if is_shown else ''}{ratio:.2f}</text>"
        if with_number
        else ""
    )
    return (
        f'<g class="value {way}"><title>{escape(said)}</title><rect class="heat" '
        f'x="{left:.2f}%" width="{width:.2f}%" height="22" '
        f'fill-opacity="{0.06 + 0.6 * share:.2f}"/>{number}</g>'
    )
