"""A claim's three answers: of the report's own tables, of a campaign, and what a test would need.

docs/method.md, section Studies, has the rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np
from scipy import stats

from analysis.statistics import CONFIDENCE, Interval, median_interval, paired_ratio
from analysis.studies.declaration import Claim, Statement, StudyError
from analysis.studies.needs import cells_wanted, families_lacking, needs_of
from analysis.studies.reading import Paper
from analysis.studies.tables import Measured, OneRound, Report, Source, Value, quantity_of

HOLDS, FAILS, UNTOLD = "holds", "does not hold", "cannot be told"
#: What a test still needs is said in one of these.
TESTED, TESTABLE, UNTESTABLE = "tested here", "testable", "not tested by a study"


@dataclass(frozen=True)
class Number:
    """A quantity's value with its interval over rounds, which a report's own tables lack."""

    value: Value
    interval: Interval | None = None
    rounds: int | None = None


@dataclass(frozen=True)
class Finding:
    """What was found of one statement, in words; `of` is an implementation, where it is of one."""

    label: str
    number: Number | None
    asked: str
    verdict: str
    reason: str = ""
    of: str = ""

    @property
    def sentence(self) -> str:
        """Return the finding as a sentence."""
        of = f", {self.of}" if self.of else ""
        if self.number is None or self.number.value is None:
            return f"{self.label}{of}: {self.verdict}: {self.reason}."
        end = f": {self.reason}" if self.reason else ""
        return (
            f"{self.label}{of}: {number_text(self.number)}; claimed is {self.asked}: "
            f"{self.verdict}{end}."
        )


@dataclass(frozen=True)
class Answer:
    """A verdict with the findings that it follows from."""

    verdict: str
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sentences(self) -> list[str]:
        """Return what is said for the verdict."""
        return [one.sentence for one in self.findings] + self.notes


@dataclass(frozen=True)
class Evaluated:
    """A claim with its answers; `here` is None without a campaign."""

    claim: Claim
    values: dict[str, Value]
    report: Answer
    here: Answer | None
    needed: Answer


def digits(value: Value) -> str:
    """Return a value as people read it, numbers with four significant digits."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", " ") if abs(value) >= 1e5 else str(int(value))
    return f"{value:.4g}"


def number_text(number: Number) -> str:
    """Return a number with its interval."""
    text = digits(number.value)
    if number.rounds is None:
        return text
    rounds = f"{number.rounds} round{'s' if number.rounds != 1 else ''}"
    if number.interval is None:
        return f"{text} ({rounds})"
    low, high = digits(number.interval.low), digits(number.interval.high)
    return f"{text} ({number.interval.coverage:.0%} interval {low} – {high}, {rounds})"


def asked_of(statement: Statement) -> tuple[float, float, str]:
    """Return the least and the most that a statement allows, and that in words."""
    one = statement
    if one.about is not None:
        within = one.within or 0.0
        low, high = one.about - within, one.about + within
        return low, high, f"{digits(one.about)} within {digits(within)}"
    if one.between is not None:
        low, high = one.between
        return low, high, f"{digits(low)} to {digits(high)}"
    for bound, word in ((one.above, "above"), (one.at_least, "at least")):
        if bound is not None:
            return bound, math.inf, f"{word} {digits(bound)}"
    for bound, word in ((one.below, "below"), (one.at_most, "at most")):
        if bound is not None:
            return -math.inf, bound, f"{word} {digits(bound)}"
    return math.nan, math.nan, f"“{one.equals}”"


def judged(statement: Statement, low: float, high: float) -> str:
    """Return whether every value from `low` to `high` is as a statement says, or none, or some."""
    least, most, _ = asked_of(statement)
    # What a decimal number in a file and the sum of two others differ by is no difference.
    slack = 1e-9 * max(1.0, *(abs(x) for x in (least, most) if math.isfinite(x)))
    strict = statement.above is not None or statement.below is not None
    slack = -slack if strict else slack
    inside = [least - slack <= x <= most + slack for x in (low, high)]
    if all(inside):
        return HOLDS
    apart = high < least - slack or low > most + slack
    return FAILS if apart else UNTOLD


