"""Models of a message's time over its size: lines between protocol switches, and their intervals.

Between two switches a message takes t(n) = alpha + beta n (Hockney 1994): alpha is the start-up,
1 / beta the asymptotic bandwidth, n1/2 = alpha / beta the size that reaches half of it. The
switches are found in medians over launches (inference/protocol_switch.py); then each round's own
times are fitted between them, at the sizes that it has there, so that a round is one value and
intervals are over rounds. All fits weigh relative errors: a short message counts as much as a long
one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from analysis.comparison.oversubscription import without_waiting
from analysis.models.one_way_times import RAW, RoundsBySize, medians, one_way_times
from inference.means import Mean, mean_of_launches, quotient_of_launches
from inference.protocol_switch import (
    FEWEST_POINTS,
    LEAST_SPAN,
    FittedLine,
    Switch,
    fit_line,
    lines_of,
    switches_between,
)
from records.campaign import Campaign
from records.communication import BESIDE, COMPUTING, Communication, PingPong
from records.counting import how_many
from records.launch import RANGE, Launch, LaunchRecord
from records.program_output import ProgramOutput


@dataclass(frozen=True)
class HostsOfRanks:
    """Where a launch's ranks were; `is_near`: ranks 0 and 1, the first pair, are on one host.

    Launches with equal values may still have run on other nodes of the same machine.
    """

    ranks: int
    nodes: int
    is_near: bool

    @property
    def words(self) -> str:
        """Return it as text."""
        hosts = "one host" if self.is_near else "two hosts"
        return f"{self.ranks} ranks on {how_many(self.nodes, 'node')}, the pair on {hosts}"


@dataclass(frozen=True)
class SizeSweep:
    """Times over message size of one cell, series and implementation, in seconds.

    For a ping-pong they are one-way times, half the median round trip. `borders` has the largest
    size of each launch if a round's sizes are divided among launches, `worlds` where each
    round's ranks were.
    """

    cell: str
    series: str
    implementation: str
    ranks: int
    one_way: bool
    rounds: RoundsBySize
    borders: frozenset[int]
    worlds: Mapping[int, HostsOfRanks] = field(default_factory=dict)
    #: The cells of its launches, one for each range where its sizes are divided among launches.
    cells: tuple[str, ...] = ()
    #: Of its first launch.
    experiment: str = ""
    parameters: Mapping[str, str | int | float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the cell and what was measured in it."""
        return f"{self.cell} {self.series}".rstrip()


@dataclass(frozen=True)
class Segment:
    """A line between two switches: alpha in s, beta in s/B, n1/2 in B, each over launches."""

    line: FittedLine
    alpha: Mean
    beta: Mean
    half_bandwidth: Mean
    #: How many rounds are in no fit, since they have too few sizes of the line.
    left_out: int = 0


@dataclass(frozen=True)
class SweepModel:
    """A sweep's lines, and the switches between them.

    `unfitted` are lines through the medians for which no round has enough sizes.
    """

    sweep: SizeSweep
    segments: list[Segment]
    switches: list[Switch]
    unfitted: list[FittedLine] = field(default_factory=list)


def sweep_name(launch: Launch) -> str:
    """Return a launch's cell without its range of sizes, which belong to one sweep."""
    record = launch.record
    if RANGE not in record.parameters:
        return record.cell
    kept = (f"{key}={value}" for key, value in record.parameters.items() if key != RANGE)
    return " ".join([record.experiment, *kept])


