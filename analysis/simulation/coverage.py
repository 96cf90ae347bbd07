"""`python -m analysis.simulation.coverage`: how often intervals and verdicts are right, simulated.

Noise as benchmarks have it, of launches' logarithms:

- normal, of each launch its own;
- lognormal: a launch may be disturbed and take much longer, but none takes much less;
- bursts: one launch of ten scatters ten times as much;
- drift: what disturbs a launch lasts into the next ones (AR(1), 0.95 from launch to launch), in
  rounds of 52 launches of which two, at random places, are the two sides of the ratio;
- lasting: of each side its own, and half of it is still there a round later. No campaign in random
  order should have that; it shows what happens if one has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Annotated

import numpy as np
import typer
from scipy import special

from analysis.precision.spread import quantile_of
from inference.bands import simultaneous_band
from inference.change_points import change_points
from inference.families import claims
from inference.intervals import (
    CONFIDENCE,
    Interval,
    independent_ratio,
    median_interval,
    paired_ratio,
    trim_of,
)
from inference.prediction import CHANCE, half_width

#: Draws both sides of a comparison, each an array (series, rounds) of standard noise.
NoiseModel = Callable[[np.random.Generator, int, int], tuple[np.ndarray, np.ndarray]]
#: Of the logarithm: the lognormal noise has a skewness of 1.75.
TAIL = 0.5
LASTING = 0.5
FROM_LAUNCH_TO_LAUNCH, LAUNCHES_OF_A_ROUND = 0.95, 52


def normal(random: np.random.Generator, series: int, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normal noise."""
    return random.standard_normal((series, rounds)), random.standard_normal((series, rounds))


