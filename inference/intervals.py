"""The statistics of launches. Every function takes one value per launch, never iterations.

Iterations are samples inside a launch and not independent of each other; launches are the
independent unit (Hoefler and Belli, SC'15; Hunold and Carpen-Amarie, ReproMPI). Two
implementations are compared by rounds: in a round both were launched close together, so
what drifts slowly is in both alike; how much cancels depends on the machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from scipy import special

CONFIDENCE = 0.95
FEWEST_PAIRS = 2
#: A standard error of logarithms below it is rounding of equal numbers, not noise.
ROUNDING = 1e-12
#: The coarsest step of a printed number, as a fraction of it: HPL and NPB print five digits.
PRINTED_STEP = 1e-4
#: Of the largest number, of which a little is left for what it is multiplied by.
LARGEST_LOGARITHM = 700.0
#: Of so many values the median is found without an array, which takes ten times as long.
FEW = 50
#: Of how many deviations a power is the mean.
POSSIBLE_DEVIATIONS = 40


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
    #: The standard error of the logarithm, and its degrees of freedom; None without an interval.
    error: float | None = None
    freedom: float | None = None
    #: The coarsest step of the values, as a share of them.
    step: float = PRINTED_STEP

    def interval_at(self, level: float) -> Interval | None:
        """Return the interval that misses the true ratio with a chance of `level`.

        It leaves out 1 exactly where `p_value` is below the level.
        """
        if self.error is None or self.freedom is None:
            return None
        half = student(self.freedom, 1 - level / 2) * self.error
        return around(math.log(self.value), half, 1 - level)

    @property
    def p_worse(self) -> float | None:
        """Return the one-sided p value of the ratio being 1 or more."""
        if self.p_value is None:
            return None
        return self.p_value / 2 if self.value < 1 else 1 - self.p_value / 2

    @property
    def words(self) -> str:
        """Return the ratio for people; a dash where no round has both sides."""
        return "–" if math.isnan(self.value) else f"{self.value:.3f}"


def around(mean: float, half: float, coverage: float) -> Interval:
    """Return an interval of a ratio from the mean of its logarithm, and how far it goes from that.

    Of two rounds in a large family it may go further than any number does, and ends there.
    """
    return Interval(
        math.exp(max(mean - half, -LARGEST_LOGARITHM)),
        math.exp(min(mean + half, LARGEST_LOGARITHM)),
        coverage,
    )


@lru_cache(maxsize=4096)
def student(freedom: float, share: float) -> float:
    """Return the value below which Student's t is with a probability."""
    return float(special.stdtrit(freedom, share))


def median(values: Sequence[float]) -> float:
    """Return the median, nan if one of the values is."""
    if not 0 < len(values) <= FEW:
        return float(np.median(values))
    ordered = sorted(map(float, values))
    middle, is_odd = divmod(len(ordered), 2)
    if any(map(math.isnan, ordered)):
        return math.nan
    return ordered[middle] if is_odd else (ordered[middle - 1] + ordered[middle]) / 2


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
        coverage = 1 - 2 * float(special.bdtr(trim, count, 0.5))
        if coverage < confidence:
            break
        best = (trim, coverage)
    return best


def paired_ratio(
    logarithms: Sequence[float],
    confidence: float = CONFIDENCE,
    margin: float | None = None,
    step: float = PRINTED_STEP,
) -> Ratio:
    """Return the ratio over rounds, from the logarithm of each round's ratio.

    The value is the geometric mean of the rounds' ratios, the interval Student's on their
    logarithms: it assumes that launch-to-launch noise multiplies and is roughly symmetric on that
    scale, which a mean over several message sizes makes more so. It is the only kind of interval
    that three rounds can give at 95%; docs/method/coverage.md shows its coverage under heavier
    noise. `step` is that of the values, as in `ratio_of_mean`.
    """
    count = len(logarithms)
    numbers = np.asarray(logarithms, dtype=float)
    mean = float(numbers.sum()) / count if count else math.nan
    if count < FEWEST_PAIRS:
        rounds = f"{count} paired round{'' if count == 1 else 's'}"
        return Ratio(math.exp(mean), None, None, count, counted=rounds)
    # The sample deviation; numpy's own takes ten times as long of a few numbers.
    apart = numbers - mean
    error = math.sqrt(float((apart * apart).sum()) / (count - 1)) / math.sqrt(count)
    told = (mean, error, count - 1, confidence, margin)
    # All rounds are on one side: by signs, of which each is as likely where nothing differs.
    chance = 0.5**count
    return ratio_of_mean(
        *told, chance=chance, pairs=count, counted=f"{count} paired rounds", step=step
    )


