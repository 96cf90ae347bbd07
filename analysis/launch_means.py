"""Means over launches and quotients of them, with intervals; never of iterations.

Student's interval assumes launches that are independent of each other; of their distribution it
needs that a mean of so many is about normal. Under heavier tails it errs on the wide side
(tests/analysis/test_message_models.py), as that of paired ratios does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.statistics import CONFIDENCE, Interval


@dataclass(frozen=True)
class Mean:
    """A mean over launches; `interval` is None where the launches do not bound it."""

    value: float
    interval: Interval | None
    launches: int


def mean_of_launches(values: Sequence[float], confidence: float = CONFIDENCE) -> Mean:
    """Return the mean over launches and Student's interval, None of a single launch."""
    count = len(values)
    mean = float(np.mean(values))
    if count < 2:
        return Mean(mean, None, count)
    error = float(np.std(values, ddof=1)) / math.sqrt(count)
    half = float(stats.t.ppf((1 + confidence) / 2, count - 1)) * error
    return Mean(mean, Interval(mean - half, mean + half, confidence), count)


def quotient_of_launches(
    numerators: Sequence[float], denominators: Sequence[float], confidence: float = CONFIDENCE
) -> Mean:
    """Return the quotient of two means of the same launches, with Fieller's interval (1954).

    It holds the quotients q at which the mean of numerator - q denominator is not told from 0.
    There is no interval where the denominator itself is not told from 0. Raises ValueError where
    the lists are not of one length, or empty.
    """
    if len(numerators) != len(denominators) or len(numerators) == 0:
        raise ValueError("a quotient needs one numerator and one denominator of each launch")
    count = len(numerators)
    top, bottom = float(np.mean(numerators)), float(np.mean(denominators))
    value = top / bottom if bottom else math.nan
    if count < 2:
        return Mean(value, None, count)
    (var_top, cov), (_, var_bottom) = np.cov(numerators, denominators) / count
    t = float(stats.t.ppf((1 + confidence) / 2, count - 1))
    # The roots of (top - q bottom)^2 = t^2 var(top - q bottom).
    a = bottom**2 - t**2 * float(var_bottom)
    b = top * bottom - t**2 * float(cov)
    c = top**2 - t**2 * float(var_top)
    if a <= 0:
        return Mean(value, None, count)
    root = math.sqrt(max(0.0, b**2 - a * c))
    return Mean(value, Interval((b - root) / a, (b + root) / a, confidence), count)
