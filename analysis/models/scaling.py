"""How programs scale: speedup, Karp and Flatt's serial part, and powers of the number of ranks.

A launch is one value and rounds are paired, as elsewhere: a speedup is the ratio of the launches
of a round, its interval over rounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from analysis.comparison.oversubscription import without_waiting
from analysis.models.linpack import ProblemRates, RoundsOf, ratio_by_rounds
from inference.intervals import CONFIDENCE, Interval, Ratio, median
from inference.means import ROUNDING, Mean
from records.campaign import Campaign
from records.communication import Communication
from records.launch import LaunchRecord
from records.npb import NpbRun
from records.profile import is_profiled
from records.program_output import ProgramOutput
from records.su3 import Su3Result


class ScaledProblem(NamedTuple):
    """The numbers that say which problem a program solved; None is what it does not have.

    Of HPL the grid p x q, the order n and the block size nb; of su3 the lattice, or in weak scaling
    the sites of a rank.
    """

    p: int | None = None
    q: int | None = None
    n: int | None = None
    nb: int | None = None
    lattice_x: int | None = None
    lattice_y: int | None = None
    lattice_z: int | None = None
    lattice_t: int | None = None
    sites_of_a_rank: int | None = None


NO_NUMBERS = ScaledProblem()


@dataclass(frozen=True)
class Scaled:
    """A program at a number of ranks compared with itself at the fewest (`base_ranks`).

    The problem is the same, or in `weak` scaling the same for each rank. `base` is the median of
    that in `unit`, since a speedup alone says nothing (Hoefler and Belli 2015, rule 1).
    """

    what: str
    implementation: str
    ranks: int
    base_ranks: int
    base: float
    unit: str
    speedup: Ratio
    weak: bool = False
    #: Its own cells, and those of the base.
    cells: tuple[str, ...] = ()
    problem: ScaledProblem = NO_NUMBERS

    @property
    def efficiency(self) -> float:
        """Return the speedup over the ratio of the numbers of ranks.

        In weak scaling it is a rank's rate over that of a rank of the base.
        """
        return self.speedup.value * self.base_ranks / self.ranks

    @property
    def serial_part(self) -> float | None:
        """Return Karp and Flatt's serial part (1990), by the speedup: of one size only."""
        if self.weak:
            return None
        return serial_part(self.speedup.value, self.ranks, self.base_ranks)

    @property
    def serial_interval(self) -> Interval | None:
        """Return the serial parts at the ends of the speedup's interval."""
        of = self.speedup.interval
        if of is None or self.weak:
            return None
        # The faster, the less of it is serial.
        low = serial_part(of.high, self.ranks, self.base_ranks)
        high = serial_part(of.low, self.ranks, self.base_ranks)
        return None if low is None or high is None else Interval(low, high, of.coverage)


def serial_part(speedup: float, ranks: int, base_ranks: int = 1) -> float | None:
    """Return the serial part f of the work that gives a speedup over `base_ranks`.

    Karp and Flatt (CACM 33, 1990): f = (1/S - 1/p) / (1 - 1/p) against one rank. Against p0 ranks
    it follows from the same T(p) = T(1) (f + (1 - f) / p). Below 0 the speedup is more than linear.
    None if no serial part explains it: on as many ranks as the base, or slower than a program
    that is all serial.
    """
    if ranks == base_ranks or speedup <= 0:
        return None
    bottom = speedup * (1 - 1 / ranks) - (1 - 1 / base_ranks)
    return (1 / base_ranks - speedup / ranks) / bottom if bottom > 0 else None


@dataclass(frozen=True)
class Timed:
    """A launch of a program; `rate` in work per second, of which `unit` is the name.

    In `weak` scaling the problem grows with the ranks, and `rate` is that of all of them.
    """

    what: str
    implementation: str
    ranks: int
    round: int
    rate: float
    unit: str
    weak: bool = False
    cell: str = ""
    problem: ScaledProblem = NO_NUMBERS


