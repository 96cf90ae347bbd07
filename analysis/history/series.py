"""All campaigns in time: the series of each cell and implementation, and where they change."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analysis.comparison.caveats.comparability import differences
from analysis.comparison.cells import measured_cells
from analysis.comparison.metrics import direction, metrics
from analysis.comparison.result import OVERSUBSCRIBED
from analysis.comparison.verdict import ALPHA, Verdict, correct
from analysis.history.campaign_rows import rows_of
from analysis.history.two_campaigns import ComparedCell
from inference.change_points import change_points, least_chance, level_of_each
from inference.intervals import FEWEST_PAIRS, PRINTED_STEP, Ratio, ratio_of_mean
from records.base import CampaignError
from records.campaign import Campaign, measured_on
from records.manifest import read_manifest

#: What identifies a series: a change in any of these makes another one. Not whether ranks waited
#: for processors, which what disturbs a night decides; levels over other sizes are other numbers.
SERIES = ("site", "tier", "experiment", "cell", "implementation", "nodes", "more_ranks", "sizes",
          "clock")  # fmt: skip
#: The fewest earlier campaigns that a new one is compared with.
FEWEST_BEFORE = 3
NO_LEVELS = pl.Series("level", [], pl.Float64)


@dataclass(frozen=True)
class Change:
    """From this campaign on a series has another level; above 1 the later level is better."""

    place: int
    before: str
    since: str
    ratio: float
    p_value: float


@dataclass(frozen=True)
class Series:
    """The campaigns of one cell and implementation in order of time; levels are logarithms."""

    site: str
    tier: str
    experiment: str
    cell: str
    implementation: str
    sizes: str
    clock: str
    campaigns: pl.Series
    #: How many of the campaigns are not proven.
    unproven: int
    levels: np.ndarray
    changes: list[Change]
    #: Whether so few campaigns could show a change at all.
    can_show: bool

    @property
    def median(self) -> float:
        """Return the median since the last change, in the metric's unit."""
        start = self.changes[-1].place if self.changes else 0
        return math.exp(float(np.median(self.levels[start:])))


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what identifies a row's series."""
    return tuple(row[name] for name in SERIES)


#: Rows of a history by the series that they are of.
BySeries = dict[tuple[Any, ...], pl.DataFrame]


def by_series(frame: pl.DataFrame) -> BySeries:
    """Return the rows of each series, in the order in which the series began."""
    return frame.partition_by(*SERIES, maintain_order=True, include_key=False, as_dict=True)


def earlier_of_each(
    rows: Sequence[Mapping[str, Any]], frame: pl.DataFrame, last: int | None = None
) -> BySeries:
    """Return the history of each of a campaign's series before it, in order of time.

    For each series that has one, its folders and levels, or so many of the last ones; those in
    which ranks waited for processors only where they did in the campaign, too. All rows are one
    campaign's: the history is read once.
    """
    if not rows:
        return {}
    keys = keys_of(rows, frame, SERIES).with_row_index("series")
    waited = {key_of(row): row["oversubscribed"] for row in rows}
    keys = keys.with_columns(waited=pl.Series([*waited.values()], dtype=pl.Boolean))
    found = (
        before(rows[0], frame)
        .filter(pl.col("campaign") != rows[0]["campaign"])
        .select(*SERIES, "folder", "level", "oversubscribed")
        .join(keys, on=list(SERIES), how="inner", maintain_order="left")
        .filter(pl.col("waited") | ~pl.col("oversubscribed"))
        .select("series", "folder", "level", "oversubscribed")
    )
    if last is not None:
        found = found.group_by("series", maintain_order=True).tail(last)
    parts = found.partition_by("series", maintain_order=True, include_key=False, as_dict=True)
    names = keys.select(*SERIES).rows()
    return {names[number]: part for (number,), part in parts.items()}


