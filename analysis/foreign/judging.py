"""Two sets of runs compared, or the newest of a history with those before it.

The statistics are those of campaigns: two sets are two independent samples (Welch), the newest of a
history is one draw from those since its last change (Student's prediction interval). All that is
compared is one family (inference/families.py). Where a set has several sessions, each is one value:
its runs share what differs between sessions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from analysis.comparison.verdict import Verdict, correct
from analysis.foreign.samples import (
    LAYOUT,
    PLACE,
    Directions,
    Key,
    Levels,
    Sample,
    Samples,
    levels_of,
    step_of,
)
from analysis.foreign.sessions import medians, sessions_of
from analysis.history.regressions import smallest_slowdown
from analysis.history.series import FEWEST_BEFORE, predicted_ratio
from inference.families import DIFFERENCE_ERROR
from inference.intervals import CONFIDENCE, Ratio, independent_ratio
from records.foreign.run import NoRun, Run

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
    #: How many runs and sessions each side has, the base first.
    runs: tuple[int, int] = (0, 0)
    sessions: tuple[int, int] = (0, 0)

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

    `lost` are things that the base has and the new runs have not, `failed` says which of the new
    runs failed, `unjudged` what both have and nothing can be said of. `caveats` are what else
    differs, `not_compared` what needs no verdict.
    """

    rows: list[JudgedSeries] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)

    def having(self, needed: float, *outcomes: Outcome) -> list[JudgedSeries]:
        """Return the rows of some outcomes."""
        return [row for row in self.rows if row.outcome(needed) in outcomes]

    @property
    def told(self) -> list[JudgedSeries]:
        """Return the rows that allow a conclusion."""
        return [row for row in self.rows if row.verdict.is_told]


def compared(
    sets: tuple[Samples, Samples], left_out: Sequence[NoRun], margin: float,
    directions: Directions, names: tuple[str, str], chosen_by: Collection[str] = (),
) -> Judgement:  # fmt: skip
    """Return the second samples compared with the first; `names` are those of the two sets.

    `left_out` is what the second set lacks of its own. `margin` is how far from 1 a ratio may be to
    be called equivalent, as a fraction.
    """
    base, new = sets
    found = Judgement()
    found.lost = [key.title for key in base if key not in new]
    only = [key.title for key in new if key not in base]
    if only:
        found.not_compared.append(f"only the new set has {in_short(only)}")
    found.failed = [
        one.sentence for one in left_out
        if any(key.may_have_lost(one, chosen_by) for key in (*base, *new))
    ]  # fmt: skip
    both: list[tuple[Key, Sequence[Run], Sequence[Run]]] = []
    for key in (key for key in base if key in new):
        sides = (base[key], new[key])
        both.append((key, sides[0].runs, sides[1].runs))
        lower = directions.of(key, sides[0].told | sides[1].told)
        if isinstance(lower, str):
            found.unjudged.append(f"{key.title}: {lower}")
            continue
        for side in sides:
            if cut := side.without_cut():
                found.not_compared.append(cut_sentence(key, cut))
                found.failed += found.not_compared[-1:] if side is sides[1] else []
        row = _row(key, sides, lower, margin, names)
        if isinstance(row, str):
            found.unjudged.append(row)
            continue
        found.rows.append(row)
        if lacking := sides[0].sizes() - sides[1].sizes():
            words = in_short([
                "no size" if size is None else f"{size:,} B"
                for size in sorted(lacking, key=lambda one: -1 if one is None else one)
            ])  # fmt: skip
            found.lost.append(f"{key.title} at {words}")
    found.caveats = differing(both, chosen_by)
    found.rows = with_claims(found.rows)
    return found


def _row(
    key: Key, sides: tuple[Sample, Sample], lower: bool, margin: float, names: tuple[str, str]
) -> JudgedSeries | str:
    """Return two samples of one thing compared, or the sentence why they cannot be."""
    sizes = sides[0].sizes() & sides[1].sizes()
    if not sizes:
        return f"{key.title}: the two sets have no message size in common"
    levels = [levels_of(side, sizes, lower) for side in sides]
    groups = [sessions_of(side.runs) for side in sides]
    step = step_of(sides, sizes)
    counts = tuple(map(len, groups))
    unit = "runs"
    if max(counts) > 1 and any(
        len(of) < len(side.runs) for of, side in zip(groups, sides, strict=True)
    ):
        unit = "sessions"
        levels = [
            Levels(medians(of.values, by), lower) for of, by in zip(levels, groups, strict=True)
        ]
    ratio = ratio_of(levels[1].values, levels[0].values, margin, step, unit)
    return JudgedSeries(
        key, levels[0], levels[1], Verdict(names[1], names[0], ratio, margin), sizes=len(sizes),
        runs=(len(sides[0].runs), len(sides[1].runs)), sessions=(counts[0], counts[1]),
    )  # fmt: skip


def ratio_of(
    new: Sequence[float], base: Sequence[float], margin: float, step: float, unit: str
) -> Ratio:
    """Return the ratio of two samples of `unit`, runs or sessions, from logarithms.

    One session is one draw from what differs between sessions, of which several of the base tell
    the spread.
    """
    if unit == "sessions" and len(new) == 1 and len(base) >= FEWEST_BEFORE:
        ratio = predicted_ratio(new[0], np.array(base), margin, step)
        counted = ratio.counted.replace(" earlier campaigns", " sessions, and one new one")
    else:
        ratio = independent_ratio(new, base, CONFIDENCE, margin, step)
        counted = ratio.counted.replace(" launches", f" {unit}")
    return replace(ratio, counted=counted)


def cut_sentence(key: Key, cut: Sequence[Run]) -> str:
    """Return which runs of a thing seem to be cut off."""
    names = in_short([run.where for run in cut])
    return f"{key.title}: {names} lacks sizes that most runs have: was it cut off?"


def differing(
    both: Iterable[tuple[Key, Sequence[Run], Sequence[Run]]], chosen_by: Collection[str]
) -> list[str]:
    """Return in sentences which facts differ between the two sides of things that are compared."""
    apart: dict[str, list[tuple[Key, set[str], set[str]]]] = defaultdict(list)
    for key, *sides in both:
        names = {name for side in sides for run in side for name in run.labels}
        for name in names - {*PLACE, *LAYOUT, "session", *chosen_by}:
            values = [{run.labels[name] for run in side if name in run.labels} for side in sides]
            # What one side does not record is unknown, and no difference.
            if all(values) and values[0] != values[1]:
                apart[name].append((key, values[0], values[1]))
    return [
        f"{name} differs in {len(of)} comparison{'' if len(of) == 1 else 's'}, such as "
        f"{of[0][0].title}: {in_short(sorted(of[0][1]))} before, {in_short(sorted(of[0][2]))} now; "
        "what it does is in the ratio"
        for name, of in sorted(apart.items())
    ]


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
