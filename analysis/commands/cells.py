"""Commands that say what a campaign found: in few lines, and of one cell every number."""

from __future__ import annotations

from typing import Annotated

import typer

from analysis.commands.campaigns import (
    BaseOption,
    CampaignArgument,
    PagerOption,
    comparison_of,
    fail,
)

app = typer.Typer()


@app.command()
def answer(campaign: CampaignArgument = "latest", base: BaseOption = None) -> None:
    """Print the answer in few lines: what differs, what is open and what would decide it."""
    from analysis.report.ending import ending

    for line in ending(comparison_of(campaign, base)):
        print(line)


@app.command()
def show(
    campaign: CampaignArgument,
    cell: Annotated[
        str, typer.Argument(help="a cell's name, or a pattern of names, such as '*range=long*'")
    ] = "*",
    most: Annotated[
        int, typer.Option(help="list names instead where more cells than this match")
    ] = 4,
    base: BaseOption = None,
    pager: PagerOption = True,
) -> None:
    """Print all of a cell: medians and ratios with intervals, its launches, where they are from."""
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
