"""How many rounds a wanted precision takes, from the spread in a campaign.

The standard deviation of few rounds is itself uncertain: with three, the true one may be more than
four times as large as the one seen. So each number of rounds comes with a second one, from the
upper confidence limit of the deviation (Kupper and Hafner 1989 show how far the plain number is
too small).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from analysis.comparison.families import family_in, ratio_over
from analysis.comparison.result import Comparison, judged_cells
from inference.families import DIFFERENCE_ERROR
from inference.intervals import (
    CONFIDENCE,
    FEWEST_PAIRS,
    ROUNDING,
    chance_above,
    median,
    possible_deviations,
    quantile_of_chi_squared,
)

MOST_ROUNDS = 1_000_000


@dataclass(frozen=True)
class PrecisionPlan:
    """One group or cell of one implementation against the base; deviations are of logarithms.

    `rounds` make the interval of the ratio as narrow as requested, `rounds_at_most` even at the
    upper limit of the deviation; `to_show` show a difference of that size with the wanted power.
    None exceeds a million. `family` is how many comparisons the verdicts are corrected for, this
    one included. `round_s` is the time of a round, for the launches of both.
    """

    name: str
    implementation: str
    seen: int
    deviation: float
    deviation_at_most: float
    rounds: int | None
    rounds_at_most: int | None
    to_show: int | None
    family: int
    round_s: float

    @property
    def seconds(self) -> float | None:
        """Return the time, in seconds, of the rounds that suffice even at the upper limit."""
        return None if self.rounds_at_most is None else self.rounds_at_most * self.round_s


def least(enough: Callable[[int], bool]) -> int | None:
    """Return the smallest sufficient number of rounds, at least two; None beyond a million."""
    high = FEWEST_PAIRS
    while not enough(high):
        if high == MOST_ROUNDS:
            return None
        high = min(2 * high, MOST_ROUNDS)
    low = max(FEWEST_PAIRS - 1, high // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def rounds_for_width(deviation: float, precision: float) -> int | None:
    """Return the rounds whose 95% interval stays within the precision around the ratio."""
    width = math.log1p(precision)
    return least(
        lambda n: special.stdtrit(n - 1, (1 + CONFIDENCE) / 2) * deviation / math.sqrt(n) <= width
    )


def rounds_to_show(
    deviation: float, difference: float, power: float, family: int, freedom: float = math.inf,
    pairs: int | None = None,
) -> int | None:  # fmt: skip
    """Return the rounds that show a true difference, as a fraction, with a probability of `power`.

    The level is divided by the size of the family, as Holm's correction does for the smallest p
    value. By Student's noncentral distribution, over all true deviations that one estimated with
    `freedom` degrees of freedom may stand for: taken as known, a deviation of three rounds keeps
    58% where 80% are promised. Where `pairs` rounds gave that freedom, more rounds give as
    much more of it: over several checks it is more than one of each round.
    """
    shift, level = math.log1p(difference), DIFFERENCE_ERROR / family
    if deviation < ROUNDING:
        # Rounds that agree are judged by signs.
        return least(lambda n: 2 * 0.5**n <= level)

    if math.isinf(freedom):
        deviations = np.array([deviation])
    else:
        deviations = possible_deviations(deviation, freedom)

    share = 1.0 if pairs is None else freedom / (pairs - 1)

    def shown(n: int) -> bool:
        of_test = share * (n - 1)
        critical = -special.stdtrit(of_test, level / 2)
        return chance_above(shift / deviations * math.sqrt(n), critical, of_test) >= power

    return least(shown)


def deviation_limit(deviation: float, freedom: float, confidence: float = CONFIDENCE) -> float:
    """Return the upper one-sided confidence limit of a standard deviation, of normal noise."""
    return deviation * math.sqrt(freedom / float(quantile_of_chi_squared(1 - confidence, freedom)))


def plans(
    comparison: Comparison, precision: float, power: float, by_cell: bool = False
) -> list[PrecisionPlan]:
    """Return what each group, or each cell, of every implementation needs.

    Except one whose rounds agree to the last digit, which shows no spread.
    """
    wall = round_seconds(comparison)
    rows = []
    units = [(g.name, g.experiment, [c for c in g.cells]) for g in comparison.groups]
    if by_cell:
        units = [
            (cell.name, cell.experiment, [cell])
            for cell in comparison.cells
            if not cell.oversubscribed
        ]
    families = family_sizes(comparison)
    for name, family, cells in units:
        for other in sorted({other for cell in cells for other in cell.log_ratios}):
            has = judged_cells(cells, other)
            ratio = ratio_over(has, other, step=max(cell.step for cell in has) if has else 0.0)
            if ratio.error is None or ratio.freedom is None:
                continue
            seen = ratio.error * math.sqrt(ratio.pairs)
            most = deviation_limit(seen, ratio.freedom)
            launches = {cell.launch_cell for cell in has}
            seconds = sum(
                wall.get((cell, who), 0.0) for cell in launches for who in (other, comparison.base)
            )
            rows.append(
                PrecisionPlan(
                    name, other, ratio.pairs, seen, most,
                    rounds_for_width(seen, precision), rounds_for_width(most, precision),
                    rounds_to_show(
                        seen, precision, power, families[family], ratio.freedom, ratio.pairs
                    ),
                    families[family], seconds,
                )
            )  # fmt: skip
    return rows


def family_sizes(comparison: Comparison) -> dict[str, int]:
    """Return for how many verdicts each experiment is corrected, if all had enough rounds."""
    return {
        name: len(family_in(comparison.pairs, name))
        for name in {cell.experiment for cell in comparison.cells}
    }


def round_seconds(comparison: Comparison) -> dict[tuple[str, str], float]:
    """Return the median time of a whole launch, by cell and implementation."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for launch in comparison.campaign.sound():
        if launch.record.wall_s is not None:
            times[launch.record.cell, launch.record.implementation].append(launch.record.wall_s)
    return {key: median(values) for key, values in times.items()}
