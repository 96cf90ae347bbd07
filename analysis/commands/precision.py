"""Commands about a campaign's precision: its spread on two levels, and rounds for more."""

from __future__ import annotations

from typing import Annotated

import typer

from analysis.commands.campaigns import (
    BaseOption,
    CampaignArgument,
    PagerOption,
    campaign_of,
    comparison_of,
    fail,
)

app = typer.Typer()


@app.command()
def plan(
    campaign: CampaignArgument,
    precision: Annotated[
        float,
        typer.Option(help="half-width of the wanted interval around the ratio, as a fraction"),
    ] = 0.02,
    power: Annotated[
        float, typer.Option(help="probability with which a difference of that size is to be shown")
    ] = 0.8,
    cells: Annotated[bool, typer.Option("--cells", help="each cell instead of groups")] = False,
    base: BaseOption = None,
    pager: PagerOption = True,
) -> None:
    """Print how many rounds a wanted precision takes, given the campaign's spread."""
    from analysis.precision.rounds_needed import plans
    from analysis.precision.tables import plan_table
    from analysis.tables.terminal import show

    if not 0 < precision < 1 or not 0.05 < power < 1:
        fail(
            "--precision must be between 0 and 1 and --power between 0.05 and 1, "
            "such as 0.02 and 0.8"
        )
    comparison = comparison_of(campaign, base)
    rows = plans(comparison, precision, power, by_cell=cells)
    if not rows:
        fail(
            f"{comparison.campaign.path.name} does not have two implementations in two complete "
            "rounds, so it shows no spread; measure a few rounds first: make run ROUNDS=5"
        )
    show(plan_table(comparison, rows, precision, power), pager)


@app.command()
def spread(
    campaign: CampaignArgument,
    most: Annotated[int, typer.Option(help="how many rows, the largest spread first")] = 40,
    pager: PagerOption = True,
) -> None:
    """List how much launches differ, how much iterations differ within them, and quantiles."""
    from analysis.precision.spread import spreads
    from analysis.precision.tables import spread_table
    from analysis.tables.terminal import show

    found = campaign_of(campaign, with_outputs=True)
    rows = spreads(found)
    if not rows:
        fail(f"{found.path.name} has no sound launch of a program that times iterations")
    show(spread_table(found, rows, most), pager)


@app.command()
def timed(campaign: CampaignArgument, pager: PagerOption = True) -> None:
    """Say what a campaign's time was spent on: how much of it programs themselves timed."""
    from analysis.precision.timed import timed_table
    from analysis.tables.terminal import show

    found = campaign_of(campaign, with_outputs=True)
    table = timed_table(found)
    if table is None:
        fail(f"{found.path.name} has no sound launch that says how long it took")
    show(table, pager)


@app.command()
def replay(campaign: CampaignArgument) -> None:
    """Repeat the decisions of a campaign with a budget from its launches.

    Exits with 1 if they differ, with 2 if launches were measured again since.
    """
    from analysis.precision.waves import replayed, sentence_of
    from records.base import CampaignError
    from records.journal import read_journal

    found = campaign_of(campaign, anew=True)
    try:
        content = read_journal(found.path)
        if content is None:
            fail(f"{found.path.name} has no journal, so what it decided is unknown")
        decisions = list(replayed(found, content.entries))
    except CampaignError as error:
        fail(str(error))
    for one in decisions:
        if one.agrees:
            word = "agrees"
        elif one.replaced:
            word = f"cannot be replayed: {one.replaced} was measured again later"
        else:
            word = "DIFFERS"
        print(f"{sentence_of(one.recorded)}: {word}")
        if word == "DIFFERS":
            print(f"  the launches give: {sentence_of(one.again)}")
    if wrong := sum(not one.agrees and not one.replaced for one in decisions):
        fail(f"{wrong} of {len(decisions)} decisions are not what the launches give")
    if unknown := sum(not one.agrees for one in decisions):
        fail(
            f"{unknown} of {len(decisions)} decisions cannot be replayed, since launches that they "
            "rested on were measured again",
            code=2,
        )
