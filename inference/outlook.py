"""How likely a new campaign with more rounds decides what one left open.

It is a guess, and no claim rests on it. It assumes that the noise stays as it was; that true
differences within an experiment are normal around none, as widely as those seen are beyond their
noise, so that a difference which few rounds saw counts for less than they saw; and that what is
decided today will be again, so that Holm's procedure asks of the rest what it asks today.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from inference.allocation import BORROWED, LEAST_VARIANCE, below, quantile

#: Numbers of rounds that are considered.
LADDER = (3, 5, 8, 13, 21, 34, 55, 89, 144)
#: How many times as many rounds are considered.
FARTHEST = 7
#: A number of rounds probably decides what it decides with this chance.
LIKELY = 0.5


@dataclass(frozen=True)
class SeenRatio:
    """What the rounds of a series saw: how many, and mean and variance of their log ratios."""

    rounds: int
    mean: float
    variance: float


@dataclass(frozen=True)
class Belief:
    """What is believed of a series' true log ratio, and of the variance of a round's."""

    mean: float
    uncertainty: float
    variance: float


def beliefs(family: Sequence[SeenRatio]) -> list[Belief]:
    """Return what is believed of each series of an experiment, decided or not.

    Variances are drawn towards their mean, and means towards 0 (a normal prior, whose variance is
    what the seen means have beyond their noise). Of fewer than two rounds there is no variance: the
    caller leaves such series out.
    """
    if not family:
        return []
    common = fmean(one.variance for one in family)
    variances = [
        max(
            LEAST_VARIANCE,
            ((one.rounds - 1) * one.variance + BORROWED * common) / (one.rounds - 1 + BORROWED),
        )
        for one in family
    ]
    errors = [variance / one.rounds for one, variance in zip(family, variances, strict=True)]
    spread = max(0.0, fmean(one.mean**2 - error for one, error in zip(family, errors, strict=True)))
    return [
        Belief(one.mean * spread / (spread + error), error * spread / (spread + error), variance)
        for one, variance, error in zip(family, variances, errors, strict=True)
    ]


def chance_of_new_rounds(
    belief: Belief, rounds: int, margin: float, difference_level: float, equivalence_level: float
) -> float:
    """Return the chance that a new campaign of so many rounds decides a series, either way.

    The levels are those that its p values have to be below.
    """
    error = math.sqrt(belief.variance / rounds)
    scatter = math.sqrt(belief.uncertainty + error**2)
    beyond = quantile(rounds - 1, difference_level / 2) * error
    chance = below((belief.mean - beyond) / scatter) + below((-belief.mean - beyond) / scatter)
    within = math.log1p(margin) - quantile(rounds - 1, equivalence_level) * error
    within = min(within, beyond)
    if within > 0:
        chance += below((within - belief.mean) / scatter)
        chance -= below((-within - belief.mean) / scatter)
    return min(1.0, chance)


def rounds_to_decide(
    belief: Belief, seen: int, margin: float, difference_level: float, equivalence_level: float
) -> int | None:
    """Return the number of rounds that probably decides a series; None where none does.

    It is one of LADDER, above the number that was seen and at most FARTHEST times that.
    """
    for rounds in LADDER:
        if (
            seen < rounds <= FARTHEST * seen
            and chance_of_new_rounds(belief, rounds, margin, difference_level, equivalence_level)
            >= LIKELY
        ):
            return rounds
    return None
