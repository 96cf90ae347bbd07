"""Open a campaign again that has something left to measure."""

from __future__ import annotations

import argparse
from pathlib import Path

from campaign import beginning, provenance, request
from campaign.leftovers import end_all, end_leftovers, scheduler_of
from campaign.missing import has_something_left, is_open
from campaign.obstacles import refuse_obstacles
from campaign.paths import refuse_path
from containers import host_mpi, selection
from records import files, layout, schedule
from records.acting_user import become, owner_of
from records.base import CampaignError
from records.campaign import is_imported
from records.events import Resumed
from records.fold import changed_manifest
from records.journal import copied_from
from records.manifest import Manifest
from site_configs.settings import load_site


def unfinished(options: argparse.Namespace) -> tuple[Path, Manifest]:
    """Return a campaign that can be resumed and its manifest; raises CampaignError."""
    campaign = layout.runs(beginning.ROOT) / Path(options.resume).name
    manifest = beginning.read_manifest(options.resume)
    if not files.belongs_to_us(campaign):
        raise CampaignError(f"{campaign.name} is another user's; measure a campaign of your own")
    if is_imported(campaign):
        raise CampaignError(
            f"{campaign.name} came in a bundle from another machine; repeat it with: "
            f"python -m campaign --like {campaign.name}"
        )
    if manifest.finished_utc and not has_something_left(campaign, manifest):
        raise CampaignError(f"{campaign.name} is finished; there is nothing left to resume")
    return campaign, manifest


def old_campaign(options: argparse.Namespace) -> tuple[Path, Manifest]:
    """Open a campaign to resume it; refuse if its images are no longer the same."""
    campaign, manifest = unfinished(options)
    if manifest.host_mpi is not None:
        host_mpi.bind_again(beginning.ROOT, manifest.host_mpi, list(manifest.images), options.site)
    site = load_site(manifest.site)
    refuse_path(beginning.ROOT, site)
    for name, now in provenance.describe_images(
        beginning.ROOT, list(manifest.images), site, loaded=False
    ).items():
        if now["sha256"] != manifest.images[name].sha256:
            raise CampaignError(
                f"the image {name} is not the one that {campaign.name} began with; start a new "
                "campaign instead"
            )
    command = request.command_of(options)
    # Jobs that drive it one after the other all resume it.
    if command != manifest.commands[-1]:
        manifest = manifest.changed(commands=[*manifest.commands, command])
    return campaign, opened_again(campaign, manifest)


def opened_again(campaign: Path, manifest: Manifest) -> Manifest:
    """Have what is missing from a campaign measured again; return its manifest, open for that.

    A campaign from before there were journals gets one: its rounds are planned again from the
    checks, and take in what is in its folder. Raises CampaignError if it cannot be written.
    """
    state = schedule.state_of(campaign)
    if state and state.may_have_jobs() and (other := copied_from(campaign)):
        raise CampaignError(
            f"{campaign} is a copy of {other}, and what that one has left running would be taken "
            "for its own; resume that one, or remove it before this one"
        )
    try:
        # Who goes on with it has the site: a ReFrame that is still here has nobody to measure for.
        end_all(campaign)
        schedule.begin(campaign, is_converted=True)
        with schedule.held(campaign) as held:
            if changed := changed_manifest(held.state, manifest):
                raise CampaignError(f"{changed}; put it back, or measure a new campaign")
            if held.state.design:
                # Before anything else is written: the time until now is not part of the budget.
                held.add(Resumed())
            end_leftovers(scheduler_of(beginning.ROOT, manifest.site), held, goes_on=True)
            again = len(held.state.stopped_for)
            gone = held.resume()
            state = held.state
    except OSError as error:
        raise CampaignError(f"{campaign} cannot be written: {error.strerror}") from None
    if again:
        print(f"{again} launch(es) at which the campaign had stopped are measured again")
    if gone:
        print(
            f"{len(gone)} launch(es) are no longer in the campaign as they were recorded and are "
            f"measured again: {gone[0]}"
        )
    return manifest.changed(finished_utc=None) if is_open(state, manifest) else manifest


def look(options: argparse.Namespace) -> int:
    """Refuse what can be refused without an image; return 0 for everything else."""
    if options.resume:
        # On the cluster in a box that is the job user, who resumes it there.
        become(owner_of(layout.runs(beginning.ROOT) / Path(options.resume).name), beginning.ROOT)
        campaign, manifest = unfinished(options)
        boxed = any(
            selection.in_a_box(beginning.ROOT, one) for one in (options.site, manifest.site)
        )
        if boxed and options.site != manifest.site:
            raise CampaignError(
                f"{campaign.name} belongs to site {manifest.site}; resume it: "
                f"make run SITE={manifest.site} RESUME={campaign.name}"
            )
        options.site, options.tier = manifest.site, manifest.tier
        # The campaign names it.
        options.site_by_default = False
        options.images, options.checks = ",".join(manifest.images), None
    request.refuse(beginning.ROOT, options)
    request.refuse_before_building(beginning.ROOT, options)
    refuse_obstacles(beginning.ROOT, options)
    return 0
