"""What commands on a campaign share: how it is named, read, and refused with a sentence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from analysis.campaign import Campaign
    from analysis.comparison import Comparison

ROOT = Path(__file__).resolve().parents[2]
CampaignArgument = Annotated[
    str, typer.Argument(help="a campaign's folder, its name in runs/, or `latest`")
]
BaseOption = Annotated[
    str | None, typer.Option(help="the implementation to compare with (first in the alphabet)")
]
PagerOption = Annotated[bool, typer.Option(help="page what is longer than the terminal's screen")]


def fail(sentence: str) -> NoReturn:
    """Print a sentence and end with 1."""
    print(f"analysis: {sentence}", file=sys.stderr)
    raise typer.Exit(1)


def folder_of(name: str) -> Path:
    """Return a campaign's folder, or end with a sentence."""
    from analysis.campaign import CampaignError, find_campaign, read_manifest

    try:
        path = find_campaign(ROOT, name)
        read_manifest(path)
    except CampaignError as error:
        fail(str(error))
    return path


def campaign_of(name: str) -> Campaign:
    """Return a campaign; say on stderr what of it was left out."""
    from analysis.campaign import read_campaign

    campaign = read_campaign(folder_of(name))
    for problem in campaign.problems:
        print(f"left out: {problem.where}: {problem.sentence}", file=sys.stderr)
    return campaign


def comparison_of(name: str, base: str | None) -> Comparison:
    """Return the comparison of a campaign, or end with a sentence."""
    from analysis.comparison import compare

    campaign = campaign_of(name)
    try:
        comparison = compare(campaign, base)
    except ValueError as error:
        fail(str(error))
    if not campaign.sound():
        fail(f"{campaign.path.name} has no sound launch; the sentences above say why")
    if not comparison.cells:
        print(f"{campaign.path.name} has sound launches, but none of an experiment that compares")
        raise typer.Exit(0)
    return comparison
