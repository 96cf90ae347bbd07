"""What a campaign's nodes achieve by themselves, and Table 3.1 of ORNL 1996 with today's rows.

J. Dongarra and T. Dunigan (1996) put operations and message latency of parallel machines into
cycles of the processor's clock. Theirs is the data sheet's clock; ours is measured while the cores
work, since today's clocks follow the load.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from analysis.comparison.oversubscription import without_waiting
from analysis.models.one_way_times import RoundsBySize, lines_of_launches
from analysis.tables.table import (
    NOTHING,
    Column,
    Printed,
    Row,
    Table,
    formatted,
    of_several,
    scaled,
    several,
)
from inference.intervals import median
from records.campaign import Campaign, cells_with
from records.experiments import serves, serving
from records.node_rates import DgemmResult, LinpackSolve, Rate, StreamResult
from records.program_output import ProgramOutput

#: By implementation; one-way times by cell and implementation.
Rates = dict[str, list[Rate]]
Times = Mapping[tuple[str, str], RoundsBySize]
KERNELS = ("copy", "scale", "add", "triad")
GIGA, MEGA = scaled(1e9, ".4g"), scaled(1e6, ".0f")
#: Table 3.1's columns after the machine: the name in compute.csv, the decimal power of its unit.
PRINTED = {
    "clock_mhz": 6, "linpack100_mflops": 6, "linpack100_flop_per_cycle": 0,
    "linpack1000_mflops": 6, "linpack1000_flop_per_cycle": 0, "latency_us": -6,
    "latency_cycles": 0,
}  # fmt: skip


def rates_in(campaign: Campaign) -> Rates:
    """Return the rates that a campaign measured, by implementation."""
    found: Rates = defaultdict(list)
    for launch in without_waiting(campaign):
        # Those of all nodes at once are shown by node (tables.py).
        record = launch.record
        if isinstance(launch.output, ProgramOutput) and record.nodes == 1:
            found[record.implementation] += [
                result for result in launch.output.results if isinstance(result, Rate)
            ]
    return {name: rates for name, rates in sorted(found.items()) if rates}


def node_table(campaign: Campaign, rates_of: Rates) -> Table | None:
    """Return DGEMM's and STREAM's rates of a node, None if none was measured."""
    rows = []
    of_name = cells_with(without_waiting(campaign), Rate)
    for name, rates in rates_of.items():
        products = [rate for rate in rates if isinstance(rate, DgemmResult)]
        loops: dict[str, list[float]] = defaultdict(list)
        for rate in rates:
            if isinstance(rate, StreamResult):
                loops[rate.kernel].append(rate.best_bandwidth)
        ranks = sorted({r.ranks for r in rates if not isinstance(r, LinpackSolve)})
        if not ranks:
            continue
        values = (
            name, of_several(ranks),
            median([p.rate_flops for p in products]) if products else None,
            *(median(loops[kernel]) if kernel in loops else None for kernel in KERNELS),
            median([rate.clock_hz for rate in rates]),
        )  # fmt: skip
        rows.append(Row(values, name, of_name[name]))
    if not rows:
        return None
    columns = (
        Column("implementation", "implementation"), several("ranks", "ranks", is_number=True),
        Column("dgemm", "DGEMM, GFLOPS", GIGA, "FLOP/s"),
        *(Column(kernel, f"{kernel}, GB/s", GIGA, "B/s") for kernel in KERNELS),
        Column("clock", "clock, MHz", MEGA, "Hz"),
    )  # fmt: skip
    note = (
        "All ranks of a node at once, medians over launches. A launch's STREAM value is its best "
        "iteration and, following McCalpin, does not count the read of a cache line before it is "
        "written. These rates describe the machine; they should not differ between implementations."
    )
    title = "What a node does by itself"
    return Table("what-a-node-does-by-itself", title, columns, rows, [note])


def latencies_in(campaign: Campaign, times: Times) -> dict[str, tuple[str, float]]:
    """Return the echo test's cell and one-way time in s of 0 bytes, by implementation."""
    records = [launch.record for launch in campaign.sound()]
    echoes = {one.cell for one in records if serves("latency", one.experiment, one.parameters)}
    return {
        implementation: (cell, line.latency_s)
        for cell, implementation, line in lines_of_launches(times)
        if cell in echoes and line.latency_bytes == 0
    }


