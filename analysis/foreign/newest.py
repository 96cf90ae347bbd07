"""The newest run of a history, or its newest session, against those before it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from analysis.comparison.verdict import ALPHA, Verdict
from analysis.foreign.judging import JudgedSeries, Judgement, in_short, with_claims
from analysis.foreign.samples import Directions, Key, Levels, Sample, Samples, levels_of, step_of
from analysis.history.series import Change, against_earlier
from inference.change_points import change_points, level_of_each
from inference.intervals import median
from records.foreign.run import ForeignError, Run

DIGITS = re.compile(r"(\d+)")
#: Runs that begin within so many seconds are no independent draws from what differs between days:
#: where no session is known, they are taken for one.
TOGETHER_S = 3600.0


@dataclass(frozen=True)
class HistoryPoint:
    """A run, or all runs that were started together, as one value: their median level."""

    level: float
    name: str
    session: str | None


@dataclass
class Course:
    """The points of one key in order of time, with their changes."""

    key: Key
    points: list[HistoryPoint]
    changes: list[Change] = field(default_factory=list)


@dataclass
class History:
    """The newest points judged, and the course of each thing."""

    judgement: Judgement
    courses: list[Course]
    #: How the points are ordered, in words.
    order: str


def in_order(runs: Sequence[Run]) -> tuple[list[int], str]:
    """Return the places of runs in order of time, and by what; raises ForeignError.

    Where no run has a time the names are the order, with the numbers in them by their values.
    """
    timed = sum(run.began_utc is not None for run in runs)
    if timed == len(runs):
        return sorted(range(len(runs)), key=lambda at: runs[at].began_utc or 0.0), "time"
    if timed:
        first = next(run.where for run in runs if run.began_utc is None)
        raise ForeignError(
            f"{len(runs) - timed} of {len(runs)} runs have no time, such as {first}: there is no "
            "order of all of them"
        )

    def natural(at: int) -> list[tuple[int, str]]:
        parts = DIGITS.split(runs[at].where)
        return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]

    return sorted(range(len(runs)), key=natural), "their files' names, since they have no time"


def points_of(sample: Sample, levels: Levels, order: Sequence[int]) -> list[HistoryPoint]:
    """Return a sample's points in order; runs of a session, or of one hour, are one."""
    groups: dict[str, list[int]] = {}
    since, own = -math.inf, ""
    for at in order:
        run = sample.runs[at]
        if run.session is not None:
            own = f"session {run.session}"
        elif run.began_utc is None or run.began_utc - since >= TOGETHER_S:
            since, own = run.began_utc or since, f"run {at}"
        groups.setdefault(own, []).append(at)
    return [
        HistoryPoint(
            median([levels.values[at] for at in members]), name_of_point(sample.runs[members[0]]),
            sample.runs[members[0]].session,
        )
        for members in groups.values()
    ]  # fmt: skip


def name_of_point(run: Run) -> str:
    """Return what a point is called: its time, or its file."""
    if run.began_utc is None:
        return run.where
    return datetime.fromtimestamp(run.began_utc, UTC).isoformat(timespec="seconds")[:-6] + "Z"


def newest_against_earlier(samples: Samples, margin: float, directions: Directions) -> History:
    """Return what the newest points say against earlier ones; raises ForeignError.

    The newest session is one for all, if sessions are known; else each thing's own last run is.
    """
    _, order = in_order([run for sample in samples.values() for run in sample.runs])
    found = Judgement()
    every = [run for sample in samples.values() for run in sample.runs if run.session]
    last = max(every, key=lambda run: run.began_utc or 0.0).session if every else None
    courses: list[Course] = []
    judged: list[tuple[Course, Levels, float]] = []
    for key, sample in samples.items():
        lower = directions.of(key, sample.told)
        if isinstance(lower, str):
            found.not_compared.append(f"{key.title}: {lower}")
            continue
        if cut := sample.without_cut():
            found.not_compared.append(
                f"{key.title}: {in_short(cut)} lacks sizes that most runs have: was it cut off?"
            )
        sizes = sorted(sample.sizes())
        levels = levels_of(sample, sizes, lower)
        course = Course(key, points_of(sample, levels, in_order(sample.runs)[0]))
        courses.append(course)
        if last is not None and course.points[-1].session != last:
            found.lost.append(key.title)
            continue
        judged.append((course, levels, step_of([sample], sizes)))
    for course, levels, step in judged:
        values = np.array([point.level for point in course.points])
        ratio = against_earlier(float(values[-1]), values[:-1], margin, len(judged), step)
        counted = ratio.counted.replace(" campaigns", " sessions" if last else " ones")
        verdict = Verdict("newest", "earlier ones", replace(ratio, counted=counted), margin)
        since = values[-1 - ratio.pairs : -1] if ratio.pairs else values[:-1]
        sides = [
            Levels(list(map(float, side)), levels.lower_is_better) for side in (since, values[-1:])
        ]
        found.rows.append(JudgedSeries(course.key, sides[0], sides[1], verdict))
    found.rows = with_claims(found.rows)
    set_changes(courses)
    return History(found, courses, order)


def set_changes(courses: Sequence[Course]) -> None:
    """Find the changes of all courses: the chance of any false one is that of one family."""
    level = level_of_each([len(course.points) for course in courses], ALPHA)
    for course in courses:
        values = np.array([point.level for point in course.points])
        points = change_points(values, level)
        places = [0, *(point.place for point in points), len(values)]
        for number, point in enumerate(points, 1):
            before, after = (
                float(np.median(values[start:end]))
                for start, end in ((places[number - 1], point.place),
                                   (point.place, places[number + 1]))
            )  # fmt: skip
            names = [course.points[at].name for at in (point.place - 1, point.place)]
            course.changes.append(
                Change(point.place, names[0], names[1], math.exp(after - before), point.p_value)
            )
