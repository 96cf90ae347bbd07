"""Which members and which pairs of them stand out, from one number for each pair.

The number of a pair is the sum of the base of its class, of what is the matter with either member
and with the pair itself, and of noise. Not all of that can be told apart: with as many effects as
numbers anything fits. So few effects are looked for that explain much: one is taken in after the
other, as long as it is shown, the one first that explains most. Only what adds to a number is an
effect: that one bad node makes its pairs slow could else be blamed on all others being fast.

The yardstick of a pair's effect is how far the pairs are from the model, that of a member's also
how far the members are from each other: where all differ, none stands out. Student's t, with
Bonferroni's correction for all members and pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

#: What is taken in at most: with more, what is the rule and what the exception cannot be said.
MOST_EFFECTS = 64
#: An effect of which the others leave less than this share of a pair cannot be told apart.
LEAST_PART = 1e-6
#: Of how many members the spread among them is known well enough to be their yardstick.
FEWEST_MEMBERS = 8
#: The standard deviation by the median of absolute deviations, where noise is normal.
BY_MEDIAN = 1.4826
#: A scale below it is rounding of equal numbers, not noise.
ROUNDING = 1e-9
#: Of Student's distribution, at most: where there are thousands of pairs its tails decide, and
#: those of measurements are heavier than a normal distribution's.
MOST_FREEDOM = 20


@dataclass(frozen=True)
class Effect:
    """What a member, or a pair, adds to a number; `low` and `high` hold for all at once.

    All are NaN where the numbers do not tell. `shown`: it is above 0 and at least what was asked
    for.
    """

    members: tuple[int, ...]
    value: float
    low: float
    high: float
    shown: bool


@dataclass(frozen=True)
class Effects:
    """The effects of all members, in their order, and of all pairs, in that of the numbers."""

    members: list[Effect]
    pairs: list[Effect]


class _Fit:
    """Bases and the effects taken in so far, fitted by least squares."""

    def __init__(self, pairs: Indices, classes: Indices, values: Numbers, members: int) -> None:
        self.pairs, self.values, self.members = pairs, values, members
        self.columns = [(classes == one).astype(float) for one in np.unique(classes)]
        self.solve()

    def solve(self) -> None:
        """Fit all columns."""
        self.basis: Numbers = np.linalg.qr(np.stack(self.columns, axis=1))[0]
        self.residuals: Numbers = self.values - self.basis @ (self.basis.T @ self.values)
        self.freedom = len(self.values) - len(self.columns)
        self.squares = float(self.residuals @ self.residuals)

    def by_member(self, of_pairs: Numbers) -> Numbers:
        """Return the sum over each member's pairs."""
        first, second = self.pairs.T
        sums = np.bincount(first, of_pairs, self.members)
        return np.asarray(sums + np.bincount(second, of_pairs, self.members), dtype=float)

    def candidates(self) -> tuple[Numbers, Numbers]:
        """Return of all members, then of all pairs: the sum of residuals, and what is its own.

        The latter is the square of what the columns leave of the effect's own column.
        """
        within = np.stack([self.by_member(column) for column in self.basis.T])
        counts = self.by_member(np.ones(len(self.values)))
        sums = np.concatenate([self.by_member(self.residuals), self.residuals])
        own = np.concatenate([
            counts - (within**2).sum(axis=0), 1 - (self.basis**2).sum(axis=1)
        ])  # fmt: skip
        return sums, np.where(own > LEAST_PART, own, np.nan)

    def estimates(self) -> tuple[Numbers, Numbers]:
        """Return each candidate's value and standard error, should it be taken in next."""
        sums, own = self.candidates()
        values = sums / own
        if self.freedom < 2:
            return values, np.full_like(values, np.nan)
        left = np.maximum(0.0, self.squares - sums * values) / (self.freedom - 1)
        errors = np.sqrt(left / own)
        of_members = values[: self.members]
        if self.members >= FEWEST_MEMBERS:
            spread = BY_MEDIAN * np.nanmedian(abs(of_members - np.nanmedian(of_members)))
            errors[: self.members] = np.maximum(errors[: self.members], spread)
        return values, np.maximum(errors, ROUNDING)

    def take_in(self, number: int) -> None:
        """Add the column of a candidate."""
        if number < self.members:
            column = (self.pairs == number).any(axis=1).astype(float)
        else:
            column = np.zeros(len(self.values))
            column[number - self.members] = 1.0
        self.columns.append(column)
        self.solve()


