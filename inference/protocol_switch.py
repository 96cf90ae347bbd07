"""Where a library changes how it sends: message sizes at which time over size breaks.

A library sends short messages at once and asks the receiver before it sends long ones (Kearns
2003, section 4.3.3: MPICH's short, eager and rendezvous protocols). Between two switches the time
of a message is a straight line over its size (Hockney: latency plus size over bandwidth), so a
switch is where one line ends and another begins.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# A line has two parameters, so three points are the fewest that can speak against one.
FEWEST_POINTS = 3
MOST_LINES = 8
# A protocol serves sizes over at least a factor of two; anything shorter is a burst of noise.
LEAST_SPAN = 2.0
# Relative scatter below which a measured time cannot be trusted, so that a perfect fit of few
# points is not taken for certainty.
LEAST_SCATTER = 0.002


@dataclass(frozen=True)
class FittedLine:
    """Times of messages from `first_bytes` to `last_bytes`: alpha + beta x size.

    `alpha` is in seconds, `beta` in seconds a byte.
    """

    first_bytes: int
    last_bytes: int
    alpha: float
    beta: float


@dataclass(frozen=True)
class Switch:
    """Between `below_bytes` and `above_bytes` one line ends and another begins.

    `jump` is the second line's time over the first one's in the middle between the two sizes.
    """

    below_bytes: int
    above_bytes: int
    jump: float


def fit_line(sizes: np.ndarray, times: np.ndarray) -> tuple[float, float]:
    """Return alpha and beta of the line with the least sum of squared relative errors."""
    design = np.column_stack([np.ones_like(sizes), sizes]) / times[:, None]
    (alpha, beta), *_ = np.linalg.lstsq(design, np.ones_like(times), rcond=None)
    return float(alpha), float(beta)


def costs_from(sizes: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the sums of squared relative errors of the best lines through the first points.

    One for each number of points from none on; infinite where these are no line.
    """
    count = len(sizes)
    found = np.full(count + 1, math.inf)
    ends = np.arange(FEWEST_POINTS, count + 1)
    ends = ends[sizes[ends - 1] >= LEAST_SPAN * sizes[0]]
    if not len(ends):
        return found
    # By the normal equations, which are good enough for two parameters, of all ends at once. The
    # errors are then those of each line itself, and no difference of large numbers.
    one = times[0] / times
    size = sizes / sizes[-1] * one
    ones, sizes_, one_one, size_size, one_size = (
        np.cumsum(terms)[ends - 1] for terms in (one, size, one * one, size * size, one * size)
    )
    determinant = one_one * size_size - one_size**2
    alpha = (size_size * ones - one_size * sizes_) / determinant
    beta = (one_one * sizes_ - one_size * ones) / determinant
    errors = alpha[:, None] * one + beta[:, None] * size - 1.0
    within = np.arange(count) < ends[:, None]
    found[ends] = np.where(within, errors * errors, 0.0).sum(axis=1)
    return found


def lines_of(sizes: Sequence[int], times: Sequence[float]) -> list[FittedLine]:
    """Return the straight lines that times (seconds) over sizes (bytes) are best made of.

    The number of lines is chosen by the criterion of Liu, Wu and Zidek (1997) for segmented
    regression: one more must explain more than its parameters would explain of noise. Raises
    ValueError where there are fewer than three sizes, a size twice, a time that is not positive, or
    no size twice another.
    """
    order = np.argsort(sizes)
    x, y = np.asarray(sizes, float)[order], np.asarray(times, float)[order]
    count = len(x)
    if count < FEWEST_POINTS or (np.diff(x) <= 0).any() or not (y > 0).all():
        raise ValueError("lines need at least three different sizes, and positive times")
    cost = np.full((count, count + 1), math.inf)
    for begin in range(count):
        cost[begin, begin:] = costs_from(x[begin:], y[begin:])
    # best[k][end]: the least sum of squares of the first `end` points in k + 1 lines.
    best = [cost[0].copy()]
    back: list[np.ndarray] = []
    for _ in range(1, min(MOST_LINES, count // FEWEST_POINTS)):
        through = best[-1][:count, None] + cost
        back.append(through.argmin(axis=0))
        best.append(through.min(axis=0))

    def criterion(lines: int) -> float:
        error = best[lines - 1][count]
        if not math.isfinite(error):
            return math.inf
        scatter = max(error / count, LEAST_SCATTER**2)
        # Two parameters a line, and the place of each switch.
        parameters = 3 * lines - 1
        return float(count * math.log(scatter) + parameters * 0.299 * math.log(count) ** 2.1)

    chosen = min(range(1, len(best) + 1), key=criterion)
    if not math.isfinite(best[chosen - 1][count]):
        raise ValueError("the sizes span less than a factor of two")
    ends = [count]
    for lines in range(chosen - 1, 0, -1):
        ends.append(int(back[lines - 1][ends[-1]]))
    ends.append(0)
    found = []
    for begin, end in itertools.pairwise(ends[::-1]):
        alpha, beta = fit_line(x[begin:end], y[begin:end])
        found.append(FittedLine(int(x[begin]), int(x[end - 1]), alpha, beta))
    return found


def switches_between(lines: Sequence[FittedLine]) -> list[Switch]:
    """Return the switches between neighbouring lines, in ascending order."""
    found = []
    for one, other in itertools.pairwise(lines):
        middle = (one.last_bytes + other.first_bytes) / 2
        before, after = (line.alpha + line.beta * middle for line in (one, other))
        found.append(Switch(one.last_bytes, other.first_bytes, after / before))
    return found


def protocol_switches(sizes: Sequence[int], times: Sequence[float]) -> list[Switch]:
    """Return the switches between the lines of `lines_of`."""
    return switches_between(lines_of(sizes, times))
