"""Made-up campaigns with a budget: through the verdicts and decisions of a real one, no launches.

`tests/analysis/simulation` draws campaigns like a measured one through a loop of its own. Here the
comparison, its groups and the choice of waves are those that campaigns have, and the campaigns are
odd ones.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy
import pytest

from analysis.comparison.compare import ratio_of
from analysis.comparison.families import correct_families, groups_of
from analysis.comparison.result import Cell, Comparison
from analysis.comparison.verdict import Verdict
from analysis.precision import waves
from inference.intervals import PRINTED_STEP
from inference.looks import Looks
from records.events import Ended, Wave

MARGIN = 0.02
LOOKS = Looks()
#: Some launches are lost, and then a cell needs more blocks for its last look.
BLOCKS = 3 * LOOKS.blocks[-1]
Draw = Callable[[numpy.random.Generator, int], numpy.ndarray]


def normal(random: numpy.random.Generator, count: int) -> numpy.ndarray:
    return random.standard_normal(count)


def heavy(random: numpy.random.Generator, count: int) -> numpy.ndarray:
    """Return what has tails of three degrees of freedom."""
    return random.standard_t(3, count)


@dataclass(frozen=True)
class MadeUp:
    """A campaign in which each log ratio is `truth` but for noise.

    Blocks of the checks take 1 to 3 s, and by the share `slower` more for each block so far.
    """

    checks: int = 4
    series: int = 1
    implementations: int = 2
    budget_s: float = 150.0
    truth: float = 0.0
    noise: float = 0.1
    draw: Draw = normal
    #: The share of launches that are lost, beside those that are named: check, other, block.
    lost: float = 0.0
    missing: frozenset[tuple[int, int, int]] = frozenset()
    slower: float = 0.0
    step: float = PRINTED_STEP
    #: Every two are compared; what differs by `truth` from the first one is alike otherwise.
    all_pairs: bool = False

    def campaign(self, random: numpy.random.Generator) -> "Measured":
        """Return one such campaign at its end."""
        others = range(1, self.implementations)
        drawn = self.draw(random, BLOCKS * self.checks * self.series * len(others))
        shape = (self.checks, self.series, len(others), BLOCKS)
        rows = self.truth + self.noise * drawn.reshape(shape)
        is_lost = random.random((self.checks, len(others), BLOCKS)) < self.lost
        for check, other, block in self.missing:
            is_lost[check, other - 1, block] = True
        found = Measured(self, rows, is_lost, dict.fromkeys(range(self.checks), 3))
        found.measure()
        return found


@dataclass
class Measured:
    """A made-up campaign: the log ratios of all blocks, and how many of each check it measured."""

    plan: MadeUp
    rows: numpy.ndarray
    is_lost: numpy.ndarray
    done: dict[int, int]
    looks: Looks = LOOKS
    spent_s: float = 0.0
    ended: Ended | None = None
    waves: list[Wave] = field(default_factory=list)

    def seconds(self) -> dict[str, float]:
        """Return what a block of each check takes by now, in s."""
        slower = 1 + self.plan.slower * sum(self.done.values())
        return {f"Linpack n={check}": (1 + check % 3) * slower for check in self.done}

    def comparison(self) -> Comparison:
        """Return the comparison of the blocks that were measured so far."""
        every = range(self.plan.implementations)
        found = self.compared_with(0, every[1:])
        if self.plan.all_pairs:
            found.among_others = [
                self.compared_with(base, every[base + 1 :]) for base in every[1:-1]
            ]
        correct_families(found.pairs)
        return found

    def compared_with(self, base: int, others: Sequence[int]) -> Comparison:
        """Return the comparison with a base; nothing of the campaign itself is asked for."""
        names = [f"mpi-{place}" for place in range(self.plan.implementations)]
        cells = [
            self.cell(check, series, base, others, names)
            for check in self.done
            for series in range(self.plan.series)
        ]
        groups = groups_of(cells, names[base], self.looks)
        return Comparison(cast(Any, None), names[base], names, cells, groups)

    def cell(
        self, check: int, series: int, base: int, others: Sequence[int], names: Sequence[str]
    ) -> Cell:
        """Return a cell; the first implementation is 1 in each block, and the others as drawn."""
        levels = numpy.vstack([numpy.zeros(BLOCKS), self.rows[check, series]])
        lost = numpy.vstack([numpy.zeros(BLOCKS, bool), self.is_lost[check]])
        ratios = {
            names[other]: {
                block: float(levels[other, block] - levels[base, block])
                for block in range(self.done[check])
                if not (lost[other, block] or lost[base, block])
            }
            for other in others
        }
        verdicts = {
            name: Verdict(
                name, names[base],
                ratio_of(list(own.values()), MARGIN, self.plan.step, self.looks),
                MARGIN, cells=int(bool(own)),
            )
            for name, own in ratios.items()
        }  # fmt: skip
        return Cell(
            f"Linpack n={check} {series}", f"Linpack n={check}", "Linpack", str(series), False,
            {"n": str(check), "grid": "1x1"}, {name: [] for name in names}, verdicts,
            {}, ratios, {}, step=self.plan.step, margin=MARGIN,
        )  # fmt: skip

    def verdicts(self) -> list[Verdict]:
        """Return the verdicts of its cells and groups."""
        pairs = self.comparison().pairs
        every = [one for of in pairs for cell in of.cells for one in cell.verdicts.values()]
        return every + [
            one for of in pairs for group in of.groups for one in group.verdicts.values()
        ]

    def measure(self) -> None:
        """Measure what is decided, until nothing is."""
        design = waves.declared(self.plan.budget_s, 1)
        self.spent_s = 3 * sum(self.seconds().values())
        while self.ended is None:
            series = [one for _, one in waves.open_series(self.comparison())]
            seconds = self.seconds()
            decision = waves.chosen(
                design, series, seconds, self.spent_s, len(self.waves) + 4, max(self.done.values()),
                len(series),
            )  # fmt: skip
            if isinstance(decision, Ended):
                self.ended = decision
                return
            self.waves.append(decision)
            for score in decision.scores:
                self.done[int(score.cell.partition("=")[2])] += score.blocks
                self.spent_s += score.blocks * seconds[score.cell]


def is_false(verdicts: Sequence[Verdict], truth: float) -> bool:
    """Return whether any claim is false: of a difference, its direction, or of equivalence."""
    return any(
        (one.is_different and (truth == 0 or (one.ratio.value > 1) != (truth > 0)))
        or (one.is_equivalent and abs(truth) >= math.log1p(MARGIN) - 1e-12)
        for one in verdicts
    )


ODD = {
    "one cell": MadeUp(checks=1),
    "time for one look more": MadeUp(checks=1, budget_s=9),
    "time for none": MadeUp(budget_s=1),
    "no end of time": MadeUp(checks=2, budget_s=3.6e5),
    "twelve implementations": MadeUp(checks=2, implementations=12, budget_s=60),
    "every two of four": MadeUp(checks=2, implementations=4, budget_s=90, all_pairs=True),
    "series of one launch": MadeUp(checks=2, series=4),
    "a third of launches lost": MadeUp(lost=1 / 3),
    "one lacks a block of the beginning": MadeUp(missing=frozenset({(0, 1, 1)})),
    "one is always lost": MadeUp(missing=frozenset((0, 1, block) for block in range(BLOCKS))),
    "times that grow": MadeUp(slower=0.2),
    "heavy tails": MadeUp(draw=heavy),
    "rounding as wide as the noise": MadeUp(noise=3e-4, step=1e-3),
    "all equal": MadeUp(noise=0.0),
    "all equal, on the margin": MadeUp(noise=0.0, truth=math.log1p(MARGIN)),
    "on the margin": MadeUp(noise=0.002, truth=math.log1p(MARGIN)),
    "a difference that some blocks show": MadeUp(truth=0.15),
}


def misses(verdicts: Sequence[Verdict], truth: float) -> bool:
    """Return whether any simultaneous interval leaves out the true ratio."""
    intervals = [one.interval for one in verdicts if one.interval]
    return any(not one.low <= math.exp(truth) <= one.high for one in intervals)


@pytest.mark.parametrize("trials", [25, pytest.param(600, marks=pytest.mark.long)])
@pytest.mark.parametrize("plan", ODD.values(), ids=ODD)
def test_odd_campaigns_keep_their_level_and_end(plan: MadeUp, trials: int) -> None:
    random, false, missed = numpy.random.default_rng(trials), 0, 0
    for _ in range(trials):
        campaign = plan.campaign(random)
        verdicts = campaign.verdicts()
        false += is_false(verdicts, plan.truth)
        missed += misses(verdicts, plan.truth)
        assert campaign.ended and campaign.ended.why in ("budget", "decided", "hopeless")
        if campaign.waves:
            assert campaign.spent_s <= plan.budget_s
        for one in verdicts:
            assert one.words
            if one.interval:
                low, high = one.interval.low, one.interval.high
                assert low <= one.ratio.value <= high
                assert one.is_different == (not low <= 1 <= high)
    most = 0.05 + 2 * math.sqrt(0.05 * 0.95 / trials)
    assert false / trials <= most and missed / trials <= most


def test_a_campaign_that_looks_without_spending_is_found_out() -> None:
    """What the test above would say if each look had the whole level."""
    looks = Looks.__new__(Looks)
    object.__setattr__(looks, "blocks", LOOKS.blocks)
    object.__setattr__(looks, "shares", (1.0,) * len(LOOKS.blocks))
    random, trials, false = numpy.random.default_rng(3), 100, 0
    for _ in range(trials):
        campaign = MadeUp(checks=1, budget_s=1e4).campaign(random)
        campaign.looks, campaign.done = looks, {0: LOOKS.blocks[-1]}
        false += is_false(campaign.verdicts(), 0.0)
    assert false / trials > 0.05 + 2 * math.sqrt(0.05 * 0.95 / trials)


def test_pairs_in_families_of_their_own_are_found_out() -> None:
    """What the test above would say if pairs without the base were corrected apart."""
    plan = MadeUp(checks=1, implementations=6, budget_s=1, all_pairs=True)
    random, trials, false = numpy.random.default_rng(4), 250, 0
    for _ in range(trials):
        campaign = plan.campaign(random)
        campaign.done = {0: LOOKS.blocks[-1]}
        found = campaign.comparison()
        for one in found.pairs:
            correct_families([one])
        every = [one for of in found.pairs for cell in of.cells for one in cell.verdicts.values()]
        false += is_false(every, 0.0)
    assert false / trials > 0.05 + 2 * math.sqrt(0.05 * 0.95 / trials)


def test_what_has_too_few_blocks_for_a_look_is_of_the_family_already() -> None:
    """Whether it comes to its look depends on what the others show, and so must not the family."""
    random = numpy.random.default_rng(5)
    plan = MadeUp(
        checks=2, budget_s=1, truth=0.3, noise=0.01, missing=frozenset({(0, 1, 1)})
    )  # fmt: skip
    campaign = plan.campaign(random)
    assert campaign.ended and campaign.done == {0: 3, 1: 3}
    found = campaign.comparison()
    short, whole = (cell.verdicts["mpi-1"] for cell in found.cells)
    assert short.words == "inconclusive (2 paired rounds, before the first look)"
    [over] = [group.verdicts["mpi-1"] for group in found.groups]
    # Three of them: this cell's, the other one's and the group's, which has not come to a look.
    assert over.ratio.interval is None
    assert whole.ratio.p_value is not None and whole.ratio.p_value < 0.04 / 3
    assert whole.adjusted_p == pytest.approx(3 * whole.ratio.p_value)


def test_a_clear_difference_is_shown_by_each_of_twelve() -> None:
    plan = MadeUp(checks=2, implementations=12, truth=1.0, noise=0.02)
    campaign = plan.campaign(numpy.random.default_rng(6))
    assert campaign.ended and campaign.ended.why == "decided"
    assert {one.words for one in campaign.verdicts()} == {"faster"}


def test_equal_blocks_are_decided_when_enough_of_them_agree() -> None:
    """By signs: of one comparison six differ by chance with less than 4%, spent over looks."""
    campaign = MadeUp(checks=1, truth=0.5, noise=0.0).campaign(numpy.random.default_rng(7))
    [verdict, _] = campaign.verdicts()
    assert verdict.words == "faster" and verdict.interval is None
    assert campaign.ended and campaign.ended.why == "decided" and campaign.done[0] > 6
