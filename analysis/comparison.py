"""From launches to answers: medians per cell and implementation, ratios and verdicts."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from analysis.campaign import Campaign, Launch
from analysis.plausibility import one_way_bandwidth
from analysis.records import PingPong, ProgramOutput
from analysis.statistics import Interval, Ratio, holm, median, median_interval, paired_ratio

ALPHA = 0.05


@cache
def metrics() -> dict[str, dict[str, str]]:
    """Return what is compared in each experiment (metrics.yaml)."""
    text = (Path(__file__).parent / "metrics.yaml").read_text()
    data: dict[str, dict[str, str]] = yaml.safe_load(text)
    return data


def values_of(launch: Launch) -> dict[int, float]:
    """Return a launch's values by message size in bytes (0 where there are no messages)."""
    output = launch.output
    if launch.record.experiment == "PointToPoint" and isinstance(output, ProgramOutput):
        return {
            result.message_bytes: one_way_bandwidth(result.message_bytes, result.time_s.median)
            for result in output.results
            if isinstance(result, PingPong) and result.message_bytes > 0
        }
    if isinstance(output, list) and output:
        # The check has made sure that a launch solves one system.
        return {0: output[0].rate_flops}
    return {}


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
    adjusted_p: float | None = None

    @property
    def words(self) -> str:
        """Return the verdict in plain words."""
        if self.adjusted_p is None:
            return f"cannot be told ({self.ratio.pairs} paired rounds)"
        if self.adjusted_p >= ALPHA:
            return "no difference shown"
        return "faster" if self.ratio.value > 1 else "slower"


@dataclass
class Cell:
    """A cell's estimates by implementation, and the verdicts against the base."""

    name: str
    experiment: str
    parameters: dict[str, Any]
    estimates: dict[str, list[Estimate]]
    verdicts: dict[str, Verdict]
    seconds: dict[str, float]

    def ranked(self) -> list[str]:
        """Return the implementations, the best first, by the mean logarithm of their medians."""
        higher = metrics()[self.experiment]["better"] == "higher"
        score = {
            name: sum(math.log(estimate.median) for estimate in estimates) / len(estimates)
            for name, estimates in self.estimates.items()
        }
        return sorted(score, key=lambda name: -score[name] if higher else score[name])


@dataclass
class Comparison:
    """All cells of a campaign that can be compared."""

    campaign: Campaign
    base: str
    implementations: list[str]
    cells: list[Cell]

    def experiment(self, name: str) -> list[Cell]:
        """Return the cells of one experiment."""
        return [cell for cell in self.cells if cell.experiment == name]


Rounds = dict[str, dict[int, dict[int, float]]]  # implementation -> round -> size -> value


def log_ratios(of: dict[int, dict[int, float]], base: dict[int, dict[int, float]], sign: int
               ) -> list[float]:  # fmt: skip
    """Return each paired round's logarithm of the ratio, averaged over the sizes both have."""
    ratios = []
    for number in sorted(of.keys() & base.keys()):
        sizes = sorted(of[number].keys() & base[number].keys())
        if sizes:
            logs = [sign * math.log(of[number][size] / base[number][size]) for size in sizes]
            ratios.append(sum(logs) / len(logs))
    return ratios


def estimates_of(rounds: dict[int, dict[int, float]]) -> list[Estimate]:
    """Return the median and its interval at each message size."""
    by_size: dict[int, list[float]] = defaultdict(list)
    for values in rounds.values():
        for size, value in values.items():
            by_size[size].append(value)
    return [
        Estimate(size, median(values), median_interval(values), tuple(values))
        for size, values in sorted(by_size.items())
    ]


def compare(campaign: Campaign, base: str | None = None) -> Comparison:
    """Compare every implementation with the base, cell by cell.

    Holm's correction is over one family per experiment: all its cells and implementations.
    Raises ValueError when the base is not in the campaign.
    """
    data: dict[str, Rounds] = defaultdict(lambda: defaultdict(dict))
    about: dict[str, Launch] = {}
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for launch in campaign.sound():
        record = launch.record
        values = values_of(launch) if record.experiment in metrics() else {}
        if not values:
            continue
        data[record.cell][record.implementation][record.round] = values
        about.setdefault(record.cell, launch)
        if isinstance(launch.output, list):
            seconds[record.cell, record.implementation] += [run.time_s for run in launch.output]
    implementations = sorted({name for rounds in data.values() for name in rounds})
    chosen = base or (implementations[0] if implementations else "")
    if base and base not in implementations:
        raise ValueError(
            f"{base} was not measured in {campaign.path.name}; choose one of: "
            f"{', '.join(implementations)}"
        )
    cells = []
    for name in sorted(data, key=lambda cell: cell_order(about[cell])):
        rounds = data[name]
        record = about[name].record
        sign = 1 if metrics()[record.experiment]["better"] == "higher" else -1
        verdicts = {
            other: Verdict(
                other,
                chosen,
                paired_ratio(log_ratios(rounds[other], rounds.get(chosen, {}), sign)),
            )
            for other in rounds
            if other != chosen
        }
        cells.append(
            Cell(
                name=name,
                experiment=record.experiment,
                parameters=dict(record.parameters),
                estimates={other: estimates_of(rounds[other]) for other in sorted(rounds)},
                verdicts=verdicts,
                seconds={
                    other: median(seconds[name, other]) for other in rounds if seconds[name, other]
                },
            )
        )
    comparison = Comparison(campaign, chosen, implementations, cells)
    correct(comparison)
    return comparison


def correct(comparison: Comparison) -> None:
    """Set the adjusted p values, one family per experiment."""
    families: dict[str, list[Verdict]] = defaultdict(list)
    for cell in comparison.cells:
        families[cell.experiment] += cell.verdicts.values()
    for family in families.values():
        told = [verdict for verdict in family if verdict.ratio.p_value is not None]
        adjusted = holm([verdict.ratio.p_value or 0.0 for verdict in told])
        for verdict, p_value in zip(told, adjusted, strict=True):
            verdict.adjusted_p = p_value


PAIR_ORDER = ["Send", "Isend", "Ssend", "Issend"]
RANGE_ORDER = {"short": 0, "medium": 1, "long": 2}


def cell_order(launch: Launch) -> tuple[Any, ...]:
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
    return (2, str(parameters))
