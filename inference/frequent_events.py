"""Which members, and which pairs of them, something happens to more often than to the others.

Each pair was looked at some times, and at some of these it happened. The likeliest culprit is taken
out with all its looks, as long as it is shown, and the rest are compared with each other again:
what happens to a bad member's pairs is not blamed on each of them. Fisher's exact test, one-sided,
with Bonferroni's correction for all members and pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: What is taken out at most: with more, what is the rule and what the exception cannot be said.
MOST_CULPRITS = 64


@dataclass(frozen=True)
class Culprit:
    """A member, or a pair, with the share of its looks at which it happened, and of the others'."""

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
) -> list[Culprit]:
    """Return those to which it happens more often, the likeliest first.

    It has to happen at `least_share` of one's looks, and `least_ratio` times as often as to the
    others. Where it happens to all alike and at random, the chance that any is returned is at
    most `level`.
    """
    places = np.asarray(pairs, dtype=np.intp).reshape(-1, 2)
    counts, of = np.asarray(happened, dtype=float), np.asarray(looks, dtype=float)
    chance = level / (members + len(places))
    found: list[Culprit] = []
    # Takes a second to be loaded, and few commands ask for it.
    from scipy import stats

    left = np.ones(len(places), dtype=bool)
    while left.any() and len(found) < MOST_CULPRITS:
        first, second = places[left].T
        own = [
            np.concatenate([
                np.bincount(first, one[left], members) + np.bincount(second, one[left], members),
                one[left],
            ])
            for one in (counts, of)
        ]  # fmt: skip
        rest = [one[left].sum() - mine for one, mine in zip((counts, of), own, strict=True)]
        with np.errstate(invalid="ignore", divide="ignore"):
            share, others = own[0] / own[1], rest[0] / rest[1]
        apart = (share >= least_share) & (share >= least_ratio * others) & (rest[1] > 0)
        apart &= own[1] > 0
        (mine, of_mine), (theirs, of_theirs) = ([one[apart] for one in two] for two in (own, rest))
        chances = np.ones(len(apart))
        chances[apart] = stats.hypergeom.sf(mine - 1, of_theirs + of_mine, theirs + mine, of_mine)
        best = int(np.argmin(chances))
        if chances[best] >= chance:
            break
        whose = (best,) if best < members else tuple(map(int, places[left][best - members]))
        found.append(Culprit(whose, float(share[best]), float(others[best])))
        left &= ~np.isin(places, whose).any(axis=1) if len(whose) == 1 else ~(places == whose).all(
            axis=1
        )  # fmt: skip
    return found
