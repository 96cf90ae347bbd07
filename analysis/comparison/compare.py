"""From launches to answers: medians per cell and implementation, ratios and verdicts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from analysis.comparison.cells import Limited, MeasuredCell, Values, measured_cells
from analysis.comparison.metrics import direction, metrics
from analysis.comparison.verdict import Verdict, correct
from analysis.tables.launch_names import LaunchNames, cell_name
from inference.estimates import Estimate
from inference.intervals import (
    FEWEST_PAIRS,
    PRINTED_STEP,
    Ratio,
    median,
    median_interval,
    paired_ratio,
    stratified_ratio,
    stratum,
)
from inference.looks import Looks, anytime_ratio
from records.campaign import Campaign
from records.experiments import ExperimentEntry, compared
from records.launch import RANGE
from records.manifest import Manifest


@dataclass
class Cell:
    """A cell's estimates by implementation, and the verdicts against the base.

    Where a launch measures several series, each is compared as a cell of its own. In an
    oversubscribed cell there were more ranks than processors.
    """

    name: str
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


@dataclass
class Group:
    """Cells that belong together, and one verdict over them for each implementation.

    `left_out` has the names of the cells that an implementation's verdict leaves out although both
    have them: too few rounds have their checks.
    """

    name: str
    experiment: str
    cells: list[Cell]
    verdicts: dict[str, Verdict]
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def judged(self, implementation: str) -> list[Cell]:
        """Return the cells that the verdict on an implementation covers."""
        return judged_cells(self.cells, implementation)


@dataclass(frozen=True)
class LimitedPoint:
    """What the clock was too coarse for, in a cell of an implementation."""

    cell: str
    experiment: str
    implementation: str
    point: Limited
    #: The cell without its series.
    measured_in: str


@dataclass
class Comparison:
    """All cells of a campaign that can be compared; none of them includes what is `limited`."""

    campaign: Campaign
    base: str
    implementations: list[str]
    cells: list[Cell]
    groups: list[Group]
    limited: list[LimitedPoint] = field(default_factory=list)

    @cached_property
    def launch_names(self) -> LaunchNames:
        """Return the names of the launches; many tables ask for them."""
        return LaunchNames(self.campaign)

    def experiment(self, name: str) -> list[Cell]:
        """Return the cells of one experiment."""
        return [cell for cell in self.cells if cell.experiment == name]


def log_ratios(
    of: Values, base: Values, sign: int, finished: Mapping[int, str] | None = None
) -> dict[int, float]:
    """Return each paired round's logarithm of the ratio, averaged over the sizes both have.

    They are in the order of rounds, or in that in which these were `finished`. The values are at
    sizes that were asked for: over sizes that a result chose (`--refine`) each round's average
    would be of other ones.
    """
    ratios = {}
    order = finished or {}
    for number in sorted(of.keys() & base.keys(), key=lambda one: (order.get(one, ""), one)):
        sizes = sorted(of[number].keys() & base[number].keys())
        if sizes:
            logs = [sign * math.log(of[number][size] / base[number][size]) for size in sizes]
            ratios[number] = sum(logs) / len(logs)
    return ratios


def finished_utc(campaign: Campaign) -> dict[str, dict[int, str]]:
    """Return when the last launch of each block ended, by cell and round.

    Looks use the first blocks in this order: a block that was filled later, as by a RESUME, does
    not change what was seen before it.
    """
    found: dict[str, dict[int, str]] = defaultdict(dict)
    for launch in campaign.launches:
        rounds, number = found[launch.record.cell], launch.record.round
        rounds[number] = max(rounds.get(number, ""), launch.record.ended_utc)
    return found


def over_cells(of_cells: list[dict[int, float]]) -> list[float]:
    """Return each round's mean over series of a launch, for the rounds that have all of them.

    A round that lacks one would give the others more weight, so it is left out.
    """
    if not of_cells:
        return []
    rounds = set.intersection(*(set(ratios) for ratios in of_cells))
    # In the order that the series of a launch have in common.
    return [sum(of[n] for of in of_cells) / len(of_cells) for n in of_cells[0] if n in rounds]


#: Why verdicts are not given.
OVERSUBSCRIBED = "oversubscribed"
UNFINISHED = "not finished"


def group_title(
    entry: ExperimentEntry, name: str, parameters: Sequence[dict[str, Any]], left_out: bool
) -> str:
    """Return a group's name with what it covers: for start-ups the numbers of ranks.

    `left_out` says that oversubscribed cells of it are in no group.
    """
    if entry.over:
        values = [str(value) for value in sorted({int(of[entry.over]) for of in parameters})]
        listed = " and ".join(filter(None, (", ".join(values[:-1]), values[-1])))
        word = entry.over.removesuffix("s") if values == ["1"] else entry.over
        return f"{name}, {listed} {word}"
    return f"{name} but the oversubscribed" if left_out else name


def groups_of(cells: list[Cell], base: str, looks: Looks | None = None) -> list[Group]:
    """Return the groups with one verdict over their cells for each implementation.

    For one cell it is the cell's own. `looks` are those of a campaign with a budget.
    """
    found: dict[str, list[Cell]] = defaultdict(list)
    oversubscribed = set()
    for cell in cells:
        name = compared()[cell.experiment].group_of(cell.parameters)
        # If ranks wait for processors, their messages are not what is measured.
        if cell.oversubscribed:
            oversubscribed.add(name)
        else:
            found[name].append(cell)
    groups = []
    for name, members in found.items():
        others = sorted({other for cell in members for other in cell.verdicts})
        verdicts = {other: verdict_over(members, other, base, looks) for other in others}
        left_out = {other: names for other in others if (names := unjudged_names(members, other))}
        entry = compared()[members[0].experiment]
        title = group_title(entry, name, [c.parameters for c in members], name in oversubscribed)
        groups.append(Group(title, members[0].experiment, members, verdicts, left_out))
    return groups


def judged_cells(members: Sequence[Cell], other: str) -> list[Cell]:
    """Return those cells of a group that its verdict covers, if both have them.

    A check with all series in fewer than two rounds shows no spread, and would take the
    verdict from all others. If all checks are like that, it covers all, and is inconclusive.
    """
    # What an implementation lacks altogether is compared in no round.
    having = [cell for cell in members if cell.log_ratios.get(other)]
    enough = enough_rounds([(cell_name(cell), [cell.log_ratios[other]]) for cell in having])
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


def ratio_of(
    logarithms: list[float], margin: float, step: float, looks: Looks | None = None
) -> Ratio:
    """Return the ratio over the rounds of a cell, in the order of measuring."""
    ratio = paired_ratio(logarithms, margin=margin, step=step)
    if looks is None:
        return ratio
    seen = [
        (share, paired_ratio(logarithms[:blocks], margin=margin, step=step))
        for blocks, share in looks.reached(len(logarithms))
    ]
    return anytime_ratio(ratio, seen, margin)


def looks_of(manifest: Manifest) -> Looks | None:
    """Return at how many blocks a campaign with a budget looked; None of one with a single test."""
    design = manifest.design
    if design is None or manifest.tested_once:
        return None
    return Looks(tuple(design.looks), tuple(design.shares))


def margin_in(manifest: Manifest, experiment: str) -> float:
    """Return how far from 1 a ratio may be to be called equivalent, as a share.

    A campaign with a budget has declared it.
    """
    declared = manifest.design.margins if manifest.design else {}
    return float(declared.get(experiment, metrics()[experiment]["margin"]))


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
        checks[cell_name(cell)].append(cell.log_ratios[other])
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


def estimates_of(rounds: Values, refined: Values) -> list[Estimate]:
    """Return the median and its interval at each message size, asked for or added."""
    by_size: dict[int, list[float]] = defaultdict(list)
    for values in (*rounds.values(), *refined.values()):
        for size, value in values.items():
            by_size[size].append(value)
    return [
        Estimate(size, median(values), median_interval(values), tuple(values))
        for size, values in sorted(by_size.items())
    ]


def compare(campaign: Campaign, base: str | None = None) -> Comparison:
    """Compare every implementation with the base, cell by cell.

    Holm's correction is over one family per experiment: all its cells, groups and implementations.
    Raises ValueError when the base is not in the campaign.
    """
    data = measured_cells(campaign)
    implementations = implementations_of(data)
    chosen = base or (implementations[0] if implementations else "")
    if base and base not in implementations:
        raise ValueError(
            f"{base} was not measured in {campaign.path.name}; choose one of: "
            f"{', '.join(implementations)}"
        )
    comparison = uncorrected(campaign, data, chosen, implementations)
    correct_families([comparison])
    return comparison


def compare_all_pairs(campaign: Campaign) -> list[Comparison]:
    """Compare every two implementations once: each with those after it in the alphabet.

    Holm's correction is over one family per experiment, of all pairs. Of fewer than two
    implementations there is no comparison.
    """
    data = measured_cells(campaign)
    names = implementations_of(data)
    pairs = [(base, names[place:]) for place, base in enumerate(names[:-1], 1)]
    comparisons = [uncorrected(campaign, data, base, others) for base, others in pairs]
    correct_families(comparisons)
    return comparisons


def implementations_of(data: Sequence[MeasuredCell]) -> list[str]:
    """Return the implementations that were measured, in the order of the alphabet."""
    return sorted({name for cell in data for name in (*cell.values, *cell.limited)})


def correct_families(comparisons: Sequence[Comparison]) -> None:
    """Make the claims of each experiment's verdicts, which are one family in all comparisons."""
    for experiment in metrics():
        family = []
        for one in comparisons:
            own = [group for group in one.groups if group.experiment == experiment]
            family += family_of(one.experiment(experiment), own)
        correct(family)


