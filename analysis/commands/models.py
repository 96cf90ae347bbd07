"""Commands of models: messages over size, scaling, guidelines, overlap, and slow nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from analysis.commands.campaigns import CampaignArgument, PagerOption, campaign_of, fail

app = typer.Typer()


@app.command()
def models(
    campaign: CampaignArgument,
    cell: Annotated[
        str, typer.Option(help="only cells whose name contains this, such as `pair=Send/Recv`")
    ] = "",
    pager: PagerOption = True,
) -> None:
    """Print start-up, bandwidth and n1/2 between protocol switches, and LogGP's parameters."""
    from analysis.models.message_tables import model_tables
    from analysis.models.messages import fitted_in
    from analysis.tables.terminal import show

    found = campaign_of(campaign, with_outputs=True)
    tables = model_tables(fitted_in(found, cell), cell)
    if not tables:
        fail(
            f"{found.path.name} has no sound launches of messages at three sizes or more"
            f"{f' in a cell with {cell!r} in its name' if cell else ''}; measure some with: "
            "make run CHECKS='EchoTest|Mpptest|Pairs'"
        )
    show(tables, pager)


@app.command()
def scaling(campaign: CampaignArgument, pager: PagerOption = True) -> None:
    """Print speedup, efficiency, Karp and Flatt's serial part, and bandwidth over ranks."""
    from analysis.models.linpack import hpl_in
    from analysis.models.profile import profiled_cells
    from analysis.models.scaling_tables import scaling_tables
    from analysis.tables.terminal import show

    found = campaign_of(campaign, with_outputs=True)
    tables = scaling_tables(found, hpl_in(found), profiled_cells(found)[0])
    if not tables:
        fail(
            f"{found.path.name} has no program measured with several numbers of ranks; measure "
            "one with: "
            "make run CHECKS='Linpack|Nas|Su3'"
        )
    show(tables, pager)


@app.command()
def guidelines(campaign: CampaignArgument, pager: PagerOption = True) -> None:
    """List where a collective operation is slower than others that do the same work."""
    from analysis.models.guidelines.tables import guideline_tables
    from analysis.tables.table import for_people
    from analysis.tables.terminal import show

    found = campaign_of(campaign, with_outputs=True)
    tables = for_people(guideline_tables(found))
    if not tables:
        fail(
            f"{found.path.name} has no sound collective operation; measure some with: "
            "make run CHECKS=Collectives"
        )
    show(tables, pager)


@app.command()
def overlap(campaign: CampaignArgument, pager: PagerOption = True) -> None:
    """Print how much of non-blocking collective operations overlaps with a computation."""
    from analysis.models.overlap import overlap_table
    from analysis.tables.terminal import show

    found = campaign_of(campaign, with_outputs=True)
    table = overlap_table(found)
    if not table:
        fail(
            f"{found.path.name} has no sound non-blocking operation beside a computation; measure "
            "some with: make run CHECKS='CollectiveForms.*suite=non-blocking'"
        )
    show(table, pager)


@app.command()
def library(campaign: CampaignArgument, pager: PagerOption = True) -> None:
    """Print what the libraries say of themselves, and what their ranks have in common."""
    from analysis.models.library_choices import nearness_table, variables_table
    from analysis.tables.terminal import show

    found = campaign_of(campaign, with_outputs=True)
    tables = [one for one in (variables_table(found), nearness_table(found)) if one.rows]
    if not tables:
        fail(f"{found.path.name} has no sound preflight whose program asked the library")
    show(tables, pager)


@app.command()
def nodes(campaign: CampaignArgument, pager: PagerOption = True) -> None:
    """Print which nodes and which links between them are slow, and nodes' own rates."""
    from analysis.models.nodes.pairs import node_pairs_in
    from analysis.models.nodes.tables import tables_of_nodes
    from analysis.tables.terminal import show

    found = campaign_of(campaign, with_outputs=True)
    tables = tables_of_nodes(found, node_pairs_in(found))
    if not tables:
        fail(
            f"{found.path.name} has no sound launch on two nodes or more to compare; measure "
            "some with: make run CHECKS='NodePairs|NodeRates'"
        )
    show(tables, pager)
