"""Which members and which pairs of them stand out, from one number for each pair.

The number of a pair is the sum of the base of its class, of what is the matter with either member
and with the pair itself, and of noise. Not all of that can be told apart: with as many effects as
numbers anything fits. So few effects are looked for that explain much: one is taken in after the
other, as long as it is shown, the one first that explains most. A pair is left out again where
both of its members explain more: of four members, two bad ones look like a bad pair first. Only
what adds to a number is an effect: that one bad node makes its pairs slow could else be blamed on
all others being fast.

There are two yardsticks. One is how far the pairs are from the model, and of a member also how far
the members are from each other: where all differ, none stands out, and of few pairs nothing is
shown. The other one is how far repetitions are from each other: it tells of the four members' six
numbers how well each is known, but not how much sound pairs differ, so by it an effect has to be
larger than the smallest that counts, not only than none. Student's t, with Bonferroni's correction
for all members and pairs, and for both yardsticks. What the first one shows has to be there in the
repetitions, too: a number may be large by a chance that its repetitions tell of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

#: What is taken in at most: with more, what is the rule and what the exception cannot be said.
MOST_EFFECTS = 64
#: So many numbers more than bases and effects are left, or anything fits.
FEWEST_LEFT = 2
#: An effect of which the others leave less than this share of a pair cannot be told apart.
LEAST_PART = 1e-6
#: Of how many members the spread among them is known well enough to be their yardstick.
FEWEST_MEMBERS = 8
#: The standard deviation by the median of absolute deviations, where noise is normal.
BY_MEDIAN = 1.4826
#: Of how many repetitions the spread among them is a yardstick.
FEWEST_REPETITIONS = 4
#: The chance that an effect of which the repetitions know nothing passes for being in them, at
#: most; of many members and pairs, that one of them does in the mean.
BY_CHANCE = 0.01
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
    """Bases and the effects taken in so far, fitted by least squares.

    A pair that is taken in explains its own number alone, so the rest is fitted without it: there
    are as many columns as bases and members taken in.
    """

    def __init__(
        self, pairs: Indices, classes: Indices, values: Numbers, repeated: Numbers, members: int
    ) -> None:
        self.pairs, self.values, self.members = pairs, values, members
        #: A row of the pairs' numbers for each repetition.
        self.repeated = repeated
        self.bases = [(classes == one).astype(float) for one in np.unique(classes)]
        self.take_only([])

    def take_only(self, taken: Sequence[int]) -> None:
        """Fit with these candidates: members by their numbers, then pairs after all members."""
        self.taken = list(taken)
        self.design, self.fitted = self.columns_of(taken)
        of_fitted = self.design * self.fitted[:, None]
        self.inverse = np.asarray(np.linalg.inv(of_fitted.T @ of_fitted), dtype=float)
        self.weights = of_fitted @ self.inverse
        self.coefficients = self.values @ self.weights
        self.residuals: Numbers = self.fitted * (self.values - self.design @ self.coefficients)
        self.freedom = int(self.fitted.sum()) - self.design.shape[1]
        self.squares = float(self.residuals @ self.residuals)
        #: Of each repetition, as if it were the only one.
        self.left = self.fitted * (self.repeated - self.repeated @ self.weights @ self.design.T)

    def columns_of(self, taken: Sequence[int]) -> tuple[Numbers, Numbers]:
        """Return the columns of bases and members, and 1 for each pair that is fitted, else 0."""
        fitted = np.ones(len(self.values))
        columns = list(self.bases)
        for number in taken:
            if number < self.members:
                columns.append(np.asarray((self.pairs == number).any(axis=1), dtype=float))
            else:
                fitted[number - self.members] = 0.0
        return np.stack(columns, axis=1), fitted

    def can_tell(self, taken: Sequence[int]) -> bool:
        """Return whether candidates can be told apart: all members together are the base."""
        design, fitted = self.columns_of(taken)
        return bool(np.linalg.matrix_rank(design * fitted[:, None]) == design.shape[1])

    def with_only(self, numbers: Sequence[int]) -> _Fit:
        """Return a fit with other candidates taken in."""
        other = copy(self)
        other.take_only(numbers)
        return other

    def by_member(self, of_pairs: Numbers) -> Numbers:
        """Return the sum over each member's pairs."""
        first, second = self.pairs.T
        sums = np.bincount(first, of_pairs, self.members)
        return np.asarray(sums + np.bincount(second, of_pairs, self.members), dtype=float)

    def sums(self, residuals: Numbers) -> Numbers:
        """Return the sum of residuals of all members, then of all pairs."""
        return np.concatenate([self.by_member(residuals), residuals])

    def leverage(self) -> Numbers:
        """Return for each pair what share of its number the fit takes from it."""
        return np.asarray(((self.design @ self.inverse) * self.design).sum(axis=1))

    def own(self) -> Numbers:
        """Return of all members, then of all pairs, what is their own.

        It is the square of what the columns leave of their column; NaN where that is nothing.
        """
        within = np.stack([self.by_member(column * self.fitted) for column in self.design.T])
        of_members = self.by_member(self.fitted) - (within * (self.inverse @ within)).sum(axis=0)
        own = np.concatenate([of_members, self.fitted * (1 - self.leverage())])
        return np.where(own > LEAST_PART, own, np.nan)

    def estimates(self, own: Numbers) -> tuple[Numbers, Numbers]:
        """Return each candidate's value and standard error, should it be taken in next."""
        sums = self.sums(self.residuals)
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

    def spread(self, own: Numbers) -> tuple[Numbers, Numbers]:
        """Return each candidate's mean over the repetitions, and the standard error of that."""
        return _mean_with_error(np.array([self.sums(one) for one in self.left]) / own)

    def together(self) -> tuple[Numbers, Numbers]:
        """Return what those taken in add, all fitted at once, and their standard errors."""
        scale = self.squares / self.freedom
        leverage = self.leverage()
        found = []
        for number, column in self._columns():
            if column is None:
                place = number - self.members
                value = self.values[place] - self.design[place] @ self.coefficients
                found.append((value, (1 + leverage[place]) * scale))
            else:
                found.append((self.coefficients[column], self.inverse[column, column] * scale))
        values, variances = np.array(found).reshape(-1, 2).T
        return values, np.maximum(ROUNDING, np.sqrt(variances))

    def each(self) -> Numbers:
        """Return what those taken in add by each repetition, a row each."""
        coefficients = self.repeated @ self.weights
        found = []
        for number, column in self._columns():
            if column is None:
                place = number - self.members
                found.append(self.repeated[:, place] - coefficients @ self.design[place])
            else:
                found.append(coefficients[:, column])
        return np.array(found).T

    def _columns(self) -> Iterator[tuple[int, int | None]]:
        """Yield those taken in with the columns of members."""
        column = len(self.bases)
        for number in self.taken:
            if number < self.members:
                yield number, column
                column += 1
            else:
                yield number, None