def effects_of(
    pairs: Sequence[tuple[int, int]],
    values: Sequence[float],
    members: int,
    *,
    least: float,
    level: float,
    classes: Sequence[int] | None = None,
) -> Effects:
    """Return what members and pairs add to the numbers of pairs.

    `pairs` are of members 0 to `members` - 1, each pair at most once, with a number each; each of
    `classes` has a base of its own, and all pairs are of one by default. `least` is the smallest
    effect that counts. Where nothing is the matter, the chance that any is shown is at most
    `level`.
    Raises ValueError for numbers that are not finite or do not fit the pairs.
    """
    numbers = np.asarray(values, dtype=float)
    places = np.asarray(pairs, dtype=np.intp).reshape(-1, 2)
    if len(numbers) != len(places) or not np.isfinite(numbers).all():
        raise ValueError(f"{len(places)} pairs need as many finite numbers, not {len(numbers)}")
    if not len(numbers):
        return Effects([_unknown((one,)) for one in range(members)], [])
    groups = np.zeros(len(numbers), np.intp) if classes is None else np.asarray(classes, np.intp)
    fit = _Fit(places, groups, numbers, members)
    chance = level / (members + len(numbers))
    taken: list[int] = []
    while len(taken) < min(MOST_EFFECTS, fit.freedom - 2):
        estimates, errors = fit.estimates()
        quantile = special.stdtrit(_freedom(fit.freedom - 1), 1 - chance)
        is_shown = (estimates >= least) & (estimates > quantile * errors)
        is_shown[taken] = False
        if not is_shown.any():
            break
        sums, own = fit.candidates()
        gain = np.where(is_shown, sums**2 / own, -np.inf)
        taken.append(int(np.argmax(gain)))
        fit.take_in(taken[-1])
    return _told(fit, taken, least, chance)


def _told(fit: _Fit, taken: Sequence[int], least: float, chance: float) -> Effects:
    """Return all effects: those taken in as they are together, each other as if it came next."""
    estimates, errors = fit.estimates()
    freedom = np.full(len(estimates), _freedom(fit.freedom - 1))
    if taken:
        design = np.stack(fit.columns, axis=1)
        inverse = np.linalg.inv(design.T @ design)
        scale = fit.squares / fit.freedom
        of_all = inverse @ (design.T @ fit.values)
        estimates[taken] = of_all[-len(taken) :]
        errors[taken] = np.maximum(ROUNDING, np.sqrt(np.diag(inverse)[-len(taken) :] * scale))
        freedom[taken] = _freedom(fit.freedom)
    # Both ends hold at once, so each may fail half as often.
    half = special.stdtrit(freedom, 1 - chance / 2) * errors
    whose = [(one,) for one in range(fit.members)] + [(int(a), int(b)) for a, b in fit.pairs]
    known = frozenset(taken)
    found = [
        Effect(members, float(value), float(value - width), float(value + width), number in known)
        if np.isfinite(width) else _unknown(members)
        for number, (members, value, width) in enumerate(zip(whose, estimates, half, strict=True))
    ]  # fmt: skip
    return Effects(found[: fit.members], found[fit.members :])


def _freedom(left: int) -> float:
    """Return the degrees of freedom that quantiles are taken of."""
    return float(min(MOST_FREEDOM, max(1, left)))


def _unknown(members: tuple[int, ...]) -> Effect:
    nothing = float("nan")
    return Effect(members, nothing, nothing, nothing, shown=False)
