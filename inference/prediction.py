"""Within which limits one new launch falls, by the spread of launches measured before.

Launches of one campaign have the day in common, so their spread is on two levels: between the means
of campaigns, and between the launches of each. Both are of logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

#: The chance that a launch without any change is beyond its limit on one side: of 500 references,
#: one or more then fail a round in 5% of rounds without a change.
CHANCE = 1e-4
FEWEST_LAUNCHES = 3


@dataclass(frozen=True)
class Limits:
    """Between what a new launch is expected, as a logarithm: `middle` less and plus `half`."""

    middle: float
    half: float
    launches: int
    campaigns: int


def half_width(
    between: Any, within: Any, campaigns: int, launches: float, chance: float = CHANCE
) -> Any:
    """Return half the width of the prediction interval of one new launch of a new campaign.

    `between` is the variance of the campaigns' means, `within` that of launches in a campaign
    (arrays, too), `launches` how many there are in all. One campaign does not show what differs
    between campaigns: its interval is Student's for another launch of the same campaign. Of
    several, the variance is between (1 + 1/k) + within (1 - 1/r) with r launches a campaign, and
    the freedom that belongs to it is Satterthwaite's (1946).
    """
    if campaigns == 1:
        variance = within * (1 + 1 / launches)
        freedom = np.full_like(np.asarray(within, float), launches - 1)
    else:
        parts = (between * (1 + 1 / campaigns), within * (1 - campaigns / launches))
        variance = parts[0] + parts[1]
        freedoms = (campaigns - 1, max(1, launches - campaigns))
        weights = sum(part**2 / of for part, of in zip(parts, freedoms, strict=True))
        with np.errstate(invalid="ignore"):
            freedom = np.where(variance > 0, variance**2 / weights, campaigns - 1)
    return special.stdtrit(freedom, 1 - chance) * np.sqrt(variance)


def certain_slowdown(distances: Sequence[float], power: float) -> float | None:
    """Return the smallest slowdown that takes one more launch beyond its limit with `power`.

    `distances` are the logarithms of how far launches were within the limit, below 0 for those
    beyond it; so is the slowdown, at least 0. It is Student's upper prediction limit, for normal
    noise of one campaign. A single launch shows no spread, and so no slowdown: None.
    """
    count = len(distances)
    if count < 2:
        return None
    seen = np.asarray(distances, float)
    deviation = float(seen.std(ddof=1)) * (1 + 1 / count) ** 0.5
    return max(0.0, float(seen.mean() + special.stdtrit(count - 1, power) * deviation))


def limits_of(campaigns: Sequence[Sequence[float]], chance: float = CHANCE) -> Limits:
    """Return the limits of a new launch from each campaign's launches, all as logarithms.

    A launch without a change is below with the given chance, and above with as much. Campaigns of
    different length count as if each had the harmonic mean of launches. Raises ValueError below
    two launches.
    """
    sides = [np.asarray(launches, float) for launches in campaigns if len(launches)]
    launches = sum(len(side) for side in sides)
    if launches < 2:
        raise ValueError("one launch shows no spread")
    means = np.array([side.mean() for side in sides])
    squares = sum(float(((side - side.mean()) ** 2).sum()) for side in sides)
    within = squares / (launches - len(sides)) if launches > len(sides) else 0.0
    between = float(means.var(ddof=1)) if len(sides) > 1 else 0.0
    alike = float(len(sides) ** 2 / sum(1 / len(side) for side in sides))
    counted = launches if len(sides) == 1 else alike
    half = float(half_width(between, within, len(sides), counted, chance))
    return Limits(float(means.mean()), half, launches, len(sides))
