"""From launches to answers: medians per cell and implementation, ratios and verdicts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from analysis.comparison.cells import MeasuredCell, Values, measured_cells
from analysis.comparison.families import correct_families, groups_of
from analysis.comparison.metrics import direction, metrics
from analysis.comparison.result import OVERSUBSCRIBED, UNFINISHED, Cell, Comparison, LimitedPoint
from analysis.comparison.verdict import Verdict
from inference.estimates import Estimate
from inference.intervals import Ratio, median, median_interval, paired_ratio
from inference.looks import Looks, anytime_ratio
from records.campaign import Campaign
from records.manifest import Manifest


def compare(campaign: Campaign, base: str | None = None) -> Comparison:
    """Compare every implementation with the base, cell by cell.

    Holm's correction is over one family per experiment: all its cells, groups and implementations.
    In a campaign of all pairs, these are of every two implementations, whatever the base is.
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
    if campaign.manifest.all_pairs:
        others = [name for name in implementations if name != chosen]
        comparison.among_others = pairs_among(campaign, data, others)
    correct_families(comparison.pairs)
    return comparison


def compare_all_pairs(campaign: Campaign) -> list[Comparison]:
    """Compare every two implementations once: each with those after it in the alphabet.

    Holm's correction is over one family per experiment, of all pairs. Of fewer than two
    implementations there is no comparison.
    """
    data = measured_cells(campaign)
    comparisons = pairs_among(campaign, data, implementations_of(data))
    correct_families(comparisons)
    return comparisons


def pairs_among(
    campaign: Campaign, data: Sequence[MeasuredCell], names: Sequence[str]
) -> list[Comparison]:
    """Return the comparisons of each implementation with those after it, without claims yet."""
    return [
        uncorrected(campaign, data, base, names[place:]) for place, base in enumerate(names[:-1], 1)
    ]


def implementations_of(data: Sequence[MeasuredCell]) -> list[str]:
    """Return the implementations that were measured, in the order of the alphabet."""
    return sorted({name for cell in data for name in (*cell.values, *cell.limited)})


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
        order = finished.get(record.cell, {})
        logarithms = {
            other: log_ratios(
                rounds[other],
                rounds.get(chosen, {}),
                sign,
                later_of(order.get(other, {}), order.get(chosen, {})),
            )
            for other in rounds
            if other != chosen and other in others
        }
        unjudged = UNFINISHED if campaign.awaits_test else ""
        unjudged = OVERSUBSCRIBED if found.oversubscribed else unjudged
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
                launch_cell=record.cell,
                experiment=record.experiment,
                series=found.series,
                oversubscribed=found.oversubscribed,
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


def finished_utc(campaign: Campaign) -> dict[str, dict[str, dict[int, str]]]:
    """Return when each launch ended, by cell, implementation and round."""
    found: dict[str, dict[str, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    for launch in campaign.launches:
        one = launch.record
        found[one.cell][one.implementation][one.round] = one.ended_utc
    return found


def later_of(of: Mapping[int, str], base: Mapping[int, str]) -> dict[int, str]:
    """Return when two implementations' launches of a round had both ended, by round.

    Looks use the first blocks in this order: a block that was filled later, as by a RESUME, does
    not change what was seen before it. So it is of these two alone: a third one whose launch was
    filled changes nothing between them.
    """
    return {number: max(of[number], base[number]) for number in of.keys() & base.keys()}


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