def uncorrected(
    campaign: Campaign, data: Sequence[MeasuredCell], chosen: str, others: Collection[str]
) -> Comparison:
    """Return the comparison of implementations with a base, whose verdicts make no claims yet."""
    cells, looks = [], looks_of(campaign.manifest)
    finished = finished_utc(campaign) if looks else {}
    for found in data:
        rounds, record = found.values, found.launch.record
        if not rounds:
            continue
        sign = direction(record.experiment)
        margin = margin_in(campaign.manifest, record.experiment)
        order = finished.get(record.cell)
        logarithms = {
            other: log_ratios(rounds[other], rounds.get(chosen, {}), sign, order)
            for other in rounds
            if other != chosen and other in others
        }
        unjudged = UNFINISHED if campaign.awaits_test else ""
        unjudged = OVERSUBSCRIBED if record.oversubscribed else unjudged
        step = found.step(*rounds)
        verdicts = {
            other: Verdict(
                other,
                chosen,
                ratio_of(list(ratios.values()), margin, step, looks),
                margin,
                cells=int(bool(ratios)),
                unjudged=unjudged,
            )
            for other, ratios in logarithms.items()
        }
        cells.append(
            Cell(
                name=found.name,
                experiment=record.experiment,
                series=found.series,
                oversubscribed=record.oversubscribed,
                parameters=dict(record.parameters),
                estimates={
                    other: estimates_of(rounds[other], found.refined.get(other, {}))
                    for other in sorted(rounds)
                },
                verdicts=verdicts,
                step=step,
                margin=margin,
                log_ratios=logarithms,
                values=rounds,
                refined=found.refined,
                seconds={other: median(times) for other, times in found.seconds.items()},
            )
        )
    limited = [
        LimitedPoint(
            found.name, found.launch.record.experiment, name, point, found.launch.record.cell
        )
        for found in data
        for name, points in sorted(found.limited.items())
        for point in points
    ]
    return Comparison(
        campaign, chosen, implementations_of(data), cells, groups_of(cells, chosen, looks), limited
    )


def curve_title(cell: Cell) -> str:
    """Return the name of the curve that a cell is on: all ranges of sizes are one."""
    kept = [f"{key}={value}" for key, value in cell.parameters.items() if key != RANGE]
    return " ".join([cell.experiment, *kept, cell.series]).rstrip()
