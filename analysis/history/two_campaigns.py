"""Two campaigns' launches of the same cells: the second's over the first's.

Rounds of two campaigns are not close together in time, so nothing is paired: each launch is one
value, the mean over message sizes of logarithms, and two independent samples are compared
(Welch). The ratio includes variation between two days; history.py shows how much that is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from analysis.comparison.caveats.comparability import (
    Discrepancy,
    condition_differences,
    differences,
    launch_differences,
    refuses,
)
from analysis.comparison.caveats.stolen_time import stolen_time
from analysis.comparison.cells import MeasuredCell, measured_cells
from analysis.comparison.families import group_title, over_cells
from analysis.comparison.metrics import direction, metrics
from analysis.comparison.result import OVERSUBSCRIBED, GroupKey, enough_rounds
from analysis.comparison.verdict import Verdict, correct
from analysis.history.lost_cells import (
    WAITED,
    UntoldCell,
    asked_for_other,
    counted,
    lost_cells,
    lost_sentences,
)
from inference.intervals import (
    CONFIDENCE,
    independent_ratio,
    stratified_ratio,
    stratum,
)
from records.base import CampaignError
from records.campaign import Campaign, measured_on
from records.experiments import compared
from records.proof import proof_of


class IncomparableError(ValueError):
    """Nothing of two campaigns can be compared; the text is a sentence.

    `refused` and `lost` are as in a comparison.
    """

    def __init__(
        self, sentence: str, refused: Sequence[UntoldCell] = (), lost: Sequence[UntoldCell] = ()
    ) -> None:
        """Keep the cells, which a program may want one by one."""
        super().__init__(sentence)
        self.refused_cells, self.lost = list(refused), list(lost)


@dataclass
class ComparedCell:
    """One cell, or a group of them, of one implementation; above 1 the second is better."""

    cell: str
    experiment: str
    verdict: Verdict
    cells: int = 1
    nodes: int = 1
    #: Of a group, the cells that the verdict is not over: too few launches are left of them.
    left_out: tuple[str, ...] = ()


@dataclass
class CampaignComparison:
    """Two campaigns compared; `refused_cells` are not judged, each with the reason.

    `lost` are what the first measured or judged and the second should have, but did not.
    """

    before: Campaign
    after: Campaign
    rows: list[ComparedCell]
    groups: list[ComparedCell]
    caveats: list[str]
    refused_cells: list[UntoldCell] = field(default_factory=list)
    lost: list[UntoldCell] = field(default_factory=list)

    @property
    def refused(self) -> list[str]:
        """Return what is not compared in words, a sentence for each reason."""
        return refused_sentences(self.refused_cells)


def refused_sentences(refused: Sequence[UntoldCell]) -> list[str]:
    """Return a sentence for each reason, with the cells that it concerns."""
    cells: dict[str, list[str]] = defaultdict(list)
    for one in refused:
        cells[one.sentence].append(one.cell)
    return [f"{sentence} ({counted(names)})" for sentence, names in cells.items()]


#: Round -> mean over the sizes of the logarithm of the value, better upwards.
LevelOf = dict[int, float]


def levels(
    before: MeasuredCell, after: MeasuredCell, pair: tuple[str, str], sign: int
) -> tuple[LevelOf, LevelOf] | None:
    """Return both sides' launches at the sizes that every launch has; None if there are none."""
    sides = (before.values.get(pair[0], {}), after.values.get(pair[1], {}))
    launches = [launch for side in sides for launch in side.values()]
    if not all(sides):
        return None
    sizes = sorted(set.intersection(*(set(launch) for launch in launches)))
    if not sizes:
        return None
    one, other = (
        {
            number: sign * sum(math.log(values[size]) for size in sizes) / len(sizes)
            for number, values in side.items()
        }
        for side in sides
    )
    return one, other


@dataclass(frozen=True)
class GroupMember:
    """A cell of a group, in both campaigns, with the verdict on it alone.

    `check` is the cell without its series.
    """

    experiment: str
    cell: str
    check: str
    parameters: dict[str, Any]
    before: LevelOf
    after: LevelOf
    pair: tuple[str, str]
    verdict: Verdict
    #: The coarsest step of either side's values, as a fraction of them.
    step: float


def judged_members(members: Sequence[GroupMember]) -> list[GroupMember]:
    """Return those cells of a group that can be judged: with two launches left."""
    enough = enough_rounds([(one.check, (one.before, one.after)) for one in members])
    return [one for one, is_judged in zip(members, enough, strict=True) if is_judged]


