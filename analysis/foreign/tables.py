"""The table of a judgement, and its answer in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.comparison.tables import INTERVAL_OF_VERDICT, of_verdict
from analysis.comparison.verdict import POWER
from analysis.foreign.judging import JudgedSeries, Judgement, in_short
from analysis.foreign.newest import Course, History
from analysis.foreign.samples import Levels
from analysis.history.tables import better_or_worse
from analysis.tables.table import (
    COUNT,
    PERCENT,
    RATIO,
    Column,
    Kind,
    Row,
    Table,
    interval,
)
from analysis.tables.units import interval_text, percent, prefixed
from inference.intervals import Interval
from records.counting import how_many

#: How many of a kind a sentence of the answer names, and how many caveats it has.
MOST_NAMED, MOST_CAVEATS = 3, 12
#: Units that decimal prefixes go with; others are as the files have them.
OURS = ("s", "B/s")
SESSIONS_NOTE = (
    "A value is one run or, where a side has several sessions, the median of one session, since "
    "runs that were started together share what differs between sessions."
)
RUNS_NOTE = (
    "A run counts as one value, however often its process repeats the measurement: iterations are "
    "not independent of each other. Over several message sizes a value is their geometric mean."
)
FAMILY_NOTE = (
    "Above 1 the new runs are better. All verdicts and their intervals hold together in 95% "
    "(Holm's procedure over all rows); an interval leaves out 1 exactly where a difference is "
    "shown. A "
    "median's interval, by itself, has 95% coverage, or as much as so few runs allow."
)


def amount(value: float, unit: str) -> str:
    """Return a value with its unit for people."""
    return prefixed(value, unit) if unit in OURS else f"{value:.4g} {unit}".rstrip()


def amounts(ends: tuple[float, float], unit: str) -> str:
    """Return an interval with its unit for people."""
    if unit in OURS:
        return interval_text(Interval(ends[0], ends[1], 0.0), unit)
    return f"{amount(ends[0], unit)} – {amount(ends[1], unit)}"


def judgement_table(rows: Sequence[JudgedSeries], title: str, base: str = "base: values",
                    new: str = "new: values") -> Table:  # fmt: skip
    """Return a row for each thing that was compared, those that differ first.

    `base` and `new` are the headings of how many values there are of each.
    """
    kind, ends = Kind(amount), Kind(amounts)
    columns = (
        Column("series", "what"),
        Column("lower_is_better"), Column("sizes", None, COUNT, "1"), Column("unit"),
        Column("base_sessions", None, COUNT, "1"), Column("new_sessions", None, COUNT, "1"),
        Column("base_runs", base, COUNT, "1"),
        Column("base_median", "median", kind, "unit"),
        interval("base_median", "interval", "unit", ends),
        Column("new_runs", new, COUNT, "1"),
        Column("new_median", "median", kind, "unit"),
        interval("new_median", "interval", "unit", ends),
        Column("ratio", "ratio", RATIO, "1"), interval("ratio", INTERVAL_OF_VERDICT, "1"),
        Column("verdict", "verdict"), Column("smallest_slowdown", "could see", PERCENT, "1"),
    )  # fmt: skip
    ordered = sorted(rows, key=lambda row: (not row.verdict.is_different, row.verdict.ratio.value))
    found = [
        Row((
            row.key.title, row.base.lower_is_better, row.sizes, row.key.unit, *row.sessions,
            *of_levels(row.base), *of_levels(row.new), *of_verdict(row.verdict), row.smallest,
        ))
        for row in ordered
    ]  # fmt: skip
    notes = [
        SESSIONS_NOTE, RUNS_NOTE, FAMILY_NOTE,
        "Could see: the smallest slowdown that would have been shown with a probability of "
        f"{POWER:.0%}.",
    ]  # fmt: skip
    return Table("judgement", title, columns, found, notes)


def of_levels(levels: Levels) -> tuple[int, float | None, tuple[float, float] | None]:
    """Return the number of runs, their median and its interval, which one run has not."""
    count = len(levels.values)
    if not count:
        return 0, None, None
    found = levels.interval
    return count, levels.median, (found.low, found.high) if count > 1 else None


def answer(judgement: Judgement, needed: float) -> list[str]:
    """Return in sentences what became worse or better, and what cannot be said."""
    rows = judgement.rows
    worse = judgement.having(needed, "worse")
    others = [row for row in rows if row.verdict.is_different and row not in worse]
    found = [change_sentence(row) for row in [*worse, *others]]
    equal = sum(row.verdict.is_equivalent for row in rows)
    blind = judgement.having(needed, "could not be seen", "inconclusive")
    found.append(
        f"{len(rows)} compared: {len(worse)} worse by more than {percent(rows[0].verdict.margin)}, "
        f"{how_many(len(others), 'other difference')}, {equal} equivalent"
        if rows else "Nothing can be compared."
    )  # fmt: skip
    if blind:
        such_as = in_short([f"{row.key.title} ({reason(row)})" for row in blind], 2)
        found.append(
            f"{len(blind)} could not have shown a slowdown of {percent(needed)}, such as "
            f"{such_as}: make more runs"
        )
    found += sessions_sentences(rows)
    for count, words, names in (
        (len(judgement.unjudged), "could not be judged", judgement.unjudged),
        (len(judgement.lost), "lost: the new runs lack", judgement.lost),
        (len(judgement.failed), "of the new runs or their values failed or cannot be read",
         judgement.failed),
    ):  # fmt: skip
        if count:
            found.append(f"{count} {words}: {'; '.join(in_short_lines(names))}")
    found += [f"caveat: {one}" for one in judgement.caveats[:MOST_CAVEATS]]
    if more := judgement.caveats[MOST_CAVEATS:]:
        found.append(f"caveat: {len(more)} more facts differ, such as {more[0].partition(' ')[0]}")
    return found


def in_short_lines(sentences: Sequence[str]) -> list[str]:
    """Return the first sentences, and how many more there are."""
    more = len(sentences) - MOST_NAMED
    return [*sentences[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]


def sessions_sentences(rows: Sequence[JudgedSeries]) -> list[str]:
    """Return how many sessions the runs of two sets are from, where that is not each its own."""
    shared = [row for row in rows if sum(row.runs) > sum(row.sessions) and row.runs[1] > 0]
    several = [row for row in shared if max(row.sessions) > 1]
    single = [row for row in shared if max(row.sessions) == 1]
    found = []
    for group, words in (
        (several, "each session is one value, since its runs share what differs between sessions"),
        (single, "there is one session a side, so the ratio includes what differs between the two "
                 "sessions, such as their nodes or the day; measure several sessions of each to "
                 "average that out"),
    ):  # fmt: skip
        if group:
            row = group[0]
            found.append(
                f"{len(group)} comparisons have fewer sessions than runs, such as {row.key.title} "
                f"({row.runs[0]} and {row.runs[1]} runs in {row.sessions[0]} and {row.sessions[1]} "
                f"sessions): {words}"
            )
    return found


def change_sentence(row: JudgedSeries) -> str:
    """Return a difference that is shown in words."""
    verdict = row.verdict
    numbers = (
        f"simultaneous interval {interval_text(verdict.interval)}"
        if verdict.interval else verdict.ratio.counted
    )  # fmt: skip
    return (
        f"{row.key.title}: {verdict.words}, {better_or_worse(verdict.ratio.value)} (ratio "
        f"{verdict.ratio.value:.3f}, {numbers})"
    )


def reason(row: JudgedSeries) -> str:
    """Return why a comparison could not have shown a slowdown."""
    if not row.verdict.is_told:
        return row.verdict.words
    return f"{percent(row.smallest)} at best" if row.smallest is not None else "none at all"


def changes_of(history: History) -> list[str]:
    """Return each change of level in a history, in a sentence."""
    return [sentence for course in history.courses for sentence in changes_in(course)]


def changes_in(course: Course) -> list[str]:
    """Return the changes of one thing."""
    return [
        f"{course.key.title}: {better_or_worse(change.ratio)} from {change.since} on, the one "
        f"before it is {change.before}"
        for change in course.changes
    ]
