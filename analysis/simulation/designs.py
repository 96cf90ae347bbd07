"""`python -m analysis.simulation.designs`: what designs of a campaign decide in the same time.

Simulated with the variances, effects and costs of a measured campaign (`components.csv`: a row a
series; one campaign of three rounds with two implementations on a noisy virtual machine of two
cores, effects shrunken within each experiment). Its tails are not fitted: the five noises of
`analysis.simulation.coverage` stand for what a machine may have.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated

import numpy as np
import typer

from analysis.comparison.compare import ratio_of
from analysis.simulation.coverage import NOISES
from inference import families as claiming
from inference.allocation import OpenSeries, next_wave, scores
from inference.families import FamilyClaim
from inference.intervals import PRINTED_STEP, holm, paired_ratio
from inference.looks import NOTHING_SEEN, AnytimeP, Looks, anytime_p

COMPONENTS = Path(__file__).with_name("components.csv")
#: The level of an experiment's family, for false differences and false equivalences together.
DIFFERENCE_LEVEL, EQUIVALENCE_LEVEL = 0.04, 0.01
#: The time that the compared launches of the measured campaign took.
BUDGET_S = 644.0
WAVE_S = 30.0
#: How much smaller the noise is where equivalence is examined.
QUIETER = 40.0
#: The number of blocks that every check begins with.
BEGIN = 3


@dataclass(frozen=True)
class Component:
    """A series of the measured campaign."""

    experiment: str
    check: str
    series: str
    margin: float
    effect: float
    deviation: float
    #: The share of its variance that it has in common with the other series of its launch.
    common: float
    #: Of both implementations' launches together, without one library's needless wait.
    seconds_a_block: float
    seconds_with_wait: float


def components() -> list[Component]:
    """Return the series of the measured campaign."""
    with COMPONENTS.open(newline="") as file:
        return [
            Component(
                row["experiment"], row["check"], row["series"], float(row["margin"]),
                float(row["shrunken_log_ratio"]), float(row["pair_sd_of_experiment"]),
                float(row["share_common_to_a_launch"]),
                float(row["seconds_a_block_without_wait"]), float(row["seconds_a_block"]),
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip


@dataclass(frozen=True)
class SimulatedCampaign:
    """A possible campaign: for each series, the log ratios of a number of blocks."""

    parts: Sequence[Component]
    #: (series, blocks).
    logarithms: np.ndarray


@dataclass(frozen=True)
class DesignClaims:
    """What a design says about each series: how its ratio differs, or that it is equivalent."""

    differs: np.ndarray
    equals: np.ndarray
    blocks: np.ndarray

    @property
    def decided(self) -> float:
        """Return the share of series that are decided."""
        return float(np.mean(self.differs | self.equals))


SimulatedDesign = Callable[[SimulatedCampaign], DesignClaims]


def drawn(
    parts: Sequence[Component], truth: np.ndarray, noise: str, random: np.random.Generator,
    looks: Looks,
) -> SimulatedCampaign:  # fmt: skip
    """Return a campaign with true log ratios, long enough for the last look."""
    blocks = looks.blocks[-1]
    draw = NOISES[noise]

    def standard(count: int) -> np.ndarray:
        of, base = draw(random, count, blocks)
        return np.asarray(of - base) / math.sqrt(2)

    checks = {check: place for place, check in enumerate(dict.fromkeys(p.check for p in parts))}
    common = standard(len(checks))[[checks[part.check] for part in parts]]
    share = np.array([part.common for part in parts])[:, None]
    own = standard(len(parts))
    scale = np.array([part.deviation for part in parts])[:, None]
    data = truth[:, None] + scale * (np.sqrt(share) * common + np.sqrt(1 - share) * own)
    return SimulatedCampaign(parts, data)


def families(parts: Sequence[Component]) -> dict[str, list[int]]:
    """Return the places of each experiment's series."""
    found: dict[str, list[int]] = {}
    for place, part in enumerate(parts):
        found.setdefault(part.experiment, []).append(place)
    return found


def claims_of(
    parts: Sequence[Component], p_values: Sequence[AnytimeP], blocks: np.ndarray
) -> DesignClaims:
    """Return what Holm's procedure claims in each experiment, each kind at its own level."""
    differs, equals = np.zeros(len(parts), bool), np.zeros(len(parts), bool)
    for members in families(parts).values():
        of_difference = holm([p_values[i].difference for i in members])
        of_equivalence = holm([p_values[i].equivalence for i in members])
        for place, p, q in zip(members, of_difference, of_equivalence, strict=True):
            differs[place], equals[place] = p <= DIFFERENCE_LEVEL, q <= EQUIVALENCE_LEVEL
    return DesignClaims(differs, equals, blocks)


