"""HPL as in Kearns 2003: Tables 4 and 5, Figure 8, Appendix D; and its fraction of DGEMM.

Rates are FLOP/s by HPL's count of operations, and times are computed from them: HPL prints its time
to 10 ms and its rate to four digits. A speedup is over one process (grid 1x1) at the same N and NB;
Hoefler and Belli (SC'15, rule 1) want that base and its absolute rate stated, so both are in the
tables.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, geometric_mean, stdev

from analysis.comparison.oversubscription import without_waiting
from analysis.tables.table import (
    COUNT,
    FIRST,
    RATIO,
    Column,
    Kind,
    Row,
    Table,
    formatted,
    interval,
    of_ratio,
    scaled,
)
from analysis.tables.units import ratio_text
from inference.intervals import Interval, Ratio, median, median_interval, paired_ratio
from records.campaign import Campaign, cells_with
from records.counting import how_many
from records.node_rates import DgemmResult
from records.profile import is_profiled
from records.program_output import ProgramOutput

RoundsOf = dict[int, float]  # round -> FLOP/s


def operations(n: int) -> float:
    """Return HPL's count of floating-point operations for a system of order n."""
    return 2 / 3 * n**3 + 3 / 2 * n**2


@dataclass(frozen=True, order=True)
class Problem:
    """A grid, the order of the matrix and the block size."""

    p: int
    q: int
    n: int
    nb: int

    @property
    def ranks(self) -> int:
        """Return the number of places in the grid."""
        return self.p * self.q


@dataclass(frozen=True)
class Solved:
    """What one launch of HPL measured; `rate` in FLOP/s."""

    problem: Problem
    implementation: str
    round: int
    rate: float
    cell: str = ""


@dataclass(frozen=True)
class ProblemRates:
    """An implementation's launches of one problem, against one process and against DGEMM."""

    problem: Problem
    implementation: str
    rounds: RoundsOf
    #: Of the grid 1x1 at the same N and NB: the median rate in FLOP/s, and the ratio to it.
    base_rate: float | None
    speedup: Ratio | None
    #: The ratio to as many ranks' part of the node's DGEMM rate with all cores busy.
    of_dgemm: Ratio | None
    #: Its own cells, and those of the base.
    cells: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        """Return the median rate over launches, in FLOP/s."""
        return median(list(self.rounds.values()))

    @property
    def seconds(self) -> float:
        """Return the time to solve that belongs to the median rate."""
        return operations(self.problem.n) / self.rate

    @property
    def deviation(self) -> float | None:
        """Return the rates' sample standard deviation (Appendix D), None for a single launch."""
        return stdev(self.rounds.values()) if len(self.rounds) > 1 else None

    @property
    def interval(self) -> Interval:
        """Return the interval of the median."""
        return median_interval(list(self.rounds.values()))

    @property
    def efficiency(self) -> float | None:
        """Return the speedup by the number of ranks."""
        return self.speedup.value / self.problem.ranks if self.speedup else None


def ratio_by_rounds(of: Mapping[int, float], base: Mapping[int, float]) -> Ratio | None:
    """Return the ratio over the rounds that both have, None if there are none."""
    both = sorted(of.keys() & base.keys())
    return paired_ratio([math.log(of[r] / base[r]) for r in both]) if both else None


def rows_of(
    solved: Iterable[Solved], dgemm: Mapping[str, RoundsOf] | None = None
) -> list[ProblemRates]:
    """Return the rows by number of ranks, grid, N and NB, as in the thesis.

    `dgemm` has the rate of one rank, all cores being busy, in FLOP/s by implementation and round.
    It is the node's, so that where a campaign measured it by one implementation it is for all.
    """
    of_node = next(iter((dgemm or {}).values()), {})
    measured: dict[tuple[Problem, str], RoundsOf] = defaultdict(dict)
    cells: dict[tuple[Problem, str], set[str]] = defaultdict(set)
    for one in solved:
        measured[one.problem, one.implementation][one.round] = one.rate
        if one.cell:
            cells[one.problem, one.implementation].add(one.cell)
    rows = []
    for (problem, name), rounds in measured.items():
        one_process = Problem(1, 1, problem.n, problem.nb), name
        base = measured.get(one_process)
        of_ranks = {r: problem.ranks * rate for r, rate in (dgemm or {}).get(name, of_node).items()}
        rows.append(
            ProblemRates(
                problem, name, rounds,
                base_rate=median(list(base.values())) if base else None,
                speedup=ratio_by_rounds(rounds, base) if base else None,
                of_dgemm=ratio_by_rounds(rounds, of_ranks),
                cells=tuple(sorted(cells[problem, name] | cells[one_process])),
            )
        )  # fmt: skip
    return sorted(rows, key=lambda r: (r.problem.ranks, r.problem, r.implementation))


