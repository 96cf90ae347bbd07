"""Axes, ticks and marks of figures in SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT = 460.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 10.0, 10.0, 40.0
MARKERS = ("circle", "square", "diamond", "triangle", "cross", "plus")
Ticks = Sequence[tuple[float, str]]


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from `low` to `high` (data) onto `start` to `end` (drawing)."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return a value's position in the drawing."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return 1, 2, 5 times powers of ten inside the axis, thinned to at most eight."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for steps in ((1, 2, 5), (1, 3), (1,)):
            found = [
                step * 10.0**power
                for power in range(first, last + 1)
                for step in steps
                if self.low * 0.999 <= step * 10.0**power <= self.high * 1.001
            ]
            if len(found) <= 8:
                return found
        return found


def marker(style: int, x: float, y: float, label: str) -> str:
    """Return a marker whose shape identifies the implementation without colour."""
    shape = MARKERS[style % len(MARKERS)]
    title = f"<title>{escape(label)}</title>"
    size = 3.4
    paths = {
        "square": f"M{x - size} {y - size}h{2 * size}v{2 * size}h{-2 * size}z",
        "diamond": f"M{x} {y - 4.4}l4.4 4.4l-4.4 4.4l-4.4-4.4z",
        "triangle": f"M{x} {y - 4.2}l4 7h-8z",
        "cross": f"M{x - 3} {y - 3}l6 6m0-6l-6 6",
        "plus": f"M{x - 4} {y}h8m-4-4v8",
    }
    if shape == "circle":
        return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="3.6">{title}</circle>'
    return f'<path class="mark" d="{paths[shape]}">{title}</path>'


def polyline(points: Sequence[tuple[float, float]]) -> str:
    """Return points as SVG coordinates."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def draw_axes(across: Axis, up: Axis, sideways: Ticks, upwards: Ticks, title: str) -> str:
    """Return grid, tick labels and the axes' title; ticks are values with their words."""
    parts = []
    bottom, left = HEIGHT - BOTTOM, LEFT
    for tick, words in sideways:
        x = across.place(tick)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">'
                     f"{words}</text>")  # fmt: skip
    for tick, words in upwards:
        y = up.place(tick)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="tick" x="{left - 5}" y="{y + 3:.1f}" text-anchor="end">'
                     f"{words}</text>")  # fmt: skip
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text class="axis" x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">'
                 f"{escape(title)}</text>")  # fmt: skip
    return "".join(parts)


def legend_mark(style: int, shape: int | None = None) -> Markup:
    """Return a legend's sample of line and marker.

    The marker's shape is the style's own, or `shape`, which distinguishes styles of one colour.
    """
    mark = marker(style if shape is None else shape, 14.0, 7.0, "")
    return Markup(
        f'<svg class="sample style{style}" viewBox="0 0 28 14" aria-hidden="true">'
        f'<path class="line" d="M0 7H28"/>{mark}</svg>'
    )