def scaled_of(measured: Sequence[Timed]) -> list[Scaled]:
    """Return every program at each number of ranks compared with its fewest."""
    rates: dict[tuple[str, str, str, bool], dict[int, RoundsOf]] = defaultdict(
        lambda: defaultdict(dict)
    )
    cells: dict[tuple[str, str, str, bool], dict[int, set[str]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for one in measured:
        key = (one.what, one.implementation, one.unit, one.weak)
        rates[key][one.ranks][one.round] = one.rate
        if one.cell:
            cells[key][one.ranks].add(one.cell)
    problems = {one.what: one.problem for one in measured}
    rows = []
    for (what, name, unit, weak), by_ranks in sorted(rates.items()):
        base_ranks = min(by_ranks)
        base = by_ranks[base_ranks]
        for ranks in sorted(by_ranks.keys() - {base_ranks}):
            speedup = ratio_by_rounds(by_ranks[ranks], base)
            if speedup:
                of = median(list(base.values()))
                of_cells = cells[what, name, unit, weak]
                both = tuple(sorted(of_cells[ranks] | of_cells[base_ranks]))
                rows.append(
                    Scaled(
                        what, name, ranks, base_ranks, of, unit, speedup, weak, both,
                        problems[what],
                    )
                )  # fmt: skip
    return rows


def hpl_scaled(rows: Iterable[ProblemRates]) -> list[Scaled]:
    """Return HPL's speedups over one process (analysis/models/linpack.py)."""
    return [
        Scaled(
            f"HPL {row.problem.p}x{row.problem.q} N={row.problem.n} NB={row.problem.nb}",
            row.implementation, row.problem.ranks, 1, row.base_rate, "FLOP/s", row.speedup,
            cells=row.cells,
            problem=ScaledProblem(row.problem.p, row.problem.q, row.problem.n, row.problem.nb),
        )
        for row in rows
        if row.problem.ranks > 1 and row.speedup and row.base_rate
    ]  # fmt: skip


def su3_measured(record: LaunchRecord, result: Su3Result) -> list[Timed]:
    """Return a launch of su3 as a point of strong and of weak scaling.

    A weak lattice grows with the ranks, so its launches belong together by suite and by a rank's
    sites, and their rate counts sites. On one rank weak and strong scaling are the same launch,
    which is the base of both.
    """
    suite = record.parameters.get("suite", "")
    weak = record.parameters.get("scaling") == "weak"
    seconds = result.time_s.median
    found = []
    if not weak:
        lattice = "x".join(map(str, result.lattice))
        found.append(
            Timed(
                f"su3 {suite} {lattice}", record.implementation, record.ranks, record.round,
                1 / seconds, "trajectories/s", cell=record.cell,
                problem=ScaledProblem(None, None, None, None, *result.lattice),
            )
        )  # fmt: skip
    if weak or record.ranks == 1:
        updates = result.site_updates / result.trajectories
        found.append(
            Timed(
                f"su3 {suite}, weak, {result.own_sites} sites a rank", record.implementation,
                record.ranks, record.round, updates / seconds, "updates/s", weak=True,
                cell=record.cell, problem=ScaledProblem(sites_of_a_rank=result.own_sites),
            )
        )  # fmt: skip
    return found


def programs_in(campaign: Campaign) -> list[Timed]:
    """Return the launches of NAS benchmarks and su3: with one size of the problem, or a rank's."""
    found = []
    for launch in without_waiting(campaign):
        record, output = launch.record, launch.output
        # A profile costs time: its launches are no measurement of the program.
        if is_profiled(record.experiment):
            continue
        if isinstance(output, NpbRun):
            what, rate = f"NAS {output.benchmark}.{output.problem_class}", output.rate_ops
            found.append(
                Timed(
                    what, record.implementation, record.ranks, record.round, rate, "op/s",
                    cell=record.cell,
                )
            )  # fmt: skip
        elif isinstance(output, ProgramOutput):
            for result in output.results:
                if isinstance(result, Su3Result):
                    found += su3_measured(record, result)
    return found


class Exchange(NamedTuple):
    """An all-to-all, or messages of some ranks to some, on maybe so many ranks a node."""

    #: Of one block in bytes; None where the sizes are drawn, by `series`.
    message_bytes: int | None
    series: str
    ranks_per_node: int | None

    @property
    def words(self) -> str:
        """Return the exchange as it is called."""
        kind = f"STS, {self.series}"
        if self.message_bytes is not None:
            kind = f"ATA, {self.message_bytes} bytes to each"
        return f"{kind}, {self.ranks_per_node} on a node" if self.ranks_per_node else kind


@dataclass(frozen=True)
class Power:
    """B(p) = scale p^exponent through `counts` numbers of ranks; B in B/s and rank.

    `exponent.launches` is the number of points, each a median over launches.
    """

    exchange: Exchange
    implementation: str
    counts: tuple[int, ...]
    exponent: Mean | None
    cells: tuple[str, ...] = ()


def power_of(values: Mapping[int, float], confidence: float = CONFIDENCE) -> Mean:
    """Return the exponent of values over numbers of ranks: a line through their logarithms.

    The interval is Student's from the points' distances to the line, so that it includes both noise
    and deviations from a power law. Raises ValueError below two numbers of ranks or at values that
    are not positive; with two there is no interval.
    """
    if len(values) < 2 or not all(v > 0 and p > 0 for p, v in values.items()):
        raise ValueError("an exponent needs positive values at two numbers of ranks at least")
    # Takes a second to be loaded, and few commands ask for it.
    from scipy import stats

    x = np.log(np.array(list(values), float))
    y = np.log(np.array(list(values.values()), float))
    line = stats.linregress(x, y)
    count = len(values)
    if count < 3:
        return Mean(float(line.slope), None, count)
    slope = float(line.slope)
    if float(line.stderr) <= ROUNDING:
        return Mean(slope, None, count, agree=True)
    half = float(special.stdtrit(count - 2, (1 + confidence) / 2)) * float(line.stderr)
    return Mean(slope, Interval(slope - half, slope + half, confidence), count)


def bandwidths_per_rank(
    campaign: Campaign, cells: dict[tuple[Exchange, str], set[str]] | None = None
) -> dict[tuple[Exchange, str], dict[int, list[float]]]:
    """Return what a rank sends per second (B/s) by exchange, implementation and number of ranks.

    In an all-to-all a rank is credited with the block that it sends to itself, as in NASA 2003.
    `cells` gets those that each exchange of an implementation was measured in.
    """
    found: dict[tuple[Exchange, str], dict[int, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for launch in without_waiting(campaign):
        if not isinstance(launch.output, ProgramOutput):
            continue
        for result in launch.output.results:
            if not isinstance(result, Communication) or result.time_s.median <= 0:
                continue
            seconds = result.time_s.median
            name = launch.record.implementation
            chosen = launch.record.parameters.get("ranks_per_node")
            on_a_node = int(chosen) if chosen else None
            # Other forms, and other beginnings, have other times.
            is_usual = not result.method and result.synchronisation == "barrier"
            is_alltoall = (result.operation, result.group) == ("alltoall", "world") and is_usual
            if is_alltoall and result.message_bytes:
                exchange = Exchange(result.message_bytes, "", on_a_node)
                rate = result.message_bytes * result.ranks / seconds
            elif result.operation == "some-to-some":
                # The mean size of the drawn messages differs with the number of ranks.
                exchange = Exchange(None, result.series, on_a_node)
                rate = result.moved_bytes / result.ranks / seconds
            else:
                continue
            found[exchange, name][result.ranks].append(rate)
            if cells is not None:
                cells.setdefault((exchange, name), set()).add(launch.record.cell)
    return found


def powers_in(campaign: Campaign) -> list[Power]:
    """Return the exponents of STS and ATA, None if there is only one number of ranks."""
    powers = []
    cells: dict[tuple[Exchange, str], set[str]] = {}
    rates = bandwidths_per_rank(campaign, cells)
    for exchange, name in sorted(rates, key=lambda key: (key[0].words, key[1])):
        by_ranks = rates[exchange, name]
        values = {ranks: median(by_ranks[ranks]) for ranks in sorted(by_ranks)}
        exponent = power_of(values) if len(values) > 1 else None
        own = tuple(sorted(cells[exchange, name]))
        powers.append(Power(exchange, name, tuple(values), exponent, own))
    return powers
