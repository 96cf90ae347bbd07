"""What a comparison found: cells with their verdicts, and the groups that they are judged in."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from analysis.comparison.cells import Limited, Values
from analysis.comparison.metrics import metrics
from analysis.comparison.verdict import Verdict
from analysis.tables.launch_names import LaunchNames
from inference.estimates import Estimate
from inference.intervals import FEWEST_PAIRS, PRINTED_STEP
from records.campaign import Campaign
from records.launch import RANGE

#: Why verdicts are not given.
OVERSUBSCRIBED = "oversubscribed"
UNFINISHED = "not finished"


@dataclass
class Cell:
    """A cell's estimates by implementation, and the verdicts against the base.

    Where a launch measures several series, each is compared as a cell of its own. In an
    oversubscribed cell ranks waited for processors, since there were more of them.
    """

    name: str
    #: The cell of its launches: its own without the series.
    launch_cell: str
    experiment: str
    series: str
    oversubscribed: bool
    parameters: dict[str, Any]
    estimates: dict[str, list[Estimate]]
    verdicts: dict[str, Verdict]
    seconds: dict[str, float]
    log_ratios: dict[str, dict[int, float]]
    #: The single launches, by implementation, at the message sizes asked for.
    values: dict[str, Values]
    #: The same at sizes that a program added between them: in estimates, in no ratio or rank.
    refined: dict[str, Values] = field(default_factory=dict)
    #: The coarsest step of its values, as a fraction of them.
    step: float = PRINTED_STEP
    #: How far from 1 a ratio may be to be called equivalent, as a share.
    margin: float = 0.0

    def message_sizes(self) -> list[int]:
        """Return the message sizes in bytes that any implementation was measured at."""
        return sorted({e.message_bytes for es in self.estimates.values() for e in es})

    def estimate(self, implementation: str, message_bytes: int) -> Estimate | None:
        """Return an implementation's estimate at a message size, if there is one."""
        for found in self.estimates.get(implementation, []):
            if found.message_bytes == message_bytes:
                return found
        return None

    def ranked(self) -> list[str]:
        """Return the implementations, the best first, by the mean logarithm of their medians.

        Over the requested message sizes that all of them have; without any there is no order.
        """
        higher = metrics()[self.experiment]["better"] == "higher"
        own = [set().union(*self.values[name].values()) for name in self.estimates]
        common = set.intersection(*own) if own else set()
        if not common:
            return []
        score = {
            name: sum(math.log(one.median) for one in found if one.message_bytes in common)
            for name, found in self.estimates.items()
        }
        return sorted(score, key=lambda name: -score[name] if higher else score[name])


@dataclass(frozen=True)
class GroupKey:
    """What a group is known by in all campaigns, whatever its name says."""

    experiment: str
    #: What all its cells have.
    parameters: tuple[tuple[str, str], ...]
    #: The numbers that it covers where its cells differ in one, as process start-up in ranks.
    over: tuple[int, ...] = ()
    #: Whether cells are missing from it because they are oversubscribed.
    is_part: bool = False


@dataclass
class Group:
    """Cells that belong together, and one verdict over them for each implementation.

    `left_out` has the names of the cells that an implementation's verdict leaves out although both
    have them: too few rounds have their checks.
    """

    name: str
    key: GroupKey
    experiment: str
    cells: list[Cell]
    verdicts: dict[str, Verdict]
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def judged(self, implementation: str) -> list[Cell]:
        """Return the cells that the verdict on an implementation covers."""
        return judged_cells(self.cells, implementation)


@dataclass(frozen=True)
class LimitedPoint:
    """What is too short to be compared, in a cell of an implementation."""

    cell: str
    experiment: str
    implementation: str
    point: Limited
    #: The cell without its series.
    measured_in: str


@dataclass
class Comparison:
    """All cells of a campaign that can be compared; none of them includes what is `limited`.

    Verdicts are against the base; other pairs have theirs in the comparisons `among_others`.
    """

    campaign: Campaign
    base: str
    implementations: list[str]
    cells: list[Cell]
    groups: list[Group]
    limited: list[LimitedPoint] = field(default_factory=list)
    #: The comparisons of the others with each other, in a campaign of all pairs.
    among_others: list[Comparison] = field(default_factory=list)

    @property
    def pairs(self) -> list[Comparison]:
        """Return all comparisons that are corrected together, that with the base first."""
        return [self, *self.among_others]

    @property
    def groups_of_pairs(self) -> list[Group]:
        """Return the groups of all these comparisons; those of one key follow one another."""
        found = [group for one in self.pairs for group in one.groups]
        order = {key: place for place, key in enumerate(dict.fromkeys(g.key for g in found))}
        return sorted(found, key=lambda group: order[group.key])

    @cached_property
    def launch_names(self) -> LaunchNames:
        """Return the names of the launches; many tables ask for them."""
        return LaunchNames(self.campaign)

    def experiment(self, name: str) -> list[Cell]:
        """Return the cells of one experiment."""
        return [cell for cell in self.cells if cell.experiment == name]


def judged_cells(members: Sequence[Cell], other: str) -> list[Cell]:
    """Return those cells of a group that its verdict covers, if both have them.

    A check with all series in fewer than two rounds shows no spread, and would take the
    verdict from all others. If all checks are like that, it covers all, and is inconclusive.
    """
    # What an implementation lacks altogether is compared in no round.
    having = [cell for cell in members if cell.log_ratios.get(other)]
    enough = enough_rounds([(cell.launch_cell, [cell.log_ratios[other]]) for cell in having])
    return [cell for cell, is_judged in zip(having, enough, strict=True) if is_judged]


def enough_rounds(series: Sequence[tuple[str, Sequence[Collection[int]]]]) -> list[bool]:
    """Return which series of a group can be judged, each with its check and its sides' rounds.

    A series needs two rounds on each side, and its check two that all such series have. If none
    has, all are returned.
    """
    enough = [min(map(len, sides)) >= FEWEST_PAIRS for _, sides in series]
    common: dict[str, list[set[int]]] = {}
    for (check, sides), is_enough in zip(series, enough, strict=True):
        if is_enough:
            known = common.setdefault(check, [set(side) for side in sides])
            for place, side in enumerate(sides):
                known[place] &= set(side)
    whole = {c for c, sides in common.items() if min(map(len, sides)) >= FEWEST_PAIRS}
    found = [ok and check in whole for (check, _), ok in zip(series, enough, strict=True)]
    return found if any(found) else [True] * len(series)


def unjudged_names(members: Sequence[Cell], other: str) -> list[str]:
    """Return the names of the cells of a group that both have and no verdict covers."""
    judged = {cell.name for cell in judged_cells(members, other)}
    return [c.name for c in members if c.log_ratios.get(other) and c.name not in judged]


def curve_title(cell: Cell) -> str:
    """Return the name of the curve that a cell is on: all ranges of sizes are one."""
    kept = [f"{key}={value}" for key, value in cell.parameters.items() if key != RANGE]
    return " ".join([cell.experiment, *kept, cell.series]).rstrip()
