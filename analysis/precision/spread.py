"""How much launches differ, how much iterations differ within them, and quantiles of iterations.

Two levels: an iteration differs from its launch's median, and that from other launches' medians.
The spread within a launch reaches the launch's median only as far as its iterations do not average
out; the rest of the difference between launches is their own: placement, memory, the moment.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.comparison.metrics import metrics
from inference.intervals import Interval, median, median_interval
from records.campaign import Campaign
from records.launch import Launch
from records.program_output import ProgramOutput

#: Of normal noise: the distance of the quartiles over the standard deviation.
QUARTILES = 1.3489795
#: Of normal noise: the variance of a median of many values over that of their mean.
OF_MEDIAN = math.pi / 2
SHARES = (0.1, 0.9, 0.99)


@dataclass(frozen=True)
class LaunchTimes:
    """One launch's iterations of one kind: raw where they were kept, else their quartiles."""

    median: float
    quartiles: tuple[float, float]
    iterations: int
    raw: tuple[float, ...] = ()

    @property
    def deviation(self) -> float:
        """Return the iterations' relative deviation: the quartiles' distance on the logarithm."""
        low, high = self.quartiles
        return math.log(high / low) / QUARTILES if low > 0 else math.nan

    @property
    def effective(self) -> float:
        """Return how many independent iterations they are worth; all if none were kept."""
        return effective_count(self.raw) if self.raw else float(self.iterations)


@dataclass(frozen=True)
class Spread:
    """One cell, implementation and message size; deviations are relative (of logarithms).

    `within` is an iteration's from its launch's median, `between` a launch's median's from the
    others', less what `within` explains of it: `explained` is that share of the variance of the
    launches' medians. None if there is only one launch.
    `quantiles` has the median over launches of each launch's quantile with its interval.
    """

    cell: str
    implementation: str
    message_bytes: int
    launches: int
    within: float
    between: float | None
    explained: float | None
    quantiles: dict[float, tuple[float, Interval]]


def effective_count(values: Sequence[float]) -> float:
    """Return how many independent values a time series is worth for its mean.

    Ranks are taken, so that a burst does not decide, and their autocorrelation summed over the
    lags until pairs of neighbours are no longer positive (Geyer 1992).
    """
    count = len(values)
    ranks = np.argsort(np.argsort(values, kind="stable")).astype(float)
    ranks -= ranks.mean()
    if count < 4 or np.ptp(values) == 0:
        return float(count)
    spectrum = np.abs(np.fft.rfft(ranks, 2 * count)) ** 2
    correlation = np.fft.irfft(spectrum)[:count]
    correlation /= correlation[0]
    pairs = correlation[: count // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    total = pairs[: ends[0] if len(ends) else len(pairs)].sum()
    return float(min(count, max(1.0, count / max(1.0, 2 * total - 1))))


def times_of(launch: Launch) -> dict[tuple[str, int], LaunchTimes]:
    """Return a launch's iterations by series and message size in bytes."""
    output = launch.output
    if not isinstance(output, ProgramOutput) or launch.record.experiment not in metrics():
        return {}
    raw = {}
    for series in output.iterations:
        key = tuple(getattr(series, name, None) for name in ("operation", "method", "group"))
        raw[(*key, getattr(series, "message_bytes", 0))] = tuple(getattr(series, "time_s", ()))
    found = {}
    for result in output.results:
        time = getattr(result, "time_s", None)
        if time is None or getattr(time, "median", 0) <= 0:
            continue
        size = getattr(result, "message_bytes", 0)
        key = tuple(getattr(result, name, None) for name in ("operation", "method", "group"))
        found[getattr(result, "series", ""), size] = LaunchTimes(
            time.median,
            (time.quartile1, time.quartile3),
            result.iterations if hasattr(result, "iterations") else 1,
            raw.get((*key, size), ()),
        )
    return found


def quantile_of(launches: Sequence[Sequence[float]], share: float) -> tuple[float, Interval] | None:
    """Return the median over launches of a quantile of each one's iterations, with its interval.

    None if it lies beyond a launch's last iteration but one: it would be the extreme under
    another name. A launch's is the estimate that is above the true one as often as below it,
    whatever the distribution (Hyndman and Fan 1996, the eighth), as a median over launches asks.
    """
    if any(len(raw) * min(share, 1 - share) < 1 for raw in launches):
        return None
    values = [float(np.quantile(raw, share, method="median_unbiased")) for raw in launches]
    return median(values), median_interval(values)


def spread_of(cell: str, implementation: str, size: int, launches: list[LaunchTimes]) -> Spread:
    """Return the spread of some launches of one cell and size."""
    within = median([one.deviation for one in launches])
    between = explained = None
    if len(launches) > 1:
        seen = float(np.var([math.log(one.median) for one in launches], ddof=1))
        by_iterations = OF_MEDIAN * within**2 * float(np.mean([1 / o.effective for o in launches]))
        between = math.sqrt(max(0.0, seen - by_iterations))
        explained = min(1.0, by_iterations / seen) if seen else None
    raw = [one.raw for one in launches]
    quantiles = {share: found for share in SHARES if (found := quantile_of(raw, share))}
    return Spread(cell, implementation, size, len(launches), within, between, explained, quantiles)


def spreads(campaign: Campaign) -> list[Spread]:
    """Return the spread of every cell, implementation and message size, in the cells' order."""
    found: dict[tuple[str, str, int], list[LaunchTimes]] = defaultdict(list)
    for launch in campaign.sound():
        for (series, size), times in times_of(launch).items():
            if times.quartiles[0] > 0:
                name = f"{launch.record.cell} {series}".rstrip()
                found[name, launch.record.implementation, size].append(times)
    return [spread_of(*key, launches) for key, launches in sorted(found.items())]
