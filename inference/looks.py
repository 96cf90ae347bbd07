"""Tests at several looks at a growing sample, with the level spent over them beforehand.

A campaign that measures where answers are open looks at its results more than once, and decides by
what it saw what it measures next. Student's test at each look, at the full level, would show a
difference where there is none in about a tenth of series (docs/method/designs.md). So a share of
the level is set aside for each number of blocks at which is looked, before anything is measured.
The smallest of p / share over the looks so far is a p value whenever one stops, for whatever
reason (a union bound). Holm's procedure may be applied to such values at any time, whatever their
dependence, so the chance of any false claim in a family stays below its level (group-sequential
Holm: Maurer and Bretz, Statistics in Biopharmaceutical Research 5, 2013; Tamhane and others,
Statistics in Medicine 40, 2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from inference.intervals import CONFIDENCE, PRINTED_STEP, Interval, Ratio, paired_ratio


@dataclass(frozen=True)
class Looks:
    """At how many blocks is looked, ascending, and the share of the level that each look has."""

    blocks: tuple[int, ...] = (3, 5, 8, 13, 21, 34)
    shares: tuple[float, ...] = (0.40, 0.25, 0.15, 0.10, 0.06, 0.04)

    def __post_init__(self) -> None:
        """Raise ValueError for looks that would spend more than the level, or see nothing."""
        if len(self.blocks) != len(self.shares) or not self.blocks:
            raise ValueError("looks need one share of the level for each number of blocks")
        if any(one >= two for one, two in zip(self.blocks, self.blocks[1:], strict=False)):
            raise ValueError(f"the numbers of blocks {self.blocks} do not ascend")
        if self.blocks[0] < 2:
            raise ValueError("a test needs two blocks, so no look can be at fewer")
        if min(self.shares) <= 0 or math.fsum(self.shares) > 1 + 1e-12:
            raise ValueError(
                f"the shares {self.shares} are not all above 0, or are more than 1 together"
            )

    def coming(self, blocks: int) -> list[tuple[int, float]]:
        """Return the looks after a number of blocks, with their shares."""
        return [look for look in zip(self.blocks, self.shares, strict=True) if look[0] > blocks]

    def reached(self, blocks: int) -> list[tuple[int, float]]:
        """Return the looks that a number of blocks has reached, with their shares."""
        return [look for look in zip(self.blocks, self.shares, strict=True) if look[0] <= blocks]


@dataclass(frozen=True)
class AnytimeP:
    """P values of a series that hold whenever one stops: of no difference, of no equivalence."""

    difference: float
    equivalence: float


#: Before the first look.
NOTHING_SEEN = AnytimeP(1.0, 1.0)


def anytime_p(
    logarithms: Sequence[float],
    margin: float,
    looks: Looks,
    step: float = PRINTED_STEP,
    *,
    before: AnytimeP = NOTHING_SEEN,
    blocks_before: int = 0,
) -> AnytimeP:
    """Return the p values after the looks that the complete blocks of a series have reached.

    `logarithms` has the logarithm of the ratio of each complete block, in the order of measuring;
    `margin` is how far from 1 a ratio may be to be called equivalent, `step` that
    of the values, as in `ratio_of_mean`. Both are 1 before the first look. What was seen `before`,
    when there were `blocks_before` of these blocks, is not looked at again.
    """
    difference, equivalence = before.difference, before.equivalence
    for blocks, share in looks.reached(len(logarithms)):
        if blocks <= blocks_before:
            continue
        seen = paired_ratio(logarithms[:blocks], margin=margin, step=step)
        difference = min(difference, at_look(seen.p_value, share))
        equivalence = min(equivalence, at_look(seen.equivalence_p, share))
    return AnytimeP(difference, equivalence)


@dataclass(frozen=True)
class AnytimeRatio(Ratio):
    """A ratio whose p values and intervals hold whenever one stops, by the looks so far.

    `looks` has the share of the level of each look, and what it saw. The value is that of all
    blocks, also of those after the last look.
    """

    looks: tuple[tuple[float, Ratio], ...] = ()

    def interval_at(self, level: float) -> Interval | None:
        """Return the interval that misses the true ratio with a chance of `level`, at most.

        It is what the intervals of the looks have in common, wide enough for the value of all
        blocks, and for what lies between intervals that have nothing in common. It leaves out 1
        only where `p_value` is below the level.
        """
        low, high = 0.0, math.inf
        with_interval = without = 1.0
        for share, seen in self.looks:
            interval = seen.interval_at(share * level)
            if interval is None:
                without = min(without, at_look(seen.p_value, share))
            else:
                with_interval = min(with_interval, at_look(seen.p_value, share))
                low, high = max(low, interval.low), min(high, interval.high)
        if without < with_interval or not self.looks:
            return None
        return Interval(min(low, high, self.value), max(low, high, self.value), 1 - level)


def anytime_ratio(whole: Ratio, looks: Sequence[tuple[float, Ratio]], margin: float) -> Ratio:
    """Return a ratio of all blocks with p values and intervals of the looks so far.

    Before the first look it has no interval and p values of 1, so that it is of its family: whether
    it comes to a look depends on what the others show, and how many there are must not. What no
    block has both sides of has no p value. Where the look with the smallest p value is on the other
    side of 1 than all blocks together, nothing is claimed: its p value is 1, as that of equivalence
    is where all blocks together are beyond the margin.
    """
    if not looks:
        before = f"{whole.counted}, before the first look"
        p = 1.0 if whole.pairs else None
        return replace(
            whole, interval=None, p_value=p, equivalence_p=p, error=None, freedom=None,
            counted=before,
        )  # fmt: skip
    p_value, best = min(
        ((at_look(seen.p_value, share), seen) for share, seen in looks), key=lambda pair: pair[0]
    )
    if (best.value - 1) * (whole.value - 1) <= 0:
        p_value = 1.0
    equivalence = min(at_look(seen.equivalence_p, share) for share, seen in looks)
    if abs(math.log(whole.value)) >= math.log1p(margin):
        equivalence = 1.0
    found = AnytimeRatio(
        whole.value, None, p_value, whole.pairs, equivalence, whole.counted, whole.error,
        whole.freedom, whole.step, tuple(looks),
    )  # fmt: skip
    return replace(found, interval=found.interval_at(1 - CONFIDENCE))


def at_look(p_value: float | None, share: float) -> float:
    """Return the p value of a look with its share of the level; 1 where there is no test."""
    return 1.0 if p_value is None else min(1.0, p_value / share)
