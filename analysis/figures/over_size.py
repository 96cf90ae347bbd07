"""Curves over message size as inline SVG: logarithmic axes, interval bands, launches as points.

Drawn here rather than by a plotting library because a report must stay small, readable without
scripts, and in the reader's own light or dark colours; colours are CSS classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from analysis.figures.axes import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    Ticks,
    draw_axes,
    marker,
    polyline,
)
from analysis.tables.units import prefixed
from inference.estimates import Estimate

#: More launches than this are drawn as this many quantiles, so that a report stays small.
MOST_DOTS = 25


@dataclass(frozen=True)
class Curve:
    """One implementation's estimates over message size; `style` numbers its colour and marker."""

    name: str
    style: int
    estimates: Sequence[Estimate]


def draw_curve(curve: Curve, across: Axis, up: Axis, unit: str) -> str:
    """Return one implementation's band, line, launches and markers."""
    parts = []
    runs = segments(curve.estimates)
    for run in runs:
        upper = [(across.place(e.message_bytes), up.place(e.interval.high)) for e in run]
        lower = [(across.place(e.message_bytes), up.place(e.interval.low)) for e in run]
        middle = [(across.place(e.message_bytes), up.place(e.median)) for e in run]
        if len(run) == 1:
            # A band of one point has no width.
            (x, high), (_, low) = upper[0], lower[0]
            parts.append(f'<path class="line whisker" d="M{x:.1f} {low:.1f}V{high:.1f}"/>')
            continue
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
    """Return the launches to draw: all, or evenly spaced quantiles from minimum to maximum."""
    if len(launches) <= MOST_DOTS:
        return launches
    ordered = sorted(launches)
    return [ordered[i * (len(ordered) - 1) // (MOST_DOTS - 1)] for i in range(MOST_DOTS)]


def segments(estimates: Sequence[Estimate]) -> list[list[Estimate]]:
    """Split a curve where sizes jump: nothing was measured between the ranges of a sweep.

    Points are joined only where interpolation is valid (Hoefler and Belli, rule 12).
    """
    runs: list[list[Estimate]] = []
    for estimate in estimates:
        if runs and estimate.message_bytes <= 10 * runs[-1][-1].message_bytes:
            runs[-1].append(estimate)
        else:
            runs.append([estimate])
    return runs


def byte_ticks(across: Axis) -> Ticks:
    """Return an axis' own ticks as message sizes in words."""
    return [(tick, prefixed(tick, "B")) for tick in across.ticks()]


@dataclass(frozen=True)
class Limit:
    """A physical limit by its name, as (message bytes, value): a maximum, for times a minimum."""

    name: str
    points: tuple[tuple[int, float], ...]
    is_least: bool = False


def highest(curves: Sequence[Curve]) -> float:
    """Return the value of the best launch, plus some room above it."""
    return max(v for curve in curves for e in curve.estimates for v in e.launches) * 1.3


def lowest(curves: Sequence[Curve]) -> float:
    """Return the smallest launch's value, less some room below it."""
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
