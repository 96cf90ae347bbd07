"""What would probably decide the series that a campaign left open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from analysis.comparison.families import family_in
from analysis.comparison.result import Cell, Comparison
from analysis.comparison.verdict import Verdict
from analysis.precision.rounds_needed import round_seconds
from inference.families import DIFFERENCE_ERROR, EQUIVALENCE_ERROR
from inference.intervals import FEWEST_PAIRS
from inference.outlook import Belief, SeenRatio, beliefs, rounds_to_decide


@dataclass(frozen=True)
class OpenCell:
    """A series of an implementation that is open: neither a difference nor equivalence is shown.

    `rounds` of a new campaign probably decide it; None if no number that is considered does,
    or if nothing `is_told`: its rounds show no spread.
    """

    cell: Cell
    implementation: str
    base: str
    is_told: bool
    rounds: int | None


@dataclass(frozen=True)
class OpenCells:
    """Open series, with what a round of all checks of an experiment takes, in s of launches."""

    cells: Sequence[OpenCell]
    round_s: dict[str, float]

    @cached_property
    def soon(self) -> list[OpenCell]:
        """Return those that more rounds probably decide."""
        return [one for one in self.cells if one.rounds is not None]

    @property
    def unlikely(self) -> int:
        """Return how many are probably not decided by any number of rounds that is considered."""
        return sum(one.is_told and one.rounds is None for one in self.cells)

    @property
    def untold(self) -> int:
        """Return about how many nothing can be said: their rounds show no spread."""
        return sum(not one.is_told for one in self.cells)

    @property
    def rounds(self) -> dict[str, int]:
        """Return the rounds that probably decide each experiment's open series, if any do."""
        found: dict[str, int] = {}
        for one in self.soon:
            found[one.cell.experiment] = max(found.get(one.cell.experiment, 0), one.rounds or 0)
        return found

    @property
    def seconds(self) -> float:
        """Return how long the launches of these rounds take: of all checks of the experiments."""
        return sum(count * self.round_s.get(name, 0.0) for name, count in self.rounds.items())

    def of(
        self, implementation: str | None = None, experiment: str | None = None,
        base: str | None = None,
    ) -> OpenCells:  # fmt: skip
        """Return those of an implementation, an experiment, a base, or several of them."""
        kept = [
            one
            for one in self.cells
            if implementation in (None, one.implementation)
            and experiment in (None, one.cell.experiment)
            and base in (None, one.base)
        ]
        return OpenCells(kept, self.round_s)


def is_open(verdict: Verdict) -> bool:
    """Return whether a verdict is possible and still open."""
    return not (verdict.unjudged or verdict.is_different or verdict.is_equivalent)


def open_cells(comparison: Comparison) -> OpenCells:
    """Return the open series of a comparison, in the order of its tables."""
    found: list[OpenCell] = []
    for experiment in dict.fromkeys(cell.experiment for cell in comparison.cells):
        family = family_in(comparison.pairs, experiment)
        levels = (
            DIFFERENCE_ERROR / max(1, sum(not one.is_different for one in family)),
            EQUIVALENCE_ERROR
            / max(1, sum(not (one.claim and one.claim.is_within_margin) for one in family)),
        )
        for one, implementation in product(comparison.pairs, comparison.implementations):
            judged = [
                (cell, verdict)
                for cell in one.experiment(experiment)
                if (verdict := cell.verdicts.get(implementation))
                and verdict.ratio.pairs
                and not verdict.unjudged
            ]
            believed = beliefs_of(judged)
            for cell, verdict in judged:
                if is_open(verdict):
                    belief = believed.get(cell.name)
                    rounds = None
                    if belief:
                        pairs, margin = verdict.ratio.pairs, verdict.margin
                        rounds = rounds_to_decide(belief, pairs, margin, *levels)
                    found.append(
                        OpenCell(cell, implementation, one.base, belief is not None, rounds)
                    )
    return OpenCells(found, seconds_of_rounds(comparison))


def beliefs_of(judged: Iterable[tuple[Cell, Verdict]]) -> dict[str, Belief]:
    """Return the estimates for each series of an implementation whose rounds show a spread."""
    told = [
        (cell.name, list(cell.log_ratios[verdict.implementation].values()))
        for cell, verdict in judged
        if verdict.ratio.error is not None and verdict.ratio.pairs >= FEWEST_PAIRS
    ]
    seen = [
        SeenRatio(len(ratios), float(np.mean(ratios)), float(np.var(ratios, ddof=1)))
        for _, ratios in told
    ]
    return {name: one for (name, _), one in zip(told, beliefs(seen), strict=True)}


def seconds_of_rounds(comparison: Comparison) -> dict[str, float]:
    """Return how long a round of each experiment takes, in s: all its checks, only launches."""
    experiments = {
        launch.record.cell: launch.record.experiment for launch in comparison.campaign.sound()
    }
    found: dict[str, float] = defaultdict(float)
    for (cell, _), seconds in round_seconds(comparison).items():
        found[experiments[cell]] += seconds
    return dict(found)