def verdict_over(members: Sequence[GroupMember], base: str) -> Verdict:
    """Return the verdict on cells of a group that can be judged; on one it is the cell's own."""
    first = members[0]
    if len(members) == 1:
        return first.verdict
    margin = metrics()[first.experiment]["margin"]
    checks: dict[str, list[GroupMember]] = defaultdict(list)
    for one in members:
        checks[one.check].append(one)
    strata, chance = [], 0.0
    for own in checks.values():
        sides = (over_cells([one.before for one in own]), over_cells([one.after for one in own]))
        share = len(own) / len(members)
        strata += [stratum(sides[1], share), stratum(sides[0], -share)]
        chance = max(chance, 1 / math.comb(sum(map(len, sides)), len(sides[0])))
    counts = [one.count for one in strata]
    ratio = stratified_ratio(
        strata, margin, chance=chance, pairs=min(counts), step=max(one.step for one in members),
        counted=f"{min(counts[1::2])} and {min(counts[::2])} launches of each check",
    )  # fmt: skip
    return Verdict(first.pair[1], base, ratio, margin, cells=len(members))


def verdict_of(
    experiment: str,
    pair: tuple[str, str],
    base: str,
    sides: tuple[Sequence[float], Sequence[float]],
    step: float,
    unjudged: str = "",
) -> Verdict:
    """Return the verdict on the second sample against the first; `step` is of their values."""
    margin = metrics()[experiment]["margin"]
    ratio = independent_ratio(sides[1], sides[0], CONFIDENCE, margin, step)
    return Verdict(pair[1], base, ratio, margin, unjudged=unjudged)


def pairs_of(
    before: Campaign, after: Campaign, images: tuple[str, str] | None
) -> list[tuple[str, str]]:
    """Return which implementations are compared: the common ones, or the two that are named."""
    has = [sorted({launch.record.implementation for launch in c.sound()}) for c in (before, after)]
    if images is None:
        found = [(name, name) for name in has[0] if name in has[1]]
        if not found:
            raise IncomparableError(
                f"{before.path.name} measured {', '.join(has[0]) or 'nothing'} and "
                f"{after.path.name} {', '.join(has[1]) or 'nothing'}: they have no implementation "
                "in common; compare two of them with: --images ONE,OTHER"
            )
        return found
    for name, campaign, names in zip(images, (before, after), has, strict=True):
        if name not in names:
            raise IncomparableError(
                f"{name} has no sound launch in {campaign.path.name}; choose one of: "
                f"{', '.join(names) or 'none has any'}"
            )
    return [images]


def known_differences(
    before: Campaign, after: Campaign, pairs: Sequence[tuple[str, str]]
) -> list[Discrepancy]:
    """Return what differs between two campaigns as a whole, and between their images."""
    try:
        one, other = (measured_on(c.path, c.manifest).facts for c in (before, after))
    except CampaignError as error:
        raise IncomparableError(str(error)) from None
    return [*differences(one, other, pairs), *condition_differences(before, after)]


