"""From launches to answers: medians per cell and implementation, ratios and verdicts."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from analysis.campaign import Campaign
from analysis.launch_names import LaunchNames
from analysis.measured_cells import Limited, Values, measured_cells
from analysis.metrics import direction, metrics
from analysis.statistics import Interval, median, median_interval, paired_ratio
from analysis.verdict import Verdict, correct


@dataclass(frozen=True)
class Estimate:
    """An implementation's median over launches at one message size."""

    message_bytes: int
    median: float
    interval: Interval
    launches: tuple[float, ...]


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

        Over the message sizes asked for that all of them have; without any there is no order.
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
    """Cells that belong together, and one verdict over all of them for each implementation."""

    name: str
    experiment: str
    cells: list[Cell]
    verdicts: dict[str, Verdict]


@dataclass(frozen=True)
class LimitedPoint:
    """What the clock was too coarse for, in a cell of an implementation."""

    cell: str
    experiment: str
    implementation: str
    point: Limited


@dataclass
class Comparison:
    """All cells of a campaign that can be compared; what is `limited` is in none of them."""

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


def log_ratios(of: Values, base: Values, sign: int) -> dict[int, float]:
    """Return each paired round's logarithm of the ratio, averaged over the sizes both have.

    The values are at sizes that were asked for: over sizes that a result chose (`--refine`) each
    round's average would be of other ones.
    """
    ratios = {}
    for number in sorted(of.keys() & base.keys()):
        sizes = sorted(of[number].keys() & base[number].keys())
        if sizes:
            logs = [sign * math.log(of[number][size] / base[number][size]) for size in sizes]
            ratios[number] = sum(logs) / len(logs)
    return ratios


def over_cells(of_cells: list[dict[int, float]]) -> list[float]:
    """Return each round's mean over cells, for the rounds that have every one of the cells.

    A round that lacks a cell would weigh the others more, so it is left out.
    """
    if not of_cells:
        return []
    rounds = set.intersection(*(set(ratios) for ratios in of_cells))
    return [sum(ratios[n] for ratios in of_cells) / len(of_cells) for n in sorted(rounds)]


def group_name(experiment: str, parameters: dict[str, Any]) -> str:
    """Return the group that a cell belongs to."""
    if experiment == "PointToPoint":
        order = parameters.get("order", "modified")
        name = f"{str(parameters['message_range']).capitalize()} messages, all pairs"
        return name if order == "modified" else f"{name}, {order} order"
    if experiment == "StartUp":
        return f"Process start-up, {parameters['cache']} image cache, all counts of ranks"
    return f"{experiment}, all cells"


def groups_of(cells: list[Cell], base: str) -> list[Group]:
    """Return the groups with one verdict over their cells for each implementation."""
    found: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        # Where ranks wait for processors, their messages are not what is measured.
        if not cell.oversubscribed:
            found[group_name(cell.experiment, cell.parameters)].append(cell)
    groups = []
    for name, members in found.items():
        others = sorted({other for cell in members for other in cell.verdicts})
        verdicts = {
            other: Verdict(
                other,
                base,
                # What an implementation lacks altogether is compared in no round.
                paired_ratio(
                    over_cells([r for c in members if (r := c.log_ratios.get(other))]),
                    margin=metrics()[members[0].experiment]["margin"],
                ),
                metrics()[members[0].experiment]["margin"],
                cells=sum(bool(c.log_ratios.get(other)) for c in members),
            )
            for other in others
        }
        groups.append(Group(name, members[0].experiment, members, verdicts))
    return groups


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

    Holm's correction is over one family per experiment (all its cells and implementations), and
    one family of all groups.
    Raises ValueError when the base is not in the campaign.
    """
    data = measured_cells(campaign)
    implementations = sorted({name for cell in data for name in (*cell.values, *cell.limited)})
    chosen = base or (implementations[0] if implementations else "")
    if base and base not in implementations:
        raise ValueError(
            f"{base} was not measured in {campaign.path.name}; choose one of: "
            f"{', '.join(implementations)}"
        )
    cells = []
    for found in data:
        rounds, record = found.values, found.launch.record
        if not rounds:
            continue
        sign, margin = direction(record.experiment), metrics()[record.experiment]["margin"]
        logarithms = {
            other: log_ratios(rounds[other], rounds.get(chosen, {}), sign)
            for other in rounds
            if other != chosen
        }
        verdicts = {
            other: Verdict(
                other, chosen, paired_ratio(list(ratios.values()), margin=margin), margin
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
                log_ratios=logarithms,
                values=rounds,
                refined=found.refined,
                seconds={other: median(times) for other, times in found.seconds.items()},
            )
        )
    limited = [
        LimitedPoint(found.name, found.launch.record.experiment, name, point)
        for found in data
        for name, points in sorted(found.limited.items())
        for point in points
    ]
    groups = groups_of(cells, chosen)
    comparison = Comparison(campaign, chosen, implementations, cells, groups, limited)
    for experiment in metrics():
        correct([v for cell in comparison.experiment(experiment) for v in cell.verdicts.values()])
    correct([verdict for group in comparison.groups for verdict in group.verdicts.values()])
    return comparison
