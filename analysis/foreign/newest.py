"""The newest run of a history, or its newest session, against those before it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePath

import numpy as np

from analysis.comparison.verdict import ALPHA, Verdict
from analysis.foreign.judging import (
    JudgedSeries,
    Judgement,
    cut_sentence,
    differing,
    with_claims,
)
from analysis.foreign.samples import Directions, Key, Levels, Sample, Samples, levels_of, step_of
from analysis.foreign.sessions import TOGETHER_S, in_order, medians, nights_of
from analysis.history.series import Change, against_earlier
from inference.change_points import change_points, level_of_each
from records.foreign.run import NoRun, Run
from records.foreign.times import natural


@dataclass(frozen=True)
class HistoryPoint:
    """A run, or all runs that were started together, as one value: their median level."""

    level: float
    runs: Sequence[Run]

    @property
    def name(self) -> str:
        """Return what it is called: its time, or its file."""
        first = self.runs[0]
        if first.began_utc is None:
            return first.where
        return datetime.fromtimestamp(first.began_utc, UTC).isoformat(timespec="seconds")[:-6] + "Z"


@dataclass
class Course:
    """The points of one thing in order of time, with their changes."""

    key: Key
    points: list[HistoryPoint]
    levels: Levels
    step: float
    sizes: int
    #: How the points are ordered, in words.
    order: str
    changes: list[Change] = field(default_factory=list)


@dataclass
class History:
    """The newest points judged, and the course of each thing."""

    judgement: Judgement
    courses: list[Course]

    @property
    def order(self) -> str:
        """Return how the points are ordered, in words."""
        return " or ".join(sorted({course.order for course in self.courses}))


def newest_against_earlier(
    samples: Samples, left_out: Sequence[NoRun], margin: float, directions: Directions,
    chosen_by: Collection[str] = (),
) -> History:  # fmt: skip
    """Return what the newest points say against earlier ones.

    The newest session is one for all things that have sessions, also where all that it measured
    failed. Of the others each has its own newest run: one that failed, or that a later run with the
    same things lacks, is lost.
    """
    found = Judgement()
    courses: list[Course] = []
    losses = [one for one in left_out if one.is_loss]
    for key, sample in samples.items():
        lower = directions.of(key, sample.told)
        if isinstance(lower, str):
            found.unjudged.append(f"{key.title}: {lower}")
            continue
        if cut := sample.without_cut():
            sentence = cut_sentence(key, cut)
            found.not_compared.append(sentence)
            losses += [
                NoRun(sentence, True, key.name, run.where, run.began_utc, run.session, run.labels,
                        run.source)
                for run in cut
            ]  # fmt: skip
        try:
            courses.append(course_of(key, sample, lower))
        except ValueError as error:
            found.unjudged.append(f"{key.title}: {error}")
    # What others lost, such as a check that measures nothing, is no session of these.
    known = [one for one in losses if any(key.may_have_lost(one, chosen_by) for key in samples)]
    last = last_session(samples, known)
    beside: dict[int, list[Course]] = defaultdict(list)
    for course in courses:
        for run in (run for point in course.points for run in point.runs):
            beside[id(run)].append(course)
    failed: dict[str, None] = {}
    judged: list[Course] = []
    for course in courses:
        of_it = [one for one in known if course.key.may_have_lost(one, chosen_by)]
        newest = [one for one in of_it if is_of_newest(one, course, last)]
        failed |= dict.fromkeys(one.sentence for one in newest)
        if lost := why_lost(course, beside, newest, last):
            found.lost.append(f"{course.key.title}: {lost}")
        else:
            judged.append(course)
    found.failed = list(failed)
    found.rows = with_claims([newest_row(course, margin, len(judged)) for course in judged])
    found.caveats = differing(
        ((row.key, *_runs_of(course, row.verdict.ratio.pairs))
         for row, course in zip(found.rows, judged, strict=True)), chosen_by,
    )  # fmt: skip
    set_changes(courses)
    return History(found, courses)


def course_of(key: Key, sample: Sample, lower: bool) -> Course:
    """Return the course of one thing; raises ValueError where there is no order of its runs."""
    sizes = sample.sizes()
    levels = levels_of(sample, sizes, lower)
    order, words = in_order(sample.runs)
    groups = nights_of(sample.runs, order)
    points = [
        HistoryPoint(level, [sample.runs[at] for at in group])
        for level, group in zip(medians(levels.values, groups), groups, strict=True)
    ]
    return Course(key, points, levels, step_of([sample], sizes), len(sizes), words)


def last_session(samples: Samples, losses: Sequence[NoRun]) -> tuple[str, float] | None:
    """Return the newest session and when it began, also if nothing of it is left; None if none."""
    every: list[Run | NoRun] = [run for sample in samples.values() for run in sample.runs]
    every += losses
    began = [(one.began_utc or 0.0, one.session) for one in every if one.session is not None]
    if not began:
        return None
    _, last = max(began, key=lambda one: one[0])
    return last, min(time for time, session in began if session == last)


def is_of_newest(one: NoRun, course: Course, last: tuple[str, float] | None) -> bool:
    """Return whether what is lost belongs to a thing's newest point, or is later."""
    first = course.points[-1].runs[0]
    if one.session is not None:
        return last is not None and one.session == last[0]
    # A whole file may be of whatever others like it are; a part of one is of the rest of it.
    is_alike = one.where == one.source and _are_alike(one.source, first.source)
    if one.source != first.source and not one.of and not is_alike:
        return False
    if first.began_utc is not None:
        return one.began_utc is not None and one.began_utc >= first.began_utc
    return natural(one.where) > natural(first.where)


