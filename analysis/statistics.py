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
from functools import cache

import numpy as np
from scipy import special, stats

CONFIDENCE = 0.95
FEWEST_PAIRS = 2
#: A standard error of logarithms below it is rounding of equal numbers, not noise.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Interval:
    """An interval and the probability with which such intervals cover the true value."""

    low: float
    high: float
    coverage: float


@dataclass(frozen=True)
class Ratio:
    """A ratio of two implementations or campaigns, from logarithms of ratios.

    `interval` is None below two launches on a side, and where launches agree to the last digit, of
    which no spread can be estimated: `counted` says so. `p_value` is of the ratio being 1
    (two-sided), `equivalence_p` of it being beyond the margin on either side. `pairs` counts
    paired rounds, or, where the launches are not paired, those of the side that has fewer.
    """

    value: float
    interval: Interval | None
    p_value: float | None
    pairs: int
    equivalence_p: float | None = None
    counted: str = ""

    @property
    def words(self) -> str:
        """Return the ratio for people; a dash where no round has both sides."""
        return "–" if math.isnan(self.value) else f"{self.value:.3f}"


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
    trim, coverage = trim_of(len(ordered), confidence)
    return Interval(ordered[trim], ordered[-1 - trim], coverage)


@cache
def trim_of(count: int, confidence: float) -> tuple[int, float]:
    """Return how many values median_interval leaves out on each side, and its coverage."""
    best = (0, max(0.0, 1 - 2 * 0.5**count))
    for trim in range(1, (count + 1) // 2):
        coverage = 1 - 2 * float(stats.binom.cdf(trim, count, 0.5))
        if coverage < confidence:
            break
        best = (trim, coverage)
    return best


def paired_ratio(
    logarithms: Sequence[float], confidence: float = CONFIDENCE, margin: float | None = None
) -> Ratio:
    """Return the ratio over rounds, from the logarithm of each round's ratio.

    The value is the geometric mean of the rounds' ratios, the interval Student's on their
    logarithms: it assumes that launch-to-launch noise multiplies and is roughly symmetric on that
    scale, which a mean over several message sizes makes more so. It is the only kind of interval
    that three rounds can give at 95%; docs/method.md shows its coverage under heavier noise.
    """
    count = len(logarithms)
    mean = float(np.mean(logarithms)) if count else math.nan
    if count < FEWEST_PAIRS:
        return Ratio(math.exp(mean), None, None, count, counted=f"{count} paired rounds")
    error = float(np.std(logarithms, ddof=1)) / math.sqrt(count)
    told = (mean, error, count - 1, confidence, margin)
    # All rounds are on one side: by signs, of which each is as likely where nothing differs.
    chance = 0.5**count
    return ratio_of_mean(*told, chance=chance, pairs=count, counted=f"{count} paired rounds")


def independent_ratio(
    of: Sequence[float],
    base: Sequence[float],
    confidence: float = CONFIDENCE,
    margin: float | None = None,
) -> Ratio:
    """Return the ratio of two independent samples, from the logarithms of their launches.

    The value is the ratio of geometric means, the interval Welch's: the two may vary differently.
    """
    counts = (len(of), len(base))
    counted = f"{counts[0]} and {counts[1]} launches"
    mean = float(np.mean(of) - np.mean(base)) if min(counts) else math.nan
    if min(counts) < FEWEST_PAIRS:
        return Ratio(math.exp(mean), None, None, min(counts), counted=counted)
    parts = [float(np.var(side, ddof=1)) / len(side) for side in (of, base)]
    variance = sum(parts)
    weights = sum(part**2 / (count - 1) for part, count in zip(parts, counts, strict=True))
    freedom = variance**2 / weights if weights else sum(counts) - 2.0
    told = (mean, math.sqrt(variance), freedom, confidence, margin)
    # One side is all above the other: one of as many orders as there are where nothing differs.
    chance = 1 / math.comb(sum(counts), counts[0])
    return ratio_of_mean(*told, chance=chance, pairs=min(counts), counted=counted)


def ratio_of_mean(
    mean: float,
    error: float,
    freedom: float,
    confidence: float = CONFIDENCE,
    margin: float | None = None,
    *,
    chance: float,
    pairs: int,
    counted: str,
) -> Ratio:
    """Return the ratio that belongs to a mean of logarithms, its standard error and freedom.

    Where launches agree to the last digit the error is none, and Student's test would be sure of
    anything. `chance` decides there: of such an order of the launches, in one direction, where
    nothing differs.

    Equivalence is by two one-sided tests (Schuirmann 1987): its p value is the larger of those of
    the ratio being at most 1 / (1 + margin) and at least 1 + margin.
    """
    bound = math.log1p(margin) if margin is not None else None
    if error < ROUNDING:
        p_value = min(1.0, 2 * chance) if abs(mean) >= ROUNDING else 1.0
        within = bound is not None and abs(mean) < bound - ROUNDING
        equivalence = None if bound is None else chance if within else 1.0
        counted += " that agree to the last digit"
        return Ratio(math.exp(mean), None, p_value, pairs, equivalence, counted)
    half = float(special.stdtrit(freedom, (1 + confidence) / 2)) * error
    p_value = 2 * float(special.stdtr(freedom, -abs(mean) / error))
    equivalence = (
        None if bound is None else float(special.stdtr(freedom, (abs(mean) - bound) / error))
    )
    interval = Interval(math.exp(mean - half), math.exp(mean + half), confidence)
    return Ratio(math.exp(mean), interval, p_value, pairs, equivalence, counted)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values: the chance of any false claim in the family stays below."""
    count = len(p_values)
    adjusted = [1.0] * count
    running = 0.0
    for rank, index in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted


def holm_of_exclusive(
    pairs: Sequence[tuple[float, float | None]],
) -> list[tuple[float, float | None]]:
    """Return the adjusted p values of difference and equivalence for each comparison of a family.

    Of "the ratio is 1" and "the ratio is beyond the margin" at most one is true, so of m
    comparisons at most m of the 2 m hypotheses are. Holm's factor therefore is the number of
    comparisons of which not both are refuted yet (Shaffer 1986), and the chance of any false
    claim of either kind in the family stays below the level.
    """
    flat = [(p, i, k) for i, pair in enumerate(pairs) for k, p in enumerate(pair) if p is not None]
    left = [sum(p is not None for p in pair) for pair in pairs]
    adjusted: list[list[float | None]] = [[None, None] for _ in pairs]
    running = 0.0
    for p_value, index, kind in sorted(flat):
        running = max(running, min(1.0, p_value * sum(map(bool, left))))
        adjusted[index][kind] = running
        left[index] -= 1
    return [(difference or 0.0, equivalence) for difference, equivalence in adjusted]
