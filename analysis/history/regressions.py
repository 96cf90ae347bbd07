"""Whether a campaign is worse than another, or than its history: for people, for CI, as JUnit."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from scipy import special

from analysis.comparison.verdict import ALPHA, POWER, Verdict
from analysis.history.lost_cells import UntoldCell
from analysis.history.two_campaigns import ComparedCell
from analysis.tables.junit import Case, write_cases
from analysis.tables.units import interval_text, percent
from inference.intervals import Ratio, chance_above, holm, possible_deviations

Outcome = Literal["regression", "none shown", "could not be seen", "inconclusive"]


@dataclass(frozen=True)
class Tested:
    """A row and its finding; `margin` is the worsening, as a fraction, that is too much.

    `p_value` is one-sided, for not being worse, after Holm's correction. `level` is that of a
    single row. It `needed` to show a slowdown of that size, as a fraction.
    """

    row: ComparedCell
    outcome: Outcome
    margin: float
    p_value: float | None = None
    level: float = ALPHA
    needed: float | None = None

    @cached_property
    def smallest(self) -> float | None:
        """Return the smallest slowdown, as a fraction, that the row shows with POWER.

        For the spread that was observed; None if it could have shown none. It takes milliseconds,
        and most rows are not asked for it.
        """
        return smallest_slowdown(self.row.verdict.ratio, self.margin, self.level)

    def would_show(self, slowdown: float) -> bool:
        """Return whether it shows a slowdown, as a fraction, with POWER."""
        return self.smallest is not None and self.smallest <= slowdown

    @property
    def sentence(self) -> str:
        """Return what was found, in words."""
        verdict = self.row.verdict
        if self.outcome == "inconclusive":
            return f"{verdict.words}, against {verdict.base}"
        p_value = "–" if self.p_value is None else f"{self.p_value:.2g}"
        return (
            f"ratio {verdict.ratio.value:.3f} to {verdict.base}, own 95% interval "
            f"{interval_text(verdict.ratio.interval)}, one-sided p = {p_value} corrected, "
            f"{verdict.ratio.counted}; {self.outcome}; worse by more than "
            f"{percent(self.margin)} would be a regression; {self.power}"
        )

    @property
    def power(self) -> str:
        """Return in words the smallest slowdown that could have been seen."""
        seen = (
            "no slowdown could have been seen"
            if self.smallest is None
            else f"a slowdown of {percent(self.smallest)} would have been seen with a probability "
            f"of {POWER:.0%}"
        )
        if self.outcome == "could not be seen" and self.needed is not None:
            return f"could not have seen a slowdown of {percent(self.needed)}: {seen}"
        return seen


def tested(
    rows: Sequence[ComparedCell],
    margin: float | None,
    level: float = ALPHA,
    needed: float | None = None,
) -> list[Tested]:
    """Return what is worse by more than the margin, as shown after Holm's correction over all.

    One-sided, since an improvement is not a regression. `margin` None is each metric's own
    (records/experiments.yaml); `level` is the chance of any false one. If `needed` is a fraction,
    a row that would not have shown a slowdown of that size counts as one that could not show any.
    """
    judged = [row for row in rows if not row.verdict.unjudged]
    told = [row for row in judged if row.verdict.ratio.p_worse is not None]
    adjusted = dict(
        zip(map(id, told), holm([row.verdict.ratio.p_worse or 0.0 for row in told]), strict=True)
    )
    found = []
    for row in rows:
        allowed = row.verdict.margin if margin is None else margin
        p_value = adjusted.get(id(row))
        said = outcome(row.verdict, allowed, level, p_value)
        one = Tested(row, said, allowed, p_value, level / max(1, len(told)), needed)
        if said == "none shown" and needed is not None and not one.would_show(needed):
            seen = one.smallest
            one = replace(one, outcome="could not be seen")
            # What takes so long is not computed anew for the same row.
            vars(one)["smallest"] = seen
        found.append(one)
    return found


def outcome(verdict: Verdict, margin: float, level: float, p_value: float | None) -> Outcome:
    """Return what a verdict says whose ratio is above 1 if the new one is better.

    `p_value` is one-sided and corrected, None if launches are too few.
    """
    if p_value is None:
        return "inconclusive"
    if p_value < level and verdict.ratio.value < 1 / (1 + margin):
        return "regression"
    told = verdict.ratio.interval is not None or p_value < level or is_surely_within(verdict)
    return "none shown" if told else "inconclusive"


def is_surely_within(verdict: Verdict) -> bool:
    """Return whether launches that agree show that a ratio is within the margin."""
    equivalence = verdict.ratio.equivalence_p
    return equivalence is not None and equivalence < ALPHA


def smallest_slowdown(ratio: Ratio, margin: float, level: float) -> float | None:
    """Return the smallest slowdown, as a fraction, that is shown at a level with POWER.

    By Student's noncentral distribution, over all true standard errors consistent with the one seen
    for; the ratio itself must be worse by more than the margin, too. Where launches agree to the
    last digit it is what rounding cannot hide beyond the margin or a step, if they are enough to be
    sure of that. None where none is shown, however large.
    """
    if ratio.error is None or ratio.freedom is None:
        sure = ratio.equivalence_p is not None and ratio.equivalence_p < level
        return math.expm1(max(math.log1p(margin), ratio.step) + ratio.step) if sure else None
    freedom = ratio.freedom
    errors = possible_deviations(ratio.error, freedom)
    critical = np.maximum(special.stdtrit(freedom, 1 - level), math.log1p(margin) / errors)

    def is_shown(slowdown: float) -> bool:
        return chance_above(slowdown / errors, critical, freedom) >= POWER

    if not is_shown(LARGEST):
        return None
    low, high = 0.0, LARGEST
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    # Rounding may take a step of it.
    return math.expm1(high + ratio.step)


#: A logarithm of a slowdown that is beyond anything, of a factor of a million.
LARGEST = math.log(1e6)


def power_sentences(told: Sequence[Tested], needed: float | None = None) -> list[str]:
    """Return which slowdowns the comparisons would have shown, and those that were too coarse."""
    seen = sorted(one.smallest for one in told if one.smallest is not None)
    without = len(told) - len(seen)
    lines = []
    if seen:
        lines.append(
            f"the smallest slowdown that would have been seen with a probability of {POWER:.0%}: "
            f"{percent(seen[0])} at best, {percent(seen[len(seen) // 2])} in the median "
            f"comparison, {percent(seen[-1])} at worst"
        )
    if without:
        lines.append(f"{without} of {len(told)} comparisons would have seen no slowdown at all")
    blind = [one for one in told if one.outcome == "could not be seen"]
    if blind and needed is not None:
        worst = max(blind, key=lambda one: math.inf if one.smallest is None else one.smallest)
        lines.append(
            f"could not have seen a slowdown of {percent(needed)} in {len(blind)} of {len(told)} "
            f"comparisons, such as {worst.row.cell}, {worst.row.verdict.implementation} "
            f"({worst.power}); measure more rounds or campaigns, or fewer cells, or require "
            "less: --slowdown"
        )
    return lines


def is_blind(one: Tested) -> bool:
    """Return whether a comparison that counts could not show a slowdown of the required size."""
    return one.outcome in ("could not be seen", "inconclusive") and not one.row.verdict.unjudged


def inconclusive_sentence(found: Sequence[Tested]) -> list[str]:
    """Return in a sentence which comparisons were inconclusive; empty if none was."""
    none = [one for one in found if one.outcome == "inconclusive" and is_blind(one)]
    return [
        f"inconclusive in {len(none)} of {len(found)} comparisons, such as {one.row.cell}, "
        f"{one.row.verdict.implementation} ({one.row.verdict.ratio.counted}); measure more rounds "
        "or campaigns"
        for one in none[:1]
    ]


def write_junit(
    path: Path, name: str, found: Sequence[Tested],
    refused: Sequence[UntoldCell] = (), lost: Sequence[UntoldCell] = (),
) -> None:  # fmt: skip
    """Write a JUnit file: a case for each cell and implementation; raises OSError.

    What is refused is skipped, with all its reasons in one case; what is lost is an error, and what
    nobody has tried, or judges, is skipped.
    """
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in refused:
        reasons[one.cell, f"{one.experiment}.{one.implementation}"].append(one.sentence)
    write_cases(
        path, name,
        [
            *(Case(one.row.cell, f"{one.row.experiment}.{one.row.verdict.implementation}",
                   TAGS[one.outcome], one.sentence) for one in found),
            *(Case(cell, group, "skipped", f"not compared: {'; '.join(said)}")
              for (cell, group), said in reasons.items()),
            *(Case(one.cell, f"{one.experiment}.{one.implementation}",
                   "error" if one.kind == "lost" else "skipped",
                   f"{one.heading}: {one.sentence}") for one in lost),
        ],
    )  # fmt: skip


TAGS: dict[Outcome, Literal["failure", "skipped", "system-out"]] = {
    "regression": "failure", "inconclusive": "skipped", "none shown": "system-out",
    "could not be seen": "skipped",
}  # fmt: skip
