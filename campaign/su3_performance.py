"""What su3 computes per second, beside an ordinary code and what the machine's memory allows.

A part of `python -m campaign.performance`: `su3` of an image on one rank, and `su3_naive`, built
here, run alternately on the same lattices. Rates are by processor time, so that other guests of the
machine take less part in them; docs/performance.md holds a run.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analysis.records import read_program_output
from analysis.su3_records import FLOPS_OF_SITE_UPDATE, Su3

ROOT = Path(__file__).resolve().parent.parent
SIDES = (4, 8, 12, 16)
#: Of one measurement, about.
SITE_UPDATES = 200_000
#: What a site update has to move to and from memory where nothing stays in a cache, in double
#: precision: links are read and written when they move (4 matrices of 18 numbers, twice), read when
#: momenta turn, and these (4 of 9 numbers) are read twice and written once.
NUMBERS_OF_SITE_UPDATE = 3 * 4 * 18 + 3 * 4 * 9
BYTES_OF_DOUBLE = 8


Command = Callable[[list[str]], Path]


def build_naive(folder: Path) -> Path:
    """Build su3_naive, which needs no MPI, with the machine's own compiler; return the program."""
    subprocess.run(
        ["make", "-s", "-C", str(ROOT / "benchmarks"), "CC=gcc", f"BUILD={folder}", "su3_naive"],
        check=True,
    )
    return folder / "bin" / "su3_naive"


def arguments(side: int) -> list[str]:
    """Return the arguments of a lattice of side^4, of about SITE_UPDATES."""
    steps = max(2, SITE_UPDATES // side**4)
    lattice = [word for name in "xyzt" for word in (f"--n{name}", str(side))]
    return [*lattice, "--trajectories", "1", "--steps", str(steps), "--step-size", "0.01"]


def vector_rate(start: Command, side: int, precision: str) -> float:
    """Return the site updates per second of processor time of su3 on one rank."""
    out = start(["su3", *arguments(side), "--precision", precision])
    [result] = read_program_output(out).results
    assert isinstance(result, Su3)
    return result.site_updates / result.cpu_by_rank_s[0]


def naive(program: Path, side: int) -> dict[str, Any]:
    """Return what su3_naive says of the same lattice."""
    done = subprocess.run([program, *arguments(side)], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table(start: Command, rounds: int) -> list[str]:
    """Return the lines of a Markdown table, and of what bounds the rates.

    `start` runs a command of an image on one rank and returns the file of what it prints.
    """
    bandwidths: list[float] = []
    lines = [
        "| lattice | su3, double (updates/s) | su3, single | su3_naive | double over naive "
        "| GFLOP/s, double |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as name:
        program = build_naive(Path(name))
        for side in SIDES:
            found: dict[str, list[float]] = {"double": [], "single": [], "naive": []}
            for _ in range(rounds):
                for precision in ("double", "single"):
                    found[precision].append(vector_rate(start, side, precision))
                compared = naive(program, side)
                found["naive"].append(compared["site_updates"] / compared["cpu_s"])
                bandwidths.append(compared["triad_bytes_per_s"])
            double, single, other = (statistics.median(rates) for rates in found.values())
            ratio = statistics.median(
                one / two for one, two in zip(found["double"], found["naive"], strict=True)
            )
            lines.append(
                f"| {side}^4 | {double:.3g} | {single:.3g} | {other:.3g} | {ratio:.1f} "
                f"| {double * FLOPS_OF_SITE_UPDATE / 1e9:.1f} |"
            )
    best = max(bandwidths)
    moved = NUMBERS_OF_SITE_UPDATE * BYTES_OF_DOUBLE
    lines += [
        "",
        f"Triad on one core: {best / 1e9:.2f} GB/s, the best of {len(bandwidths)}. A site update "
        f"moves {moved} bytes at least where nothing stays in a cache, and is counted as "
        f"{FLOPS_OF_SITE_UPDATE} operations: {FLOPS_OF_SITE_UPDATE / moved:.1f} a byte. So memory "
        f"allows {best / moved:.3g} updates/s ({best / moved * FLOPS_OF_SITE_UPDATE / 1e9:.1f} "
        "GFLOP/s) in double precision and twice that in single.",
    ]
    return lines
