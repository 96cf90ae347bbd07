"""From launches to answers: medians per cell and implementation, ratios and verdicts."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from analysis.campaign import Campaign, Launch
from analysis.communication_records import Communication, PingPong
from analysis.emulation_records import Emulation
from analysis.npb_output import NpbRun
from analysis.plausibility import one_way_bandwidth
from analysis.records import ProgramOutput
from analysis.start_up import start_up_times
from analysis.statistics import (
    Interval,
    Ratio,
    holm_of_exclusive,
    median,
    median_interval,
    paired_ratio,
)
from analysis.su3_records import Su3

ALPHA = 0.05


@cache
def declared() -> dict[str, dict[str, Any]]:
    """Return metrics.yaml."""
    text = (Path(__file__).parent / "metrics.yaml").read_text()
    data: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return data


@cache
def metrics() -> dict[str, dict[str, Any]]:
    """Return what is compared in each experiment (metrics.yaml)."""
    return {
        experiment: declared()["default"] | {"better": better_of(metric["unit"])} | metric
        for experiment, metric in declared().items()
        if experiment not in ("default", "better")
    }


def better_of(unit: str) -> str | None:
    """Return whether `higher` or `lower` is better in a unit; None where neither is."""
    found: str | None = declared()["better"].get(unit)
    return found


def margin_of(experiment: str) -> float:
    """Return how far from 1 a ratio of an experiment may be to be called equivalent."""
    return float(metrics().get(experiment, declared()["default"])["margin"])


def direction(experiment: str) -> int:
    """Return 1 where higher is better, -1 where lower is."""
    return 1 if metrics()[experiment]["better"] == "higher" else -1


# What a launch measured: series -> message size in bytes (0 where there are no messages) -> value.
# An experiment that measures one thing has one series, without a name.
Series = dict[str, dict[int, float]]
Values = dict[int, dict[int, float]]  # round -> message size in bytes -> value


def series_of(launch: Launch) -> Series:
    """Return a launch's values."""
    output, experiment = launch.output, launch.record.experiment
    if experiment not in metrics():
        return {}
    if isinstance(output, list):
        # The check has made sure that a launch solves one system.
        return {"": {0: output[0].rate_flops}} if output else {}
    if isinstance(output, NpbRun):
        return {"": {0: output.rate_ops}}
    if not isinstance(output, ProgramOutput):
        return {}
    if experiment == "StartUp":
        return {"": {0: start_up_times(output, launch.record.started_s()).start_up}}
    found: Series = defaultdict(dict)
    for result in output.results:
        if isinstance(result, PingPong) and result.message_bytes > 0:
            found[""][result.message_bytes] = one_way_bandwidth(
                result.message_bytes, result.time_s.median
            )
        # A collective operation without data may take no time, of which there is no ratio.
        elif isinstance(result, Communication) and result.time_s.median > 0:
            found[result.series][result.message_bytes] = result.time_s.median
        elif isinstance(result, Emulation):
            found[result.series][0] = result.together_s.median
        elif isinstance(result, Su3):
            found[result.series][0] = result.time_s.median
    return dict(found)


def percent(share: float) -> str:
    """Return a share for people."""
    return f"{100 * share:.3g}%"


@dataclass(frozen=True)
class Estimate:
    """An implementation's median over launches at one message size."""

    message_bytes: int
    median: float
    interval: Interval
    launches: tuple[float, ...]


@dataclass
class Verdict:
    """One implementation against the base in one cell; a ratio above 1 is better than the base."""

    implementation: str
    base: str
    ratio: Ratio
    #: How far from 1 a ratio may be to be called equivalent, as a share.
    margin: float
    adjusted_p: float | None = None
    adjusted_equivalence_p: float | None = None
    #: Of a group: how many of its cells both have.
    cells: int | None = None

    @property
    def is_different(self) -> bool:
        """Return whether a difference is shown."""
        return self.adjusted_p is not None and self.adjusted_p < ALPHA

    @property
    def is_equivalent(self) -> bool:
        """Return whether the ratio is shown to be within the margin."""
        return self.adjusted_equivalence_p is not None and self.adjusted_equivalence_p < ALPHA

    @property
    def words(self) -> str:
        """Return the verdict in plain words."""
        if self.adjusted_p is None:
            return f"cannot be told ({self.ratio.counted})"
        faster = "faster" if self.ratio.value > 1 else "slower"
        if self.is_equivalent and self.is_different:
            return f"{faster} by less than {percent(self.margin)}"
        if self.is_equivalent:
            return f"equivalent within {percent(self.margin)}"
        return faster if self.is_different else "no difference shown"


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
    #: The single launches, by implementation.
    values: dict[str, Values]

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
        """Return the implementations, the best first, by the mean logarithm of their medians."""
        higher = metrics()[self.experiment]["better"] == "higher"
        score = {
            name: sum(math.log(estimate.median) for estimate in estimates) / len(estimates)
            for name, estimates in self.estimates.items()
        }
        return sorted(score, key=lambda name: -score[name] if higher else score[name])


