"""Which verdicts of campaigns another one, as a longer one of the same cells, contradicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from analysis.comparison.result import Cell, Comparison, Group, GroupKey
from analysis.comparison.verdict import Verdict
from analysis.tables.table import COUNT, PERCENT, Column, Row, Table
from analysis.tables.units import interval_text
from inference.intervals import Interval

Outcome = Literal["confirmed", "contradicted", "not told"]
#: The name of the row over all experiments.
ALL = "all experiments"


@dataclass(frozen=True)
class Held:
    """A verdict of a campaign on a series or a group, and that of another campaign on the same."""

    campaign: str
    experiment: str
    name: str
    is_series: bool
    own: Verdict
    other: Verdict

    @property
    def outcome(self) -> Outcome | None:
        """Return what the other campaign says of a claim; None where nothing is claimed.

        It contradicts one that cannot be true beside its own: the other direction, or a difference
        beyond the margin where equivalence is claimed, and the other way round. A difference within
        the margin is told by neither.
        """
        if self.own.is_different:
            if self.other.is_different:
                same = (self.own.ratio.value > 1) == (self.other.ratio.value > 1)
                return "confirmed" if same else "contradicted"
            beyond = self.other.is_equivalent and is_beyond(self.own, self.other.margin)
            return "contradicted" if beyond else "not told"
        if self.own.is_equivalent:
            if self.other.is_equivalent:
                return "confirmed"
            beyond = self.other.is_different and is_beyond(self.other, self.own.margin)
            return "contradicted" if beyond else "not told"
        return None

    @property
    def points_away(self) -> bool:
        """Return whether a difference is claimed, and the other ratio is on the other side of 1."""
        ratios = self.own.ratio.value, self.other.ratio.value
        return self.own.is_different and (ratios[0] - 1) * (ratios[1] - 1) < 0

    @property
    def is_apart(self) -> bool:
        """Return whether the intervals beside the two verdicts have no ratio in common."""
        one, two = self.own.interval, self.other.interval
        return one is not None and two is not None and (one.high < two.low or two.high < one.low)

    @property
    def sentence(self) -> str:
        """Return both verdicts in words."""
        own, other = (
            f"{one.words} ({one.ratio.words}; {interval_text(one.interval)}; {one.ratio.counted})"
            for one in (self.own, self.other)
        )
        pair = f"{self.own.implementation} against {self.own.base}"
        return f"{self.outcome}: {self.name}: {pair}: {own}, there {other}"


def is_beyond(verdict: Verdict, margin: float) -> bool:
    """Return whether a verdict's interval, or its ratio without one, is all beyond a margin."""
    value = verdict.ratio.value
    found = verdict.interval or Interval(value, value, 1.0)
    return found.low > 1 + margin or found.high < 1 / (1 + margin)


def verdicts_of(comparison: Comparison) -> Iterator[tuple[Cell | Group, Verdict]]:
    """Yield each verdict that could be given, with the series or the group that it is on.

    A group of one series has the verdict of that series, and is left out.
    """
    for of in comparison.pairs:
        for cell in of.cells:
            for one in cell.verdicts.values():
                yield cell, one
        for group in of.groups:
            for one in group.verdicts.values():
                if one.cells > 1:
                    yield group, one


def key_of(on: Cell | Group) -> tuple[str, str] | GroupKey:
    """Return what a series or a group is known by in all campaigns."""
    return on.key if isinstance(on, Group) else (on.experiment, on.name)


def held_against(one: Comparison, other: Comparison) -> list[Held]:
    """Return the verdicts that both campaigns could give: of what a round of each compares."""
    there = {(key_of(on), of.implementation, of.base): of for on, of in verdicts_of(other)}
    found = []
    for on, own in verdicts_of(one):
        same = there.get((key_of(on), own.implementation, own.base))
        if same and all(of.ratio.pairs and not of.unjudged for of in (own, same)):
            about = (on.experiment, on.name, isinstance(on, Cell))
            found.append(Held(one.campaign.path.name, *about, own, same))
    return found


def counts_of(held: Sequence[Held]) -> tuple[int | float | None, ...]:
    """Return the numbers of a row: of series, of claims, and of what the other says of them."""
    series = [one for one in held if one.is_series]
    decided = sum(one.outcome is not None for one in series)
    claims = [one for one in held if one.outcome]
    contradicted = sum(one.outcome == "contradicted" for one in claims)
    return (
        len(series), decided, decided / len(series) if series else None, len(claims),
        sum(one.outcome == "confirmed" for one in claims), contradicted,
        contradicted / len(claims) if claims else None,
        sum(one.points_away for one in claims), sum(one.is_apart for one in held),
    )  # fmt: skip


COLUMNS = (
    Column("series", "series", COUNT, "1"), Column("decided", "decided", COUNT, "1"),
    Column("share_decided", "decided, of series", PERCENT, "1"),
    Column("claims", "claims", COUNT, "1"),
    Column("confirmed", "confirmed", COUNT, "1"),
    Column("contradicted", "contradicted", COUNT, "1"),
    Column("share_contradicted", "contradicted, of claims", PERCENT, "1"),
    Column("points_away", "points away", COUNT, "1"),
    Column("intervals_apart", "intervals apart", COUNT, "1"),
)  # fmt: skip


def confirmed_tables(other: Comparison, campaigns: Sequence[Comparison]) -> list[Table]:
    """Return how campaigns' verdicts fare against another's: by experiment, and by campaign."""
    held = [one for campaign in campaigns for one in held_against(campaign, other)]
    experiments = dict.fromkeys(one.experiment for one in held)
    rows = [
        Row((name, *counts_of([one for one in held if one.experiment == name])))
        for name in experiments
    ]
    rows.append(Row((ALL, *counts_of(held))))
    name = other.campaign.path.name
    notes = [
        "Series: each is a cell of an implementation that both campaigns could judge. Decided: the "
        "share of series for which the campaign claims something. Claims: each difference or "
        "equivalence that is shown, for a series or, beyond those decided, for a group of them. "
        "Contradicted: a share of the claims. "
        f"{name} confirms a claim by showing the same, and contradicts it by showing what cannot "
        "be true at the same time: the other direction, or a ratio within the margin where the "
        "whole "
        "interval of the claim is beyond it, and the other way round; otherwise it does neither. "
        "Points away: its ratio is on the opposite side of 1 from a claimed difference, shown or "
        "not. Intervals apart: of all series and groups, claimed or open, those whose two "
        "simultaneous intervals have no ratio in common.",
    ]
    notes += [
        f"{one.campaign}: {one.sentence}."
        for one in held
        if one.outcome == "contradicted" or one.points_away
    ]
    by_experiment = Table(
        "confirmed", f"Verdicts against those of {name}",
        (Column("experiment", "experiment"), *COLUMNS), rows, notes,
    )  # fmt: skip
    by_campaign = Table(
        "confirmed-by-campaign", "The same by campaign", (Column("campaign", "campaign"), *COLUMNS),
        [
            Row((one.campaign.path.name, *counts_of(held_against(one, other))))
            for one in campaigns
        ],
    )  # fmt: skip
    return [by_experiment, by_campaign]
