"""The ratio of two implementations over message size, with a band for the whole curve at once.

The band of 95% holds the whole true curve in 95% of campaigns: it may be read at every size, and
where it leaves out 1 somewhere there is a difference somewhere. Intervals that hold 95% each do
not do that together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from markupsafe import Markup, escape
from scipy import stats

from analysis.comparison import Cell
from analysis.figures import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    byte_ticks,
    draw_axes,
    marker,
    polyline,
)
from analysis.metrics import direction
from analysis.statistics import CONFIDENCE, FEWEST_PAIRS, ROUNDING, Interval

#: From so many rounds on the sizes' correlation is known well enough to narrow the band by it.
FEWEST_FOR_CORRELATION = 10
SIMULATIONS = 4000
FEWEST_SIZES = 3
#: How far apart two ticks' words are at least, in units of the drawing.
ROOM_OF_WORDS = 15.0
RATIO_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05,
               1.1, 1.2, 1.4, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)  # fmt: skip


@dataclass(frozen=True)
class RatioPoint:
    """The ratio at one message size in bytes; `band` is of the whole curve.

    It is None below two rounds, and where the rounds agree to the last digit.
    """

    message_bytes: int
    ratio: float
    band: Interval | None


def band_factor(logarithms: np.ndarray, confidence: float = CONFIDENCE) -> float:
    """Return how many standard errors the band is wide to each side, of an array (rounds, sizes).

    Below ten rounds it is Bonferroni's, Student's quantile at the level over the number of sizes.
    It needs no knowledge of how sizes vary together, which few rounds cannot give: a bootstrap of
    three rounds has ten different samples. From ten rounds on it is the quantile of the largest
    of Student's t over the sizes, simulated with the correlation seen, which is shrunk towards
    none by the share that as many rounds leave uncertain; never more than Bonferroni's.
    """
    rounds, sizes = logarithms.shape
    bonferroni = float(stats.t.isf((1 - confidence) / 2 / sizes, rounds - 1))
    spread = logarithms.std(axis=0, ddof=1)
    if rounds < FEWEST_FOR_CORRELATION or sizes == 1 or not spread.all():
        return bonferroni
    share = (rounds - 1) / (rounds + 1)
    correlation = share * np.corrcoef(logarithms.T) + (1 - share) * np.eye(sizes)
    # Always the same seed: the same campaign gives the same band.
    random = np.random.default_rng(sizes)
    means = random.standard_normal((SIMULATIONS, sizes)) @ np.linalg.cholesky(correlation).T
    # As if the sizes' deviations were independent: a little wider than with their correlation.
    deviations = np.sqrt(random.chisquare(rounds - 1, (SIMULATIONS, sizes)) / (rounds - 1))
    student = np.abs(means) / deviations
    return min(bonferroni, float(np.quantile(student.max(axis=1), confidence)))


def simultaneous_band(
    logarithms: np.ndarray, confidence: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means over rounds and the band's half widths, of an array (rounds, sizes)."""
    error = logarithms.std(axis=0, ddof=1) / math.sqrt(len(logarithms))
    return logarithms.mean(axis=0), band_factor(logarithms, confidence) * error


def ratio_curve(cell: Cell, implementation: str, base: str) -> list[RatioPoint]:
    """Return the ratio to the base at each size that every paired round has of both."""
    of, by = cell.values.get(implementation, {}), cell.values.get(base, {})
    paired = [(of[number], by[number]) for number in sorted(of.keys() & by.keys())]
    if not paired:
        return []
    sizes = sorted(set.intersection(*(one.keys() & other.keys() for one, other in paired)))
    if not sizes:
        return []
    sign = direction(cell.experiment)
    logarithms = sign * np.log([[one[s] / other[s] for s in sizes] for one, other in paired])
    if len(paired) < FEWEST_PAIRS:
        values = np.exp(logarithms[0])
        return [RatioPoint(size, float(v), None) for size, v in zip(sizes, values, strict=True)]
    means, halves = simultaneous_band(logarithms)
    return [
        RatioPoint(
            size,
            math.exp(mean),
            Interval(math.exp(mean - half), math.exp(mean + half), CONFIDENCE)
            if half > ROUNDING
            else None,
        )
        for size, mean, half in zip(sizes, means, halves, strict=True)
    ]


def differs_at(curve: Sequence[RatioPoint]) -> list[int]:
    """Return the message sizes in bytes at which the band leaves out 1."""
    return [p.message_bytes for p in curve if p.band and not p.band.low <= 1 <= p.band.high]


def ratio_figure(title: str, curves: Sequence[tuple[str, int, list[RatioPoint]]]) -> Markup | None:
    """Return the figure of ratios over size, of (implementation, style, curve); None if too few."""
    points = [p for _, _, curve in curves for p in curve if p.message_bytes > 0]
    sizes = sorted({point.message_bytes for point in points})
    if len(sizes) < FEWEST_SIZES:
        return None
    # A band of two or three rounds can be wider than anything that is seen: it is cut off.
    farthest = max(abs(math.log(point.ratio)) for point in points)
    limit = max(0.05, 2.5 * farthest)
    ends = [math.log(end) for p in points if p.band for end in (p.band.low, p.band.high)]
    reach = max([farthest * 1.2, 0.02, *(min(abs(end), limit) * 1.05 for end in ends)])
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


def ratio_ticks(up: Axis) -> list[float]:
    """Return 1 and the ratios on both sides of it whose words have room."""
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