def compare_campaigns(
    before: Campaign, after: Campaign, images: tuple[str, str] | None = None
) -> CampaignComparison:
    """Compare the second campaign with the first, in the cells that both have.

    Holm's correction is over one family per experiment: all its cells, groups and implementations.
    Raises IncomparableError if nothing can be compared.
    """
    if before.path.resolve() == after.path.resolve():
        raise IncomparableError(
            f"{after.path.name} was given as both campaigns; name two campaigns, or two of its "
            "images with --images"
        )
    mine = {cell.name: cell for cell in measured_cells(before)}
    other_cells = measured_cells(after)
    lost, unknown = ([], None) if images else lost_of(before, after, mine.values(), other_cells)
    try:
        pairs = pairs_of(before, after, images)
    except IncomparableError as error:
        raise IncomparableError(str(error), lost=lost) from None
    found = known_differences(before, after, pairs)
    rows: list[ComparedCell] = []
    refused: list[UntoldCell] = []
    of_launches: dict[tuple[str, str, str], list[Discrepancy]] = defaultdict(list)
    grouped: dict[tuple[GroupKey, str], list[GroupMember]] = defaultdict(list)
    left_out: set[GroupKey] = set()
    for theirs in other_cells:
        ours, experiment = mine.get(theirs.name), theirs.launch.record.experiment
        if ours is None:
            continue
        for pair in pairs:
            # What differs between images concerns the implementation that they are of.
            against = [
                one for one in found
                if refuses(one, experiment) and one.implementation in ("", pair[1])
            ]  # fmt: skip
            sides = levels(ours, theirs, pair, direction(experiment))
            if sides is None:
                if ours.values.get(pair[0]) and theirs.values.get(pair[1]):
                    reason = "no message size is in all launches of both campaigns"
                    refused.append(UntoldCell(theirs.name, experiment, pair[1], reason))
                continue
            own = launch_differences(ours.launches[pair[0]], theirs.launches[pair[1]], theirs.name)
            if reasons := against + [d for d in own if refuses(d, experiment)]:
                refused += [
                    UntoldCell(
                        theirs.name, experiment, pair[1],
                        Discrepancy(one.rule, one.before, one.after).sentence,
                    )
                    for one in reasons
                ]  # fmt: skip
                continue
            for one in own:
                of_launches[one.rule.name, str(one.before), str(one.after)].append(one)
            step = max(ours.step(pair[0]), theirs.step(pair[1]))
            is_over = ours.oversubscribed or theirs.oversubscribed
            unjudged = OVERSUBSCRIBED if is_over else ""
            if is_over and not ours.oversubscribed and not images:
                why = f"{before.path.name} judged it; {WAITED}"
                lost.append(UntoldCell(theirs.name, experiment, pair[1], why, "not judged"))
            sample = (list(sides[0].values()), list(sides[1].values()))
            rows.append(
                ComparedCell(
                    theirs.name, experiment,
                    verdict_of(experiment, pair, before.path.name, sample, step, unjudged),
                    nodes=theirs.launches[pair[1]].record.nodes,
                )
            )  # fmt: skip
            record = theirs.launch.record
            key = GroupKey(experiment, compared()[experiment].group_parameters(record.parameters))
            if not is_over:
                grouped[key, pair[1]].append(
                    GroupMember(
                        experiment, theirs.name, record.cell, dict(record.parameters), *sides, pair,
                        rows[-1].verdict, step,
                    )
                )  # fmt: skip
            else:
                left_out.add(key)
    if not rows:
        said = refused_sentences(refused) + lost_sentences(lost)
        raise IncomparableError(
            f"nothing of {before.path.name} and {after.path.name} can be compared: "
            + ("; ".join(said) or "the two have no cell with a message size in common"),
            refused, lost,
        )  # fmt: skip
    experiments = {row.experiment for row in rows}
    caveats = [
        d.sentence
        for d in found
        if (not d.rule.experiments or experiments & set(d.rule.experiments))
        and not any(refuses(d, experiment) for experiment in experiments)
    ]
    caveats += [
        f"{Discrepancy(ds[0].rule, ds[0].before, ds[0].after).sentence} "
        f"({counted([d.where for d in ds])})"
        for ds in of_launches.values()
    ]
    caveats += [
        f"{c.path.name} is not finished" for c in (before, after) if not c.manifest.finished_utc
    ]
    caveats += [proof.caveat for proof in map(proof_of, (before, after)) if proof.doubts]
    caveats += [f"{c.path.name}: {said}" for c in (before, after) for said in stolen_time(c)]
    caveats += [unknown] if unknown else []
    groups = []
    for (key, _), members in grouped.items():
        judged = judged_members(members)
        verdict = verdict_over(judged, before.path.name)
        are_judged = set(map(id, judged))
        without = tuple(one.cell for one in members if id(one) not in are_judged)
        entry = compared()[key.experiment]
        name = entry.group_of(members[0].parameters)
        title = group_title(entry, name, [one.parameters for one in members], key in left_out)
        groups.append(
            ComparedCell(title, key.experiment, verdict, cells=len(judged), left_out=without)
        )
    for experiment in metrics():
        # A group of one cell has the verdict of that cell.
        every = {id(row.verdict): row for row in (*rows, *groups)}
        correct([row.verdict for row in every.values() if row.experiment == experiment])
    return CampaignComparison(before, after, rows, groups, caveats, refused, lost)


def lost_of(
    before: Campaign, after: Campaign, mine: Iterable[MeasuredCell], theirs: Iterable[MeasuredCell]
) -> tuple[list[UntoldCell], str | None]:
    """Return what the second campaign lost, and a sentence if that is unknown for some."""
    has = {(cell.name, name) for cell in theirs for name, values in cell.values.items() if values}
    gone = [
        (cell.name, cell.launch.record.cell, cell.launch.record.experiment, name)
        for cell in mine
        for name, values in cell.values.items()
        if values and (cell.name, name) not in has and name in after.manifest.images
    ]
    lost = lost_cells(gone, has, before.manifest, after)
    other = asked_for_other(before.manifest, after.manifest)
    if len(lost) == len(gone) or other is None:
        return lost, None
    return lost, (
        f"whether {counted(name for name, *_ in gone)} of {before.path.name} should be in "
        f"{after.path.name} is unknown: {other}"
    )
