"""Which members, and which pairs of them, something happens to more often than to the others.

Each pair was looked at some times, and at some of these it happened. The likeliest culprit is taken
out with all its looks, as long as it is shown, and the rest are compared with each other again:
what happens to a bad member's pairs is not blamed on each of them. Fisher's exact test, one-sided,
with Bonferroni's correction for all members and pairs. Pairs may be of classes to which it happens
more often or less: each is compared with those of its class, and a member by all classes together
(the exact form of the test of Mantel and Haenszel).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

#: What is taken out at most: with more, what is the rule and what the exception cannot be said.
MOST_CULPRITS = 64


@dataclass(frozen=True)
class Culprit:
    """A member, or a pair, with the share of its looks at which it happened, and of the others'.

    Of several classes, `others` is what it would be of looks of its classes.
    """

    members: tuple[int, ...]
    share: float
    others: float


def culprits(
    pairs: Sequence[tuple[int, int]],
    happened: Sequence[int],
    looks: Sequence[int],
    members: int,
    *,
    least_share: float,
    least_ratio: float,
    level: float,
    classes: Sequence[int] | None = None,
) -> list[Culprit]:
    """Return those to which it happens more often, the likeliest first.

    It has to happen at `least_share` of one's looks, and `least_ratio` times as often as to the
    others. Each of `classes` of pairs is one by itself; by default all pairs are of one. Where in
    each class it happens to all alike and at random, the chance that any is returned is at most
    `level`.
    """
    places = np.asarray(pairs, dtype=np.intp).reshape(-1, 2)
    counts, of = np.asarray(happened, dtype=float), np.asarray(looks, dtype=float)
    groups = np.zeros(len(places), np.intp) if classes is None else np.asarray(classes, np.intp)
    chance = level / (members + len(places))
    found: list[Culprit] = []
    left = np.ones(len(places), dtype=bool)
    while left.any() and len(found) < MOST_CULPRITS:
        own, rest = [], []
        for one in (counts, of):
            by_class = [
                _of_each(places[left], np.where(groups == group, one, 0.0)[left], members)
                for group in np.unique(groups)
            ]
            own.append(np.array([mine for mine, _ in by_class]))
            rest.append(np.array([all_of_class - mine for mine, all_of_class in by_class]))
        # Where all looks of a class are one's own, there is nobody to be compared with.
        compared = rest[1] > 0
        mine, of_mine = own[0] * compared, own[1] * compared
        with np.errstate(invalid="ignore", divide="ignore"):
            share = mine.sum(axis=0) / of_mine.sum(axis=0)
            usual = np.where(compared, rest[0] / rest[1], 0.0)
            others = (of_mine * usual).sum(axis=0) / of_mine.sum(axis=0)
        apart = np.flatnonzero((share >= least_share) & (share >= least_ratio * others))
        if not apart.size:
            break
        chances = _chances(*(one[:, apart] for one in (mine, of_mine, *rest)))
        if chances.min() >= chance:
            break
        best = int(apart[np.argmin(chances)])
        whose = (best,) if best < members else tuple(map(int, places[left][best - members]))
        found.append(Culprit(whose, float(share[best]), float(others[best])))
        left &= ~np.isin(places, whose).any(axis=1) if len(whose) == 1 else ~(places == whose).all(
            axis=1
        )  # fmt: skip
    return found


def _of_each(
    places: npt.NDArray[np.intp], of_pairs: Numbers, members: int
) -> tuple[Numbers, float]:
    """Return the sums of all members, then of all pairs, and the sum of all together."""
    first, second = places.T
    of_members = np.bincount(first, of_pairs, members) + np.bincount(second, of_pairs, members)
    return np.concatenate([of_members, of_pairs]), float(of_pairs.sum())


def _chances(mine: Numbers, of_mine: Numbers, theirs: Numbers, of_theirs: Numbers) -> Numbers:
    """Return how likely each has at least so many in all classes; arrays are (class, each)."""
    # Takes a second to be loaded, and few commands ask for it.
    from scipy.stats import hypergeom

    seen = of_mine > 0
    chances = np.ones(mine.shape[1])
    single = np.flatnonzero(seen.sum(axis=0) == 1)
    place = seen[:, single].argmax(axis=0), single
    happened = mine[place] + theirs[place]
    chances[single] = hypergeom.sf(
        mine[place] - 1, of_mine[place] + of_theirs[place], happened, of_mine[place]
    )
    for each in np.flatnonzero(seen.sum(axis=0) > 1):
        *others, last = (
            hypergeom(of_mine[c, each] + of_theirs[c, each], mine[c, each] + theirs[c, each],
                      of_mine[c, each])
            for c in np.flatnonzero(seen[:, each])
        )  # fmt: skip
        # How likely the classes but the last have 0, 1, … together.
        together = np.ones(1)
        for one in others:
            together = np.convolve(together, one.pmf(np.arange(int(one.args[2]) + 1)))
        more = mine[:, each].sum() - np.arange(len(together))
        chances[each] = float(together @ last.sf(more - 1))
    return chances
