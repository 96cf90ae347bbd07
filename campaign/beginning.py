"""Begin a campaign: what was asked for, as the manifest of a new one declares it."""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from campaign import choice, estimate, provenance, request, room
from campaign.leftovers import end_leftovers_of_the_dead
from campaign.paths import refuse_path
from containers import host_mpi, images, selection, table
from containers.installed import PrefixError
from containers.programs import ProvisionError
from containers.table import HOST, TableError
from records import files, layout, packs, schedule
from records import manifest as records_manifest
from records.base import CampaignError
from records.budget import schedule_of
from records.disturbance import REPEAT_BEYOND
from records.events import Wave
from records.manifest import (
    FILE,
    MANIFEST_SCHEMA,
    PLAIN,
    Design,
    Manifest,
    manifest_of,
    write_manifest,
)
from site_configs.entries import SiteError
from site_configs.settings import load_site

ROOT = Path(__file__).resolve().parent.parent
#: The errors that stop a campaign; their texts are sentences.
ERRORS = (CampaignError, SiteError, images.ImageError, PrefixError, TableError, ProvisionError)


def chosen(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """Return the implementations to measure, and what a bound MPI adds to the manifest."""
    names = selection.implementations(ROOT, options.site, options.images)
    request.refuse_unbound(names, options.host_mpi)
    if not options.host_mpi:
        return names, {}
    facts, names = host_mpi.bind(ROOT, options.host_mpi, names, options.site)
    return names, {"host_mpi": facts}


def alike(options: argparse.Namespace) -> estimate.Work:
    """Return what decides how long a new campaign takes."""
    selection.site_file(ROOT, options.site)
    return estimate.Work(
        site=options.site,
        tier=options.tier,
        checks=options.checks,
        time_limit=options.time_limit,
        images=frozenset(chosen(options)[0]),
        files=estimate.files_of_checks(provenance.input_digests(ROOT, options.site, False)),
    )


def with_names(options: argparse.Namespace) -> argparse.Namespace:
    """Return a request that names its implementations.

    With others, such as a later default, its command would make a different campaign.
    """
    names = selection.implementations(ROOT, options.site, options.images)
    return argparse.Namespace(**{**vars(options), "images": ",".join(names)})


def expected(options: argparse.Namespace) -> str:
    """Return a sentence on how long a new campaign will take, or what its budget is enough for."""
    wanted = alike(options)
    if options.like and (before := read_manifest(options.like)).design:
        # Most of its rounds may have had only some of the cells.
        took = estimate.duration(sum(one.wall_s for one in before.rounds_done))
        return f"it will have the rounds and cells of {before.campaign}, which took {took}"
    if options.budget:
        return estimate.enough_for(ROOT, wanted, options.budget) + estimate.expected_share(
            ROOT, wanted, options.budget, options.all_pairs
        )
    return estimate.expectation(ROOT, wanted, options.rounds)


def declared(budget_s: float, seed: int) -> Design:
    """Return the design of a campaign with a budget."""
    # It takes a while to load, and only a budget needs it.
    from analysis.precision import waves

    return waves.declared(budget_s, seed)


def new_campaign(
    options: argparse.Namespace, more: Mapping[str, Any] | None = None
) -> tuple[Path, Manifest]:
    """Make the folder and the manifest of a new campaign; `more` is put into the manifest."""
    request.refuse(ROOT, options)
    site = load_site(options.site)
    refuse_path(ROOT, site)
    implementations, bound = chosen(options)
    name = str(options.name or options.study or options.tier)
    if not PLAIN.fullmatch(name):
        raise CampaignError(
            f"NAME={name!r} cannot be part of a folder's name: use letters, digits, dots, _ and "
            "-, and begin with a letter or digit"
        )
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    campaign = layout.runs(ROOT) / f"{stamp}-{options.site}-{name}"
    seed = random.randrange(1, 10**6) if options.seed is None else options.seed
    waves = waves_to_repeat(options.like) if options.like else ()
    design = declared(options.budget, seed) if options.budget else None
    if options.like and waves:
        before = read_manifest(options.like)
        repeated = {"repeats": options.like, "once": before.tested_once}
        design = before.design and before.design.model_copy(update=repeated)
    facts = {
        "schema": MANIFEST_SCHEMA,
        "campaign": campaign.name,
        "name": name,
        "site": options.site,
        "tier": options.tier,
        "created_utc": files.utc_now(),
        "finished_utc": None,
        "rounds": options.rounds,
        "checks": options.checks,
        "study": options.study,
        **({"like": options.like} if options.like else {}),
        "time_limit": options.time_limit,
        "raw_by_rank": options.raw_by_rank,
        **({"all_pairs": True} if options.all_pairs else {}),
        **({"ranks": options.ranks} if options.ranks else {}),
        **({"ranks_per_node": options.ranks_per_node} if options.ranks_per_node else {}),
        "order_seed": seed,
        **({"design": design.model_dump()} if design else {}),
        "repeat_beyond": REPEAT_BEYOND,
        "images": provenance.describe_images(ROOT, implementations, site),
        **bound,
        "site_data": provenance.without_accounts(site),
        "inputs": provenance.input_digests(ROOT, options.site, design is not None),
        "machine": {**provenance.machine(), **provenance.limits(site)},
        **provenance.variables(site, os.environ),
        "software": provenance.software(ROOT, site),
        "commands": [request.command_of(with_names(options))],
        "rounds_done": [],
        **(more or {}),
    }
    manifest = manifest_of(facts, campaign.name)
    room.refuse_too_little(ROOT, manifest, manifest.rounds)
    try:
        end_leftovers_of_the_dead(ROOT, options.site)
        campaign.mkdir(parents=True)
        # Its name in runs/, too: without that, everything that is synced in it would be lost.
        files.flush_to_disk(campaign.parent)
        (campaign / packs.FOLDER).mkdir()
        schedule.begin(campaign, design=design, declared_sha256=manifest.declared_sha256())
        if waves:
            with schedule.held(campaign) as held:
                for wave in waves:
                    held.add(wave, sync=wave is waves[-1])
        # Last: without it the folder is not a campaign, and no campaign lacks its declaration.
        write_manifest(campaign, manifest)
    except OSError as error:
        raise CampaignError(f"{campaign} cannot be written: {error.strerror}") from None
    return campaign, manifest


def waves_to_repeat(name: str) -> tuple[Wave, ...]:
    """Return the waves of a campaign that had a budget, none where it had rounds.

    Raises CampaignError if its journal, the only place that has them, cannot be used.
    """
    if read_manifest(name).design is None:
        return ()
    state = schedule.state_of(layout.runs(ROOT) / Path(name).name)
    if state is None or not state.waves:
        raise CampaignError(
            f"{name} was measured with a budget and has no journal of its decisions, so it cannot "
            "be repeated; measure a new campaign: make run"
        )
    waves = schedule_of(state)
    # Whoever agreed to this many rounds was shown the manifest's number.
    last = max((one.round for wave in waves for one in wave.rounds), default=0)
    if last > read_manifest(name).rounds:
        raise CampaignError(f"{name} has more rounds in its journal than in its manifest")
    return waves


def read_manifest(name: str) -> Manifest:
    """Return the manifest of a campaign that is named by its folder, to write it again.

    Raises CampaignError if there is none, or if another version wrote it.
    """
    campaign = layout.runs(ROOT) / Path(name).name
    if not os.path.isfile(campaign / FILE):
        raise CampaignError(
            f"{campaign} is not a campaign: it has no readable {FILE}; see: ls runs"
        )
    return records_manifest.read_manifest(campaign).writable()


def as_study(options: argparse.Namespace) -> None:
    """Fill in what a study decides and the command line leaves open; refuse an unknown report."""
    if options.study:
        study = choice.study_of(ROOT, options.study)
        options.checks = options.checks or study.checks()
        options.images = options.images or ",".join(study.images())


def as_before(options: argparse.Namespace) -> None:
    """Fill in what decides a campaign from the manifest of the one that it repeats."""
    if not options.like:
        return
    manifest = read_manifest(options.like)
    names = list(manifest.images)
    marked = [name for name in names if f"+{HOST}-" in name]
    if marked and not options.host_mpi:
        raise CampaignError(
            f"{options.like} measured {marked[0]}, with an MPI of its machine bound in; say which "
            "one to use here instead: --host-mpi /opt/some-mpi"
        )
    options.like = manifest.campaign
    options.tier = manifest.tier
    # It may come from a bundle, and so from anybody.
    options.rounds = request.number_of_rounds(str(manifest.rounds))
    options.seed, options.checks = manifest.order_seed, manifest.checks
    options.study, options.time_limit = manifest.study, manifest.time_limit
    options.raw_by_rank = options.raw_by_rank or bool(manifest.raw_by_rank)
    if options.all_pairs and not manifest.all_pairs:
        raise CampaignError(
            f"ALL_PAIRS cannot be given with --like={options.like}: that campaign compares with a "
            "base alone, and a repetition is tested the same way"
        )
    options.all_pairs = manifest.all_pairs
    options.ranks, options.ranks_per_node = manifest.ranks, manifest.ranks_per_node
    options.name = options.name or manifest.name
    options.images = ",".join(
        f"{table.split_variant(name)[0]}+{HOST}" if name in marked else name for name in names
    )