@dataclass
class Group:
    """Cells that belong together, and one verdict over all of them for each implementation."""

    name: str
    experiment: str
    cells: list[Cell]
    verdicts: dict[str, Verdict]


@dataclass
class Comparison:
    """All cells of a campaign that can be compared."""

    campaign: Campaign
    base: str
    implementations: list[str]
    cells: list[Cell]
    groups: list[Group]

    def experiment(self, name: str) -> list[Cell]:
        """Return the cells of one experiment."""
        return [cell for cell in self.cells if cell.experiment == name]


def log_ratios(of: Values, base: Values, sign: int) -> dict[int, float]:
    """Return each paired round's logarithm of the ratio, averaged over the sizes both have."""
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


def estimates_of(rounds: Values) -> list[Estimate]:
    """Return the median and its interval at each message size."""
    by_size: dict[int, list[float]] = defaultdict(list)
    for values in rounds.values():
        for size, value in values.items():
            by_size[size].append(value)
    return [
        Estimate(size, median(values), median_interval(values), tuple(values))
        for size, values in sorted(by_size.items())
    ]


@dataclass
class Measured:
    """What a campaign measured in one cell: implementation -> round -> message size -> value.

    `seconds` are the times of the launches that print a time beside their rate.
    """

    name: str
    launch: Launch
    series: str
    values: dict[str, Values] = field(default_factory=lambda: defaultdict(dict))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    #: The first launch of each implementation.
    launches: dict[str, Launch] = field(default_factory=dict)


def measured_cells(campaign: Campaign) -> list[Measured]:
    """Return the values of a campaign's sound launches, the cells in the order of tables."""
    cells: dict[str, Measured] = {}
    for launch in campaign.sound():
        record = launch.record
        for series, values in series_of(launch).items():
            name = f"{record.cell} {series}".rstrip()
            cell = cells.setdefault(name, Measured(name, launch, series))
            cell.values[record.implementation][record.round] = values
            cell.launches.setdefault(record.implementation, launch)
            if isinstance(launch.output, list):
                cell.seconds[record.implementation] += [run.time_s for run in launch.output]
            elif isinstance(launch.output, NpbRun):
                cell.seconds[record.implementation].append(launch.output.time_s)
    return sorted(cells.values(), key=lambda cell: cell_order(cell.launch, cell.series))


def compare(campaign: Campaign, base: str | None = None) -> Comparison:
    """Compare every implementation with the base, cell by cell.

    Holm's correction is over one family per experiment (all its cells and implementations), and
    one family of all groups.
    Raises ValueError when the base is not in the campaign.
    """
    data = measured_cells(campaign)
    implementations = sorted({name for cell in data for name in cell.values})
    chosen = base or (implementations[0] if implementations else "")
    if base and base not in implementations:
        raise ValueError(
            f"{base} was not measured in {campaign.path.name}; choose one of: "
            f"{', '.join(implementations)}"
        )
    cells = []
    for found in data:
        rounds, record = found.values, found.launch.record
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
                estimates={other: estimates_of(rounds[other]) for other in sorted(rounds)},
                verdicts=verdicts,
                log_ratios=logarithms,
                values=rounds,
                seconds={other: median(times) for other, times in found.seconds.items()},
            )
        )
    comparison = Comparison(campaign, chosen, implementations, cells, groups_of(cells, chosen))
    for experiment in metrics():
        correct([v for cell in comparison.experiment(experiment) for v in cell.verdicts.values()])
    correct([verdict for group in comparison.groups for verdict in group.verdicts.values()])
    return comparison


def correct(family: list[Verdict]) -> None:
    """Set the adjusted p values of a family of verdicts."""
    told = [verdict for verdict in family if verdict.ratio.p_value is not None]
    adjusted = holm_of_exclusive([(v.ratio.p_value or 0.0, v.ratio.equivalence_p) for v in told])
    for verdict, p_values in zip(told, adjusted, strict=True):
        verdict.adjusted_p, verdict.adjusted_equivalence_p = p_values


PAIR_ORDER = ["Send", "Isend", "Ssend", "Issend"]
RANGE_ORDER = {"short": 0, "medium": 1, "long": 2}


def cell_order(launch: Launch, series: str) -> tuple[Any, ...]:
    """Return where a cell stands in tables: as in the thesis."""
    parameters = launch.record.parameters
    if launch.record.experiment == "PointToPoint":
        send, receive = str(parameters["pair"]).split("/")
        return (
            0,
            PAIR_ORDER.index(send),
            receive == "Irecv",
            RANGE_ORDER.get(str(parameters["message_range"]), 9),
            str(parameters),
        )
    if "grid" in parameters:
        rows, columns = str(parameters["grid"]).split("x")
        return (1, int(rows) * int(columns), int(rows), int(parameters["n"]), str(parameters))
    if launch.record.experiment == "StartUp":
        return (2, str(parameters["cache"]) == "cold", int(parameters["ranks"]))
    return (3, list(metrics()).index(launch.record.experiment), str(parameters), series)
