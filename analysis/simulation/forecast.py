"""What share of a campaign's series another one with a budget would probably decide.

The other campaign is simulated, a few times, with what this one's rounds saw: true log ratios as
they are believed after them (`inference.outlook`), and the noise that they showed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean

import numpy as np

from analysis.comparison.result import Comparison
from analysis.precision.outlook import beliefs_of
from analysis.precision.rounds_needed import round_seconds
from analysis.simulation.designs import Component, drawn, race, rounds
from inference.looks import Looks
from inference.outlook import Belief

#: How many campaigns are simulated: the share is then known to a few hundredths.
TRIALS = 20


def seconds_of_blocks(comparison: Comparison, round_s: float) -> dict[str, float]:
    """Return how long a block of each cell takes in s, of rounds that take `round_s` in all.

    What is between launches is spread over them by their length.
    """
    found: dict[str, float] = {}
    for (cell, _), seconds in round_seconds(comparison).items():
        found[cell] = found.get(cell, 0.0) + seconds
    whole = math.fsum(found.values())
    return {cell: seconds * round_s / whole for cell, seconds in found.items()} if whole else {}


def believed(
    comparison: Comparison, seconds: Mapping[str, float]
) -> tuple[list[Component], list[Belief]]:
    """Return the judged series whose rounds show a spread, and what is assumed about them."""
    parts: list[Component] = []
    found: list[Belief] = []
    for experiment in dict.fromkeys(cell.experiment for cell in comparison.cells):
        cells = {cell.name: cell for cell in comparison.experiment(experiment)}
        for name in comparison.implementations:
            judged = [
                (cell, verdict)
                for cell in cells.values()
                if (verdict := cell.verdicts.get(name)) and not verdict.unjudged
            ]
            for series, belief in beliefs_of(judged).items():
                cell = cells[series]
                check = cell.launch_cell
                if check not in seconds:
                    continue
                parts.append(
                    Component(
                        experiment, check, f"{series} {name}", cell.margin, belief.mean,
                        math.sqrt(belief.variance), 0.0, seconds[check], seconds[check],
                    )
                )  # fmt: skip
                found.append(belief)
    return parts, found


def share_decided(
    comparison: Comparison,
    round_s: float,
    budget_s: float,
    begin: int,
    fewest: float,
    seed: int = 1,
) -> float | None:
    """Return the expected share of judged series that a campaign with a budget decides.

    A round takes `round_s`. Below `fewest` rounds of everything it has `begin` of all, below
    `begin` of them a share of that. None where the rounds show no spread.
    """
    parts, beliefs = believed(comparison, seconds_of_blocks(comparison, round_s))
    if not parts:
        return None
    looks = Looks()
    design = race(budget_s, looks) if budget_s >= fewest * round_s else rounds(begin)
    random = np.random.default_rng(seed)
    shares = []
    for _ in range(TRIALS):
        drawn_truth = [random.normal(one.mean, math.sqrt(one.uncertainty)) for one in beliefs]
        claims = design(drawn(parts, np.array(drawn_truth), "normal", random, looks))
        shares.append(claims.decided)
    measured = min(1.0, budget_s / (begin * round_s))
    return fmean(shares) * measured
