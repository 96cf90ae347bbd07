"""The ratio of two implementations over message size, with a band for the whole curve at once.

The band of 95% holds the whole true curve in 95% of campaigns, so it may be read at every size of
its curve; it is not corrected over curves, and is not a verdict. Intervals that hold 95% each do
not do that together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.comparison.metrics import direction
from analysis.comparison.result import Cell
from inference.bands import simultaneous_band
from inference.intervals import CONFIDENCE, FEWEST_PAIRS, ROUNDING, Interval

FEWEST_SIZES = 3


@dataclass(frozen=True)
class RatioPoint:
    """The ratio at one message size in bytes; `band` is of the whole curve.

    It is None below two rounds, and if the rounds agree to the last digit.
    """

    message_bytes: int
    ratio: float
    band: Interval | None


def ratio_curve(cell: Cell, implementation: str, base: str) -> list[RatioPoint]:
    """Return the ratio to the base at each size that both have in every paired round."""
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