def _are_alike(one: str, other: str) -> bool:
    """Return whether two files may be of the same kind, by where they are and their names."""
    paths = (PurePath(one), PurePath(other))
    same_folder, same_name = paths[0].parent == paths[1].parent, paths[0].name == paths[1].name
    return paths[0].suffix == paths[1].suffix and (same_folder or same_name)


def why_lost(
    course: Course, beside: Mapping[int, Sequence[Course]], newest: Sequence[NoRun],
    last: tuple[str, float] | None,
) -> str:  # fmt: skip
    """Return why a thing's last point is not the newest; empty if it is.

    `beside` has the things that each run measured, by its identity in this process.
    """
    point = course.points[-1]
    first = point.runs[0]
    if first.session is not None and last is not None and first.session != last[0]:
        return "the newest session has no value of it"
    for one in newest:
        if one.session is None and (
            first.began_utc is None or (one.began_utc or 0.0) - first.began_utc >= TOGETHER_S
        ):
            return (
                f"its newest run left no value ({one.sentence}), and the one before it, "
                f"{point.name}, is not judged in its place"
            )
    own = {id(run) for run in point.runs}
    for other in (other for run in point.runs for other in beside[id(run)]):
        later = other.points[-1]
        if not any(id(run) in own for run in later.runs):
            return f"{later.name} has {other.key.title}, and no value of it"
    return ""


def newest_row(course: Course, margin: float, count: int) -> JudgedSeries:
    """Return the last point of a course against those before it; `count` are judged together."""
    values = np.array([point.level for point in course.points])
    ratio = against_earlier(float(values[-1]), values[:-1], margin, count, course.step)
    are_sessions = course.points[-1].runs[0].session is not None
    counted = ratio.counted.replace(" campaigns", " sessions" if are_sessions else " ones")
    verdict = Verdict("newest", "earlier ones", replace(ratio, counted=counted), margin)
    since = values[-1 - ratio.pairs : -1] if ratio.pairs else values[:-1]
    lower = course.levels.lower_is_better
    sides = [Levels(list(map(float, side)), lower) for side in (since, values[-1:])]
    earlier, newest = _runs_of(course, ratio.pairs)
    return JudgedSeries(
        course.key, sides[0], sides[1], verdict, sizes=course.sizes,
        runs=(len(earlier), len(newest)), sessions=(len(since), 1),
    )  # fmt: skip


def _runs_of(course: Course, pairs: int) -> tuple[list[Run], list[Run]]:
    """Return the runs of the points that the newest one is compared with, and its own."""
    since = course.points[-1 - pairs : -1] if pairs else course.points[:-1]
    return [run for point in since for run in point.runs], list(course.points[-1].runs)


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
