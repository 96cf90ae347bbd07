"""Claims of a family of comparisons, and the intervals that agree with them.

A family has an error of 5% in all: 4% for differences, 1% for equivalence, Holm's step-down
procedure (1979) over each. So the chance of any false claim in it is at most 5%, however its
comparisons depend on each other. Adaptive looks may come on top: whatever gives a valid p value
for each comparison can take the place of a single test's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from inference.intervals import Interval, Ratio, holm

#: The error of a family, and how it is split: what is false among differences, and equivalences.
FAMILY_ERROR = 0.05
DIFFERENCE_ERROR = 0.04
EQUIVALENCE_ERROR = FAMILY_ERROR - DIFFERENCE_ERROR


@dataclass(frozen=True)
class FamilyClaim:
    """What a family says of one comparison; its p values are adjusted by Holm's procedure.

    `interval` is one of a family that holds all true ratios together in at least 95%, and leaves
    out 1 exactly where `is_different`; None where the launches agree to the last digit.
    """

    difference_p: float
    equivalence_p: float | None
    interval: Interval | None

    @property
    def is_different(self) -> bool:
        """Return whether a difference is shown."""
        return self.difference_p < DIFFERENCE_ERROR

    @property
    def is_within_margin(self) -> bool:
        """Return whether the ratio is shown to be within the margin, different from 1 or not."""
        return self.equivalence_p is not None and self.equivalence_p < EQUIVALENCE_ERROR

    @property
    def is_equivalent(self) -> bool:
        """Return whether the ratio is shown to be within the margin, and no difference is."""
        return self.is_within_margin and not self.is_different


def level_of_intervals(differences: Sequence[bool]) -> float:
    """Return the level of each interval of a family, of which comparisons show a difference.

    An interval misses a true ratio of 1 only where a difference is claimed falsely, for which
    Holm's procedure has 4%. The other comparisons, at most one fewer than there are, share what is
    left of 5%. Where all comparisons show a difference, none is 1 (but for those 4%), and the level
    is Bonferroni's at 4%.
    """
    count = len(differences)
    if count == 1 or all(differences):
        return DIFFERENCE_ERROR / max(1, count)
    return (FAMILY_ERROR - DIFFERENCE_ERROR) / (count - 1)


def beside(ratio: Ratio, level: float, is_different: bool) -> Interval | None:
    """Return the interval of a level that agrees with a claim.

    What a later step of Holm's procedure shows, the wider interval of all may not: its near end
    is then just beyond 1 (Strassburger and Bretz 2008), as all that is known of it.
    """
    found = ratio.interval_at(level)
    if found is None or not is_different or not found.low <= 1 <= found.high:
        return found
    if ratio.value > 1:
        return Interval(math.nextafter(1, 2), found.high, found.coverage)
    return Interval(found.low, math.nextafter(1, 0), found.coverage)


def claims(family: Sequence[Ratio]) -> list[FamilyClaim]:
    """Return what a family of ratios with p values says of each.

    Raises ValueError where one has no p value: what nothing can be said of is of no family.
    """
    p_values = [ratio.p_value for ratio in family]
    if None in p_values:
        raise ValueError("a comparison without a p value belongs to no family")
    differences = holm([p for p in p_values if p is not None])
    equivalences = holm([1.0 if r.equivalence_p is None else r.equivalence_p for r in family])
    shown = [p < DIFFERENCE_ERROR for p in differences]
    level = level_of_intervals(shown)
    return [
        FamilyClaim(
            difference,
            None if ratio.equivalence_p is None else equivalence,
            beside(ratio, level, is_different),
        )
        for ratio, difference, equivalence, is_different in zip(
            family, differences, equivalences, shown, strict=True
        )
    ]
