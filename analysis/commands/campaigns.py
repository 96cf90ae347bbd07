"""What commands on a campaign share: naming, reading and refusing it with a sentence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from records import layout
from records.acting_user import become, owner_of
from records.causes import harmless

if TYPE_CHECKING:
    from analysis.comparison.result import Comparison
    from records.campaign import Campaign

ROOT = Path(__file__).resolve().parents[2]
RUNS, SITES = layout.runs(ROOT), layout.sites(ROOT)
CampaignArgument = Annotated[
    str,
    typer.Argument(
        help="a campaign's folder, its name in runs/, `latest`, or the latest of a site or of a "
        "day (20261121)"
    ),
]
BaseOption = Annotated[
    str | None, typer.Option(help="the implementation to compare with (the alphabetically first)")
]
PagerOption = Annotated[bool, typer.Option(help="page output that is longer than the screen")]


def fail(sentence: str, code: int = 1) -> NoReturn:
    """Print a sentence and exit with a code."""
    print(f"analysis: {harmless(sentence)}", file=sys.stderr)
    raise typer.Exit(code)


def not_written(error: OSError) -> str:
    """Return why a file could not be written, without a number that nobody knows."""
    return f"{error.filename or 'a file'} cannot be written: {error.strerror or error}"


def folder_of(name: str) -> Path:
    """Return a campaign's folder, or end with a sentence."""
    from records.base import CampaignError
    from records.campaign import find_campaign
    from records.manifest import read_manifest

    try:
        path = find_campaign(ROOT, name)
        # Before any part of it is opened: its maker could have put links in it.
        become(owner_of(path), ROOT)
        read_manifest(path)
    except CampaignError as error:
        fail(str(error))
    return path


def campaign_of(name: str, anew: bool = False, with_outputs: bool = False) -> Campaign:
    """Return a campaign, its values computed `anew`; report on stderr what was left out of it.

    Who reads more of its outputs than values asks for it `with_outputs`.
    """
    from records.campaign import read_campaign

    campaign = read_campaign(folder_of(name), anew=anew)
    if with_outputs:
        campaign.leave_out_unreadable()
    say_left_out(campaign)
    return campaign


def say_left_out(campaign: Campaign) -> None:
    """Report on stderr what was left out of a campaign."""
    for problem in campaign.problems:
        print(f"left out: {problem.where}: {problem.sentence}", file=sys.stderr)


def comparison_of(name: str, base: str | None) -> Comparison:
    """Return the comparison of a campaign, or end with a sentence."""
    return compared(campaign_of(name), base)


def compared(campaign: Campaign, base: str | None) -> Comparison:
    """Return the comparison of a campaign that was read, or end with a sentence."""
    from analysis.comparison.compare import compare

    try:
        comparison = compare(campaign, base)
    except ValueError as error:
        fail(str(error))
    end_with_nothing(comparison)
    return comparison


def end_with_nothing(comparison: Comparison) -> None:
    """End with a sentence if a campaign has nothing that could be compared."""
    campaign = comparison.campaign
    if not campaign.sound():
        fail(f"{campaign.path.name} has no sound launch; the sentences above say why")
    if not comparison.cells:
        print(
            f"{campaign.path.name} has sound launches, but none of an experiment that "
            "compares implementations"
        )
        raise typer.Exit(0)
