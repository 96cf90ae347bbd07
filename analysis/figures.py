"""Curves over message size as inline SVG: logarithmic axes, interval bands, launches as points.

Drawn here rather than by a plotting library because a report must stay small, readable without
scripts, and in the reader's own light or dark colours; colours are CSS classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from analysis.comparison import Estimate

WIDTH, HEIGHT = 460.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 10.0, 10.0, 40.0
#: More launches than this are drawn as so many of their quantiles, so that a report stays small.
MOST_DOTS = 25
MARKERS = ("circle", "square", "diamond", "triangle", "cross", "plus")


@dataclass(frozen=True)
class Curve:
    """One implementation's estimates over message size; `style` numbers its colour and marker."""

    name: str
    style: int
    estimates: Sequence[Estimate]


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from `low` to `high` (data) onto `start` to `end` (drawing)."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return where a value lies in the drawing."""
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


def prefixed(value: float, unit: str) -> str:
    """Return a value with a decimal prefix, for people: 12500000 B/s is 12.5 MB/s."""
    if value == 0:
        return f"0 {unit}"
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""),
                           (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p")):  # fmt: skip
        if abs(value) >= factor * 0.9995:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def marker(style: int, x: float, y: float, label: str) -> str:
    """Return a marker whose shape tells the implementation apart without colour."""
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


def draw_curve(curve: Curve, across: Axis, up: Axis, unit: str) -> str:
    """Return one implementation's band, line, launches and markers."""
    parts = []
    runs = segments(curve.estimates)
    for run in runs:
        upper = [(across.place(e.message_bytes), up.place(e.interval.high)) for e in run]
        lower = [(across.place(e.message_bytes), up.place(e.interval.low)) for e in run]
        middle = [(across.place(e.message_bytes), up.place(e.median)) for e in run]
        parts.append(f'<polygon class="band" points="{polyline(upper + lower[::-1])}"/>')
        parts.append(f'<polyline class="line" points="{polyline(middle)}"/>')
    for estimate in curve.estimates:
        x = across.place(estimate.message_bytes)
        # A line of no length with round ends is a dot, in fewer characters than a circle.
        places = "".join(f"M{x:.1f} {up.place(v):.1f}h0" for v in dots(estimate.launches))
        parts.append(f'<path class="launch" d="{places}"/>')
        label = (
            f"{curve.name}, {estimate.message_bytes} bytes: "
            f"median {prefixed(estimate.median, unit)} "
            f"[{prefixed(estimate.interval.low, unit)}, {prefixed(estimate.interval.high, unit)}], "
            f"{estimate.interval.coverage:.0%} interval of {len(estimate.launches)} launches"
        )
        parts.append(marker(curve.style, x, up.place(estimate.median), label))
    return (
        f'<g class="curve style{curve.style}" data-name="{escape(curve.name)}">{"".join(parts)}</g>'
    )


def dots(launches: Sequence[float]) -> Sequence[float]:
    """Return the launches to draw: all, or evenly spaced quantiles from the least to the most."""
    if len(launches) <= MOST_DOTS:
        return launches
    ordered = sorted(launches)
    return [ordered[i * (len(ordered) - 1) // (MOST_DOTS - 1)] for i in range(MOST_DOTS)]


def segments(estimates: Sequence[Estimate]) -> list[list[Estimate]]:
    """Split a curve where sizes jump: between the ranges of a sweep nothing was measured.

    Points are joined only where interpolation is valid (Hoefler and Belli, rule 12).
    """
    runs: list[list[Estimate]] = []
    for estimate in estimates:
        if runs and estimate.message_bytes <= 10 * runs[-1][-1].message_bytes:
            runs[-1].append(estimate)
        else:
            runs.append([estimate])
    return runs


Ticks = Sequence[tuple[float, str]]


def byte_ticks(across: Axis) -> Ticks:
    """Return an axis' own ticks as message sizes in words."""
    return [(tick, prefixed(tick, "B")) for tick in across.ticks()]


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


@dataclass(frozen=True)
class Limit:
    """A physical limit by its name, as (message bytes, value): the most, or of times the least."""

    name: str
    points: tuple[tuple[int, float], ...]
    is_least: bool = False


def highest(curves: Sequence[Curve]) -> float:
    """Return the value of the best launch, and some room above it."""
    return max(v for curve in curves for e in curve.estimates for v in e.launches) * 1.3


def lowest(curves: Sequence[Curve]) -> float:
    """Return the value of the least launch, and some room below it."""
    return min(v for curve in curves for e in curve.estimates for v in e.launches) / 1.3


def limit_points(curves: Sequence[Curve], limit: Limit | None) -> list[tuple[int, float]]:
    """Return where a limit is drawn: where it is near.

    A far limit would flatten what is measured.
    """
    if limit is None:
        return []
    sizes = [e.message_bytes for curve in curves for e in curve.estimates]
    return [
        (size, value)
        for size, value in limit.points
        if (value >= lowest(curves) / 3 if limit.is_least else value <= highest(curves) * 3)
        and min(sizes) <= size <= max(sizes)
    ]


def bandwidth_figure(
    title: str, curves: Sequence[Curve], limit: Limit | None, unit: str = "B/s",
    label: str = "bandwidth",
) -> Markup:  # fmt: skip
    """Return the figure of bandwidth, or another quantity in a unit, over message size.

    Nothing can be above the limit, or below one that is the least.
    """
    sizes = [e.message_bytes for curve in curves for e in curve.estimates]
    near = limit_points(curves, limit)
    high = max([highest(curves), *(value * 1.1 for _, value in near)])
    low = min([lowest(curves), *(value / 1.1 for _, value in near)])
    across = Axis(min(sizes) * 0.85, max(sizes) * 1.15, LEFT, WIDTH - RIGHT)
    up = Axis(low, high, HEIGHT - BOTTOM, TOP)
    text = "; ".join(
        f"{curve.name}: from {prefixed(curve.estimates[0].median, unit)} at "
        f"{curve.estimates[0].message_bytes} bytes to {prefixed(curve.estimates[-1].median, unit)} "
        f"at {curve.estimates[-1].message_bytes} bytes"
        for curve in curves
    )
    parts = [
        f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img">',
        f"<title>{escape(title)}</title><desc>{escape(text)}</desc>",
        draw_axes(
            across,
            up,
            byte_ticks(across),
            [(tick, prefixed(tick, unit)) for tick in up.ticks()],
            f"message size; {label} upwards, both logarithmic",
        ),
    ]
    if limit and near:
        points = [(across.place(size), up.place(value)) for size, value in near]
        parts.append(f'<polyline class="limit" points="{polyline(points)}">'
                     f"<title>{escape(limit.name)}: no message can be faster</title>"
                     "</polyline>")  # fmt: skip
    parts += [draw_curve(curve, across, up, unit) for curve in curves]
    parts.append("</svg>")
    return Markup("".join(parts))


def legend_mark(style: int, shape: int | None = None) -> Markup:
    """Return a legend's sample of line and marker.

    The marker's shape is the style's own, or `shape`, which tells apart styles of one colour.
    """
    mark = marker(style if shape is None else shape, 14.0, 7.0, "")
    return Markup(
        f'<svg class="sample style{style}" viewBox="0 0 28 14" aria-hidden="true">'
        f'<path class="line" d="M0 7H28"/>{mark}</svg>'
    )