def interval_of(values: Sequence[float], scale: str, confidence: float = CONFIDENCE) -> Number:
    """Return the value over rounds with its interval, Student's on the rounds' values.

    `values` has one number for each round. For a ratio it is the geometric mean, by logarithms.
    Where all rounds have the same value, a spread cannot be estimated: the interval is then the
    one of order statistics, with the coverage that it has.
    """
    count = len(values)
    if scale == "ratio" and min(values) > 0:
        ratio = paired_ratio([math.log(value) for value in values], confidence)
        number = Number(ratio.value, ratio.interval, count)
    else:
        mean = fmean(values)
        error = float(np.std(values, ddof=1)) / math.sqrt(count) if count > 1 else math.nan
        half = float(stats.t.ppf((1 + confidence) / 2, count - 1)) * error if count > 1 else 0.0
        interval = Interval(mean - half, mean + half, confidence) if count > 1 else None
        number = Number(mean, interval, count)
    if count > 1 and (number.interval is None or max(values) == min(values)):
        return Number(number.value, median_interval(values), count)
    return number


def found_of(claim: Claim, statement: Statement, number: Number, of: str = "") -> Finding:
    """Return what a number tells of a statement."""
    quantity = claim.quantities[str(statement.that)]
    label = quantity.label or str(statement.that).replace("_", " ")
    least, _, asked = asked_of(statement)
    value = number.value
    if value is None:
        return Finding(label, None, asked, UNTOLD, "the tables have nothing to compute it of", of)
    if isinstance(value, str) or math.isnan(least):
        verdict = HOLDS if digits(value) == statement.equals else FAILS
        return Finding(label, number, asked, verdict, "", of)
    if number.rounds is None:
        return Finding(label, number, asked, judged(statement, value, value), "", of)
    if number.interval is None:
        reason = "one round has no interval"
        return Finding(label, number, asked, UNTOLD, reason, of)
    if number.interval.coverage < CONFIDENCE - 1e-9:
        reason = "the rounds agree to the last digit, of which only six or more tell the spread"
        return Finding(label, number, asked, UNTOLD, reason, of)
    verdict = judged(statement, number.interval.low, number.interval.high)
    reason = "the interval has both" if verdict == UNTOLD else ""
    return Finding(label, number, asked, verdict, reason, of)


def together(findings: list[Finding]) -> Answer:
    """Return the verdict over a claim's statements: it holds if all do, and fails if any does."""
    verdicts = [one.verdict for one in findings]
    count = verdicts.count(HOLDS)
    part = [f"{count} of {len(verdicts)} statements hold."] if 0 < count < len(verdicts) else []
    for verdict in (FAILS, UNTOLD, HOLDS):
        if verdict in verdicts:
            return Answer(verdict, findings, part)
    return Answer(UNTOLD, findings, ["The report prints nothing that it could be computed of."])


def behind(claim: Claim, name: str) -> list[str]:
    """Return a quantity and those that it is computed from, in the order to compute them in."""
    others = [n for n in claim.quantities[name].from_ or [] if n in claim.quantities]
    return [n for other in others for n in behind(claim, other)] + [name]


def values_of(
    source: Source, paper: Paper, claim: Claim, names: Sequence[str] | None = None
) -> dict[str, Value]:
    """Return the quantities of a claim from one source, or those named."""
    values: dict[str, Value] = dict(claim.claimed)
    file = paper.folder / "claims.yaml"
    for name in names or claim.quantities:
        quantity = claim.quantities[name]
        where = f"{file}: claim {claim.id}: quantities.{name}"
        values[name] = quantity_of(source, quantity, values, where)
    return values


def same_kind(paper: Paper, claim: Claim, statement: Statement, value: Value) -> None:
    """Raise StudyError where a text is compared with numbers, or a number with a text."""
    if value is not None and isinstance(value, str) != (statement.equals is not None):
        kind = (
            "a text; compare it with equals"
            if isinstance(value, str)
            else "no text, as equals asks"
        )
        file = paper.folder / "claims.yaml"
        raise StudyError(
            f"{file}: claim {claim.id}: {statement.that} is {kind}, in the report alone"
        )


def by_report(paper: Paper, claim: Claim, values: dict[str, Value]) -> Answer:
    """Return whether a claim follows from the report's own tables."""
    findings = []
    for one in claim.report:
        if one.untold is not None:
            findings.append(Finding(one.untold, None, "", UNTOLD, "not in the report's tables"))
        else:
            value = values[str(one.that)]
            same_kind(paper, claim, one, value)
            findings.append(found_of(claim, one, Number(value)))
    return together(findings)


def complete_rounds(measured: Measured, tables: list[str], implementation: str | None) -> list[int]:
    """Return the rounds that have every cell of the tables that any round has.

    A round that lacks a cell would compare other things than the others do.
    """
    rounds: set[int] | None = None
    for name in tables:
        cells = measured.cells(name)
        if cells.is_empty():
            return []
        if implementation:
            cells = cells.filter(cells["implementation"] == implementation)
        others = [column for column in cells.columns if column != "round"]
        every = cells.select(others).n_unique()
        counted = cells.unique().group_by("round").len()
        whole = set(counted.filter(counted["len"] == every)["round"].to_list())
        rounds = whole if rounds is None else rounds & whole
    return sorted(rounds or ())


