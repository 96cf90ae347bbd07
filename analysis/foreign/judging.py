"""Two sets of runs compared, or the newest of a history with those before it.

The statistics are those of campaigns: each run is one value, two sets are two independent samples
(Welch), the newest of a history is one draw from those since its last change (Student's prediction
interval). All that is compared is one family (inference/families.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from analysis.comparison.verdict import Verdict, correct
from analysis.foreign.samples import Directions, Key, Levels, Samples, levels_of, step_of
from analysis.history.regressions import smallest_slowdown
from inference.families import DIFFERENCE_ERROR
from inference.intervals import CONFIDENCE, Ratio, independent_ratio

Outcome = Literal["worse", "not worse", "could not be seen", "inconclusive"]


@dataclass(frozen=True)
class JudgedSeries:
    """One thing in both sets; a ratio above 1 is better than the base.

    `smallest` is the smallest slowdown, as a fraction, that would probably have been shown; None
    if none would have been.
    """

    key: Key
    base: Levels
    new: Levels
    verdict: Verdict
    smallest: float | None = None
    #: How many message sizes the values are means over.
    sizes: int = 1

    def outcome(self, needed: float) -> Outcome:
        """Return what it says to a gate that must see slowdowns of a size, as a fraction."""
        verdict = self.verdict
        if verdict.is_different and verdict.ratio.value < 1 / (1 + verdict.margin):
            return "worse"
        if not verdict.is_told:
            return "inconclusive"
        if verdict.is_different or verdict.is_equivalent:
            return "not worse"
        return "not worse" if self.smallest is not None and self.smallest <= needed else (
            "could not be seen"
        )  # fmt: skip


@dataclass
class Judgement:
    """All that was compared, and what was not, in sentences.

    `lost` are those that the base has and the new set has not.
    """

    rows: list[JudgedSeries] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)

    def having(self, needed: float, *outcomes: Outcome) -> list[JudgedSeries]:
        """Return the rows of some outcomes."""
        return [row for row in self.rows if row.outcome(needed) in outcomes]


def compared(
    base: Samples, new: Samples, margin: float, directions: Directions, names: tuple[str, str]
) -> Judgement:
    """Return the second samples compared with the first; `names` are those of the two sets.

    `margin` is how far from 1 a ratio may be to be called equivalent, as a fraction.
    """
    found = Judgement()
    found.lost = [key.title for key in base if key not in new]
    only = [key.title for key in new if key not in base]
    if only:
        found.not_compared.append(f"only the new set has {in_short(only)}")
    for key in (key for key in base if key in new):
        sides = (base[key], new[key])
        lower = directions.of(key, sides[0].told | sides[1].told)
        if isinstance(lower, str):
            found.not_compared.append(f"{key.title}: {lower}")
            continue
        for cut in (side.without_cut() for side in sides):
            if cut:
                found.not_compared.append(
                    f"{key.title}: {in_short(cut)} lacks sizes that most runs have: was it cut off?"
                )
        sizes = sorted(sides[0].sizes() & sides[1].sizes())
        if not sizes:
            found.not_compared.append(f"{key.title}: the two sets have no message size in common")
            continue
        levels = [levels_of(side, sizes, lower) for side in sides]
        ratio = independent_ratio(
            levels[1].values, levels[0].values, CONFIDENCE, margin, step_of(sides, sizes)
        )
        of_runs = replace(ratio, counted=ratio.counted.replace(" launches", " runs"))
        verdict = Verdict(names[1], names[0], of_runs, margin)
        found.rows.append(JudgedSeries(key, levels[0], levels[1], verdict, sizes=len(sizes)))
    found.rows = with_claims(found.rows)
    return found


def with_claims(rows: Sequence[JudgedSeries]) -> list[JudgedSeries]:
    """Make the claims of the family, and say what each comparison could have shown in it."""
    correct([row.verdict for row in rows])
    told = sum(row.verdict.claim is not None for row in rows)
    return [
        replace(row, smallest=smallest_shown(row.verdict.ratio, row.verdict.margin, told))
        if row.verdict.claim else row
        for row in rows
    ]  # fmt: skip


def smallest_shown(ratio: Ratio, margin: float, family: int) -> float | None:
    """Return the smallest slowdown that a verdict would show; it is of both directions."""
    return smallest_slowdown(ratio, margin, DIFFERENCE_ERROR / 2 / family)


def in_short(names: Collection[str], most: int = 3) -> str:
    """Return some names, and how many more there are."""
    shown = list(names)[:most]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
