"""Means over launches and quotients of them, with intervals; never of iterations.

Student's interval assumes launches that are independent of each other; of their distribution it
needs that a mean of so many is about normal. Under heavier tails it errs on the wide side
(tests/analysis/models/test_message_models.py), as that of paired ratios does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from inference.intervals import CONFIDENCE, Interval

#: A standard error below this part of its mean is rounding of equal launches, not noise: programs
#: print ten digits, and a fit multiplies the rounding of double precision.
ROUNDING = 1e-9
AGREE = "“launches agree”: to the last digit, so there is no spread and no interval."


@dataclass(frozen=True)
class Mean:
    """A mean over launches; `interval` is None where the launches do not bound it.

    That is also where they `agree` to the last digit, as on a coarse clock: no spread is seen,
    which says that it is below what the numbers resolve and not that there is none.
    """

    value: float
    interval: Interval | None
    launches: int
    agree: bool = False

    @property
    def untold(self) -> str:
        """Return what stands in place of an interval that is None."""
        return "launches agree" if self.agree else "–"


def mean_of_launches(values: Sequence[float], confidence: float = CONFIDENCE) -> Mean:
    """Return the mean over launches and Student's interval.

    It is None of a single launch, and where all agree to the last digit.
    """
    count = len(values)
    mean = float(np.mean(values))
    if count < 2:
        return Mean(mean, None, count)
    error = float(np.std(values, ddof=1)) / math.sqrt(count)
    if error <= ROUNDING * abs(mean):
        return Mean(mean, None, count, agree=True)
    half = float(special.stdtrit(count - 1, (1 + confidence) / 2)) * error
    return Mean(mean, Interval(mean - half, mean + half, confidence), count)


def quotient_of_launches(
    numerators: Sequence[float], denominators: Sequence[float], confidence: float = CONFIDENCE
) -> Mean:
    """Return the quotient of two means of the same launches, with Fieller's interval (1954).

    It holds the quotients q at which the mean of numerator - q denominator is not told from 0.
    There is no interval where the denominator itself is not told from 0, nor where the quotients of
    all launches agree to the last digit. Raises ValueError where the lists are not of one length,
    or empty.
    """
    if len(numerators) != len(denominators) or len(numerators) == 0:
        raise ValueError("a quotient needs one numerator and one denominator of each launch")
    count = len(numerators)
    top, bottom = float(np.mean(numerators)), float(np.mean(denominators))
    value = top / bottom if bottom else math.nan
    if count < 2:
        return Mean(value, None, count)
    rests = np.asarray(numerators) - value * np.asarray(denominators)
    if float(np.std(rests, ddof=1)) / math.sqrt(count) <= ROUNDING * abs(top):
        return Mean(value, None, count, agree=True)
    (var_top, cov), (_, var_bottom) = np.cov(numerators, denominators) / count
    t = float(special.stdtrit(count - 1, (1 + confidence) / 2))
    # The roots of (top - q bottom)^2 = t^2 var(top - q bottom).
    a = bottom**2 - t**2 * float(var_bottom)
    b = top * bottom - t**2 * float(cov)
    c = top**2 - t**2 * float(var_top)
    if a <= 0:
        return Mean(value, None, count)
    root = math.sqrt(max(0.0, b**2 - a * c))
    return Mean(value, Interval((b - root) / a, (b + root) / a, confidence), count)