def rounds(count: int) -> SimulatedDesign:
    """Return the design of a number of rounds of everything, and one test at their end."""

    def measure(campaign: SimulatedCampaign) -> DesignClaims:
        seen = [
            paired_ratio(row[:count], margin=part.margin)
            for part, row in zip(campaign.parts, campaign.logarithms.tolist(), strict=True)
        ]
        p_values = [AnytimeP(one.p_value or 0.0, one.equivalence_p or 0.0) for one in seen]
        return claims_of(campaign.parts, p_values, np.full(len(seen), count))

    return measure


def rounds_with_one_level(count: int) -> SimulatedDesign:
    """Return the design of rounds with both kinds of claims in one family at 5%.

    It is what waves by expected decisions took the place of.
    """

    def measure(campaign: SimulatedCampaign) -> DesignClaims:
        parts = campaign.parts
        seen = [
            paired_ratio(row[:count], margin=part.margin)
            for part, row in zip(parts, campaign.logarithms.tolist(), strict=True)
        ]
        differs, equals = np.zeros(len(parts), bool), np.zeros(len(parts), bool)
        for members in families(parts).values():
            found = [seen[i].p_value or 0.0 for i in members]
            found += [seen[i].equivalence_p or 0.0 for i in members]
            shown = [p <= DIFFERENCE_LEVEL + EQUIVALENCE_LEVEL for p in holm(found)]
            for at, place in enumerate(members):
                differs[place], equals[place] = shown[at], shown[len(members) + at]
        return DesignClaims(differs, equals, np.full(len(seen), count))

    return measure


def race(budget_s: float, looks: Looks, wait: bool = False) -> SimulatedDesign:
    """Return the design that measures, wave by wave, what is likely to be decided soonest."""

    def measure(campaign: SimulatedCampaign) -> DesignClaims:
        parts = campaign.parts
        rows = campaign.logarithms.tolist()
        cost = {p.check: p.seconds_with_wait if wait else p.seconds_a_block for p in parts}
        done = dict.fromkeys(cost, BEGIN)
        left = budget_s - BEGIN * sum(cost.values())
        seen: dict[str, Seen] = {}
        while True:
            for place, part in enumerate(parts):
                before = seen.get(part.series, UNSEEN)
                if before.blocks != done[part.check]:
                    row = rows[place][: done[part.check]]
                    mean = fmean(row)
                    # `statistics.variance` is exact, and takes a third of all time here.
                    spread = math.fsum((one - mean) ** 2 for one in row) / (len(row) - 1)
                    p_values = anytime_p(
                        row, part.margin, looks, before=before.p, blocks_before=before.blocks
                    )
                    seen[part.series] = Seen(len(row), mean, spread, p_values)
            now = [seen[part.series] for part in parts]
            claims = claims_of(parts, [one.p for one in now], np.array([n.blocks for n in now]))
            ranked = scores(standings(parts, claims, now), cost, looks, left)
            wave = next_wave(ranked, left, WAVE_S)
            if not wave:
                return claims
            for score in wave:
                done[score.check] += score.blocks
                left -= score.seconds

    return measure


@dataclass(frozen=True)
class Seen:
    """What the blocks of a series show so far about the logarithms of their ratios."""

    blocks: int
    mean: float
    variance: float
    p: AnytimeP


UNSEEN = Seen(0, math.nan, math.nan, NOTHING_SEEN)


def standings(
    parts: Sequence[Component], claims: DesignClaims, seen: Sequence[Seen]
) -> list[OpenSeries]:
    """Return the open series as allocation sees them."""
    found = []
    for members in families(parts).values():
        open_for = [len(members) - int(shown[members].sum()) for shown in
                    (claims.differs, claims.equals)]  # fmt: skip
        for place in members:
            if claims.differs[place] or claims.equals[place]:
                continue
            part, one = parts[place], seen[place]
            found.append(
                OpenSeries(
                    part.check, part.experiment, one.blocks, one.mean, one.variance, part.margin,
                    DIFFERENCE_LEVEL / open_for[0], EQUIVALENCE_LEVEL / open_for[1],
                )
            )  # fmt: skip
    return found


def shares_decided(
    design: SimulatedDesign, noise: str, trials: int, looks: Looks, seed: int = 1
) -> tuple[float, float, float]:
    """Return the number of series a design decides, of all and of those that differ by 10% or more.

    The third is how many blocks a series has in the mean.
    """
    parts = components()
    truth = np.array([part.effect for part in parts])
    large = np.abs(truth) >= math.log(1.1)
    random = np.random.default_rng(seed)
    found = []
    for _ in range(trials):
        claims = design(drawn(parts, truth, noise, random, looks))
        shown = claims.differs | claims.equals
        found.append((claims.decided, float(shown[large].mean()), float(claims.blocks.mean())))
    decided, of_large, blocks = np.mean(found, axis=0)
    return float(decided), float(of_large), float(blocks)


