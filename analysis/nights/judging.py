"""Judge a night's campaign: what trips, and what two more measurements confirm.

A cell trips if the night is worse than its history (analysis.history, at 5% over all cells of
the night) or a reference was missed. What trips is measured again twice, and the median of the
three decides, at 5% over all cells of NIGHTS nights together. docs/method/nights.md has the rates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from analysis.comparison.metrics import direction
from analysis.comparison.verdict import ALPHA, SLOWDOWN
from analysis.history.campaign_rows import rows_of
from analysis.history.limits import no_longer_judged
from analysis.history.regressions import Tested, is_blind, power_sentences, tested
from analysis.history.series import against_history, key_of
from analysis.history.two_campaigns import ComparedCell
from analysis.references.missed import MetricWithReference, held_references
from analysis.tables.units import interval_text, percent, prefixed
from records.campaign import Campaign
from records.experiments import proving
from records.launch import launch_name
from records.manifest import Manifest

#: The chance of any false alarm in this many consecutive nights is at most ALPHA.
NIGHTS = 30
#: How often what trips is measured again.
AGAIN = 2

Outcome = Literal["tripped", "regression", "noise", "undecided"]


@dataclass(frozen=True)
class Finding:
    """A cell of an implementation that tripped, and the outcome.

    `check` is ReFrame's name of it; `ratios` are those of the night and of its repetitions
    to what it is compared with, above 1 if they are better.
    """

    cell: str
    experiment: str
    implementation: str
    check: str
    against: str
    outcome: Outcome
    ratios: tuple[float, ...]
    words: str


@dataclass(frozen=True)
class NightJudgement:
    """The judgement on a night, with sentences on broken implementations and failed launches."""

    findings: list[Finding]
    #: All cells and implementations, compared with their history.
    rows: list[ComparedCell]
    broken: dict[str, str]
    failed: dict[str, str]
    #: What the night was held against, missed or not.
    references: list[MetricWithReference] = field(default_factory=list)
    #: What nights before judged and this one does not, with sentences.
    unjudged: dict[str, str] = field(default_factory=dict)

    def having(self, *outcomes: Outcome) -> list[Finding]:
        """Return the findings with one of these outcomes."""
        return [one for one in self.findings if one.outcome in outcomes]

    @property
    def untold(self) -> int:
        """Return how many cells and implementations have too short a history."""
        return sum(row.verdict.adjusted_p is None for row in self.rows)

    @property
    def is_blind(self) -> bool:
        """Return whether most comparisons would not have confirmed a slowdown of SLOWDOWN.

        Where there is no series to compare with earlier nights, references alone have to show it.
        """
        told = [one for one in self.rows if one.verdict.adjusted_p is not None]
        blind = list(map(is_blind, tested(told, None, ALPHA / NIGHTS, SLOWDOWN)))
        blind = blind or [one.is_blind for one in self.references]
        return 2 * sum(blind) > len(blind)

    @property
    def verdict(self) -> str:
        """Return the outcome of the night in a word or two."""
        if self.having("tripped"):
            return "measure again"
        if self.having("regression"):
            return "regression"
        if self.broken or self.failed or self.unjudged or self.having("undecided"):
            return "incomplete"
        has_judged = self.findings or (self.references and not self.rows)
        if not has_judged and self.untold == len(self.rows):
            return "not judged"
        if self.is_blind:
            return "blind"
        return "noise" if self.findings else "nothing"


def nights_like(frame: pl.DataFrame, manifest: Manifest) -> pl.DataFrame:
    """Return the rows of nights of the same site and name, without campaigns measured by day."""
    # Both may have hyphens, so that their names together are those of other sites, too.
    return frame.filter(
        pl.col("site") == manifest.site,
        pl.col("campaign").cat.ends_with(f"Z-{manifest.site}-{manifest.name}"),
    )


def tripping(rows: Sequence[ComparedCell]) -> list[bool]:
    """Return which rows of a night are measured again."""
    return [one.outcome == "regression" for one in tested(rows, None)]


def confirmed(rows: Sequence[ComparedCell]) -> list[bool]:
    """Return which rows, by the median of three measurements, are regressions."""
    return [one.outcome == "regression" for one in tested(rows, None, ALPHA / NIGHTS)]


def power(rows: Sequence[ComparedCell]) -> list[str]:
    """Return the smallest slowdowns that a night would confirm if repetitions agreed."""
    told = [one for one in tested(rows, None, ALPHA / NIGHTS) if one.outcome != "inconclusive"]
    return power_sentences(told)


def decided(again: int | None, worse: bool) -> Outcome:
    """Return the outcome of what tripped; `again` counts its measurements, None before them."""
    if again is None:
        return "tripped"
    if again < AGAIN:
        return "undecided"
    return "regression" if worse else "noise"


def of_history(
    night: Campaign, frame: pl.DataFrame, again: Sequence[Campaign] | None
) -> tuple[list[ComparedCell], list[Finding]]:
    """Return all rows of a night, compared with its history, and those that tripped."""
    first = against_history(night, frame)
    final = against_history(night, frame, again) if again else first
    # By series, as against_history takes them: at other sizes it is no second measurement, nor is
    # one in which ranks waited for processors.
    measured = [
        {key_of(row): row for row in rows_of(one) if row.get("cell") and not row["oversubscribed"]}
        for one in (night, *(again or ()))
    ]
    series = {(row["cell"], row["implementation"]): key for key, row in measured[0].items()}
    checks = {
        (launch.record.cell, launch.record.implementation): launch.record.reframe["name"]
        for launch in night.sound()
    }
    findings = []
    judged = tested(final, None, ALPHA / NIGHTS)
    for row, now, trips in zip(first, judged, tripping(first), strict=True):
        if not trips:
            continue
        key = (row.cell, row.verdict.implementation)
        check = checks[measured[0][series[key]]["launch_cell"], key[1]]
        got = [of[series[key]]["level"] for of in measured if series[key] in of]
        sign = direction(row.experiment)
        ratios = tuple(row.verdict.ratio.value * math.exp(sign * (one - got[0])) for one in got)
        worse = now.outcome == "regression"
        result = decided(None if again is None else len(got) - 1, worse)
        words = said(now, result, ratios)
        findings.append(
            Finding(
                row.cell, row.experiment, key[1], check, "earlier nights", result, ratios, words
            )
        )
    return final, findings


def said(now: Tested, result: Outcome, ratios: Sequence[float]) -> str:
    """Return the sentence about a row that tripped."""
    row, ratio = now.row, now.row.verdict.ratio
    middle = "median of three measurements" if result in ("regression", "noise") else "measured"
    words = (
        f"ratio {ratio.value:.3f} to {ratio.counted} ({middle}: "
        f"{', '.join(f'{one:.3f}' for one in ratios)}), own 95% interval "
        f"{interval_text(ratio.interval)}, one-sided p = {now.p_value or 0.0:.2g} corrected"
    )
    if result == "noise":
        return (
            f"{words}; worse by more than {percent(row.verdict.margin)} at p below "
            f"{ALPHA / NIGHTS:.2g} would be a regression"
        )
    if result == "undecided":
        return f"{words}; it could not be measured {AGAIN} times again at the same message sizes"
    return words


def of_references(
    night: Campaign,
    held_by_key: Mapping[tuple[str, str], MetricWithReference],
    again: Sequence[Campaign] | None,
) -> list[Finding]:
    """Return the references that a night missed in any round, and the outcomes."""
    launches = {launch.record.reframe["name"]: launch.record for launch in night.launches}
    measured_again = [held_references(one.path) for one in again or ()]
    findings = []
    for key, held in held_by_key.items():
        if not held.missed or held.check not in launches:
            continue
        medians = [held.median, *(of[key].median for of in measured_again if key in of)]
        result = decided(
            None if again is None else len(medians) - 1,
            held.is_worse(sorted(medians)[len(medians) // 2]),
        )
        record = launches[held.check]
        findings.append(
            Finding(
                f"{record.cell} {held.metric}", record.experiment, record.implementation,
                held.check, "reference", result, tuple(map(held.ratio, medians)),
                said_of(held, medians),
            )
        )  # fmt: skip
    return findings


def said_of(held: MetricWithReference, medians: Sequence[float]) -> str:
    """Return the sentence about a missed reference."""
    values = ", ".join(prefixed(value, held.unit) for value in medians)
    limits = [f"{word} {prefixed(value, held.unit)}"
              for word, value in (("at least", held.low), ("at most", held.high))
              if value is not None]  # fmt: skip
    return (
        f"{held.metric} {values}, where the reference is {prefixed(held.reference, held.unit)} and "
        f"{' and '.join(limits)} is required; missed in {sum(map(held.is_worse, held.values))} "
        f"of {len(held.values)} rounds"
    )


def what_broke(night: Campaign) -> tuple[dict[str, str], dict[str, str]]:
    """Return implementations that were not measured, and launches that failed, with sentences."""
    asked = night.manifest.night
    broken = dict(asked.broken) if asked else {}
    sound = Counter(launch.record.implementation for launch in night.sound())
    unsound = [launch.record for launch in night.launches if not launch.is_sound]
    for name in night.manifest.images:
        own = [record for record in unsound if record.implementation == name]
        # Nothing is timed in an image whose preflight failed.
        own.sort(key=lambda record: record.experiment not in proving("image"))
        if (own and own[0].experiment in proving("image")) or not sound[name]:
            reason = own[0].sentence if own else None
            broken[name] = reason or "it has no sound launch; see ReFrame's log in the campaign"
    known = {record.launch for record in unsound if record.implementation in broken}
    failed = {one.where: one.sentence for one in night.problems if one.where not in known}
    return broken, missing_launches(night, broken) | failed


def missing_launches(night: Campaign, broken: Mapping[str, str]) -> dict[str, str]:
    """Return by name the launches that a night has in some of its rounds and not in others."""
    records = [launch.record for launch in night.launches]
    there = {(record.round, record.cell, record.implementation) for record in records}
    return {
        launch_name(number, cell, implementation): f"it is missing: {cell}, {implementation}, has "
        f"no launch in round {number} of {night.manifest.rounds}"
        for cell, implementation in dict.fromkeys((r.cell, r.implementation) for r in records)
        for number in range(1, night.manifest.rounds + 1)
        if (number, cell, implementation) not in there and implementation not in broken
    }


def judge(
    night: Campaign, frame: pl.DataFrame, again: Sequence[Campaign] | None = None
) -> NightJudgement:
    """Judge a night by its references and by the nights before it, in `frame`.

    `again` has what was measured again, or is None before that.
    Raises CampaignError if the night's own time cannot be read.
    """
    nights = nights_like(frame, night.manifest)
    rows, findings = of_history(night, nights, again)
    held = held_references(night.path)
    unjudged = {
        f"{one.cell}, {one.implementation}": one.sentence for one in no_longer_judged(night, nights)
    }
    return NightJudgement(
        [*of_references(night, held, again), *findings], rows, *what_broke(night),
        list(held.values()), unjudged,
    )  # fmt: skip
