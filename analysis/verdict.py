"""A ratio in words: whether it shows a difference, or that there is none to speak of."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.statistics import Ratio, holm_of_exclusive

ALPHA = 0.05


def percent(share: float) -> str:
    """Return a share for people."""
    return f"{100 * share:.3g}%"


@dataclass
class Verdict:
    """One implementation against the base in one cell; a ratio above 1 is better than the base."""

    implementation: str
    base: str
    ratio: Ratio
    #: How far from 1 a ratio may be to be called equivalent, as a share.
    margin: float
    adjusted_p: float | None = None
    adjusted_equivalence_p: float | None = None
    #: Of a group: how many of its cells both have.
    cells: int | None = None

    @property
    def is_different(self) -> bool:
        """Return whether a difference is shown."""
        return self.adjusted_p is not None and self.adjusted_p < ALPHA

    @property
    def is_equivalent(self) -> bool:
        """Return whether the ratio is shown to be within the margin."""
        return self.adjusted_equivalence_p is not None and self.adjusted_equivalence_p < ALPHA

    @property
    def is_told(self) -> bool:
        """Return whether the launches can tell anything: enough of them, or such that differ."""
        shown = self.is_different or self.is_equivalent
        return self.adjusted_p is not None and (self.ratio.interval is not None or shown)

    @property
    def words(self) -> str:
        """Return the verdict in plain words."""
        if not self.is_told:
            return f"cannot be told ({self.ratio.counted})"
        faster = "faster" if self.ratio.value > 1 else "slower"
        if self.is_equivalent and self.is_different:
            return f"{faster} by less than {percent(self.margin)}"
        if self.is_equivalent:
            return f"equivalent within {percent(self.margin)}"
        return faster if self.is_different else "no difference shown"


def correct(family: list[Verdict]) -> None:
    """Set the adjusted p values of a family of verdicts."""
    told = [verdict for verdict in family if verdict.ratio.p_value is not None]
    adjusted = holm_of_exclusive([(v.ratio.p_value or 0.0, v.ratio.equivalence_p) for v in told])
    for verdict, p_values in zip(told, adjusted, strict=True):
        verdict.adjusted_p, verdict.adjusted_equivalence_p = p_values
