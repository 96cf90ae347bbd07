"""Nodes side by side: which is slow with others, and what each does by itself; and links."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from analysis.comparison.oversubscription import without_waiting
from analysis.models.nodes.pairs import (
    MEASURES,
    Judged,
    JudgedPairs,
    Measure,
    in_order,
    thresholds,
    topology_of,
)
from analysis.tables.table import PERCENT, Column, Kind, Row, Table, formatted, interval, scaled
from inference.intervals import median
from inference.shared_effects import Effect
from records.campaign import Campaign
from records.node_rates import DgemmResult, LinpackSolve, Rate, StreamResult
from records.program_output import ProgramOutput

GIGA, MEGA = scaled(1e9, ".4g"), scaled(1e6, ".0f")
SIGNED = formatted("+.1%")
BETWEEN = Kind(lambda ends, _: f"{ends[0]:+.1%} – {ends[1]:+.1%}")
#: An interval of a logarithm that is wider than this is not informative.
MOST_SAID = math.log(100)
#: The order of verdicts in tables.
WORST_FIRST = ("slow", "unstable", "not determined", "fine")


def slower(effect: Effect | None) -> tuple[float | None, tuple[float, float] | None]:
    """Return by which share of the time it is slower, with the interval; None if unknown."""
    if effect is None or math.isnan(effect.value):
        return None, None
    if effect.high > MOST_SAID:
        return math.expm1(effect.value), None
    return math.expm1(effect.value), (math.expm1(effect.low), math.expm1(effect.high))


def verdict_words(one: Judged) -> str:
    """Return a verdict, and what it is based on."""
    return f"{one.verdict} ({', '.join(one.because)})" if one.because else one.verdict


def pair_values(one: Judged) -> list[object]:
    """Return a row's cells on a node or link: verdict, slower by measure, disturbed sweeps."""
    values: list[object] = [verdict_words(one)]
    for measure in MEASURES:
        values += slower(one.slower.get(measure))
    values.append(max((found.share for found in one.disturbed.values()), default=None))
    return values


def pair_columns() -> list[Column]:
    """Return the columns of `pair_values`."""
    found = [Column("verdict", "verdict")]
    for measure in MEASURES:
        found += [
            Column(f"{measure}_slower", f"{measure}: slower by", SIGNED, "1"),
            interval(f"{measure}_slower", "interval", "1", BETWEEN),
        ]
    return [*found, Column("disturbed", "disturbed sweeps", PERCENT, "1")]


def rates_by_node(campaign: Campaign) -> dict[str, dict[str, float]]:
    """Return each node's DGEMM in FLOP/s, triad in B/s and clock in Hz, medians over launches.

    Without cells whose ranks waited for processors, and Linpack, which is of one core.
    """
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for launch in without_waiting(campaign):
        if not isinstance(launch.output, ProgramOutput):
            continue
        ranks_of: dict[str, list[int]] = defaultdict(list)
        for rank, host in enumerate(launch.output.header.hosts):
            ranks_of[host].append(rank)
        for result in launch.output.results:
            if not isinstance(result, Rate) or isinstance(result, LinpackSolve):
                continue
            for host, own in ranks_of.items():
                times = [result.median_by_rank_s[rank] for rank in own]
                if isinstance(result, DgemmResult):
                    found[host]["dgemm"].append(sum(result.flop / time for time in times))
                elif isinstance(result, StreamResult) and result.kernel == "triad":
                    found[host]["triad"].append(sum(result.moved_bytes / time for time in times))
                clocks = [result.clock_hz_by_rank[rank] for rank in own]
                found[host]["clock"].append(median(clocks))
    return {
        host: {what: median(values) for what, values in rates.items()}
        for host, rates in found.items()
    }


