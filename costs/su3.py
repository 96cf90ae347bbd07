"""What su3 computes per second, beside an ordinary code and what memory and cores allow.

A part of `python -m costs.inside_and_outside`: `su3` of an image on one rank and on two, and both
roofs of these (Williams, Waterman and Patterson 2009: STREAM's triad and DGEMM), run alternately;
on one rank also `su3_naive`, built here, on the same lattices. su3's rates are by processor time,
so that other guests of the machine affect them less; docs/performance.md shows a run.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from costs.hpl import dgemm_rate
from costs.places import Place
from records.node_rates import StreamResult
from records.program_output import read_program_output
from records.su3 import FLOPS_OF_SITE_UPDATE, Su3Result

ROOT = Path(__file__).resolve().parent.parent
SIDES = (4, 8, 12, 16)
#: Of a measurement, about, at least.
SITE_UPDATES = 200_000
#: Of a trajectory, of every lattice the same number: its momenta, energies and plaquettes take as
#: large a part of the time then, whatever the volume.
STEPS = 50
#: From this side on there are half as many alternations: su3_naive takes seconds.
LARGE_SIDE = 12
#: What a site update has to move to and from memory where nothing stays in a cache, in double
#: precision: links are read and written when they move (4 matrices of 18 numbers, twice), read when
#: momenta turn, and these (4 of 9 numbers) are read twice and written once.
BYTES_OF_SITE_UPDATE = 8 * (3 * 4 * 18 + 3 * 4 * 9)
#: What moves over what STREAM counts of triad, 24 bytes of an element: a cache that reads a line
#: before it is written moves 32. su3 writes only what it has read, so all of its bytes count.
MOST_OVER_COUNTED = Fraction(32, 24)
RANKS = (1, 2)
#: What is compared inside and outside an image: it lasts seconds, so that 2% can be seen.
COMPARED_SIDE, COMPARED_UPDATES = 12, 3_300_000
TRIAD = ["stream", "--kernel", "triad", "--iterations", "5"]


def build_naive(folder: Path) -> Path:
    """Build su3_naive, which needs no MPI, with the machine's own compiler; return the program."""
    subprocess.run(
        ["make", "-s", "-C", str(ROOT / "benchmarks"), "CC=gcc", f"BUILD={folder}", "su3_naive"],
        check=True,
    )
    return folder / "bin" / "su3_naive"


def arguments(side: int, updates: int = SITE_UPDATES) -> list[str]:
    """Return the arguments of whole trajectories of a lattice of side^4, of about so many updates.

    It is one trajectory at least.
    """
    wanted = max(1, round(updates / (STEPS * side**4)))
    lattice = [word for name in "xyzt" for word in (f"--n{name}", str(side))]
    counts = ["--trajectories", str(wanted), "--steps", str(STEPS)]
    return [*lattice, *counts, "--step-size", "0.01"]


def alternations(side: int, rounds: int) -> int:
    """Return how often a lattice of side^4 is measured."""
    return (rounds + 1) // 2 if side >= LARGE_SIDE else rounds


def trajectories(place: Place, mpiexec: list[str], ranks: int, words: list[str]) -> Su3Result:
    """Return su3's result for a lattice on some ranks."""
    out = place.keep([*mpiexec, "-n", str(ranks), "su3", *words])
    [result] = read_program_output(out).results
    assert isinstance(result, Su3Result)
    return result


def rates(place: Place, mpiexec: list[str]) -> dict[str, float]:
    """Return the site updates per second on one rank and on two, by the clock."""
    found = {}
    for ranks in RANKS:
        words = arguments(COMPARED_SIDE, COMPARED_UPDATES)
        result = trajectories(place, mpiexec, ranks, words)
        name = f"su3, {COMPARED_SIDE}^4, {ranks} rank(s) (updates/s)"
        found[name] = result.site_updates / result.wall_s
    return found


def vector_rate(place: Place, mpiexec: list[str], ranks: int, side: int, precision: str) -> float:
    """Return the site updates per second of processor time, which the slowest rank decides."""
    words = [*arguments(side), "--precision", precision]
    result = trajectories(place, mpiexec, ranks, words)
    return result.site_updates / max(result.cpu_by_rank_s)


def triad_rate(place: Place, mpiexec: list[str], ranks: int) -> float:
    """Return the best bandwidth of all ranks at once by STREAM's triad, in B/s."""
    [result] = read_program_output(place.keep([*mpiexec, "-n", str(ranks), *TRIAD])).results
    assert isinstance(result, StreamResult)
    return result.best_bandwidth