def solved_in(campaign: Campaign) -> list[Solved]:
    """Return what a campaign's launches of HPL measured.

    Without cells whose ranks waited for processors, and profiled ones: a profile costs time, so
    what it watched is no measurement.
    """
    return [
        Solved(
            Problem(run.p, run.q, run.n, run.nb),
            launch.record.implementation,
            launch.record.round,
            run.rate_flops,
            launch.record.cell,
        )
        for launch in without_waiting(campaign)
        if isinstance(launch.output, list) and not is_profiled(launch.record.experiment)
        for run in launch.output
    ]


def dgemm_in(campaign: Campaign) -> dict[str, RoundsOf]:
    """Return the DGEMM rate of one rank in FLOP/s, by implementation and round."""
    found: dict[str, RoundsOf] = defaultdict(dict)
    for launch in campaign.sound():
        if isinstance(launch.output, ProgramOutput):
            for result in launch.output.results:
                if isinstance(result, DgemmResult):
                    rate = result.rate_flops / result.ranks
                    found[launch.record.implementation][launch.record.round] = rate
    return found


def of_the_thesis(root: Path, by: str = "gflops") -> list[Solved]:
    """Return Tables 4 and 5 of Kearns 2003 (means of five runs), by their GFLOPS or their seconds.

    NB is that of Appendix A. GFLOPS have three digits after the point.
    """
    with (root / "literature" / "kearns2003/hpl.csv").open() as table:
        return [
            Solved(
                Problem(int(row["grid_p"]), int(row["grid_q"]), n := int(row["n"]), 150),
                row["mpi"],
                1,
                float(row["gflops"]) * 1e9
                if by == "gflops"
                else operations(n) / float(row["seconds"]),
            )
            for row in csv.DictReader(table)
        ]


def mean_advantage(rows: Iterable[ProblemRates], one: str, other: str) -> tuple[float, int]:
    """Return by how much `one` is faster on average, as a fraction, and over how many problems.

    As Kearns 2003, section 4.1.2, counts it: the arithmetic mean of the ratios of the problems that
    both have, except those on one process. It is only for comparison with the thesis; the
    verdicts take geometric means of paired rounds. 0 problems make it NaN.
    """
    rates: dict[Problem, dict[str, float]] = defaultdict(dict)
    for row in rows:
        rates[row.problem][row.implementation] = row.rate
    parts = [
        found[one] / found[other] - 1
        for problem, found in rates.items()
        if problem.ranks > 1 and one in found and other in found
    ]
    return (fmean(parts) if parts else math.nan), len(parts)


def block_size_sentences(rows: list[ProblemRates]) -> list[str]:
    """Return which block size was the fastest of those tried on a grid at one N, if one was.

    Every implementation counts the same: the geometric mean over those that have all block sizes.
    The others are compared with the best by rounds, and it is named if every interval leaves
    out 1; chance alone chooses among equal ones otherwise.
    """
    tried: dict[tuple[int, int, int], dict[str, dict[int, RoundsOf]]] = defaultdict(dict)
    for row in rows:
        key = row.problem.p, row.problem.q, row.problem.n
        tried[key].setdefault(row.implementation, {})[row.problem.nb] = row.rounds
    sentences = []
    for (p, q, n), by_name in tried.items():
        sizes = sorted({nb for found in by_name.values() for nb in found})
        whole = [found for found in by_name.values() if len(found) == len(sizes)]
        rates = {nb: mean_by_rounds([found[nb] for found in whole]) for nb in sizes}
        both = set.intersection(*(set(rounds) for rounds in rates.values()))
        if len(sizes) < 2 or not both:
            continue
        rates = {nb: {r: rounds[r] for r in both} for nb, rounds in rates.items()}
        means = {nb: geometric_mean(rates[nb].values()) for nb in sizes}
        best = max(sizes, key=lambda nb: means[nb])
        ratios = {nb: ratio_by_rounds(rates[nb], rates[best]) for nb in sizes if nb != best}
        equal = [nb for nb, ratio in ratios.items() if not is_below(ratio)]
        parts = ", ".join(part_of_best(nb, ratio) for nb, ratio in ratios.items())
        measured = (
            f"over {how_many(len(whole), 'implementation')} and {how_many(len(both), 'round')}"
        )
        which = f"On {p}x{q} at N={n} NB={best}"
        if equal:
            others = ", ".join(map(str, equal))
            sentences.append(
                f"{which} could not be distinguished from {others} {measured}; the others' part "
                "of its "
                f"rate, with 95% intervals: {parts}. More rounds may show a difference within "
                "these intervals."
            )
        else:
            sentences.append(
                f"{which} was the fastest {measured}, {means[best] / 1e9:.4g} GFLOPS; the others' "
                f"part of it, with 95% intervals: {parts}. Record it in the site's data as "
                "hpl_block_size."
            )
    return sentences


