"""One run of a test judged in the suite that it is of, against the earlier runs of a history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from analysis.foreign.judging import JudgedSeries, Judgement, smallest_shown
from analysis.foreign.newest import course_of, newest_row
from analysis.foreign.samples import LAYOUT, PLACE, Directions, Sample, place_of, samples_of
from analysis.foreign.sessions import TOGETHER_S
from inference.families import claims
from inference.intervals import Ratio
from records.foreign.reading import RunSet, read_set
from records.foreign.run import ForeignError, Measured, Run

#: What the rest of a suite counts as, of which this test knows nothing.
OTHER = Ratio(1.0, None, 1.0, 0)


@cache
def history_of(path: Path) -> RunSet:
    """Return the runs of a history as they are when a process first asks; raises ForeignError."""
    if not path.exists():
        raise ForeignError(f"{path} is not there: name ReFrame's performance logs or its database")
    return read_set(path)


def judged_in_suite(
    history: RunSet, run: Run, margin: float, directions: Directions, together: int = 0
) -> Judgement:
    """Return what a run says against the earlier ones of its test in the same place.

    `together` is how many values the suite judges, over which the chance of a false verdict is
    shared; 0 for as many as the history has. Runs of the hour before it share with it what differs
    between sessions, and are left out.
    """
    assert run.began_utc is not None
    before = [
        one for one in history.runs
        if one.began_utc is not None and one.began_utc <= run.began_utc - TOGETHER_S
    ]  # fmt: skip
    family = together or len({
        (measured.name, measured.unit, place_of(one.labels, ()))
        for one in before for measured in one.measured
    })  # fmt: skip
    found = Judgement()
    for measured in run.measured:
        row = _judged(before, run, measured, margin, directions, max(family, len(run.measured)))
        if isinstance(row, str):
            found.unjudged.append(f"{measured.name}: {row}")
        else:
            found.rows.append(row)
    told = [row for row in found.rows if row.verdict.ratio.p_value is not None]
    size = max(family, len(told))
    others = [OTHER] * (size - len(told))
    of_family = claims([*(row.verdict.ratio for row in told), *others])
    for row, claim in zip(told, of_family[: len(told)], strict=True):
        row.verdict.claim = claim
    found.rows = [
        replace(row, smallest=smallest_shown(row.verdict.ratio, row.verdict.margin, size))
        if row.verdict.claim else row
        for row in found.rows
    ]  # fmt: skip
    return found


def _judged(
    before: list[Run], run: Run, measured: Measured, margin: float, directions: Directions,
    family: int,
) -> JudgedSeries | str:  # fmt: skip
    """Return a value against the earlier ones of the same thing, or why that cannot be."""
    same = [
        replace(one, measured=(of,), labels=_without_place(one.labels))
        for one in before if _is_of_place(one.labels, run.labels)
        for of in one.measured if (of.name, of.unit) == (measured.name, measured.unit)
    ]  # fmt: skip
    if not same:
        return "the history has no run of it in this place that began over an hour before"
    new = replace(run, measured=(measured,), labels=_without_place(run.labels), session=None)
    [(key, sample)] = samples_of([*same, new]).items()
    assert isinstance(sample, Sample)
    lower = directions.of(key, sample.told)
    if isinstance(lower, str):
        return lower
    return newest_row(course_of(key, sample, lower), margin, family)


def _is_of_place(known: Mapping[str, str], own: Mapping[str, str]) -> bool:
    """Return whether a run was in the same place and layout, as far as its labels tell."""
    return all(own.get(name) == known[name] for name in (*PLACE, *LAYOUT) if name in known)


def _without_place(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in labels.items() if name not in (*PLACE, *LAYOUT)}
