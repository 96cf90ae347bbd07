"""Which implementation to use for what: who is shown slower than another, and who is not.

Every two are compared, in one family per experiment. Each of several campaigns has families of its
own, so the chance that some of them shows something false grows with their number.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from analysis.comparison.compare import compare_all_pairs
from analysis.comparison.result import Comparison, Group, GroupKey
from analysis.tables.table import COUNT, Column, Row, Table
from records.campaign import Campaign

#: The table's name.
NAME = "winners"


@dataclass
class Contest:
    """A group of cells, and in how many campaigns an implementation was compared and beaten.

    It is beaten if another is shown to be faster. `scores` are, for each campaign, the logarithm of
    its mean ratio to the others minus that of the best one there, 0 or less.
    """

    name: str
    experiment: str
    compared: Counter[str] = field(default_factory=Counter)
    beaten: Counter[str] = field(default_factory=Counter)
    scores: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def best_first(self) -> list[str]:
        """Return the implementations, the best mean score first."""
        return sorted(self.compared, key=lambda one: (-fmean(self.scores[one] or [-99.0]), one))

    def unbeaten(self) -> list[str]:
        """Return those that no campaign shows to be slower than another, the best first."""
        return [name for name in self.best_first() if not self.beaten[name]]


def contests(campaigns: Sequence[Sequence[Comparison]]) -> list[Contest]:
    """Return what was contested in campaigns, each given by its comparisons of all pairs."""
    found: dict[GroupKey, Contest] = {}
    for campaign in campaigns:
        alike: dict[GroupKey, list[Group]] = defaultdict(list)
        for one in campaign:
            for group in one.groups:
                alike[group.key].append(group)
        for key, groups in alike.items():
            contest = found.setdefault(key, Contest(groups[0].name, key.experiment))
            add(contest, groups)
    return [one for one in found.values() if one.compared]


def add(contest: Contest, groups: Sequence[Group]) -> None:
    """Add what a campaign's comparisons of every two say of the group of a contest."""
    verdicts = [one for group in groups for one in group.verdicts.values() if one.ratio.pairs]
    own: dict[str, list[float]] = defaultdict(list)
    for one in verdicts:
        faster = math.log(one.ratio.value)
        own[one.implementation].append(faster)
        own[one.base].append(-faster)
    names = sorted(own)
    contest.compared.update(names)
    contest.beaten.update(
        {one.base if one.ratio.value > 1 else one.implementation
         for one in verdicts if one.is_different}
    )  # fmt: skip
    levels = {name: fmean(logarithms) for name, logarithms in own.items()}
    for name in names:
        contest.scores[name].append(levels[name] - max(levels.values()))


def winners_table(campaigns: Sequence[Campaign]) -> Table:
    """Return for each group of cells which implementation wins, or which are tied."""
    names = {name for campaign in campaigns for name in campaign.manifest.images}
    return winners_of([compare_all_pairs(campaign) for campaign in campaigns], sorted(names))


def winners_of(campaigns: Sequence[Sequence[Comparison]], names: Sequence[str]) -> Table:
    """Return the winners of campaigns, each given by its comparisons of all pairs."""
    columns = (
        Column("experiment"),
        Column("group", "for what"),
        Column("campaigns", "campaigns", COUNT, "1"),
        Column("winner", "winner"),
        Column("tied", "tied, the best measured first"),
        Column("slower", "shown slower than another"),
    )
    rows = []
    for one in contests(campaigns):
        best, most = one.unbeaten(), max(one.compared.values())
        tied = [
            name if one.compared[name] == most else f"{name} (compared in {one.compared[name]})"
            for name in best
        ]
        slower = [
            name if most == 1 else f"{name} (in {one.beaten[name]} of {one.compared[name]})"
            for name in one.best_first()
            if one.beaten[name]
        ]
        winner = best[0] if len(best) == 1 else None
        words = None if winner else ", ".join(tied) or None
        values = (one.experiment, one.name, most, winner, words, ", ".join(slower) or None)
        rows.append(Row(values))
    notes = [
        f"Every two of {', '.join(names)} are compared over the cells that both have; all pairs, "
        "cells and groups of an experiment are one family. The winner is the only one that is not "
        "shown to be slower than another. Where several are not, they are tied; their order is as "
        "measured and claims nothing.",
    ]
    if len(campaigns) > 1:
        notes.append(
            f"Over {len(campaigns)} campaigns: an implementation counts as slower if any of them "
            "shows it. Each may be wrong in 5% of experiments, so together they are wrong more "
            "often."
        )
    return Table(NAME, "Which implementation to use", columns, rows, notes)