def sweeps_of(campaign: Campaign) -> list[SizeSweep]:
    """Return the sweeps over message size of a campaign's messages and communications.

    Except cells whose ranks waited for processors, and messages sent without a library.
    """
    times: dict[tuple[str, str, str], RoundsBySize] = defaultdict(lambda: defaultdict(dict))
    about: dict[tuple[str, str, str], tuple[int, bool]] = {}
    borders: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    worlds: dict[tuple[str, str, str], dict[int, HostsOfRanks]] = defaultdict(dict)
    cells: dict[tuple[str, str, str], dict[str, None]] = defaultdict(dict)
    records: dict[tuple[str, str, str], LaunchRecord] = {}
    for launch in without_waiting(campaign):
        record = launch.record
        if record.program == RAW:
            continue
        if not isinstance(launch.output, ProgramOutput):
            continue
        for result in launch.output.results:
            if isinstance(result, PingPong):
                series, ranks, seconds = "", 2, result.time_s.median / 2
            # A collective operation without data may do nothing, which is on no line; nor is what
            # a computation took.
            elif (
                isinstance(result, Communication)
                and result.message_bytes > 0
                and result.method not in (BESIDE, COMPUTING)
            ):
                series, ranks, seconds = result.series, result.ranks, result.time_s.median
            else:
                continue
            key = (sweep_name(launch), series, record.implementation)
            times[key][record.round][result.message_bytes] = seconds
            about[key] = (ranks, isinstance(result, PingPong))
            worlds[key][record.round] = world_of(launch.output, record.nodes)
            cells[key][record.cell] = None
            records.setdefault(key, record)
        if RANGE in record.parameters:
            sizes = [r.message_bytes for r in launch.output.results if isinstance(r, PingPong)]
            if sizes:
                borders[sweep_name(launch), "", record.implementation].add(max(sizes))
    return [
        SizeSweep(
            *key, *about[key], rounds=dict(rounds), borders=frozenset(borders[key]),
            worlds=worlds[key], cells=tuple(cells[key]),
            experiment=records[key].experiment, parameters=records[key].parameters,
        )
        for key, rounds in sorted(times.items())
    ]  # fmt: skip


def world_of(output: ProgramOutput, nodes: int) -> HostsOfRanks:
    """Return where the ranks of a launch on so many nodes were."""
    hosts = output.header.hosts
    return HostsOfRanks(output.header.ranks, nodes, len(set(hosts[:2])) == 1)


def line_by_round(rounds: RoundsBySize, line: FittedLine) -> tuple[list[float], list[float]]:
    """Return alpha (s) and beta (s/B) of each round, from the sizes that it has on a line.

    A round's own sizes differ from the others' if a sweep is refined. One that has fewer than
    a line needs (three sizes, one of them twice another) is left out.
    """
    fits = []
    for times in rounds.values():
        own = sorted(
            n for n, time in times.items() if line.first_bytes <= n <= line.last_bytes and time > 0
        )
        if len(own) >= FEWEST_POINTS and own[-1] >= LEAST_SPAN * own[0]:
            fits.append(fit_line(np.array(own, float), np.array([times[n] for n in own])))
    return [alpha for alpha, _ in fits], [beta for _, beta in fits]


def model_of(sweep: SizeSweep) -> SweepModel | None:
    """Return the lines of a sweep, None if all rounds together have too few sizes for any."""
    times = medians(sweep.rounds)
    try:
        lines = lines_of(list(times), list(times.values()))
    except ValueError:
        return None
    segments, unfitted = [], []
    for line in lines:
        alphas, betas = line_by_round(sweep.rounds, line)
        if not alphas:
            unfitted.append(line)
            continue
        segments.append(
            Segment(
                line,
                mean_of_launches(alphas),
                mean_of_launches(betas),
                quotient_of_launches(alphas, betas),
                left_out=len(sweep.rounds) - len(alphas),
            )
        )
    return SweepModel(sweep, segments, switches_between(lines), unfitted)


def models_of(sweeps: list[SizeSweep]) -> list[SweepModel]:
    """Return the models of the sweeps that have enough sizes."""
    return [model for sweep in sweeps if (model := model_of(sweep))]


@dataclass(frozen=True)
class Fitted:
    """The sweeps of a campaign and their models, fitted once for all tables.

    `one_way` are the times of its ping-pongs and echoes by cell and implementation.
    """

    sweeps: list[SizeSweep]
    models: list[SweepModel]
    one_way: Mapping[tuple[str, str], RoundsBySize] = field(default_factory=dict)


def fitted_in(campaign: Campaign, only: str = "") -> Fitted:
    """Return the sweeps with `only` in their names, and their models."""
    sweeps = [sweep for sweep in sweeps_of(campaign) if only in sweep.name]
    return Fitted(sweeps, models_of(sweeps), one_way_times(campaign))


def slopes_by_round(sweep: SizeSweep, sizes: list[int]) -> Mapping[int, float]:
    """Return each round's time per byte (s/B) over the sizes, of the rounds that have them all."""
    found = {}
    for number, times in sweep.rounds.items():
        if len(sizes) >= FEWEST_POINTS and all(n in times for n in sizes):
            seconds = np.array([times[n] for n in sizes])
            found[number] = fit_line(np.array(sizes, float), seconds)[1]
    return found
