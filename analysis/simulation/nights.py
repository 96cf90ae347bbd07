"""`python -m analysis.simulation.nights`: how often nights give a false alarm, and find a slowdown.

A night's level of a cell is a median over rounds; here it is drawn as one number, scattered by
`spread` from night to night. What is measured again has noise of its own, and of a `shared` part
of the variance that of its night: a machine that is busy for hours is busy for all three. The noise
is that of analysis.simulated_coverage, and `lasting nights`: each leans on the one before by half.
The same functions decide as for nights that were measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

import numpy as np
import typer

from analysis.comparison.verdict import Verdict
from analysis.history.series import against_earlier
from analysis.history.two_campaigns import ComparedCell
from analysis.nights.judging import AGAIN, confirmed, tripping
from analysis.simulation.coverage import NOISES, autocorrelated

MARGIN = 0.02
CELLS = 10
#: The experiment named in the rows decides nothing here.
EXPERIMENT = "PointToPoint"


def rows_of_night(levels: np.ndarray, before: np.ndarray) -> list[ComparedCell]:
    """Return the rows of a night, a cell each; `before` has a line for each earlier night."""
    rows = []
    for cell, level in enumerate(levels):
        ratio = against_earlier(float(level), before[:, cell], MARGIN, len(levels))
        rows.append(
            ComparedCell(str(cell), EXPERIMENT, Verdict("simulated", "earlier", ratio, MARGIN))
        )
    return rows


def alarm(levels: np.ndarray, again: np.ndarray, before: np.ndarray) -> tuple[bool, np.ndarray]:
    """Return whether a night's cells trip at all, and which of them are confirmed.

    `again` has what measuring again would give, a line for each time.
    """
    trips = np.array(tripping(rows_of_night(levels, before)))
    if not trips.any():
        return False, trips
    middle = np.where(trips, np.median(np.vstack([levels, again]), axis=0), levels)
    return True, trips & np.array(confirmed(rows_of_night(middle, before)))


def noise_of(
    random: np.random.Generator, kind: str, nights: int, cells: int, shared: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return standard noise of nights (nights, cells) and of measuring again (nights, 2, cells)."""
    if kind == "lasting nights":
        whole = autocorrelated(random, cells, nights, 0.5).T
        return whole, np.stack([whole] * AGAIN, axis=1)
    draw = NOISES[kind]
    common, _ = draw(random, nights, cells)
    own, _ = draw(random, nights * (1 + AGAIN), cells)
    own = own.reshape(nights, 1 + AGAIN, cells)
    drawn = math.sqrt(shared) * common[:, None, :] + math.sqrt(1 - shared) * own
    # Levels are better upwards, and what disturbs makes things slower.
    return -drawn[:, 0], -drawn[:, 1:]


def false_alarms(
    kind: str, nights: int, cells: int, trials: int, *, shared: float = 0.0, spread: float = 0.02,
    before: int = 0, seed: int = 11,
) -> tuple[float, float]:  # fmt: skip
    """Return how often so many nights have any false alarm, and how many nights in each trip.

    `before` earlier nights are there when the counted ones begin; none is held against fewer than
    three, whatever is counted.
    """
    random = np.random.default_rng(seed)
    wrong, tripped = 0, 0
    for _ in range(trials):
        drawn = noise_of(random, kind, before + nights, cells, shared)
        levels, again = (spread * one for one in drawn)
        found = False
        for night in range(max(before, 3), before + nights):
            trips, bad = alarm(levels[night], again[night], levels[:night])
            tripped += trips
            found = found or bool(bad.any())
        wrong += found
    return wrong / trials, tripped / trials


def found_slowdowns(
    kind: str, before: int, cells: int, trials: int, *, slowdown: float = 0.1,
    spread: float = 0.01, shared: float = 0.0, seed: int = 12,
) -> float:  # fmt: skip
    """Return how often a slowdown of one cell, a share of the time, is confirmed on its night."""
    random = np.random.default_rng(seed)
    found = 0
    for _ in range(trials):
        levels, again = noise_of(random, kind, before + 1, cells, shared)
        levels, again = spread * levels, spread * again
        levels[before, 0] -= math.log1p(slowdown)
        again[before, :, 0] -= math.log1p(slowdown)
        found += bool(alarm(levels[before], again[before], levels[:before])[1][0])
    return found / trials


def table(trials: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield what is asked, the noise, of what, and the answer."""
    for kind, shared in (("normal", 0.0), ("normal", 0.5), ("normal", 1.0), ("lognormal", 0.0),
                         ("bursts", 0.0), ("bursts", 1.0), ("lasting nights", 1.0)):  # fmt: skip
        wrong, tripped = false_alarms(kind, 30, CELLS, trials, shared=shared)
        of = f"{CELLS} cells, {shared:.0%} of the variance is the night's"
        yield "any false alarm in 30 nights", kind, of, f"{wrong:.1%}"
        yield "nights of 30 that measure again", kind, of, f"{tripped:.2f}"
    for before in (5, 10, 30):
        for cells in (1, 100):
            for spread in (0.01, 0.02):
                share = found_slowdowns("normal", before, cells, trials, spread=spread)
                of = f"{before} nights before, {cells} cells, {spread:.0%} from night to night"
                yield "a slowdown of 10% found on its night", "normal", of, f"{share:.1%}"


def main(trials: Annotated[int, typer.Option(help="simulated series of nights")] = 1000) -> None:
    """Print how often nights are wrong, and how often they find what they should."""
    if trials < 1:
        raise typer.BadParameter("at least one is needed", param_hint="--trials")
    print("| what | noise | of | share |\n|---|---|---|---|")
    for row in table(trials):
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
