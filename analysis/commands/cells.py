"""Commands that print what a campaign found: in a few lines, or every number of one cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.commands.campaigns import (
    BaseOption,
    CampaignArgument,
    PagerOption,
    campaign_of,
    compared,
    comparison_of,
    fail,
)

if TYPE_CHECKING:
    from records.campaign import Campaign

app = typer.Typer()


@app.command()
def answer(campaign: CampaignArgument = "latest", base: BaseOption = None) -> None:
    """Print the answer in a few lines: what differs, what is open, and what would decide it."""
    from analysis.report.campaign_end import ending

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

    found = of_one_place(campaigns or ["latest"])
    table = winners_table(found)
    if not table.rows:
        fail("no two implementations have sound launches that can be compared")
    show(table, pager)


@app.command()
def confirm(
    campaign: CampaignArgument,
    others: Annotated[list[str], typer.Argument(help="campaigns of the same site and tier")],
    base: BaseOption = None,
    pager: PagerOption = True,
) -> None:
    """Say which verdicts of other campaigns this one, a longer one, confirms or contradicts."""
    from analysis.comparison.confirmed import confirmed_tables
    from analysis.tables.terminal import show

    found = of_one_place([campaign, *others])
    for name in sorted(set.union(*(set(one.manifest.images) for one in found))):
        digests = {one.manifest.images[name].sha256 for one in found if name in one.manifest.images}
        if len(digests) > 1:
            fail(f"these campaigns did not measure the same image {name}: their digests differ")
    first, *rest = [compared(one, base) for one in found]
    if bases := {one.base for one in rest} - {first.base}:
        fail(
            f"{first.campaign.path.name} compares with {first.base}, and another one with "
            f"{min(bases)}; name one that all have: --base"
        )
    tables = confirmed_tables(first, rest)
    if len(tables[0].rows) == 1:
        fail(f"no series is compared both in {first.campaign.path.name} and in another campaign")
    show(tables, pager)


def of_one_place(names: Sequence[str]) -> list[Campaign]:
    """Return campaigns, or end with a sentence where they are not of one site and tier, or twice.

    What is measured elsewhere differs for another reason.
    """
    found = [campaign_of(name) for name in names]
    places = {(one.manifest.site, one.manifest.tier): one.path.name for one in found}
    if len(places) > 1:
        of = "; ".join(f"{name}: {site}, {tier}" for (site, tier), name in places.items())
        fail(f"these campaigns are not of one site and tier: {of}")
    if len({one.path.resolve() for one in found}) < len(found):
        fail("a campaign is named twice; each counts once")
    return found


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
    # A name may have a pattern's characters in it, and then means itself.
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
