"""Which checks a campaign measures next, so that most of its open series are decided per second.

What is measured next may depend on anything that was seen: the p values hold whenever one stops
(`inference.looks`). So here, and here alone, a variance may be borrowed from the other series of an
experiment, and chances are those of the normal distribution: this decides what time is spent on,
and never what is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from scipy import special

from inference.looks import Looks

#: How many blocks the variance of an experiment counts as, beside that of the series itself.
BORROWED = 3.0
#: A check of which all the time that is left is expected to decide fewer series is hopeless.
HOPELESS = 1e-3
#: Of a variance: below it all of an experiment's blocks agree.
LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class OpenSeries:
    """An open series: one that neither is shown to differ nor to be equivalent.

    `mean` and `variance` are those of the logarithms of its complete blocks' ratios. The levels are
    what Holm's procedure asks of its p values at this moment.
    """

    check: str
    experiment: str
    blocks: int
    mean: float
    variance: float
    margin: float
    difference_level: float
    equivalence_level: float


@dataclass(frozen=True)
class Score:
    """What a check is worth: the expected decisions of a second, by its best look to come."""

    check: str
    #: How many more blocks the next look needs, and how long they take.
    blocks: int
    seconds: float
    rate: float


def moderated(series: Sequence[OpenSeries]) -> list[float]:
    """Return each series' variance, drawn towards the mean variance of its experiment."""
    of_experiment: dict[str, list[float]] = {}
    for one in series:
        of_experiment.setdefault(one.experiment, []).append(one.variance)
    found = []
    for one in series:
        borrowed = fmean(of_experiment[one.experiment])
        own = one.blocks - 1
        mixed = (own * one.variance + BORROWED * borrowed) / (own + BORROWED)
        found.append(max(mixed, LEAST_VARIANCE))
    return found


def chance_of_decision(one: OpenSeries, variance: float, blocks: int, share: float) -> float:
    """Return the chance that a look at a number of blocks decides a series; 0 for a past one.

    The mean that will be seen then scatters around the one of today, by what is not known of
    the true one and by what the blocks to come add.
    """
    if blocks <= one.blocks:
        return 0.0
    scatter = math.sqrt(variance * (blocks - one.blocks) / (blocks * one.blocks))
    error = math.sqrt(variance / blocks)
    beyond = quantile(blocks - 1, share * one.difference_level / 2) * error
    chance = below((one.mean - beyond) / scatter) + below((-one.mean - beyond) / scatter)
    within = math.log1p(one.margin) - quantile(blocks - 1, share * one.equivalence_level) * error
    if within > 0:
        chance += below((within - one.mean) / scatter) - below((-within - one.mean) / scatter)
    return min(1.0, chance)


def below(value: float) -> float:
    """Return the chance that a standard normal number is below a value."""
    return math.erfc(-value / math.sqrt(2)) / 2


@cache
def quantile(freedom: int, level: float) -> float:
    """Return what Student's t exceeds with a probability."""
    return -float(special.stdtrit(freedom, level))


def scores(
    series: Sequence[OpenSeries],
    seconds_a_block: Mapping[str, float],
    looks: Looks,
    seconds_left: float,
) -> list[Score]:
    """Return the scores of the checks of which a look that can be afforded may decide, best first.

    `seconds_a_block` has what a block of each check takes, by what was measured so far. A check is
    as good as its best look, which may be a later one than the next. Its blocks are those of its
    series that has the fewest, since a lost launch may have cost one.
    """
    variances = moderated(series)
    by_check: dict[str, list[int]] = {}
    for place, one in enumerate(series):
        by_check.setdefault(one.check, []).append(place)
    found = []
    for check, members in by_check.items():
        done, seconds = min(series[i].blocks for i in members), seconds_a_block[check]
        coming = looks.coming(done)
        coming = [look for look in coming if (look[0] - done) * seconds <= seconds_left]
        rates = [
            sum(chance_of_decision(series[i], variances[i], *look) for i in members)
            / ((look[0] - done) * seconds)
            for look in coming
        ]
        if rates and max(rates) * seconds_left >= HOPELESS:
            blocks = coming[0][0] - done
            found.append(Score(check, blocks, blocks * seconds, max(rates)))
    return sorted(found, key=lambda score: (-score.rate, score.check))


def next_wave(ranked: Sequence[Score], seconds_left: float, wave_s: float) -> list[Score]:
    """Return the best checks that fit into a wave; the best of all, also where it is longer.

    Nothing is returned where nothing can be decided any more.
    """
    chosen: list[Score] = []
    spent = 0.0
    for score in ranked:
        if spent + score.seconds <= min(wave_s if chosen else seconds_left, seconds_left):
            chosen.append(score)
            spent += score.seconds
    return chosen
