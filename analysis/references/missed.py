"""Which references of its site a campaign missed, from ReFrame's reports.

And which slowdown it would have missed them with: that a launch meets a floor that is a factor of
ten below it says nothing of its last 25%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from analysis.comparison.verdict import POWER, SLOWDOWN
from analysis.tables.units import percent
from inference.prediction import certain_slowdown
from records.reframe_reports import cases_in

#: Launches that show a spread, and a slowdown that reads better as a factor.
FEWEST, LARGE = 2, 1.0


@dataclass
class MetricWithReference:
    """A metric of a check with its reference: a value for each round, in the metric's unit.

    `low` and `high` are the values between which nothing is missed, None where there is no limit.
    """

    check: str
    metric: str
    unit: str
    reference: float
    low: float | None
    high: float | None
    values: list[float] = field(default_factory=list)

    @property
    def higher_is_better(self) -> bool:
        """Return which side is better: if both have a limit, lower is better only for times."""
        return self.low is not None and (self.high is None or self.unit != "s")

    def is_worse(self, value: float) -> bool:
        """Return whether a value is beyond the limit on the worse side."""
        if self.higher_is_better:
            return self.low is not None and value < self.low
        return self.high is not None and value > self.high

    def ratio(self, value: float) -> float:
        """Return a value's ratio to the reference, above 1 if it is better."""
        return value / self.reference if self.higher_is_better else self.reference / value

    @cached_property
    def smallest(self) -> float | None:
        """Return the smallest slowdown, as a fraction, that a launch misses it with POWER.

        By the spread of the rounds; None if there is only one, or it has no limit on the worse
        side.
        """
        limit = self.low if self.higher_is_better else self.high
        if limit is None or limit <= 0 or min(self.values) <= 0:
            return None
        logarithms = [math.log(self.ratio(value) / self.ratio(limit)) for value in self.values]
        found = certain_slowdown(logarithms, POWER)
        # A floor of nothing may be further away than numbers reach.
        return None if found is None else math.expm1(min(found, 700.0))

    @property
    def is_blind(self) -> bool:
        """Return whether a launch that is slower by SLOWDOWN may well meet it."""
        return self.smallest is None or self.smallest > SLOWDOWN

    @property
    def missed(self) -> bool:
        """Return whether any round missed it."""
        return any(map(self.is_worse, self.values))

    @property
    def median(self) -> float:
        """Return the median over the rounds."""
        return float(np.median(self.values))


def limit(reference: float, share: Any) -> float | None:
    """Return the value that a threshold means: a fraction of the reference, beyond it."""
    return None if share is None else reference + abs(reference) * float(share)


def held_references(folder: Path) -> dict[tuple[str, str], MetricWithReference]:
    """Return every metric that has a reference, by the check's name and the metric's."""
    found: dict[tuple[str, str], MetricWithReference] = {}
    for case in cases_in(folder):
        for name, entry in (case.get("perfvalues") or {}).items():
            value, reference, low, high, unit = entry[:5]
            if not reference or value is None or (low is None and high is None):
                continue
            key = (str(case["display_name"]), str(name).rpartition(":")[2])
            limits = limit(reference, low), limit(reference, high)
            held = found.setdefault(
                key, MetricWithReference(*key, str(unit or ""), reference, *limits)
            )
            held.values.append(float(value))
    return found


def power_sentences(held: Sequence[MetricWithReference]) -> list[str]:
    """Return with which slowdowns launches would have missed their references; none if none has."""
    if not held:
        return []
    seen = sorted(one.smallest for one in held if one.smallest is not None)
    lines = []
    if seen:
        lines.append(
            f"the smallest slowdown with which a launch would have missed its reference with a "
            f"probability of {POWER:.0%}: {slowdown(seen[0])} at best, "
            f"{slowdown(seen[len(seen) // 2])} in the median metric, {slowdown(seen[-1])} at worst"
        )
    if blind := [one for one in held if one.is_blind]:
        worst = max(blind, key=lambda one: math.inf if one.smallest is None else one.smallest)
        why = (
            "measured once, which shows no spread"
            if len(worst.values) < FEWEST
            else "no limit on the worse side"
            if worst.smallest is None
            else slowdown(worst.smallest)
        )
        lines.append(
            f"{len(blind)} of {len(held)} metrics with a reference would not have shown a slowdown "
            f"of {percent(SLOWDOWN)}, such as {worst.check}, {worst.metric} ({why}): "
            "meeting the reference says little about them"
        )
    return lines


def slowdown(share: float) -> str:
    """Return a slowdown, given as a fraction, in words."""
    return percent(share) if share < LARGE else f"a factor of {1 + share:.3g}"
