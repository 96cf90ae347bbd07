"""What one number with its interval says about a statement.

docs/method/studies.md has the rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy import special

from analysis.studies.declaration import Claim, Statement
from analysis.studies.relations import CellValue
from inference.intervals import CONFIDENCE, Interval, median_interval, paired_ratio

HOLDS, FAILS, UNTOLD = "holds", "does not hold", "inconclusive"
#: Of a claim with several statements, of which only some hold.
IN_PART = "in part"


@dataclass(frozen=True)
class OneNumber:
    """A quantity's value with its interval over rounds, which a report's own tables lack."""

    value: CellValue
    interval: Interval | None = None
    rounds: int | None = None


@dataclass(frozen=True)
class StatementJudgement:
    """What was found of one statement, in words; `of` is an implementation, where it is of one.

    A statement about many cells has no number: `counted` says how many of them are as claimed.
    `reading` quotes the claim's words for which `asked` is our threshold and not the author's.
    """

    label: str
    number: OneNumber | None
    asked: str
    verdict: str
    reason: str = ""
    of: str = ""
    counted: str = ""
    reading: str | None = None
    #: Whether no campaign, however long, decides it.
    is_never_told: bool = False

    @property
    def sentence(self) -> str:
        """Return the finding as a sentence."""
        of = f", {self.of}" if self.of else ""
        found = self.counted
        if self.number is not None and self.number.value is not None:
            found = number_text(self.number)
        if not found:
            return f"{self.label}{of}: {self.verdict}: {self.reason}."
        end = f": {self.reason}" if self.reason else ""
        claimed = f"claimed is {self.asked}"
        if self.reading:
            claimed = f"Wyeast reads “{self.reading}” as {self.asked}"
        return f"{self.label}{of}: {found}; {claimed}: {self.verdict}{end}."


def digits(value: CellValue) -> str:
    """Return a value as text, numbers with four significant digits."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", " ") if abs(value) >= 1e5 else str(int(value))
    return f"{value:.4g}"


def number_text(number: OneNumber) -> str:
    """Return a number with its interval."""
    text = digits(number.value)
    if number.rounds is None:
        return text
    rounds = rounds_text(number.rounds)
    if number.interval is None:
        return f"{text} ({rounds})"
    low, high = digits(number.interval.low), digits(number.interval.high)
    # Four digits, since 99.96% is not 100%.
    coverage = digits(100 * number.interval.coverage)
    return f"{text} ({coverage}% interval {low} – {high}, {rounds})"


def rounds_text(rounds: int) -> str:
    """Return a number of rounds in words."""
    return f"{rounds} round{'s' if rounds != 1 else ''}"


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
    # A rounding error between a decimal number in a file and the sum of two others is no
    # difference.
    slack = 1e-9 * max(1.0, *(abs(x) for x in (least, most) if math.isfinite(x)))
    strict = statement.above is not None or statement.below is not None
    slack = -slack if strict else slack
    inside = [least - slack <= x <= most + slack for x in (low, high)]
    if all(inside):
        return HOLDS
    apart = high < least - slack or low > most + slack
    return FAILS if apart else UNTOLD


def interval_of(values: Sequence[float], scale: str, confidence: float = CONFIDENCE) -> OneNumber:
    """Return the value over rounds with its interval, Student's on the rounds' values.

    `values` has one number for each round. For a ratio it is the geometric mean, by logarithms.
    Where all rounds have the same value, a spread cannot be estimated: the interval is then the
    one of order statistics, with the coverage that it has.
    """
    count = len(values)
    if scale == "ratio" and min(values) > 0:
        ratio = paired_ratio([math.log(value) for value in values], confidence)
        number = OneNumber(ratio.value, ratio.interval, count)
    else:
        mean = fmean(values)
        error = float(np.std(values, ddof=1)) / math.sqrt(count) if count > 1 else math.nan
        half = float(special.stdtrit(count - 1, (1 + confidence) / 2)) * error if count > 1 else 0.0
        interval = Interval(mean - half, mean + half, confidence) if count > 1 else None
        number = OneNumber(mean, interval, count)
    if count > 1 and (number.interval is None or max(values) == min(values)):
        return OneNumber(number.value, median_interval(values, confidence), count)
    return number


def untold_because(number: OneNumber, confidence: float) -> str:
    """Return why a number over rounds is inconclusive at a confidence; empty if it may not be."""
    if number.interval is None:
        return "one round has no interval"
    if number.interval.coverage < confidence - 1e-9:
        return (
            "the rounds agree to the last digit, so the spread can only be judged by their number, "
            "which is too small"
        )
    return ""


def label_of(claim: Claim, statement: Statement) -> str:
    """Return what a statement is about, in words."""
    name = str(statement.that)
    return claim.quantities[name].label or name.replace("_", " ")


def found_of(
    claim: Claim,
    statement: Statement,
    number: OneNumber,
    of: str = "",
    confidence: float = CONFIDENCE,
) -> StatementJudgement:
    """Return what a number says about a statement; its interval was computed at `confidence`."""
    label = label_of(claim, statement)
    least, _, asked = asked_of(statement)
    value = number.value
    if value is None:
        return StatementJudgement(
            label, None, asked, UNTOLD, "the tables have nothing to compute it from", of
        )
    if isinstance(value, str) or math.isnan(least):
        verdict = HOLDS if digits(value) == statement.equals else FAILS
        reason = ""
    elif number.rounds is None:
        verdict, reason = judged(statement, value, value), ""
    elif number.interval is None or untold_because(number, confidence):
        verdict, reason = UNTOLD, untold_because(number, confidence)
    else:
        verdict = judged(statement, number.interval.low, number.interval.high)
        reason = "the interval reaches both sides" if verdict == UNTOLD else ""
    return StatementJudgement(label, number, asked, verdict, reason, of, reading=statement.reading)