def naive(program: Path, side: int) -> dict[str, Any]:
    """Return su3_naive's result for the same lattice."""
    done = subprocess.run([program, *arguments(side)], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@dataclass(frozen=True)
class SpeedRow:
    """A lattice on some ranks: site updates per second, medians, and of su3_naive on one rank."""

    side: int
    double: float
    single: float
    naive: float | None
    double_over_naive: float | None


@dataclass(frozen=True)
class Roofs:
    """The best that some ranks can do: triad's bandwidth in B/s, DGEMM's rate in FLOP/s.

    The bandwidth is as STREAM counts it, so the roof of memory is low by up to MOST_OVER_COUNTED.
    """

    ranks: int
    bandwidth: float
    peak: float

    def of_memory(self, updates: float) -> float:
        """Return a rate as a fraction of what memory allows if nothing stays in a cache."""
        return updates * BYTES_OF_SITE_UPDATE / self.bandwidth

    def of_peak(self, updates: float) -> float:
        """Return a rate as a fraction of DGEMM's, by the usual count of operations."""
        return updates * FLOPS_OF_SITE_UPDATE / self.peak

    def row(self, row: SpeedRow) -> str:
        """Return a lattice's row of the table."""
        others = "– | –"
        if row.naive is not None:
            others = f"{row.naive:.3g} | {row.double_over_naive:.1f}"
        return (
            f"| {row.side}^4 | {self.ranks} | {row.side**4 / row.double:.3g} | {row.double:.3g} "
            f"| {row.single:.3g} | {others} | {row.double * FLOPS_OF_SITE_UPDATE / 1e9:.1f} "
            f"| {self.of_memory(row.double):.2f} | {self.of_peak(row.double):.2f} |"
        )

    def sentence(self, rows: list[SpeedRow]) -> str:
        """Return both roofs, which is the lower, and how su3 compares with them."""
        by_memory = self.bandwidth / BYTES_OF_SITE_UPDATE
        by_peak = self.peak / FLOPS_OF_SITE_UPDATE
        lower = "Memory's" if by_memory < by_peak else "DGEMM's"
        memory, peak = ([of(row.double) for row in rows] for of in (self.of_memory, self.of_peak))
        return (
            f"On {self.ranks} rank(s), at best: triad {self.bandwidth / 1e9:.2f} GB/s as STREAM "
            f"counts, up to {MOST_OVER_COUNTED} of it where a store reads its line first, which "
            f"allows {by_memory:.3g} updates/s "
            f"({by_memory * FLOPS_OF_SITE_UPDATE / 1e9:.1f} GFLOP/s) in double precision; DGEMM "
            f"{self.peak / 1e9:.1f} GFLOP/s, which allows {by_peak:.3g} updates/s. {lower} roof "
            f"is the lower. su3 is at {min(memory):.2f} to {max(memory):.2f} of memory's and "
            f"{min(peak):.2f} to {max(peak):.2f} of DGEMM's."
        )


def rank_counts() -> list[int]:
    """Return on how many ranks lattices are measured here: no more than there are cores."""
    cores = len(os.sched_getaffinity(0))
    return [ranks for ranks in RANKS if ranks <= cores]


def measure(
    place: Place, mpiexec: list[str], program: Path, ranks: int, rounds: int
) -> tuple[Roofs, list[SpeedRow]]:
    """Measure all lattices on some ranks, and both roofs in the same alternation."""
    bandwidths: list[float] = []
    peaks: list[float] = []
    rows = []
    for side in SIDES:
        found: dict[str, list[float]] = {"double": [], "single": [], "naive": []}
        for _ in range(alternations(side, rounds)):
            for precision in ("double", "single"):
                found[precision].append(vector_rate(place, mpiexec, ranks, side, precision))
            if ranks == 1:
                compared = naive(program, side)
                found["naive"].append(compared["site_updates"] / compared["cpu_s"])
            bandwidths.append(triad_rate(place, mpiexec, ranks))
            peaks.append(dgemm_rate(place, mpiexec, ranks))
        double, single = statistics.median(found["double"]), statistics.median(found["single"])
        other = ratio = None
        if found["naive"]:
            other = statistics.median(found["naive"])
            ratio = statistics.median(
                one / two for one, two in zip(found["double"], found["naive"], strict=True)
            )
        rows.append(SpeedRow(side, double, single, other, ratio))
    return Roofs(ranks, max(bandwidths), max(peaks)), rows


def table(place: Place, mpiexec: list[str], rounds: int) -> list[str]:
    """Return the lines of a Markdown table, and on what bounds the rates."""
    lines = [
        "| lattice | ranks | a step (s) | su3, double (updates/s) | su3, single | su3_naive "
        "| double over naive | GFLOP/s, double | of memory's roof | of DGEMM's |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as name:
        program = build_naive(Path(name))
        found = [measure(place, mpiexec, program, ranks, rounds) for ranks in rank_counts()]
    lines += [roofs.row(row) for roofs, rows in found for row in rows]
    lines += [
        "",
        f"A site update moves {BYTES_OF_SITE_UPDATE} bytes at least where nothing stays in a "
        f"cache, and is counted as {FLOPS_OF_SITE_UPDATE} operations: "
        f"{FLOPS_OF_SITE_UPDATE / BYTES_OF_SITE_UPDATE:.1f} a byte. A lattice that stays in a "
        "cache may be above memory's roof.",
    ]
    for roofs, rows in found:
        lines += ["", roofs.sentence(rows)]
    return lines