def before(row: Mapping[str, Any], frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a history that are earlier than a campaign's, at its site and tier."""
    return frame.filter(
        pl.col("site") == row["site"],
        pl.col("tier") == row["tier"],
        pl.col("created_utc") < row["created_utc"],
    )


def keys_of(
    rows: Sequence[Mapping[str, Any]], frame: pl.DataFrame, names: Sequence[str]
) -> pl.DataFrame:
    """Return the distinct values of rows in some columns."""
    values = dict.fromkeys(tuple(row[name] for name in names) for row in rows)
    return pl.DataFrame(list(values), {name: frame.schema[name] for name in names}, orient="row")


def other_series(
    rows: Sequence[Mapping[str, Any]], frame: pl.DataFrame, differing: str, word: str
) -> dict[Any, str]:
    """Return in words how many campaigns differ from rows' series in one thing, by series."""
    if not rows:
        return {}
    names = [name for name in SERIES if name != differing]
    keys = keys_of(rows, frame, names)
    found = before(rows[0], frame).join(keys, on=names, how="semi")
    counts: dict[Any, list[tuple[str, int]]] = defaultdict(list)
    for *of, value, count in found.group_by(*names, differing).len().rows():
        if value:
            counts[tuple(of)].append((value, count))
    said = {}
    for row in rows:
        others = sorted(counts[tuple(row[name] for name in names)])
        said[key_of(row)] = ", ".join(
            f"{count} {word} {value}" for value, count in others if value != row[differing]
        )
    return said


def history(frame: pl.DataFrame) -> list[Series]:
    """Return the series of the rows with their changes.

    Of a series in which ranks waited for processors in some campaigns, without these.
    If no series changes, the chance of even one reported change in all together is at most 5%, if
    campaigns are independent of each other.
    """
    over = pl.col("oversubscribed")
    judged = frame.filter(~over | over.all().over(SERIES))
    parts = by_series(judged.select(*SERIES, "folder", "level", "doubts"))
    level = level_of_each([rows.height for rows in parts.values()], ALPHA)
    found = []
    for key, rows in parts.items():
        first = dict(zip(SERIES, key, strict=True))
        names, levels = rows["folder"], rows["level"].to_numpy()
        points = change_points(levels, level)
        ends = [point.place for point in points]
        sign = direction(first["experiment"])
        changes = []
        for point, start, end in zip(
            points, [0, *ends], [*ends[1:], len(levels)], strict=False
        ):  # fmt: skip
            step = float(
                np.median(levels[point.place : end]) - np.median(levels[start : point.place])
            )
            changes.append(
                Change(
                    point.place, names[point.place - 1], names[point.place],
                    math.exp(sign * step), point.p_value,
                )
            )  # fmt: skip
        found.append(
            Series(
                first["site"], first["tier"], first["experiment"], first["cell"],
                first["implementation"], first["sizes"], first["clock"], names,
                rows["doubts"].count(), levels, changes, least_chance(len(levels)) < level,
            )
        )  # fmt: skip
    return found


def what_changed(runs: Path, change: Change, implementation: str) -> list[str]:
    """Return in words what else differs between the campaigns on both sides of a change."""
    try:
        before, after = (
            measured_on(runs / name, read_manifest(runs / name)).facts
            for name in (change.before, change.since)
        )
    except CampaignError as error:
        return [str(error)]
    names = {d.rule.name for d in differences(before, after, [(implementation, implementation)])}
    return sorted(names)


def against_history(
    campaign: Campaign, frame: pl.DataFrame, again: Sequence[Campaign] = ()
) -> list[ComparedCell]:
    """Return a campaign compared with the earlier ones of its series, since their last change.

    The new median is one draw from the distribution of earlier campaigns' medians: Student's
    prediction interval, with the spread between campaigns, which two campaigns cannot show.
    Rows of fewer than three earlier campaigns are inconclusive.
    If campaigns of `again` also have a series, the median of all their medians counts:
    it varies less than a single draw, so what is shown for one draw is shown for it.
    Raises CampaignError if the campaign's own time cannot be read.
    """
    mine = _own_rows(campaign, frame)
    others = [_own_rows(one, frame) for one in again]
    measured_again = {key_of(row): [row["level"]] for row in mine.iter_rows(named=True)}
    for row in (row for one in others for row in one.iter_rows(named=True)):
        if not row["oversubscribed"]:
            measured_again.get(key_of(row), []).append(row["level"])
    # Earlier campaigns of the series have the same clock, and about the same times.
    steps = {cell.name: cell for cell in measured_cells(campaign)}
    rows = []
    every = mine.rows(named=True)
    earlier = earlier_of_each(every, frame)
    short = [row for row in every if height_of(earlier, row) < FEWEST_BEFORE]
    of_other_clocks = other_series(short, frame, "clock", "with")
    of_other_sizes = other_series(short, frame, "sizes", "over")
    for row in every:
        levels = earlier[key_of(row)]["level"] if key_of(row) in earlier else NO_LEVELS
        level = float(np.median(measured_again[key_of(row)]))
        margin = metrics()[row["experiment"]]["margin"]
        sign = direction(row["experiment"])
        ratio = against_earlier(
            sign * level, sign * levels.to_numpy(), margin, mine.height,
            steps[row["cell"]].step(row["implementation"]),
        )  # fmt: skip
        if others_of := of_other_clocks.get(key_of(row)):
            ratio = replace(ratio, counted=f"{ratio.counted} with {row['clock']}; {others_of}")
        if others_of := of_other_sizes.get(key_of(row)):
            ratio = replace(ratio, counted=f"{ratio.counted} over {row['sizes']}; {others_of}")
        unjudged = OVERSUBSCRIBED if row["oversubscribed"] else ""
        verdict = Verdict(
            row["implementation"], "earlier campaigns", ratio, margin, unjudged=unjudged
        )
        rows.append(ComparedCell(row["cell"], row["experiment"], verdict))
    correct([row.verdict for row in rows])
    return rows


def height_of(earlier: BySeries, row: Mapping[str, Any]) -> int:
    """Return how many earlier campaigns a row's series has."""
    return earlier[key_of(row)].height if key_of(row) in earlier else 0


def _own_rows(campaign: Campaign, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a campaign that has them, in the columns of a history."""
    rows = pl.DataFrame(rows_of(campaign), {name: frame.schema[name] for name in frame.columns
                        if name != "folder"})  # fmt: skip
    return rows.filter(pl.col("cell").is_not_null())


def against_earlier(
    level: float, earlier: np.ndarray, margin: float, series: int, step: float = PRINTED_STEP
) -> Ratio:
    """Return the ratio of a level to the earlier ones of its series since their last change.

    Levels are logarithms, higher is better; `series` is how many are judged together,
    `step` that of the values, as in `ratio_of_mean`.
    """
    changes = change_points(earlier, ALPHA / series)
    return predicted_ratio(level, earlier[changes[-1].place if changes else 0 :], margin, step)


def predicted_ratio(
    level: float, before: np.ndarray, margin: float, step: float = PRINTED_STEP
) -> Ratio:
    """Return the ratio of a new campaign to the mean of earlier ones, all as logarithms."""
    count = len(before)
    counted = f"{count} earlier campaigns"
    mean = float(level - before.mean()) if count else math.nan
    if count < max(FEWEST_BEFORE, FEWEST_PAIRS):
        return Ratio(math.exp(mean), None, None, count, counted=counted)
    error = float(before.std(ddof=1)) * math.sqrt(1 + 1 / count)
    # The new one is beyond all: one of as many places as there are where nothing differs.
    told = {"margin": margin, "chance": 1 / (count + 1)}
    return ratio_of_mean(mean, error, count - 1, **told, pairs=count, counted=counted, step=step)
