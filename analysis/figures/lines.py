"""Lines over any quantity as inline SVG, on logarithmic axes, in the style of the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from analysis.figures import axes
from analysis.figures.axes import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    draw_axes,
    marker,
    polyline,
)
from analysis.tables.units import prefixed

COLOURS = 6


@dataclass(frozen=True)
class Point:
    """A point with its interval upwards."""

    across: float
    up: float
    low: float
    high: float


@dataclass(frozen=True)
class Line:
    """A named line; `style` numbers its colour and marker."""

    name: str
    style: int
    points: Sequence[Point]


def shape(style: int) -> int:
    """Return the number of a style's marker, unlike that of the previous one of its colour."""
    return style % COLOURS + style // COLOURS


def legend_mark(style: int) -> Markup:
    """Return a legend's sample of line and marker."""
    return axes.legend_mark(style % COLOURS, shape(style))


def plain(value: float) -> str:
    """Return a number with a decimal prefix and no unit."""
    return prefixed(value, "").strip()


def axis(values: Sequence[float], start: float, end: float) -> Axis:
    """Return an axis with room for all values, even if there is only one."""
    return Axis(min(values) / 1.2, max(values) * 1.2, start, end)


def ticks(of: Axis) -> list[float]:
    """Return an axis' ticks: its own, or evenly spaced round numbers where it has too few."""
    found = of.ticks()
    if len(found) >= 3:
        return found
    least = (of.high - of.low) / 5
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
    first = math.ceil(of.low / step)
    return [number * step for number in range(first, math.floor(of.high / step) + 1) if number > 0]


def line_figure(title: str, lines: Sequence[Line], across_name: str) -> Markup:
    """Return the figure of lines over a quantity, both above zero."""
    points = [point for line in lines for point in line.points]
    across = axis([point.across for point in points], LEFT, WIDTH - RIGHT)
    up = axis([x for p in points for x in (p.low, p.up, p.high)], HEIGHT - BOTTOM, TOP)
    said = "; ".join(
        f"{line.name}: {plain(line.points[0].up)} at {plain(line.points[0].across)} to "
        f"{plain(line.points[-1].up)} at {plain(line.points[-1].across)}"
        for line in lines
    )
    parts = [
        f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img">',
        f"<title>{escape(title)}</title><desc>{escape(said)}</desc>",
    ]
    parts.append(
        draw_axes(
            across,
            up,
            [(tick, plain(tick)) for tick in ticks(across)],
            [(tick, plain(tick)) for tick in ticks(up)],
            f"{across_name.replace('_', ' ')}; both axes logarithmic",
        )
    )
    for line in lines:
        placed = [(across.place(point.across), up.place(point.up)) for point in line.points]
        parts.append(f'<g class="curve style{line.style % COLOURS}">')
        if len(placed) > 1:
            parts.append(f'<polyline class="line" points="{polyline(placed)}"/>')
        for point, (x, y) in zip(line.points, placed, strict=True):
            if point.high > point.low:
                low, high = up.place(point.low), up.place(point.high)
                parts.append(f'<path class="line whisker" d="M{x:.1f} {low:.1f}V{high:.1f}"/>')
            said = f"{line.name}, {plain(point.across)}: {point.up:.4g}".removeprefix(", ")
            parts.append(marker(shape(line.style), x, y, said))
        parts.append("</g>")
    parts.append("</svg>")
    return Markup("".join(parts))