def false_claims(
    design: SimulatedDesign, noise: str, trials: int, looks: Looks, at_margin: bool, seed: int = 2
) -> dict[str, float]:
    """Return in what share of campaigns each experiment has any false claim.

    Where nothing differs every difference is false; where all series are exactly at the margin,
    every equivalence is. There noise is so small that equivalence could be shown: at the measured
    one it never is, and no test of it could fail.
    """
    parts = components()
    if at_margin:
        parts = [replace(part, deviation=part.deviation / QUIETER) for part in parts]
    margins = np.array([math.log1p(part.margin) for part in parts])
    truth = margins if at_margin else np.zeros(len(parts))
    random = np.random.default_rng(seed)
    wrong = {experiment: 0 for experiment in families(parts)}
    for _ in range(trials):
        campaign = drawn(parts, truth, noise, random, looks)
        found = verdicts(campaign, design(campaign).blocks, looks)
        for experiment, members in families(parts).items():
            wrong[experiment] += any(
                found[i].is_equivalent if at_margin else found[i].is_different for i in members
            )
    return {experiment: count / trials for experiment, count in wrong.items()}


def verdicts(campaign: SimulatedCampaign, blocks: np.ndarray, looks: Looks) -> list[FamilyClaim]:
    """Return what is said of each series of a campaign that measured so many blocks of it.

    By what real campaigns are judged by, also if the design chose by p values of its own.
    """
    parts = campaign.parts
    ratios = [
        ratio_of(row[:count].tolist(), part.margin, PRINTED_STEP, looks)
        for part, row, count in zip(parts, campaign.logarithms, blocks, strict=True)
    ]
    found: dict[int, FamilyClaim] = {}
    for members in families(parts).values():
        claims = claiming.claims([ratios[i] for i in members])
        found |= dict(zip(members, claims, strict=True))
    return [found[place] for place in range(len(parts))]


def uncovered(
    design: SimulatedDesign, noise: str, trials: int, looks: Looks, seed: int = 3
) -> dict[str, float]:
    """Return in what share of campaigns an experiment has any interval without the true ratio."""
    parts = components()
    truth = np.array([part.effect for part in parts])
    random = np.random.default_rng(seed)
    missed = {experiment: 0 for experiment in families(parts)}
    for _ in range(trials):
        campaign = drawn(parts, truth, noise, random, looks)
        found = verdicts(campaign, design(campaign).blocks, looks)
        for experiment, members in families(parts).items():
            intervals = ((truth[i], found[i].interval) for i in members)
            missed[experiment] += any(
                interval is not None and not interval.low <= math.exp(value) <= interval.high
                for value, interval in intervals
            )
    return {experiment: count / trials for experiment, count in missed.items()}


def table(trials: int, budget_s: float) -> Iterator[str]:
    """Yield the rows of a table: what each design decides, under each noise."""
    looks = Looks()
    designs = {
        "3 rounds of everything": rounds(3),
        "5 rounds of everything": rounds(5),
        f"waves by expected decisions, {budget_s:.0f} s": race(budget_s, looks),
        f"the same in {2 * budget_s:.0f} s": race(2 * budget_s, looks),
    }
    noises = " | ".join(NOISES)
    yield f"| decided, of {len(components())} series | {noises} | of 10% and more, normal |"
    yield "|" + "---|" * (len(NOISES) + 2)
    for words, design in designs.items():
        found = {noise: shares_decided(design, noise, trials, looks) for noise in NOISES}
        cells = [f"{decided:.1%}" for decided, _, _ in found.values()]
        yield f"| {words} | {' | '.join(cells)} | {found['normal'][1]:.1%} |"
    race_of_budget = race(budget_s, looks)
    for words, at_margin in (("nothing differs", False), ("everything on the margin", True)):
        cells = []
        for noise in NOISES:
            false = false_claims(race_of_budget, noise, trials, looks, at_margin).values()
            cells.append(f"{fmean(false):.1%} ({max(false):.1%})")
        yield f"| any false claim in an experiment, {words} | {' | '.join(cells)} | |"


def main(
    trials: Annotated[int, typer.Option(min=1, help="campaigns of each kind")] = 200,
    budget: Annotated[float, typer.Option(min=1, help="seconds of launches")] = BUDGET_S,
) -> None:
    """Print what designs of a campaign decide in the same time, simulated."""
    for line in table(trials, budget):
        print(line, flush=True)


if __name__ == "__main__":
    typer.run(main)
