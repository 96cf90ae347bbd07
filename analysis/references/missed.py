"""Which references of its site a campaign missed, from ReFrame's reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from records.reframe_reports import cases_in


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
