"""Commands that propose a site's references from its campaigns, and accept them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.commands.campaigns import RUNS, SITES, fail
from records import layout
from records.acting_user import owner_of, rights_of

if TYPE_CHECKING:
    from records.references import CellReference

app = typer.Typer()
SiteArgument = Annotated[str, typer.Argument(help="a folder of site_configs/")]
SitesOption = Annotated[Path, typer.Option(help="the folder of sites")]
SHOWN = 5


def folder_of_site(sites: Path, site: str) -> Path:
    """Return where a site's references are written, or end with a sentence."""
    if not layout.seen(sites / site / "site.yaml").is_file():
        known = ", ".join(path.parent.name for path in layout.all_seen(sites, "*/site.yaml"))
        fail(f"site {site} is unknown; {sites} has {known or 'none'}")
    return sites / site


def show_difference(folder: Path, new: list[CellReference], looked_at: int | None = None) -> int:
    """Print what accepting changes; return the number of changes."""
    from analysis.references.tables import changes, difference_table, handwritten, source_lines
    from analysis.tables.terminal import show
    from records.references import ACCEPTED, load, merged

    old = merged(load(layout.seen(folder / ACCEPTED)), [])
    if changes(old, new):
        for line in source_lines(old, new):
            print(line)
        show(difference_table(folder.name, old, new, handwritten(folder), looked_at))
    return len(changes(old, new))


@app.command()
def calibrate(
    site: SiteArgument,
    campaigns: Annotated[
        str,
        typer.Option(
            help="campaigns of runs/, separated by commas (default: the newest and those "
            "with its images)"
        ),
    ] = "",
    rounds: Annotated[
        int, typer.Option(help="the least number of launches that gives a reference")
    ] = 3,
    every: Annotated[
        bool, typer.Option("--every", help="name every metric that gets no reference")
    ] = False,
    runs: Annotated[Path, typer.Option(help="the folder of campaigns")] = RUNS,
    sites: SitesOption = SITES,
) -> None:
    """Propose a site's references from campaigns: values, thresholds, and their sources."""
    from analysis.references.calibration import calibrating_campaigns, propose
    from records.base import CampaignError
    from records.campaign import find_campaign
    from records.references import PROPOSED, ReferencesError, write

    folder = folder_of_site(sites, site)
    try:
        names = [name.strip() for name in campaigns.split(",") if name.strip()]
        chosen = [
            runs / name if (runs / name / "manifest.json").is_file()
            else find_campaign(runs.parent, name)
            for name in dict.fromkeys(names)
        ]  # fmt: skip
        chosen = chosen or calibrating_campaigns(runs, site)
        print(f"campaigns: {', '.join(path.name for path in chosen)}")
        # The proposal is written in a folder of the site, which may not be of who measured.
        with rights_of(next(filter(None, map(owner_of, chosen)), 0)):
            proposal = propose(chosen, site, rounds)
        for sentence in proposal.unproven:
            print(f"caveat: {sentence}", file=sys.stderr)
        for sentence in proposal.left_out[: None if every else SHOWN]:
            print(f"no reference: {sentence}", file=sys.stderr)
        if len(proposal.left_out) > SHOWN and not every:
            more = len(proposal.left_out) - SHOWN
            print(f"no reference: {more} more metrics (--every names them)", file=sys.stderr)
        if not proposal.references:
            fail(
                f"these campaigns give no reference: measure at least {max(2, rounds)} rounds, "
                f"better ten: make run SITE={site} ROUNDS=10"
            )
        if len(chosen) == 1:
            print(
                "one campaign: the thresholds do not include variation from day to day, so a "
                "launch on another day may fail although nothing changed; calibrate from five "
                "campaigns where you can"
            )
        changed = show_difference(folder, proposal.references, proposal.looked_at)
        proposed = folder / PROPOSED
        if not changed:
            proposed.unlink(missing_ok=True)
            print("The references would not change; there is nothing to accept.")
            return
        folder.mkdir(parents=True, exist_ok=True)
        write(proposed, proposal.references)
    except (CampaignError, ReferencesError) as error:
        fail(str(error))
    print(f"proposed: {proposed} ({changed} changes); accept: make accept-references SITE={site}")


@app.command()
def accept_references(
    site: SiteArgument,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show the changes without making them")
    ] = False,
    sites: SitesOption = SITES,
) -> None:
    """Put a site's proposed references into effect; keep those of other cells."""
    from records.base import CampaignError
    from records.counting import how_many
    from records.references import ACCEPTED, PROPOSED, ReferencesError, load, merged, write

    folder = folder_of_site(sites, site)
    try:
        new = load(folder / PROPOSED)
        if not new:
            print(
                f"There is nothing to accept for site {site}; references are proposed by: "
                f"make calibrate SITE={site}"
            )
            return
        changed = show_difference(folder, new)
        if dry_run:
            print(f"{changed} changes; nothing was changed")
            return
        every = merged(load(layout.seen(folder / ACCEPTED)), new)
        write(folder / ACCEPTED, every.values())
        (folder / PROPOSED).unlink()
    except (CampaignError, ReferencesError) as error:
        fail(str(error))
    print(
        f"accepted: {folder / ACCEPTED} ({how_many(changed, 'change')}, "
        f"{how_many(len(every), 'cell')} in all)"
    )