def node_side_by_side(campaign: Campaign, of: JudgedPairs | None) -> Table | None:
    """Return a row for each node; None of fewer than two nodes."""
    rates = rates_by_node(campaign)
    nodes = in_order(sorted({*rates, *(of.nodes if of else ())}), topology_of(campaign))
    if len(nodes) < 2:
        return None
    judged = {one.name: one for one in of.of_nodes} if of else {}
    lead = pair_columns() if of else []
    rows = []
    for node in nodes:
        own = rates.get(node, {})
        pairs = pair_values(judged[node]) if node in judged else [None] * len(lead)
        cells = of.cells if of and node in judged else ()
        values = (node, *pairs, *(own.get(what) for what in ("dgemm", "triad", "clock")))
        rows.append(Row(values, cells=cells))
    columns = (
        Column("node", "node"), *lead, Column("dgemm", "DGEMM, GFLOPS", GIGA, "FLOP/s"),
        Column("triad", "triad, GB/s", GIGA, "B/s"), Column("clock", "clock, MHz", MEGA, "Hz"),
    )  # fmt: skip
    notes = notes_of(of) if of else []
    notes.append(
        "DGEMM, triad and the clock under that load are of all cores of a node at once, medians "
        "over launches."
    )
    return Table("nodes-side-by-side", "Nodes side by side", columns, rows, notes)


def notes_of(of: JudgedPairs) -> list[str]:
    """Return what a reader of the verdicts has to know."""
    limits = thresholds()
    found = [
        f"Each time is compared with those of this campaign's other nodes: if all are slow, "
        f"none is named. “Slow”: shown to take longer than the others, by at least "
        f"{limits.slower:.0%}; “unstable”: shown to do so in more of its sweeps; “fine”: shown to "
        f"be less than {limits.slower:.0%} slower by latency and bandwidth. If nothing is wrong, "
        f"the chance that anything is named is at most {limits.level:.0%}, for all nodes and "
        "links.",
        f"{of.sweeps} sweep{'' if of.sweeps == 1 else 's'} over {of.rounds} of {of.all_rounds} "
        "rounds of pairs. " + (
            "All pairs of a round had messages under way at once: if a switch carries less than "
            "its links together, all pairs through it are slower than alone."
            if of.together else "Each pair had the switches for itself."
        ),
    ]  # fmt: skip
    if of.oversubscribed:
        found.append(
            "Ranks waited for processors: one machine plays several nodes, and what keeps one "
            "busy slows the others, too."
        )
    return found


def link_table(of: JudgedPairs) -> Table:
    """Return a row for each link that was measured, the worst first."""
    place = {name: number for number, name in enumerate(of.nodes)}

    def worst(one: Judged) -> tuple[int, float]:
        told = [effect.value for effect in one.slower.values() if not math.isnan(effect.value)]
        return WORST_FIRST.index(one.verdict), -max(told, default=-math.inf)

    rows = []
    for one in sorted(of.of_links, key=worst):
        a, b = (place[name] for name in one.names)
        rows.append(Row(
            (one.names[0], one.names[1], *pair_values(one), *(
                typical(of, measure, way) for measure in MEASURES for way in ((a, b), (b, a))
            )),
            cells=of.cells,
        ))  # fmt: skip
    columns = (
        Column("node", "node"), Column("other_node", "other node"), *pair_columns(),
        Column("latency_there", "latency", Kind(lambda s, _: f"{s * 1e6:.3g} µs"), "s"),
        Column("latency_back", "and back", Kind(lambda s, _: f"{s * 1e6:.3g} µs"), "s"),
        Column("bandwidth_there", "bandwidth", Kind(lambda b, _: f"{b / 1e6:.4g} MB/s"), "B/s"),
        Column("bandwidth_back", "and back", Kind(lambda b, _: f"{b / 1e6:.4g} MB/s"), "B/s"),
    )  # fmt: skip
    how = "together" if of.together else "alone"
    note = (
        "How much longer a link takes than its nodes explain. Links of an unstable node are not "
        "judged. Latency is half a round trip, begun by the one node and by the other."
    )
    return Table(f"links-between-nodes-{how}", f"Links between nodes, pairs {how}", columns, rows,
                 [note])  # fmt: skip


def typical(of: JudgedPairs, measure: Measure, way: tuple[int, int]) -> float | None:
    """Return a way's latency in s or bandwidth in B/s, the median over sweeps."""
    times = of.times.get(measure)
    if times is None or way not in times.seconds:
        return None
    seconds = times.typical(way)
    return seconds / 2 if measure == "latency" else times.transfer_bytes / seconds


def tables_of_nodes(campaign: Campaign, found: Sequence[JudgedPairs]) -> list[Table]:
    """Return nodes side by side, and the links of pairs together and alone."""
    table = node_side_by_side(campaign, found[0] if found else None)
    return [*([table] if table else []), *(link_table(one) for one in found)]
