"""What is said of more rounds comes true in campaigns that are drawn anew."""

import math
from collections import Counter

import numpy as np
import pytest

from analysis.simulation.designs import components, drawn, families, rounds
from inference.families import DIFFERENCE_ERROR, EQUIVALENCE_ERROR
from inference.looks import Looks
from inference.outlook import (
    FARTHEST,
    LADDER,
    Belief,
    SeenRatio,
    beliefs,
    chance_of_new_rounds,
    rounds_to_decide,
)

PARTS, SEEN, LATER = components(), 3, (5, 8, 13, 21)


def foretold(truth: np.ndarray, trials: int) -> Counter[str]:
    """Return what became of what was said after three rounds, in other campaigns of that truth."""
    random, looks, found = np.random.default_rng(1), Looks(), Counter[str]()
    for _ in range(trials):
        campaign, other = (drawn(PARTS, truth, "normal", random, looks) for _ in range(2))
        now, later = rounds(SEEN)(campaign), {n: rounds(n)(other) for n in LATER}
        for members in families(PARTS).values():
            levels = (
                DIFFERENCE_ERROR / max(1, int((~now.differs[members]).sum())),
                EQUIVALENCE_ERROR / max(1, int((~now.equals[members]).sum())),
            )
            seen = campaign.logarithms[members, :SEEN]
            family = [SeenRatio(SEEN, float(r.mean()), float(r.var(ddof=1))) for r in seen]
            for place, belief in zip(members, beliefs(family), strict=True):
                if now.differs[place] or now.equals[place]:
                    continue
                margin, last = PARTS[place].margin, later[LATER[-1]]
                found["expected"] += round(
                    1e6 * chance_of_new_rounds(belief, LATER[-1], margin, *levels)
                )
                found["decided"] += bool(last.differs[place] or last.equals[place])
                count = rounds_to_decide(belief, SEEN, margin, *levels)
                claims = later[count or LATER[-1]]
                came = bool(claims.differs[place] or claims.equals[place])
                found["soon" if count else "unlikely"] += 1
                found["soon, and so" if count else "unlikely, and yet"] += came
    return found


def test_what_is_said_of_open_series_comes_true() -> None:
    """With the variances and effects of a measured campaign, of 133 series."""
    found = foretold(np.array([part.effect for part in PARTS]), 6)
    assert found["soon"] > 200 and found["unlikely"] > 100
    assert found["soon, and so"] > 0.6 * found["soon"]
    assert found["unlikely, and yet"] < 0.35 * found["unlikely"]
    assert found["expected"] / 1e6 == pytest.approx(found["decided"], rel=0.15)


def test_where_nothing_differs_little_is_promised() -> None:
    found = foretold(np.zeros(len(PARTS)), 6)
    assert found["soon"] < 0.06 * (found["soon"] + found["unlikely"])


def test_what_few_rounds_saw_counts_for_less_where_the_others_saw_nothing() -> None:
    alone = beliefs([SeenRatio(3, 0.3, 0.01)])[0]
    among = beliefs([SeenRatio(3, 0.3, 0.01), *[SeenRatio(3, 0.01, 0.01)] * 20])[0]
    assert 0 < among.mean < alone.mean < 0.3
    assert beliefs([]) == []


def test_a_chance_is_of_a_difference_or_of_equivalence() -> None:
    sure = Belief(math.log(2), 0.0, 1e-4)
    assert chance_of_new_rounds(sure, 5, 0.02, 0.01, 0.01) > 0.99
    equal = Belief(0.0, 0.0, 1e-5)
    assert chance_of_new_rounds(equal, 21, 0.02, 0.01, 0.01) > 0.9
    noisy = Belief(0.0, 0.0, 1.0)
    assert chance_of_new_rounds(noisy, 21, 0.02, 0.01, 0.01) < 0.02
    chances = [chance_of_new_rounds(Belief(0.1, 0.0, 0.01), n, 0.02, 0.01, 0.01) for n in LADDER]
    assert chances == sorted(chances)


def test_rounds_are_more_than_were_seen_and_not_too_many() -> None:
    sure = Belief(math.log(2), 0.0, 1e-4)
    assert rounds_to_decide(sure, 3, 0.02, 0.01, 0.01) == 5
    assert rounds_to_decide(sure, 5, 0.02, 0.01, 0.01) == 8
    slow = Belief(0.05, 0.0, 0.01)
    assert rounds_to_decide(slow, 3, 0.02, 0.01, 0.01) is None
    needed = rounds_to_decide(slow, 13, 0.02, 0.01, 0.01)
    assert needed is not None and 13 < needed <= FARTHEST * 13