def latency_cycles(latency_s: float, clock_hz: float) -> float:
    """Return how many cycles of the clock a latency lasts (ORNL 1996, Table 3.1)."""
    return latency_s * clock_hz


def rows_of_ornl(root: Path) -> list[tuple[str, ...]]:
    """Return Table 3.1 of ORNL 1996 as printed."""
    with (root / "literature" / "ornl1996/compute.csv").open() as table:
        return [
            (f"{row['machine']} (1996)", *(row[key] or NOTHING for key in PRINTED))
            for row in csv.DictReader(table)
        ]


def cycles_table(campaign: Campaign, rates_of: Rates, times: Times, root: Path) -> Table | None:
    """Return Table 3.1 with a campaign's rows above ORNL's; None without SerialLinpack."""
    latencies = latencies_in(campaign, times)
    solving = cells_with(without_waiting(campaign), LinpackSolve)
    rows: list[Row] = []
    for name, rates in rates_of.items():
        solved: dict[str, list[LinpackSolve]] = defaultdict(list)
        for rate in rates:
            if isinstance(rate, LinpackSolve):
                solved[rate.method].append(rate)
        if not solved:
            continue
        clock = median([one.clock_hz for systems in solved.values() for one in systems])
        values: list[object] = [name, clock]
        for method in ("columns", "lapack"):
            systems = solved.get(method)
            values += [
                median([one.rate_flops for one in systems]),
                median([one.operations_per_cycle for one in systems]),
            ] if systems else [None, None]  # fmt: skip
        cell, latency = latencies.get(name, (None, None))
        values += [
            latency, latency_cycles(latency, clock) if latency is not None else None,
        ]  # fmt: skip
        rows.append(Row(tuple(values), name, (*solving[name], *([cell] if cell else []))))
    if not rows:
        return None
    columns = (
        Column("implementation_or_machine", "implementation or machine"),
        Column("clock", "clock, MHz", MEGA, "Hz"),
        Column("linpack_100", "Linpack 100, Mflop/s", MEGA, "FLOP/s"),
        Column("linpack_100_per_cycle", "per cycle", formatted(".2f"), "FLOP/cycle"),
        Column("linpack_1000", "Linpack 1000, Mflop/s", MEGA, "FLOP/s"),
        Column("linpack_1000_per_cycle", "per cycle", formatted(".2f"), "FLOP/cycle"),
        Column("latency", "latency, µs", scaled(1e-6, ".3g"), "s"),
        Column("latency_cycles", "cycles", formatted(".0f"), "1"),
    )  # fmt: skip
    notes = [
        "ORNL 1996, Table 3.1. Linpack 100 is by columns and unblocked, Linpack 1000 by LAPACK. "
        "Rows of 1996 use the data sheet's clock, ours the clock measured on the core. The latency "
        f"is {' and '.join(serving('latency'))}'s, half the median round trip of 0 bytes.",
    ]
    if not latencies:
        notes.append(
            f"No latency: measure with CHECKS='{'|'.join(serving('latency'))}|SerialLinpack'."
        )
    printed = [
        Row((machine, *(as_printed(word, power) for word, power in zip(
            words, PRINTED.values(), strict=True))))
        for machine, *words in rows_of_ornl(root)
    ]  # fmt: skip
    title = "Operations and latency in cycles"
    return Table("operations-and-latency-in-cycles", title, columns, rows + printed, notes)


def as_printed(words: str, power: int) -> Printed | None:
    """Return a printed number in its unit without a prefix; None if nothing was printed."""
    return None if words == NOTHING else Printed(float(f"{words}e{power}"), words)
