"""The command that says which campaigns are proven, and what depends on those that are not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.commands.campaigns import RUNS, SITES, PagerOption, fail
from analysis.commands.history import RunsOption

if TYPE_CHECKING:
    from analysis.history.audit import Resting
    from records.proof import Proof

app = typer.Typer()
BAD_REQUEST = 2


@app.command()
def audit(
    campaign: Annotated[
        str, typer.Option(help="only this one: a folder of runs/, `latest`, a site or a day")
    ] = "",
    site: Annotated[str, typer.Option(help="only campaigns of this site")] = "",
    runs: RunsOption = RUNS,
    sites: Annotated[Path, typer.Option(help="the folder of sites")] = SITES,
    pager: PagerOption = True,
) -> None:
    """Say whether each campaign could have lost or mixed up launches, and what depends on it.

    All its files are read. Exit with 0 if all that was asked for is proven, 1 if something is
    unproven or damaged, 2 for a bad request.
    """
    from analysis.history.audit import (
        absent,
        audit_table,
        audited,
        references_table,
        resting_series,
        series_table,
    )
    from analysis.history.index import history_rows
    from analysis.tables.terminal import show
    from records.base import CampaignError

    folders = asked(runs, sites, campaign, site)
    proofs = []
    for number, folder in enumerate(folders, 1):
        if sys.stderr.isatty():
            print(f"\r{number} of {len(folders)} campaigns", end="", file=sys.stderr)
        proofs.append(audited(folder))
    if sys.stderr.isatty():
        print(file=sys.stderr)
    by_name = {one.campaign: one for one in proofs}
    doubted = [one for one in proofs if one.doubts]
    tables = [audit_table(proofs)]
    resting = references_of(sites, by_name, runs, site, with_absent=not campaign)
    gone = {name for one in resting for name in one.campaigns if name not in by_name}
    if resting:
        tables.append(references_table(resting))
    if doubted:
        try:
            # What cannot be read is among the proofs, with the reason.
            frame = history_rows(runs, lambda sentence: None)
        except CampaignError as error:
            fail(str(error), BAD_REQUEST)
        histories = resting_series(frame, {one.campaign for one in doubted})
        tables += [series_table(histories)] if histories.height else []
    sentences = [f"- {one.sentence}" for one in [*proofs, *map(absent, sorted(gone))]]
    show(tables, pager, sentences)
    raise typer.Exit(1 if doubted or resting else 0)


def asked(runs: Path, sites: Path, campaign: str, site: str) -> list[Path]:
    """Return the folders of the requested campaigns, or end with a sentence."""
    from analysis.history.audit import folders_of_site
    from analysis.history.index import campaign_folders
    from records.base import CampaignError
    from records.campaign import find_campaign
    from records.sample import NAME

    try:
        if campaign:
            # Also one whose manifest is gone, which a search would not find.
            named = runs / campaign
            plain = "/" not in campaign and not campaign.startswith(".") and named.is_dir()
            folders = [named if plain else find_campaign(runs.parent, campaign)]
        else:
            # The sample came with the checkout, and nothing of this machine depends on it.
            folders = [folder for folder in campaign_folders(runs) if folder.name != NAME]
    except CampaignError as error:
        fail(str(error), BAD_REQUEST)
    except OSError as error:
        fail(f"{runs} cannot be read: {error.strerror}", BAD_REQUEST)
    folders = folders_of_site(folders, site) if site else folders
    if not folders:
        known = not site or (sites / site / "site.yaml").is_file()
        what = "there is no campaign" + (f" of site {site}" if site else "")
        fail(f"{what} to audit" if known else f"{what}, and no such site", BAD_REQUEST)
    return folders


def references_of(
    sites: Path, proofs: dict[str, Proof], runs: Path, site: str, with_absent: bool
) -> list[Resting]:
    """Return the references that depend on unproven campaigns, or end with a sentence."""
    from analysis.history.audit import resting_references
    from records.references import ReferencesError

    try:
        return resting_references(sites, proofs, runs, site or None, with_absent)
    except (ReferencesError, OSError) as error:
        fail(str(error), BAD_REQUEST)