def lognormal(
    random: np.random.Generator, series: int, rounds: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return noise with a long tail on one side and a median of 0."""
    of, base = normal(random, series, rounds)
    return (np.exp(TAIL * of) - 1) / TAIL, (np.exp(TAIL * base) - 1) / TAIL


def bursts(random: np.random.Generator, series: int, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normal noise that is ten times as large in a tenth of the launches."""
    of, base = (
        side * np.where(random.random(side.shape) < 0.1, 10, 1)
        for side in normal(random, series, rounds)
    )
    return of, base


def drift(random: np.random.Generator, series: int, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return noise that lasts over launches, at two random places of each round."""
    places = random.random((series, rounds, LAUNCHES_OF_A_ROUND)).argsort(axis=2)[:, :, :2]
    order = places.argsort(axis=2)
    times = np.sort(places, axis=2) + LAUNCHES_OF_A_ROUND * np.arange(rounds)[:, None]
    gaps = np.diff(times.reshape(series, 2 * rounds), axis=1)
    values = random.standard_normal((series, 2 * rounds))
    leaning = FROM_LAUNCH_TO_LAUNCH**gaps
    for place in range(1, 2 * rounds):
        lean = leaning[:, place - 1]
        values[:, place] = lean * values[:, place - 1] + np.sqrt(1 - lean**2) * values[:, place]
    sides = np.take_along_axis(values.reshape(series, rounds, 2), order.argsort(axis=2), axis=2)
    return sides[:, :, 0], sides[:, :, 1]


def autocorrelated(
    random: np.random.Generator, series: int, count: int, correlation: float
) -> np.ndarray:
    """Return normal noise of unit variance in which each value depends on the one before it."""
    values = random.standard_normal((series, count))
    fresh = math.sqrt(1 - correlation**2)
    for place in range(1, count):
        values[:, place] = correlation * values[:, place - 1] + fresh * values[:, place]
    return values


def lasting(random: np.random.Generator, series: int, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return noise, separate for each side, that lasts from round to round."""
    of, base = (autocorrelated(random, series, rounds, LASTING) for _ in range(2))
    return of, base


NOISES: dict[str, NoiseModel] = {
    "normal": normal, "lognormal": lognormal, "bursts": bursts, "drift": drift,
    "lasting": lasting,
}  # fmt: skip
SCALE, TRUE_RATIO = 0.05, 1.3
SIZES = 8


def covers(hits: Iterator[bool] | list[bool]) -> float:
    """Return the share of hits."""
    return float(np.mean(list(hits)))


def interpolated(values: list[float], confidence: float = CONFIDENCE) -> Interval:
    """Return Hettmansperger and Sheather's interval of the median (1986), of six values or more.

    It lies between the pairs of order statistics that cover more and less than is asked. The
    analysis does not use it; the table shows why.
    """
    ordered, count = sorted(values), len(values)
    trim, coverage = trim_of(count, confidence)
    inner = 1 - 2 * float(special.bdtr(trim + 1, count, 0.5))
    share = (coverage - confidence) / (coverage - inner)
    inward = (count - trim - 1) * share / (trim + 1 + (count - 2 * trim - 2) * share)
    low = ordered[trim] + inward * (ordered[trim + 1] - ordered[trim])
    high = ordered[-1 - trim] - inward * (ordered[-1 - trim] - ordered[-2 - trim])
    return Interval(low, high, confidence)


def median_coverage(
    noise: str,
    launches: int,
    trials: int,
    seed: int = 1,
    interval_of: Callable[[list[float]], Interval] = median_interval,
) -> float:
    """Return how often the interval of the median over launches has the true median."""
    data, _ = NOISES[noise](np.random.default_rng(seed), trials, launches)
    intervals = map(interval_of, data.tolist())
    return covers(interval.low <= 0 <= interval.high for interval in intervals)


def quantile_coverage(
    share: float, launches: int, iterations: int, trials: int, seed: int = 1
) -> float:
    """Return how often the interval of a quantile of iterations has it, over launches.

    Iterations are autocorrelated (0.5), and launches differ by half of what iterations do.
    """
    random = np.random.default_rng(seed)
    own = autocorrelated(random, trials * launches, iterations, 0.5)
    data = own.reshape(trials, launches, iterations)
    data = data + 0.5 * random.standard_normal((trials, launches, 1))
    found, truth = [quantile_of(one, share) for one in data.tolist()], float(special.ndtri(share))
    return covers(one is not None and one[1].low <= truth <= one[1].high for one in found)


def paired_coverage(noise: str, rounds: int, trials: int, seed: int = 2) -> float:
    """Return how often the interval of the ratio of paired launches has the true ratio."""
    of, base = NOISES[noise](np.random.default_rng(seed), trials, rounds)
    data = math.log(TRUE_RATIO) + SCALE * (of - base)
    ratios = (paired_ratio(row).interval for row in data.tolist())
    return covers(i is not None and i.low <= TRUE_RATIO <= i.high for i in ratios)


def independent_coverage(
    noise: str, launches: tuple[int, int], trials: int, seed: int = 3
) -> float:
    """Return how often Welch's interval has the true ratio of two campaigns."""
    random, draw = np.random.default_rng(seed), NOISES[noise]
    base = SCALE * draw(random, trials, launches[0])[0]
    of = SCALE * draw(random, trials, launches[1])[0] + math.log(TRUE_RATIO)
    pairs = zip(of.tolist(), base.tolist(), strict=True)
    ratios = (independent_ratio(*pair).interval for pair in pairs)
    return covers(i is not None and i.low <= TRUE_RATIO <= i.high for i in ratios)


def band_coverage(
    noise: str, rounds: int, shared: float, trials: int, seed: int = 4
) -> tuple[float, float]:
    """Return how often the band has the whole true curve, and intervals at each size have it.

    `shared` is the part of a launch's variance that all its sizes have in common.
    """
    random, draw = np.random.default_rng(seed), NOISES[noise]
    of, base = draw(random, trials, rounds)
    own = [np.subtract(*draw(random, trials, rounds)) for _ in range(SIZES)]
    data = math.sqrt(shared) * (of - base)[:, :, None]
    data = data + math.sqrt(1 - shared) * np.stack(own, axis=2)
    whole, single = [], []
    for logarithms in data:
        means, halves = simultaneous_band(logarithms)
        whole.append(bool((np.abs(means) <= halves).all()))
        intervals = [paired_ratio(column).interval for column in logarithms.T.tolist()]
        single.append(all(i is not None and i.low <= 1 <= i.high for i in intervals))
    return covers(whole), covers(single)


def false_verdicts(noise: str, rounds: int, cells: int, trials: int, seed: int = 5) -> float:
    """Return how often a family has any false verdict, where half of it is exactly on the margin.

    The first half of the cells has no difference, so `faster` or `slower` is false there; the
    others are exactly at the margin, so `equivalent` is.
    """
    random, draw, margin = np.random.default_rng(seed), NOISES[noise], 0.02
    shape = (trials * cells, rounds)
    data = 0.004 * np.subtract(*draw(random, *shape))
    ratios = []
    for index, row in enumerate(data.tolist()):
        shift = 0.0 if index % cells < cells // 2 else math.log1p(margin)
        ratios.append(paired_ratio([value + shift for value in row], margin=margin))
    wrong = []
    for start in range(0, len(ratios), cells):
        family = ratios[start : start + cells]
        found = claims(family)
        wrong.append(
            any(claim.is_different for claim in found[: cells // 2])
            or any(claim.is_equivalent for claim in found[cells // 2 :])
        )
    return covers(wrong)


def false_changes(noise: str, campaigns: int, trials: int, seed: int = 6) -> float:
    """Return how often a change is found in a series that has none, at a level of 5%."""
    data, _ = NOISES[noise](np.random.default_rng(seed), trials, campaigns)
    return covers(bool(change_points(row, 0.05)) for row in data)


def found_changes(noise: str, campaigns: int, step: float, trials: int, seed: int = 7) -> float:
    """Return how often a step in the middle is found within two campaigns of its place.

    The step is a share; campaigns scatter by 3%.
    """
    data = 0.03 * NOISES[noise](np.random.default_rng(seed), trials, campaigns)[0]
    middle = campaigns // 2
    data[:, middle:] += math.log1p(step)
    return covers(
        any(abs(change.place - middle) <= 2 for change in change_points(row, 0.05)) for row in data
    )


def pooled_coverage(
    launches: int, iterations: int, trials: int, seed: int = 8
) -> tuple[float, float]:
    """Return how often the mean's interval has the truth, from launches and from all iterations.

    Iterations are autocorrelated (0.9), and launches differ by half of what iterations do.
    """
    random = np.random.default_rng(seed)
    own = autocorrelated(random, trials * launches, iterations, 0.9)
    shifts = 0.5 * random.standard_normal((trials, launches, 1))
    data = own.reshape(trials, launches, iterations) + shifts
    by_launch = [paired_ratio(row).interval for row in np.median(data, axis=2).tolist()]
    pooled = [paired_ratio(row).interval for row in data.reshape(trials, -1).tolist()]
    shares = [
        covers(i is not None and i.low <= 1 <= i.high for i in found)
        for found in (by_launch, pooled)
    ]
    return shares[0], shares[1]


def false_failures(
    noise: str,
    campaigns: int,
    launches: int,
    shared: float,
    trials: int,
    chance: float = CHANCE,
    seed: int = 9,
) -> tuple[float, float]:
    """Return how often a launch without a change fails its reference, and the limit's distance.

    `shared` is the part of the variance that the launches of a campaign have in common; `launches`
    is how many each has. The new launch is of another campaign, but of the same if there is one.
    The distance is the median over trials, in deviations of a launch.
    """
    random, draw = np.random.default_rng(seed), NOISES[noise]
    beyond, distances, at_once = 0, [], 100_000
    for start in range(0, trials, at_once):
        count = min(at_once, trials - start)
        days = draw(random, count, campaigns + 1)[0] * math.sqrt(shared)
        own = draw(random, count, campaigns * launches + 1)[0] * math.sqrt(1 - shared)
        new = own[:, -1] + days[:, 0 if campaigns == 1 else campaigns]
        seen = own[:, :-1].reshape(count, campaigns, launches) + days[:, :campaigns, None]
        means = seen.mean(axis=2)
        within = seen.var(axis=2, ddof=1).mean(axis=1)
        between = means.var(axis=1, ddof=1) if campaigns > 1 else np.zeros(count)
        half = half_width(between, within, campaigns, campaigns * launches, chance)
        beyond += int((new - means.mean(axis=1) > half).sum())
        distances.append(float(np.median(half)))
    return beyond / trials, float(np.median(distances))


def references_table(trials: int) -> Iterator[str]:
    """Yield the rows of a table: how often a launch without a change fails its reference."""
    noises = ("normal", "lognormal", "bursts")
    yield f"| campaigns | of launches | in common | {' | '.join(noises)} | distance, normal |"
    yield "|" + "---|" * (len(noises) + 4)
    for campaigns, launches in ((1, 3), (1, 10), (3, 5), (5, 5), (10, 5)):
        for shared in (0.0, 0.5) if campaigns > 1 else (0.0,):
            found = [false_failures(name, campaigns, launches, shared, trials) for name in noises]
            rates = " | ".join(f"{10_000 * rate:.1f}" for rate, _ in found)
            yield f"| {campaigns} | {launches} | {shared:.0%} | {rates} | {found[0][1]:.1f} |"


def table(trials: int) -> Iterator[tuple[str, str, str, float]]:
    """Yield the question, the noise, the number, and the share of trials in which it holds."""
    for noise in NOISES:
        for launches in (6, 7, 8, 9, 10, 11, 12, 17, 20):
            share = median_coverage(noise, launches, trials)
            stated = f"{launches} launches ({trim_of(launches, CONFIDENCE)[1]:.1%} stated)"
            yield "median over launches has the truth", noise, stated, share
        for launches in (6, 8, 12, 20):
            share = median_coverage(noise, launches, trials, interval_of=interpolated)
            yield "interpolated, not used: it has the truth", noise, f"{launches} launches", share
        for rounds in (3, 5, 10, 20):
            share = paired_coverage(noise, rounds, trials)
            yield "ratio over rounds has the truth", noise, f"{rounds} rounds", share
        for counts in ((3, 3), (5, 5), (10, 10)):
            share = independent_coverage(noise, counts, trials)
            yield "ratio of two campaigns has the truth", noise, f"{counts[0]} launches each", share
        for rounds in (3, 10):
            for shared in (0.0, 0.9):
                whole, single = band_coverage(noise, rounds, shared, max(200, trials // 2))
                words = f"{rounds} rounds, {shared:.0%} in common"
                yield f"band of {SIZES} sizes has the whole curve", noise, words, whole
                yield f"{SIZES} single intervals all have it", noise, words, single
        for rounds in (3, 10):
            share = false_verdicts(noise, rounds, 26, trials)
            yield "any false verdict in 26 cells", noise, f"{rounds} rounds", share
        for campaigns in (10, 30, 100):
            share = false_changes(noise, campaigns, trials)
            yield "a change where there is none", noise, f"{campaigns} campaigns", share
            share = found_changes(noise, campaigns, 0.1, trials)
            yield "a step of 10% found, at its place", noise, f"{campaigns} campaigns", share
    for share in (0.1, 0.9, 0.99):
        found = quantile_coverage(share, 10, 200, max(200, trials // 2))
        what = f"interval of the {share:.0%} quantile has it"
        yield what, "iterations 0.5", "10 launches of 200", found
    by_launch, pooled = pooled_coverage(10, 100, max(200, trials // 10))
    words = "10 launches of 100"
    yield "mean of launches' medians has the truth", "iterations 0.9", words, by_launch
    yield "mean of all iterations has the truth", "iterations 0.9", words, pooled


def main(
    trials: Annotated[int, typer.Option(help="simulated campaigns of most rows")] = 4000,
    references: Annotated[
        bool, typer.Option("--references", help="only how often, in 10,000, references fail")
    ] = False,
) -> None:
    """Print how often intervals and verdicts are right under noise with a known truth."""
    if trials < 1:
        raise typer.BadParameter("at least one is needed", param_hint="--trials")
    if references:
        for row in references_table(trials):
            print(row, flush=True)
        return
    print("| what | noise | of | share |\n|---|---|---|---|")
    for what, noise, of, share in table(trials):
        print(f"| {what} | {noise} | {of} | {share:.1%} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
