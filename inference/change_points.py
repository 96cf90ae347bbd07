"""Where a series of campaigns changes its level: a rank test of every split, by permutation.

At each place in time the ranks before and after are compared (Mann and Whitney); the place with
the largest standardised difference is a change when few orders of the same values in time have
as large a one anywhere (Pettitt 1979 for ranks, a permutation test as in the energy statistic of
Matteson and James 2014, which MongoDB's and other watchers of benchmarks use). Then both sides
are searched alike. Ranks rather than energy, because what a random order gives depends on them by
their number alone: it is drawn once for each length of series, and a series of ten thousand
campaigns costs a sort.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

#: A level needs this many campaigns: one or two of them are not a lasting change.
SHORTEST = 3
ORDERS = 9999
#: Of long series fewer orders are drawn, at lengths in steps of half as much again, upwards.
LONG, ORDERS_OF_LONG = 1000, 1999
EXACT_LENGTH = 64
DRAWN_AT_ONCE = 400_000


@dataclass(frozen=True)
class ChangePoint:
    """The series differs from `place` on: its index; `p_value` of this split within its segment."""

    place: int
    p_value: float


def split_scores(ranks: np.ndarray) -> np.ndarray:
    """Return the standardised difference of ranks at every split, for rows of an array."""
    count = ranks.shape[-1]
    places = np.arange(SHORTEST, count - SHORTEST + 1)
    centred = ranks - ranks.mean(axis=-1, keepdims=True)
    sums = np.cumsum(centred, axis=-1)[..., places - 1]
    variance = (centred**2).sum(axis=-1, keepdims=True) / count
    scale = np.sqrt(variance * places * (count - places) / (count - 1))
    scores: np.ndarray = np.abs(sums) / np.where(scale > 0, scale, np.inf)
    return scores


@cache
def scores_by_chance(length: int) -> np.ndarray:
    """Return the largest scores of series without a change, in order: always the same ones.

    Ranks of a random order; above 64 values uniform numbers, of which they are the places.
    """
    random = np.random.default_rng(length)
    wanted = ORDERS if length <= LONG else ORDERS_OF_LONG
    found, some = [], max(1, DRAWN_AT_ONCE // length)
    for start in range(0, wanted, some):
        shape = (min(some, wanted - start), length)
        drawn = random.random(shape)
        if length <= EXACT_LENGTH:
            drawn = np.argsort(drawn, axis=1).astype(float)
        found.append(split_scores(drawn).max(axis=1))
    return np.sort(np.concatenate(found))


def reference_length(length: int) -> int:
    """Return the length at which chance is drawn: the next of a ladder, where it is a bit worse."""
    rung = EXACT_LENGTH
    if length <= rung:
        return length
    while rung < length:
        rung = rung * 3 // 2
    return rung


def chance_of(score: float, length: int) -> float:
    """Return how likely a series without a change has as large a score at any split.

    Where none of the orders drawn reaches it, that is less than one in their number; how much
    less is by the tail of James, James and Siegmund (1987) for normal values, whose ends are
    longer than those of ranks.
    """
    by_chance = scores_by_chance(reference_length(length))
    reached = len(by_chance) - int(np.searchsorted(by_chance, score - 1e-9))
    p_value = (1 + reached) / (1 + len(by_chance))
    if reached:
        return p_value
    odds = math.log(((length - SHORTEST) / SHORTEST) ** 2)
    density = math.exp(-(score**2) / 2) / math.sqrt(2 * math.pi)
    return min(p_value, density * (score * odds * (1 - 1 / score**2) + 4 / score))


def ranks_of(values: np.ndarray) -> np.ndarray:
    """Return the places of values in their order, from 1; equal ones share the mean of theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: np.ndarray = (np.cumsum(counts) - (counts - 1) / 2)[which]
    return ranks


def best_split(values: np.ndarray) -> ChangePoint | None:
    """Return the likeliest split of a segment, whatever its chance; None where it is too short."""
    if len(values) < 2 * SHORTEST:
        return None
    scores = split_scores(ranks_of(values))
    place = int(scores.argmax())
    return ChangePoint(place + SHORTEST, chance_of(float(scores[place]), len(values)))


def change_points(values: Sequence[float] | np.ndarray, level: float) -> list[ChangePoint]:
    """Return the changes of a series in order of time; `level` is the chance of a false one."""
    series = np.asarray(values, dtype=float)
    found: list[ChangePoint] = []
    segments = [(0, len(series))]
    while segments:
        start, end = segments.pop()
        split = best_split(series[start:end])
        if split and split.p_value < level:
            place = start + split.place
            found.append(ChangePoint(place, split.p_value))
            segments += [(start, place), (place, end)]
    return sorted(found, key=lambda change: change.place)


@cache
def least_chance(length: int) -> float:
    """Return the p value of the clearest change that so many campaigns can have; 1 if too few."""
    split = best_split(np.arange(length, dtype=float))
    return split.p_value if split else 1.0


def level_of_each(lengths: Sequence[int], level: float) -> float:
    """Return the level for each series that keeps the chance of any false change in all of them.

    The level over their number, where only those count that are long enough to show a change at
    the level that results (Tarone 1990): the others cannot give a false one.
    """
    chances = np.sort([least_chance(length) for length in lengths])
    counted = next(
        (k for k in range(1, len(chances) + 1) if np.searchsorted(chances, level / k) <= k), 1
    )
    return level / counted