def one_here(
    measured: Measured,
    claim: Claim,
    statement: Statement,
    implementation: str | None = None,
    among: int = 1,
) -> Finding:
    """Return what a campaign tells of one statement.

    A claim fails with any of its statements, so of `among` statements one is said to fail only if
    it does at a level that is stricter by as much (Bonferroni).
    """
    if statement.untold is not None:
        return Finding(statement.untold, None, "", UNTOLD, "no number of a round")
    name = str(statement.that)
    quantity = claim.quantities[name]
    label = quantity.label or name.replace("_", " ")
    asked = asked_of(statement)[2]
    tables = cells_wanted(measured.study, claim, name)
    of = implementation or ""
    lacking = families_lacking(measured, statement, tables)
    if lacking:
        reason = f"no implementation that was measured stands for {' and '.join(lacking)}"
        return Finding(label, None, asked, UNTOLD, reason, of)
    rounds = complete_rounds(measured, tables, implementation)
    if not rounds:
        return Finding(
            label, None, asked, UNTOLD, "none of its cells was measured in a whole round", of
        )
    values = []
    for number in rounds:
        source = OneRound(measured, number, implementation)
        of_round = values_of(source, measured.paper, claim, behind(claim, name))
        values.append(of_round[name])
    for value in values:
        same_kind(measured.paper, claim, statement, value)
    told = [value for value in values if isinstance(value, float)]
    if not told:
        return Finding(label, None, asked, UNTOLD, "the campaign has none of the cells for it", of)
    finding = found_of(claim, statement, interval_of(told, quantity.scale), of)
    if finding.verdict == FAILS and among > 1:
        wide = interval_of(told, quantity.scale, 1 - (1 - CONFIDENCE) / among)
        if found_of(claim, statement, wide, of).verdict != FAILS:
            reason = f"that one of {among} lies outside by so little may be chance"
            return replace(finding, verdict=UNTOLD, reason=reason)
    return finding


def implementations_for(measured: Measured, claim: Claim, statement: Statement) -> list[str | None]:
    """Return the implementations to test by themselves; None stands for all that take part."""
    tables = cells_wanted(measured.study, claim, str(statement.that)) if statement.that else []
    declared = measured.study.tables[tables[0]].today if tables else None
    if measured.study.stands_for or declared is None:
        return [None]
    check = measured.study.experiments[declared.experiment].check
    return [*measured.implementations(check)] or [None]


def by_campaign(measured: Measured, claim: Claim) -> Answer:
    """Return whether a claim holds in a campaign."""
    if isinstance(claim.here, str):
        return Answer(UNTOLD, notes=[claim.here])
    needs = needs_of(measured.paper, claim, measured)
    if needs.missing:
        return Answer(UNTOLD, notes=[f"{one}." for one in needs.missing])
    asked = [
        (statement, name)
        for statement in claim.here
        for name in implementations_for(measured, claim, statement)
    ]
    findings = [one_here(measured, claim, *one, among=len(asked)) for one in asked]
    answer = together(findings)
    if needs.blocking and answer.verdict != UNTOLD:
        # The numbers are shown, but they are of something else than the claim.
        shown = [
            replace(one, verdict=UNTOLD, reason="; ".join(needs.blocking))
            for one in answer.findings
        ]
        return Answer(UNTOLD, shown)
    return answer


def what_is_needed(
    paper: Paper, claim: Claim, measured: Measured | None, here: Answer | None
) -> Answer:
    """Return what a test of a claim needs, or still needs after a campaign."""
    if isinstance(claim.here, str):
        return Answer(UNTESTABLE, notes=[claim.here])
    needs = needs_of(paper, claim, measured)
    lacking = [*needs.missing, *needs.blocking, *needs.caveats]
    notes = [f"{one[0].upper()}{one[1:]}." for one in (*lacking, *needs.differences)]
    told = here is not None and here.verdict != UNTOLD
    return Answer(TESTED if told else TESTABLE, notes=[*notes, f"Command: {needs.command}"])


def evaluate(paper: Paper, measured: Measured | None = None) -> list[Evaluated]:
    """Return every claim with its answers; raise StudyError with file, claim and key."""
    source = Report(paper)
    found = []
    for claim in paper.claims:
        values = values_of(source, paper, claim)
        here = by_campaign(measured, claim) if measured else None
        found.append(
            Evaluated(
                claim=claim,
                values=values,
                report=by_report(paper, claim, values),
                here=here,
                needed=what_is_needed(paper, claim, measured, here),
            )
        )
    return found
