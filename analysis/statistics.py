"""The statistics of launches. Every function takes one value per launch, never iterations.

Iterations are samples inside a launch and not independent of each other; launches are the
independent unit (Hoefler and Belli, SC'15; Hunold and Carpen-Amarie, ReproMPI). Two
implementations are compared by rounds: in a round both were launched close together, so what
drifts between rounds cancels in the ratio.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
FEWEST_PAIRS = 2


@dataclass(frozen=True)
class Interval:
    """An interval and the probability with which such intervals cover the true value."""

    low: float
    high: float
    coverage: float


@dataclass(frozen=True)
class Ratio:
    """A ratio of two implementations over paired rounds; `interval` is None below two pairs."""

    value: float
    interval: Interval | None
    p_value: float | None
    pairs: int


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return float(np.median(values))


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the narrowest pair of order statistics that covers the median as often as asked.

    No distribution is assumed: k of n values lie below the median with a binomial probability.
    With five launches or fewer no pair covers it 95% of the time; then the widest pair is
    returned with the coverage that it has (75% for three launches), rather than called 95%.
    """
    ordered = sorted(values)
    count = len(ordered)
    best = Interval(ordered[0], ordered[-1], max(0.0, 1 - 2 * 0.5**count))
    for trim in range(1, (count + 1) // 2):
        coverage = 1 - 2 * float(stats.binom.cdf(trim, count, 0.5))
        if coverage < confidence:
            break
        best = Interval(ordered[trim], ordered[count - 1 - trim], coverage)
    return best


def paired_ratio(logarithms: Sequence[float], confidence: float = CONFIDENCE) -> Ratio:
    """Return the ratio over rounds, from the logarithm of each round's ratio.

    The value is the geometric mean of the rounds' ratios, the interval Student's on their
    logarithms: it assumes that launch-to-launch noise multiplies and is roughly symmetric on that
    scale, which a mean over several message sizes makes more so. It is the only kind of interval
    that three rounds can give at 95%; docs/method.md shows its coverage under heavier noise.
    """
    count = len(logarithms)
    if count == 0:
        return Ratio(math.nan, None, None, 0)
    mean = float(np.mean(logarithms))
    if count < FEWEST_PAIRS:
        return Ratio(math.exp(mean), None, None, count)
    error = float(np.std(logarithms, ddof=1)) / math.sqrt(count)
    if error == 0.0:
        # Identical ratios in every round: no noise was seen, so none can be estimated.
        same = Interval(math.exp(mean), math.exp(mean), confidence)
        return Ratio(math.exp(mean), same, 1.0 if mean == 0.0 else 0.0, count)
    half = float(stats.t.ppf((1 + confidence) / 2, count - 1)) * error
    p_value = 2 * float(stats.t.sf(abs(mean) / error, count - 1))
    interval = Interval(math.exp(mean - half), math.exp(mean + half), confidence)
    return Ratio(math.exp(mean), interval, p_value, count)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values: the chance of any false claim in the family stays below."""
    count = len(p_values)
    adjusted = [1.0] * count
    running = 0.0
    for rank, index in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted
