"""What each library said of itself, and what its ranks had in common: why one may be faster.

By the preflights of a campaign (benchmarks/FORMAT.md): variables of MPI's tool interface that say
how messages go, and which processors share a core, a cache, a NUMA node or a package.
"""

from __future__ import annotations

from collections import defaultdict

from analysis.tables.table import COUNT, Column, Row, Table
from records.campaign import Campaign
from records.communication import ControlVariables, PerformanceVariables, Topology
from records.experiments import proving
from records.launch import Launch
from records.program_output import ProgramOutput
from records.topology import Nearness, processors_of


def preflights_of(campaign: Campaign) -> dict[str, Launch]:
    """Return the first sound preflight of each implementation."""
    found: dict[str, Launch] = {}
    for launch in campaign.sound():
        if launch.record.experiment in proving("image"):
            found.setdefault(launch.record.implementation, launch)
    return found


def variables_table(campaign: Campaign) -> Table:
    """Return what the libraries say of limits, algorithms and transports, and what they counted."""
    rows = []
    for name, launch in sorted(preflights_of(campaign).items()):
        if not isinstance(launch.output, ProgramOutput):
            continue
        for result in launch.output.results:
            if isinstance(result, ControlVariables):
                said = [(variable, "", value) for variable, value in result.variables.items()]
            elif isinstance(result, PerformanceVariables):
                said = [(key, str(of[0]), str(of[1])) for key, of in result.variables.items()]
            else:
                continue
            rows += [Row((name, *one), name, (launch.record.cell,)) for one in said]
    columns = (
        Column("implementation", "implementation"), Column("variable", "variable"),
        Column("before", "before"), Column("value", "value"),
    )  # fmt: skip
    notes = ["as MPI_T tells them in the preflight, on rank 0; counters before its round trips and "
             "after; what is left to the library is not listed"]  # fmt: skip
    return Table(
        "library-variables", "What the libraries say of limits, algorithms and transports", columns,
        rows, notes, experiments=tuple(proving("image")),
    )  # fmt: skip


def nearness_table(campaign: Campaign) -> Table:
    """Return what the ranks of each implementation had in common, by their number."""
    first: dict[tuple[str, int, int], Launch] = {}
    launches: dict[tuple[str, int, int], int] = defaultdict(int)
    for launch in campaign.sound():
        record = launch.record
        key = (record.implementation, record.ranks, record.nodes)
        first.setdefault(key, launch)
        launches[key] += 1
    known = preflights_of(campaign)
    rows = []
    for (name, ranks, nodes), launch in sorted(first.items()):
        proof = known.get(name)
        if not proof or not isinstance(proof.output, ProgramOutput):
            continue
        topologies = [one for one in proof.output.results if isinstance(one, Topology)]
        if not topologies or not isinstance(launch.output, ProgramOutput):
            continue
        header = launch.output.header
        near = Nearness(topologies, proof.output.header.hosts)
        common = near.nearest_and_farthest(header)
        if not common:
            continue
        each = sorted({len(own) for own in processors_of(header)})
        on = " or ".join(map(str, each))
        values = (name, ranks, nodes, on, *common, launches[name, ranks, nodes])
        rows.append(Row(values, name, (launch.record.cell,)))
    columns = (
        Column("implementation", "implementation"), Column("ranks", "ranks", COUNT, "1"),
        Column("nodes", "nodes", COUNT, "1"),
        Column("processors_of_a_rank", "processors of a rank"),
        Column("nearest", "nearest rank to rank 0 within one"), Column("farthest", "farthest"),
        Column("launches", "launches", COUNT, "1"),
    )  # fmt: skip
    notes = ["of the first launch with so many ranks and nodes: the smallest thing that has all "
             "processors on which rank 0 and the other rank may run"]  # fmt: skip
    return Table("nearness", "What the ranks have in common", columns, rows, notes,
                 experiments=tuple(proving("image")))  # fmt: skip
