"""What a campaign's nodes do by themselves, and Table 3.1 of ORNL 1996 with rows of today.

J. Dongarra and T. Dunigan (1996) put operations and message latency of parallel machines into
cycles of the processor's clock. Theirs is the data sheet's clock; ours is measured while the cores
work, since today's clocks follow the load.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

from analysis.campaign import Campaign
from analysis.linpack_records import Dgemm, LinpackSolve, Rate, Stream
from analysis.one_way_times import lines_of_launches
from analysis.records import ProgramOutput
from analysis.row_launches import cells_with
from analysis.statistics import median
from analysis.text_table import TextTable

#: ORNL's message latency is the echo test's.
LATENCY_EXPERIMENT = "EchoTest"


def rates_in(campaign: Campaign) -> dict[str, list[Rate]]:
    """Return the rates that a campaign measured, by implementation."""
    found: dict[str, list[Rate]] = defaultdict(list)
    for launch in campaign.sound():
        if isinstance(launch.output, ProgramOutput) and not launch.record.oversubscribed:
            found[launch.record.implementation] += [
                result for result in launch.output.results if isinstance(result, Rate)
            ]
    return {name: rates for name, rates in sorted(found.items()) if rates}


def node_table(campaign: Campaign) -> TextTable | None:
    """Return DGEMM's and STREAM's rates of a node, None where none was measured."""
    rows = []
    for name, rates in rates_in(campaign).items():
        products = [rate for rate in rates if isinstance(rate, Dgemm)]
        loops: dict[str, list[float]] = defaultdict(list)
        for rate in rates:
            if isinstance(rate, Stream):
                loops[rate.kernel].append(rate.best_bandwidth)
        ranks = sorted({r.ranks for r in rates if not isinstance(r, LinpackSolve)})
        if not ranks:
            continue
        rows.append(
            (
                name, ", ".join(map(str, ranks)),
                f"{median([p.rate_flops for p in products]) / 1e9:.4g}" if products else "–",
                *(f"{median(loops[kernel]) / 1e9:.4g}" if kernel in loops else "–"
                  for kernel in ("copy", "scale", "add", "triad")),
                f"{median([rate.clock_hz for rate in rates]) / 1e6:.0f}",
            )
        )  # fmt: skip
    if not rows:
        return None
    columns = ("implementation", "ranks", "DGEMM, GFLOPS", "copy, GB/s", "scale, GB/s",
               "add, GB/s", "triad, GB/s", "clock, MHz")  # fmt: skip
    note = (
        "All ranks of a node at once, medians over launches. STREAM's value of a launch is its "
        "best iteration and counts no reading of a line before it is written, as McCalpin has it. "
        "They show the machine; between implementations they should not differ."
    )
    of_name = cells_with(campaign, Rate)
    cells = [of_name[row[0]] for row in rows]
    return TextTable("What a node does by itself", columns, rows, 1, [note], cells)


def latencies_in(campaign: Campaign) -> dict[str, tuple[str, float]]:
    """Return the echo test's cell and one-way time in s of 0 bytes, by implementation."""
    return {
        implementation: (cell, line.latency_s)
        for cell, implementation, line in lines_of_launches(campaign)
        if cell.startswith(LATENCY_EXPERIMENT) and line.latency_bytes == 0
    }


def latency_cycles(latency_s: float, clock_hz: float) -> float:
    """Return how many cycles of the clock a latency lasts (ORNL 1996, Table 3.1)."""
    return latency_s * clock_hz


def rows_of_ornl(root: Path) -> list[tuple[str, ...]]:
    """Return Table 3.1 of ORNL 1996 as printed."""
    with (root / "literature" / "ornl1996/compute.csv").open() as table:
        keys = ("clock_mhz", "linpack100_mflops", "linpack100_flop_per_cycle",
                "linpack1000_mflops", "linpack1000_flop_per_cycle", "latency_us",
                "latency_cycles")  # fmt: skip
        return [
            (f"{row['machine']} (1996)", *(row[key] or "–" for key in keys))
            for row in csv.DictReader(table)
        ]


def cycles_table(campaign: Campaign, root: Path) -> TextTable | None:
    """Return Table 3.1 with a campaign's rows above ORNL's; None without SerialLinpack."""
    latencies = latencies_in(campaign)
    rows: list[tuple[str, ...]] = []
    for name, rates in rates_in(campaign).items():
        solved: dict[str, list[LinpackSolve]] = defaultdict(list)
        for rate in rates:
            if isinstance(rate, LinpackSolve):
                solved[rate.method].append(rate)
        if not solved:
            continue
        clock = median([one.clock_hz for systems in solved.values() for one in systems])
        words = [name, f"{clock / 1e6:.0f}"]
        for method in ("columns", "lapack"):
            systems = solved.get(method)
            words += [
                f"{median([one.rate_flops for one in systems]) / 1e6:.0f}",
                f"{median([one.operations_per_cycle for one in systems]):.2f}",
            ] if systems else ["–", "–"]  # fmt: skip
        latency = latencies[name][1] if name in latencies else None
        words += [
            f"{latency * 1e6:.3g}", f"{latency_cycles(latency, clock):.0f}"
        ] if latency is not None else ["–", "–"]  # fmt: skip
        rows.append(tuple(words))
    if not rows:
        return None
    columns = ("implementation or machine", "clock, MHz", "Linpack 100, Mflop/s", "per cycle",
               "Linpack 1000, Mflop/s", "per cycle ", "latency, µs", "cycles")  # fmt: skip
    notes = [
        "ORNL 1996, Table 3.1. Linpack 100 is by columns and unblocked, Linpack 1000 by LAPACK. "
        "Rows of 1996 have the data sheet's clock, ours the clock that the core had. The latency "
        f"is {LATENCY_EXPERIMENT}'s, half the median round trip of 0 bytes.",
    ]
    echoing = {name: (cell,) for name, (cell, _) in latencies.items()}
    if not latencies:
        notes.append(f"No latency: measure with CHECKS='{LATENCY_EXPERIMENT}|SerialLinpack'.")
    solving, printed = cells_with(campaign, LinpackSolve), rows_of_ornl(root)
    cells = [(*solving[row[0]], *echoing.get(row[0], ())) for row in rows] + [()] * len(printed)
    title = "Operations and latency in cycles"
    return TextTable(title, columns, rows + printed, 1, notes, cells)
