"""A ratio in words: whether it shows a difference, or equivalence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from analysis.tables.units import percent
from inference.families import FamilyClaim, claims
from inference.intervals import Interval, Ratio

ALPHA = 0.05
#: What a gate must be able to see to be called fine: a slowdown of this size, as a fraction, with
#: this probability.
SLOWDOWN, POWER = 0.25, 0.8
#: What a verdict says: also the class of its colour and sign on pages.
VerdictKind = Literal[
    "not-judged", "inconclusive", "equivalent", "no-difference", "faster", "slower"
]


@dataclass
class Verdict:
    """One implementation against the base in one cell; a ratio above 1 is better than the base.

    It belongs to a family, in which `correct` makes the claims: the same object is used wherever
    the verdict is.
    """

    implementation: str
    base: str
    ratio: Ratio
    #: How far from 1 a ratio may be to be called equivalent, as a share.
    margin: float
    claim: FamilyClaim | None = None
    #: How many cells it is about that both have; more than one of a group.
    cells: int = 1
    #: Why it is in no family, if it is in none whatever its launches say.
    unjudged: str = ""

    @property
    def adjusted_p(self) -> float | None:
        """Return the p value of a difference after Holm's correction."""
        return self.claim.difference_p if self.claim else None

    @property
    def adjusted_equivalence_p(self) -> float | None:
        """Return the p value of equivalence after Holm's correction."""
        return self.claim.equivalence_p if self.claim else None

    @property
    def interval(self) -> Interval | None:
        """Return the verdict's interval: simultaneous with all of its family.

        The ratio's own 95% interval is a different one.
        """
        return self.claim.interval if self.claim else None

    @property
    def is_different(self) -> bool:
        """Return whether a difference is shown."""
        return self.claim is not None and self.claim.is_different

    @property
    def is_equivalent(self) -> bool:
        """Return whether the ratio is shown to be within the margin, and no difference is."""
        return self.claim is not None and self.claim.is_equivalent

    @property
    def is_told(self) -> bool:
        """Return whether the launches allow a conclusion: they give an interval, or a claim."""
        shown = self.is_different or self.is_equivalent
        return self.claim is not None and (self.ratio.interval is not None or shown)

    @property
    def kind(self) -> VerdictKind:
        """Return what the verdict says."""
        if self.unjudged:
            return "not-judged"
        if not self.is_told:
            return "inconclusive"
        if self.is_equivalent:
            return "equivalent"
        if not self.is_different:
            return "no-difference"
        return "faster" if self.ratio.value > 1 else "slower"

    @property
    def short(self) -> str:
        """Return the verdict in plain words, without the reason where there is none."""
        kind = self.kind
        if kind == "equivalent":
            return f"equivalent within {percent(self.margin)}"
        return {"not-judged": "not judged", "no-difference": "no difference shown"}.get(kind, kind)

    @property
    def words(self) -> str:
        """Return the verdict in plain words, or why there is none."""
        why = {"not-judged": self.unjudged, "inconclusive": self.ratio.counted}.get(self.kind)
        return self.short if why is None else f"{self.short} ({why})"


def correct(family: Sequence[Verdict]) -> None:
    """Make the claims of a family of verdicts; inconclusive ones make none."""
    told = [one for one in family if one.ratio.p_value is not None and not one.unjudged]
    for verdict, claim in zip(told, claims([one.ratio for one in told]), strict=True):
        verdict.claim = claim
