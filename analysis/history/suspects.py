"""Why two campaigns differ: what moved, and what else differs, the largest suspect first.

The score of a suspect is the product of how much its kind is known to move results (`moves` of
comparability.yaml), how much it changed (a number fully from a doubling on, a condition of the
launches from `full` on; a word or digest always fully; what one campaign does not know by half),
and the share of what moved that it can affect: a suspect in one image does not explain what moved
in another. Among equals the one that affects fewer cells comes first: the others would have moved
more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from analysis.comparison.caveats.comparability import Discrepancy, launch_differences, rules
from analysis.history.lost_cells import counted
from analysis.history.two_campaigns import (
    CampaignComparison,
    ComparedCell,
    IncomparableError,
    compare_campaigns,
    known_differences,
    pairs_of,
)
from records.campaign import Campaign

RULE = (
    "Ordered by how much a change of this kind is known to move results (1 to 4, "
    "analysis/comparison/caveats/comparability.yaml) x how much it changed x the share of what "
    "moved that it can affect; among equals, the one that can affect the fewest other cells "
    "comes first. A suspect is not proof: measure again with only that changed."
)
UNKNOWN = 0.5


@dataclass(frozen=True)
class PossibleCause:
    """A difference and the cells it can affect: (cell, implementation); None means all."""

    difference: Discrepancy
    cells: frozenset[tuple[str, str]] | None = None

    def concerns(self, row: ComparedCell) -> bool:
        """Return whether this can have moved a cell of an implementation."""
        rule = self.difference.rule
        if rule.experiments and row.experiment not in rule.experiments:
            return False
        if rule.between_nodes and row.nodes == 1:
            return False
        implementation = row.verdict.implementation
        if self.cells is not None:
            return (row.cell, implementation) in self.cells
        return self.difference.implementation in ("", implementation)

    @property
    def extent(self) -> float:
        """Return how much it changed, from 0 to 1."""
        before, after = self.difference.before, self.difference.after
        if before is None or after is None:
            return UNKNOWN
        if self.difference.rule.full is not None:
            return min(1.0, abs(float(after) - float(before)) / self.difference.rule.full)
        numbers = [value for value in (before, after) if type(value) in (int, float)]
        if len(numbers) == 2 and min(numbers) > 0:
            return min(1.0, abs(math.log(after / before)) / math.log(2))
        return 1.0

    def share(self, moved: Sequence[ComparedCell]) -> float:
        """Return the share of what moved that it can affect; all, if no cells are known."""
        if not moved or self.difference.rule.effect == "refuse":
            return 1.0
        return sum(map(self.concerns, moved)) / len(moved)

    def score(self, moved: Sequence[ComparedCell]) -> float:
        """Return how suspect it is, from 0 to 4."""
        return self.difference.rule.moves * self.extent * self.share(moved)


@dataclass
class Explanation:
    """What moved, cell by cell, and the suspects, the largest first; `nothing` says why no rows."""

    suspects: list[PossibleCause]
    comparison: CampaignComparison | None
    nothing: str | None = None
    moved: list[ComparedCell] = field(default_factory=list)


def of_launches(
    before: Campaign, after: Campaign, pairs: Sequence[tuple[str, str]]
) -> list[PossibleCause]:
    """Return what differs between launches of the same cells, each with its cells."""
    mine = {(one.record.cell, one.record.implementation): one for one in before.sound()}
    theirs = {(one.record.cell, one.record.implementation): one for one in after.sound()}
    found: dict[tuple[str, str, str], list[Discrepancy]] = defaultdict(list)
    for one, other in pairs:
        for (cell, implementation), launch in theirs.items():
            if implementation == other and (cell, one) in mine:
                for difference in launch_differences(mine[cell, one], launch, cell):
                    values = (str(difference.before), str(difference.after))
                    found[difference.rule.name, *values].append(difference)
    return [
        PossibleCause(
            Discrepancy(ds[0].rule, ds[0].before, ds[0].after, counted([d.where for d in ds])),
            frozenset((d.where, d.implementation) for d in ds),
        )
        for ds in found.values()
    ]


def explain(
    before: Campaign, after: Campaign, images: tuple[str, str] | None = None
) -> Explanation:
    """Return what moved from the first campaign to the second, and what else differs.

    Raises IncomparableError for one campaign given twice and for a node's file that is damaged.
    """
    comparison: CampaignComparison | None = None
    nothing = None
    try:
        comparison = compare_campaigns(before, after, images)
    except IncomparableError as error:
        if before.path.resolve() == after.path.resolve():
            raise
        nothing = str(error)
    try:
        pairs = pairs_of(before, after, images)
    except IncomparableError:
        pairs = []
    rows = comparison.rows if comparison else []
    moved = [row for row in rows if row.verdict.is_different]
    experiments = {launch.record.experiment for launch in after.sound()}
    found = [
        PossibleCause(difference)
        for difference in known_differences(before, after, pairs)
        if not difference.rule.experiments or experiments & set(difference.rule.experiments)
    ]
    found += of_launches(before, after, pairs)
    order = [rule.name for rule in rules()]
    found.sort(
        key=lambda one: (
            -one.score(moved),
            sum(map(one.concerns, rows)),
            order.index(one.difference.rule.name),
        )
    )
    return Explanation(found, comparison, nothing, moved)


def sentences(found: Explanation) -> list[str]:
    """Return an explanation in lines: what moved, then the numbered suspects."""
    from analysis.history.tables import group_sentence

    lines = [f"Nothing can be compared: {found.nothing}"] if found.nothing else []
    if found.comparison:
        rows, moved = found.comparison.rows, found.moved
        lines.append(
            f"What moved: {len(moved)} of {len(rows)} cells and implementations are shown to differ"
            + ("." if moved else ", so there may be nothing to explain.")
        )
        groups = [row for row in found.comparison.groups if row.verdict.is_different]
        lines += [f"- {group_sentence(row)}" for row in groups]
        lines += [f"- not compared: {sentence}" for sentence in found.comparison.refused]
    if not found.suspects:
        return [*lines, "Nothing that is recorded differs."]
    lines.append("What differs, the largest suspect first:")
    for number, suspect in enumerate(found.suspects, 1):
        concerned = sum(map(suspect.concerns, found.moved))
        of_moved = f", can affect {concerned} of {len(found.moved)}" if found.moved else ""
        lines.append(
            f"{number}. {suspect.difference.sentence} "
            f"[{suspect.score(found.moved):.1f}: moves {suspect.difference.rule.moves}, "
            f"changed {suspect.extent:.0%}{of_moved}]"
        )
    return [*lines, RULE]