def independent_ratio(
    of: Sequence[float],
    base: Sequence[float],
    confidence: float = CONFIDENCE,
    margin: float | None = None,
    step: float = PRINTED_STEP,
) -> Ratio:
    """Return the ratio of two independent samples, from the logarithms of their launches.

    The value is the ratio of geometric means, the interval Welch's: the two may vary differently.
    Of samples of different sizes it has at most the degrees of freedom of `most_freedom`. `step`
    is that of the values, as in `ratio_of_mean`.
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
    freedom = min(freedom, most_freedom([(1 / count, count) for count in counts]))
    told = (mean, math.sqrt(variance), freedom, confidence, margin)
    # One side is all above the other: one of as many orders as there are where nothing differs.
    chance = 1 / math.comb(sum(counts), counts[0])
    return ratio_of_mean(*told, chance=chance, pairs=min(counts), counted=counted, step=step)


def most_freedom(parts: Sequence[tuple[float, int]]) -> float:
    """Return the degrees of freedom of a sum of means whose launches all vary alike.

    Each part has its share of the variance then, up to a factor, and how many launches it is of.
    Satterthwaite's degrees of freedom come from the variances that were seen: where the part that
    decides is of few launches that happen to agree, they are those of the others, and many. At the
    levels of a large family that is a false claim dozens of times as often as stated: of 20 and 3
    launches 11 times at 0.1%.
    """
    whole = math.fsum(share for share, _ in parts)
    return whole**2 / math.fsum(share**2 / (count - 1) for share, count in parts)


@dataclass(frozen=True)
class Stratum:
    """The mean of a stratum's launches or rounds, all as logarithms, with its weight.

    `count` is how many there are, `variance` that of their mean.
    """

    weight: float
    mean: float
    variance: float
    count: int


def stratum(values: Sequence[float], weight: float) -> Stratum:
    """Return a stratum; a negative weight subtracts its mean. Below two values has no variance."""
    count = len(values)
    mean = float(np.mean(values)) if count else math.nan
    variance = float(np.var(values, ddof=1)) / count if count >= FEWEST_PAIRS else math.nan
    return Stratum(weight, mean, variance, count)


def stratified_ratio(
    strata: Sequence[Stratum],
    margin: float | None = None,
    *,
    chance: float,
    pairs: int,
    counted: str,
    step: float = PRINTED_STEP,
) -> Ratio:
    """Return the ratio that belongs to the weighted sum of strata that are independent.

    Each stratum has a variance of its own, so one that lost a launch costs the others nothing; the
    freedom is Satterthwaite's (1946), at most that of `most_freedom`. Weights of a side add up to
    1. The other arguments are as of `ratio_of_mean`.
    """
    mean = sum(one.weight * one.mean for one in strata) if strata else math.nan
    if pairs < FEWEST_PAIRS:
        return Ratio(math.exp(mean), None, None, pairs, counted=counted)
    parts = [one.weight**2 * one.variance for one in strata]
    weights = sum(part**2 / (one.count - 1) for part, one in zip(parts, strata, strict=True))
    freedom = sum(parts) ** 2 / weights if weights else sum(one.count - 1.0 for one in strata)
    alike = most_freedom([(one.weight**2 / one.count, one.count) for one in strata])
    freedom = min(freedom, alike)
    told = (mean, math.sqrt(sum(parts)), freedom, CONFIDENCE, margin)
    return ratio_of_mean(*told, chance=chance, pairs=pairs, counted=counted, step=step)


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
    step: float = PRINTED_STEP,
) -> Ratio:
    """Return the ratio that belongs to a mean of logarithms, its standard error and freedom.

    `step` is the coarsest step of the values, as a share of them: of a program's print or of its
    clock. Rounding alone leaves a ratio uncertain by a deviation of step / sqrt(6), however many
    launches there are, since it is the same in all of them. An error below that says that launches
    agree as far as the numbers tell, and Student's test would be sure of anything. `chance` decides
    there: of such an order of the launches, in one direction, where nothing differs.

    Equivalence is by two one-sided tests (Schuirmann 1987): its p value is the larger of those of
    the ratio being at most 1 / (1 + margin) and at least 1 + margin.
    """
    bound = math.log1p(margin) if margin is not None else None
    if error < max(ROUNDING, step / math.sqrt(6)):
        # Two values that are rounded alike may be a whole step apart by rounding alone.
        p_value = min(1.0, 2 * chance) if abs(mean) > step else 1.0
        within = bound is not None and abs(mean) < bound - step
        equivalence = None if bound is None else chance if within else 1.0
        counted += " that agree to the last digit"
        return Ratio(math.exp(mean), None, p_value, pairs, equivalence, counted, step=step)
    half = student(freedom, (1 + confidence) / 2) * error
    p_value = 2 * float(special.stdtr(freedom, -abs(mean) / error))
    equivalence = (
        None if bound is None else float(special.stdtr(freedom, (abs(mean) - bound) / error))
    )
    interval = around(mean, half, confidence)
    return Ratio(
        math.exp(mean), interval, p_value, pairs, equivalence, counted, error, freedom, step
    )  # fmt: skip


def quantile_of_chi_squared(shares: np.ndarray | float, freedom: float) -> np.ndarray:
    """Return the values below which such shares of the chi squared distribution lie."""
    quantiles: np.ndarray = 2 * special.gammaincinv(freedom / 2, shares)
    return quantiles


def possible_deviations(deviation: float, freedom: float) -> np.ndarray:
    """Return true deviations that a seen one may stand for, each as likely as the others.

    They are quantiles of what the chi squared distribution says of normal noise.
    """
    shares = (np.arange(POSSIBLE_DEVIATIONS) + 0.5) / POSSIBLE_DEVIATIONS
    possible: np.ndarray = deviation * np.sqrt(freedom / quantile_of_chi_squared(shares, freedom))
    return possible


def chance_above(
    away: np.ndarray, critical: np.ndarray | float, freedom: np.ndarray | float
) -> float:
    """Return how probably Student's statistic is above a critical value.

    It is `away` standard errors from zero, and each of these may be the true one: by Student's
    noncentral distribution, and the mean over all.
    """
    # Far beyond the critical value the noncentral distribution is lost in rounding.
    bounded = np.minimum(away, critical + 30)
    return float((1 - special.nctdtr(freedom, bounded, critical)).mean())


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values: the chance of any false claim in the family stays below."""
    count = len(p_values)
    adjusted = [1.0] * count
    running = 0.0
    for rank, index in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted
