"""Draw ratios over message size with their simultaneous band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup, escape

from analysis.comparison.ratio_curves import FEWEST_SIZES, RatioPoint, differs_at
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
from analysis.figures.over_size import byte_ticks

#: How far apart two ticks' words are at least, in units of the drawing.
ROOM_OF_WORDS = 15.0
RATIO_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05,
               1.1, 1.2, 1.4, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)  # fmt: skip


def ratio_figure(title: str, curves: Sequence[tuple[str, int, list[RatioPoint]]]) -> Markup | None:
    """Return the figure of ratios over size, of (implementation, style, curve); None if too few."""
    points = [p for _, _, curve in curves for p in curve if p.message_bytes > 0]
    sizes = sorted({point.message_bytes for point in points})
    if len(sizes) < FEWEST_SIZES:
        return None
    reach = reach_of(
        [point.ratio for point in points],
        [end for p in points if p.band for end in (p.band.low, p.band.high)],
    )
    across = Axis(sizes[0] * 0.85, sizes[-1] * 1.15, LEFT, WIDTH - RIGHT)
    up = Axis(math.exp(-reach), math.exp(reach), HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img"><title>{escape(title)}</title>'
        f"<desc>{escape(described(curves))}</desc>",
        draw_axes(
            across,
            up,
            byte_ticks(across),
            [(tick, f"{tick:g}") for tick in ratio_ticks(up)],
            "message size; ratio upwards, both logarithmic",
        ),
        f'<path class="limit" d="M{LEFT} {up.place(1):.1f}H{WIDTH - RIGHT}"/>',
        *(draw_ratio(name, style, curve, across, up) for name, style, curve in curves),
        "</svg>",
    ]
    return Markup("".join(parts))


def reach_of(ratios: Sequence[float], ends: Sequence[float]) -> float:
    """Return how far an axis extends on both sides of 1, as a logarithm.

    An interval of two or three rounds can be far wider than the data: it is cut off.
    """
    farthest = max([abs(math.log(ratio)) for ratio in ratios], default=0.0)
    limit = max(0.05, 2.5 * farthest)
    return max(
        [farthest * 1.2, 0.02, *(min(abs(math.log(end)), limit) * 1.05 for end in ends if end > 0)]
    )


def ratio_ticks(up: Axis) -> list[float]:
    """Return 1 and the ratios on both sides of it whose labels fit."""
    kept = [1.0]
    for side in (RATIO_TICKS, RATIO_TICKS[::-1]):
        last = 1.0
        for tick in side:
            beyond = (tick > last) if side is RATIO_TICKS else (tick < last)
            inside = up.low <= tick <= up.high
            if beyond and inside and abs(up.place(tick) - up.place(last)) >= ROOM_OF_WORDS:
                kept.append(tick)
                last = tick
    return kept


def described(curves: Sequence[tuple[str, int, list[RatioPoint]]]) -> str:
    """Return where the curves' bands leave out 1, in words."""
    sentences = []
    for name, _, curve in curves:
        sizes = differs_at(curve)
        where = f"leaves out 1 at {', '.join(map(str, sizes))}" if sizes else "holds 1 at all"
        known = sum(point.band is not None for point in curve)
        sentences.append(f"{name}: the band {where} of {known} sizes in bytes")
    return "; ".join(sentences)


def draw_ratio(name: str, style: int, curve: list[RatioPoint], across: Axis, up: Axis) -> str:
    """Return one implementation's band, line and markers."""
    points = [point for point in curve if point.message_bytes > 0]
    inside = [(across.place(p.message_bytes), p) for p in points]

    def placed(value: float) -> float:
        return up.place(min(max(value, up.low), up.high))

    parts = []
    for has_band, run in groupby(inside, key=lambda place: place[1].band is not None):
        if not has_band:
            continue
        known = [(x, p.band) for x, p in run if p.band]
        upper = [(x, placed(band.high)) for x, band in known]
        lower = [(x, placed(band.low)) for x, band in known]
        parts.append(f'<polygon class="band" points="{polyline(upper + lower[::-1])}"/>')
    middle = [(x, placed(p.ratio)) for x, p in inside]
    parts.append(f'<polyline class="line" points="{polyline(middle)}"/>')
    for (x, y), (_, point) in zip(middle, inside, strict=True):
        band = point.band
        words = f"band {band.low:.3f} – {band.high:.3f}" if band else "one round, no band"
        label = f"{name}, {point.message_bytes} bytes: ratio {point.ratio:.3f}, {words}"
        parts.append(marker(style, x, y, label))
    return f'<g class="curve style{style}" data-name="{escape(name)}">{"".join(parts)}</g>'