def mean_by_rounds(of: list[RoundsOf]) -> RoundsOf:
    """Return the geometric means of the rounds that all have, empty if there are none."""
    both = set.intersection(*(set(rounds) for rounds in of)) if of else set()
    return {r: geometric_mean([rounds[r] for rounds in of]) for r in both}


def is_below(ratio: Ratio | None) -> bool:
    """Return whether a ratio is shown to be below 1 by its whole interval."""
    return bool(ratio and ratio.interval and ratio.interval.high < 1)


def part_of_best(nb: int, ratio: Ratio | None) -> str:
    """Return in words a block size with its fraction of the best one's rate."""
    words, within = ratio_text(ratio)
    return f"{nb}: {words} ({'no interval' if within == '–' else within})"


def median_words(of: tuple[float, float, float], _: str) -> str:
    """Return the interval of a median rate in GFLOPS, with how often it covers the median."""
    low, high, coverage = of
    return f"{low / 1e9:.4g} – {high / 1e9:.4g} ({100 * coverage:.0f}%)"


NAME = "high-performance-linpack"
GIGA = scaled(1e9, ".4g")
COLUMNS = (
    Column("grid", "grid", FIRST, fields=("grid", "p (1)", "q (1)")),
    Column("N", "N", unit="1"), Column("NB", "NB", unit="1"),
    Column("implementation", "implementation"), Column("launches", "launches", COUNT, "1"),
    Column("rate", "GFLOPS", GIGA, "FLOP/s"),
    Column("rate_interval", "interval of the median", Kind(median_words),
           fields=("rate_low (FLOP/s)", "rate_high (FLOP/s)", "interval_coverage (1)")),
    Column("deviation", "standard deviation", scaled(1e9, ".5f"), "FLOP/s"),
    Column("time", "seconds", formatted(".2f"), "s"),
    Column("base_rate", "1x1 GFLOPS", GIGA, "FLOP/s"),
    Column("speedup", "speedup", RATIO, "1"), interval("speedup", "95% interval", "1"),
    Column("efficiency", "efficiency", RATIO, "1"),
    Column("of_dgemm", "of DGEMM", RATIO, "1"), interval("of_dgemm", "95% interval", "1"),
)  # fmt: skip


def table_row(row: ProblemRates, of_dgemm: tuple[str, ...]) -> Row:
    """Return a row of the table; `of_dgemm` are the cells of the implementation's DGEMM."""
    problem, within = row.problem, row.interval
    values = (
        (f"{problem.p}x{problem.q}", problem.p, problem.q), problem.n, problem.nb,
        row.implementation, len(row.rounds), row.rate,
        (within.low, within.high, within.coverage) if len(row.rounds) > 1 else None,
        row.deviation, row.seconds, row.base_rate or None, *of_ratio(row.speedup),
        row.efficiency, *of_ratio(row.of_dgemm),
    )  # fmt: skip
    cells = (*row.cells, *(of_dgemm if row.of_dgemm else ()))
    return Row(values, row.implementation, cells)


@dataclass(frozen=True)
class Hpl:
    """A campaign's HPL, and DGEMM's rate of one rank by implementation and round."""

    rows: list[ProblemRates]
    dgemm: Mapping[str, RoundsOf]


def hpl_in(campaign: Campaign) -> Hpl:
    """Return the rates of a campaign's HPL and DGEMM."""
    dgemm = dgemm_in(campaign)
    return Hpl(rows_of(solved_in(campaign), dgemm), dgemm)


def hpl_table(campaign: Campaign, hpl: Hpl) -> Table | None:
    """Return the table of a campaign's HPL, None if it has no sound launch of it."""
    rows, dgemm = hpl.rows, hpl.dgemm
    if not rows:
        return None
    notes = [
        "GFLOPS and seconds are medians over launches, whereas Kearns 2003, Tables 4 and 5, gives "
        "means of five; the standard deviation, in GFLOPS, is defined as in Appendix D. Speedup: "
        "the rate over "
        "that of one process at the same N and NB, by rounds; efficiency: speedup over ranks. Of "
        "DGEMM: the rate over what as many ranks achieve in DGEMM when all cores of the node run "
        "it at once, in the same rounds; where one image alone ran it, it stands for all.",
        *block_size_sentences(rows),
    ]
    if not dgemm:
        notes.append(
            "The campaign has no sound launch of Dgemm; measure one with CHECKS='Linpack|Dgemm'."
        )
    names = sorted({row.implementation for row in rows})
    for other in names[1:]:
        advantage, count = mean_advantage(rows, other, names[0])
        if count:
            notes.append(
                f"As the thesis counts (LAM against MPICH: +2.6% there): {other} against "
                f"{names[0]}: {100 * advantage:+.1f}% on average over {how_many(count, 'problem')} "
                "on more than one process."
            )
    of_dgemm = cells_with(campaign.sound(), DgemmResult)
    shown = [table_row(row, of_dgemm.get(row.implementation, ())) for row in rows]
    return Table(NAME, "High Performance Linpack", COLUMNS, shown, notes)