def effects_of(
    pairs: Sequence[tuple[int, int]],
    values: Sequence[float],
    members: int,
    *,
    least: float,
    level: float,
    classes: Sequence[int] | None = None,
    repeated: Sequence[Sequence[float]] | Numbers = (),
) -> Effects:
    """Return what members and pairs add to the numbers of pairs.

    `pairs` are of members 0 to `members` - 1, each pair at most once, with a number each; each of
    `classes` has a base of its own, and all pairs are of one by default. `least` is the smallest
    effect that counts. `repeated` has a row of the pairs' numbers for each repetition, which is
    independent of the others. Where nothing is the matter, the chance that any is shown is at most
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
    rows = np.asarray(repeated, dtype=float).reshape(-1, len(numbers))
    if len(rows) < FEWEST_REPETITIONS:
        rows = rows[:0]
    elif not np.isfinite(rows).all():
        raise ValueError("repetitions need finite numbers of all pairs")
    fit = _Fit(places, groups, numbers, rows, members)
    chance = level / (members + len(numbers)) / (2 if len(rows) else 1)
    by_chance = min(BY_CHANCE, 1 / (members + len(numbers)))
    while len(fit.taken) < MOST_EFFECTS and fit.freedom > FEWEST_LEFT:
        own = fit.own()
        estimates, errors = fit.estimates(own)
        quantile = special.stdtrit(_freedom(fit.freedom - 1), 1 - chance)
        is_shown = (estimates >= least) & (estimates > quantile * errors)
        if len(rows):
            means, of_means = fit.spread(own)
            beyond = means - special.stdtrit(len(rows) - 1, 1 - chance) * of_means
            is_shown &= means > special.stdtrit(len(rows) - 1, 1 - by_chance) * of_means
            is_shown |= (estimates >= least) & (beyond > least)
        if not is_shown.any():
            break
        gain = np.where(is_shown, estimates**2 * own, -np.inf)
        fit.take_only([*fit.taken, int(np.argmax(gain))])
    for number in [one for one in fit.taken if one >= members]:
        if number in fit.taken:
            fit = _by_members(fit, number, least, chance)
    # What was taken in first may be explained by the others since.
    while fit.taken and min(of_all := fit.together()[0]) < least:
        weakest = fit.taken[int(np.argmin(of_all))]
        fit.take_only([one for one in fit.taken if one != weakest])
    return _told(fit, chance)


def _by_members(fit: _Fit, pair: int, least: float, chance: float) -> _Fit:
    """Return the fit with a pair's members instead of the pair, where they explain more.

    Where that is not shown of both, none of the three is taken in: it is one of these, and the
    numbers do not tell which. Where all members would be to blame, nothing is taken in.
    """
    members = [int(one) for one in fit.pairs[pair - fit.members]]
    without = [one for one in fit.taken if one != pair]
    wanted = [*without, *(one for one in members if one not in without)]
    of_members = [wanted.index(one) for one in members]
    if not fit.can_tell(wanted):
        return fit.with_only([])
    other = fit.with_only(wanted)
    if other.freedom < 1 or other.squares >= fit.squares:
        return fit
    if min(other.together()[0][of_members]) < least:
        return fit
    if len(other.repeated):
        means, errors = _mean_with_error(other.each())
        low = means - special.stdtrit(len(other.repeated) - 1, 1 - chance) * errors
        if min(low[of_members]) > least:
            return other
    return fit.with_only([one for one in without if one not in members])


def _told(fit: _Fit, chance: float) -> Effects:
    """Return all effects: those taken in as they are together, each other as if it came next."""
    own, taken = fit.own(), fit.taken
    estimates, errors = fit.estimates(own)
    freedom = np.full(len(estimates), _freedom(fit.freedom - 1))
    if taken:
        estimates[taken], errors[taken] = fit.together()
        freedom[taken] = _freedom(fit.freedom)
    # Both ends hold at once, so each may fail half as often.
    half = special.stdtrit(freedom, 1 - chance / 2) * errors
    low, high = estimates - half, estimates + half
    if len(fit.repeated):
        means, of_means = fit.spread(own)
        if taken:
            means[taken], of_means[taken] = _mean_with_error(fit.each())
        width = special.stdtrit(len(fit.repeated) - 1, 1 - chance / 2) * of_means
        # Both hold at once. The mean is of other repetitions than what a number is made of.
        low = np.fmax(low, np.minimum(means - width, estimates))
        high = np.fmin(high, np.maximum(means + width, estimates))
    whose = [(one,) for one in range(fit.members)] + [(int(a), int(b)) for a, b in fit.pairs]
    known = frozenset(taken)
    ends = zip(estimates.tolist(), low.tolist(), high.tolist(), strict=True)
    found = [
        Effect(members, *three, shown=number in known)
        if np.isfinite(three).all() else _unknown(members)
        for number, (members, three) in enumerate(zip(whose, ends, strict=True))
    ]  # fmt: skip
    return Effects(found[: fit.members], found[fit.members :])


def _mean_with_error(each: Numbers) -> tuple[Numbers, Numbers]:
    """Return the mean of each column over the rows, and its standard error."""
    errors = each.std(axis=0, ddof=1) / np.sqrt(len(each))
    return each.mean(axis=0), np.maximum(errors, ROUNDING)


def _freedom(left: int) -> float:
    """Return the degrees of freedom that quantiles are taken of."""
    return float(min(MOST_FREEDOM, max(1, left)))


def _unknown(members: tuple[int, ...]) -> Effect:
    nothing = float("nan")
    return Effect(members, nothing, nothing, nothing, shown=False)
