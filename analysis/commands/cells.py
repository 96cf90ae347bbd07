"""Commands that print what a campaign found: in a few lines, or every number of one cell."""

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
def answer(campaign: CampaignArgument = "latest", base: BaseOption = None) -> None:
    """Print the answer in a few lines: what differs, what is open and what would decide it."""
    from analysis.report.ending import ending

    for line in ending(comparison_of(campaign, base)):
        print(line)


@app.command()
def winners(
    campaigns: Annotated[
        list[str] | None, typer.Argument(help="campaigns of one site and tier (latest)")
    ] = None,
    pager: PagerOption = True,
) -> None:
    """Print which implementation to use for what, comparing every two of them."""
    from analysis.comparison.winners import winners_table
    from analysis.tables.terminal import show

    found = [campaign_of(name) for name in campaigns or ["latest"]]
    places = {(one.manifest.site, one.manifest.tier): one.path.name for one in found}
    if len(places) > 1:
        of = "; ".join(f"{name}: {site}, {tier}" for (site, tier), name in places.items())
        fail(f"these campaigns are not of one site and tier: {of}")
    if len({one.path.resolve() for one in found}) < len(found):
        fail("a campaign is named twice; each counts once")
    table = winners_table(found)
    if not table.rows:
        fail("no two implementations have sound launches that can be compared")
    show(table, pager)


@app.command()
def show(
    campaign: CampaignArgument,
    cell: Annotated[
        str, typer.Argument(help="a cell's name, or a pattern of names, such as '*range=long*'")
    ] = "*",
    most: Annotated[int, typer.Option(help="list names instead if more cells than this match")] = 4,
    base: BaseOption = None,
    pager: PagerOption = True,
) -> None:
    """Print everything about a cell: medians and ratios with intervals, launches, their origin."""
    from fnmatch import fnmatchcase

    from analysis.report.one_cell import cell_tables
    from analysis.tables.terminal import console, paged, print_table

    comparison = comparison_of(campaign, base)
    # A name may have a pattern's signs in it, and then means itself.
    named = [one for one in comparison.cells if one.name == cell]
    fits = named or [one for one in comparison.cells if fnmatchcase(one.name, cell)]
    if not fits:
        fail(
            f"{comparison.campaign.path.name} has no cell {cell!r}; list them with: "
            f"python -m analysis show {campaign}"
        )
    with paged(console(), pager) as screen:
        if len(fits) > most:
            for one in fits:
                screen.print(one.name, markup=False, highlight=False, soft_wrap=True)
            screen.print(
                f"{len(fits)} cells match {cell!r}; name one of them, or raise --most.",
                markup=False, highlight=False, soft_wrap=True,
            )  # fmt: skip
            return
        for one in fits:
            for table in cell_tables(comparison, one):
                print_table(screen, table)
