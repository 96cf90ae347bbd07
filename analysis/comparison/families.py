"""Verdicts over several cells: the groups of an experiment, and its family of tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from analysis.comparison.metrics import metrics
from analysis.comparison.result import (
    Cell,
    Comparison,
    Group,
    GroupKey,
    judged_cells,
    unjudged_names,
)
from analysis.comparison.verdict import Verdict, correct
from inference.intervals import PRINTED_STEP, Ratio, stratified_ratio, stratum
from inference.looks import Looks, anytime_ratio
from records.experiments import ExperimentEntry, compared


def over_cells(of_cells: list[dict[int, float]]) -> list[float]:
    """Return each round's mean over series of a launch, for the rounds that have all of them.

    A round that lacks one would give the others more weight, so it is left out.
    """
    if not of_cells:
        return []
    rounds = set.intersection(*(set(ratios) for ratios in of_cells))
    # In the order that the series of a launch have in common.
    return [sum(of[n] for of in of_cells) / len(of_cells) for n in of_cells[0] if n in rounds]


def covered(entry: ExperimentEntry, parameters: Sequence[dict[str, Any]]) -> tuple[int, ...]:
    """Return the numbers that a group covers where its cells differ in one."""
    return tuple(sorted({int(of[entry.over]) for of in parameters})) if entry.over else ()


def group_title(
    entry: ExperimentEntry, name: str, parameters: Sequence[dict[str, Any]], left_out: bool
) -> str:
    """Return a group's name with what it covers: for start-ups the numbers of ranks.

    `left_out` says that oversubscribed cells of it are in no group.
    """
    if entry.over:
        values = [str(value) for value in covered(entry, parameters)]
        listed = " and ".join(filter(None, (", ".join(values[:-1]), values[-1])))
        word = entry.over.removesuffix("s") if values == ["1"] else entry.over
        return f"{name}, {listed} {word}"
    return f"{name} but the oversubscribed" if left_out else name


def groups_of(cells: list[Cell], base: str, looks: Looks | None = None) -> list[Group]:
    """Return the groups with one verdict over their cells for each implementation.

    For one cell it is the cell's own. `looks` are those of a campaign with a budget.
    """
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[Cell]] = defaultdict(list)
    oversubscribed = set()
    for cell in cells:
        key = (cell.experiment, compared()[cell.experiment].group_parameters(cell.parameters))
        # If ranks wait for processors, their messages are not what is measured.
        if cell.oversubscribed:
            oversubscribed.add(key)
        else:
            found[key].append(cell)
    groups = []
    for key, members in found.items():
        others = sorted({other for cell in members for other in cell.verdicts})
        verdicts = {other: verdict_over(members, other, base, looks) for other in others}
        left_out = {other: names for other in others if (names := unjudged_names(members, other))}
        entry, parameters = compared()[key[0]], [cell.parameters for cell in members]
        name, is_part = entry.group_of(parameters[0]), key in oversubscribed
        title = group_title(entry, name, parameters, is_part)
        # Numbers that are covered say themselves which ones are missing.
        own = GroupKey(*key, covered(entry, parameters), is_part and not entry.over)
        groups.append(Group(title, own, key[0], members, verdicts, left_out))
    return groups


def verdict_over(members: list[Cell], other: str, base: str, looks: Looks | None = None) -> Verdict:
    """Return the verdict over those cells of a group that can be judged.

    Over several checks a look has come when each of them has its blocks.
    """
    margin = members[0].margin
    compared = judged_cells(members, other)
    if len(compared) == 1:
        return compared[0].verdicts[other]
    step = max([cell.step for cell in compared], default=PRINTED_STEP)
    ratio = ratio_over(compared, other, margin, step)
    if looks:
        seen = [
            (share, ratio_over(compared, other, margin, step, first=blocks))
            for blocks, share in looks.reached(ratio.pairs)
        ]
        ratio = anytime_ratio(ratio, seen, margin)
    # A group is of cells that are not oversubscribed, so all are judged, or none is yet.
    [unjudged] = {cell.verdicts[other].unjudged for cell in members if other in cell.verdicts}
    return Verdict(other, base, ratio, margin, cells=len(compared), unjudged=unjudged)


def ratio_over(
    cells: list[Cell],
    other: str,
    margin: float | None = None,
    step: float = PRINTED_STEP,
    first: int | None = None,
) -> Ratio:
    """Return the ratio of an implementation to the base over cells that both have.

    A check is a stratum, and weighs as its number of cells: series of one launch have its noise in
    common, launches of different checks have not. So each check counts with the rounds that it
    has, or with the `first` of them.
    """
    checks: dict[str, list[dict[int, float]]] = defaultdict(list)
    for cell in cells:
        checks[cell.launch_cell].append(cell.log_ratios[other])
    strata = [stratum(over_cells(own)[:first], len(own) / len(cells)) for own in checks.values()]
    counts = sorted({one.count for one in strata}) or [0]
    rounds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return stratified_ratio(
        strata, margin, chance=0.5 ** counts[0], pairs=counts[0], step=step,
        counted=f"{rounds} paired round{'' if counts[-1] == 1 else 's'}",
    )  # fmt: skip


def family_of(cells: list[Cell], groups: list[Group]) -> list[Verdict]:
    """Return the verdicts of an experiment that are corrected together, each once.

    They are those of its cells and of its groups. An oversubscribed cell is none of them: it is in
    no answer, and would make what is asked of the others harder to show.
    """
    every = [verdict for cell in cells for verdict in cell.verdicts.values()]
    every += [verdict for group in groups for verdict in group.verdicts.values()]
    return list({id(one): one for one in every if not one.unjudged}.values())


def correct_families(comparisons: Sequence[Comparison]) -> None:
    """Make the claims of each experiment's verdicts, which are one family in all comparisons."""
    for experiment in metrics():
        correct(family_in(comparisons, experiment))


def family_in(comparisons: Sequence[Comparison], experiment: str) -> list[Verdict]:
    """Return the verdicts of an experiment in all comparisons, each once."""
    return [
        verdict
        for one in comparisons
        for verdict in family_of(
            one.experiment(experiment),
            [group for group in one.groups if group.experiment == experiment],
        )
    ]
