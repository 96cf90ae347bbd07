"""Measure a campaign, resume one, and report it."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from campaign import choice, estimate, leftovers, provenance, request, room
from campaign.decisions import say_decision
from campaign.missing import (
    done_rounds,
    has_something_left,
    is_open,
    missing_of,
    with_round,
)
from campaign.obstacles import refuse_obstacles
from campaign.paths import refuse_path
from campaign.progress import CampaignProgress
from campaign.reference_findings import findings
from campaign.rounds import (
    ReframeSession,
    end_leftovers,
    end_leftovers_of_the_dead,
    resume_command,
    run_round,
    scheduler_of,
)
from containers import host_mpi, images, selection, table
from containers.installed import PrefixError
from containers.programs import ProvisionError
from containers.table import HOST, TableError
from records import files, packs, schedule
from records import manifest as records_manifest
from records.acting_user import become, owner_of
from records.base import CampaignError
from records.budget import schedule_of, spent_s
from records.campaign import KnownLaunches, is_imported, read_campaign
from records.disturbance import REPEAT_BEYOND
from records.fold import State
from records.following import following
from records.journal import Ended, Reported, Resumed, Wave
from records.kept import read_records
from records.manifest import (
    FILE,
    MANIFEST_SCHEMA,
    PLAIN,
    Design,
    Manifest,
    manifest_of,
    write_manifest,
)
from site_configs.settings import load_site
from site_configs.site_file import SiteError

ROOT = Path(__file__).resolve().parent.parent
#: How many missing launches are named.
MOST_NAMED = 10
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
            ROOT, wanted, options.budget
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
    campaign = ROOT / "runs" / f"{stamp}-{options.site}-{name}"
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
    state = schedule.state_of(ROOT / "runs" / Path(name).name)
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
    campaign = ROOT / "runs" / Path(name).name
    if not os.path.isfile(campaign / FILE):
        raise CampaignError(
            f"{campaign} is not a campaign: it has no readable {FILE}; see: ls runs"
        )
    return records_manifest.read_manifest(campaign).writable()


def unfinished(options: argparse.Namespace) -> tuple[Path, Manifest]:
    """Return a campaign that can be resumed and its manifest; raises CampaignError."""
    campaign = ROOT / "runs" / Path(options.resume).name
    manifest = read_manifest(options.resume)
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
        host_mpi.bind_again(ROOT, manifest.host_mpi, list(manifest.images), options.site)
    site = load_site(manifest.site)
    refuse_path(ROOT, site)
    for name, now in provenance.describe_images(ROOT, list(manifest.images), site).items():
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
    try:
        # Who goes on with it has the site: a ReFrame that is still here has nobody to measure for.
        leftovers.end_all(campaign)
        schedule.begin(campaign, is_converted=True)
        with schedule.held(campaign) as held:
            if changed := schedule.changed_manifest(held.state, manifest):
                raise CampaignError(f"{changed}; put it back, or measure a new campaign")
            if held.state.design:
                # Before anything else is written: the time until now is not part of the budget.
                held.add(Resumed())
            end_leftovers(scheduler_of(ROOT, manifest.site), held, goes_on=True)
            again = len(held.state.stopped_for)
            gone = held.resume()
            state = held.state
    except OSError as error:
        raise CampaignError(f"{campaign} cannot be written: {error.strerror}") from None
    if again:
        print(f"{again} launch(es) at which the campaign had stopped are measured again")
    if gone:
        print(
            f"{len(gone)} launch(es) that were recorded are no longer in the campaign and are "
            f"measured again: {gone[0]}"
        )
    return manifest.changed(finished_utc=None) if is_open(state, manifest) else manifest


def measure(campaign: Path, manifest: Manifest) -> bool:
    """Measure the rounds that are missing; return whether every check passed.

    Raises CampaignError if a round measures nothing or the campaign cannot be written.
    """
    try:
        if manifest.design:
            return measure_waves(campaign, manifest, manifest.design)
        return measure_rounds(campaign, manifest)
    except OSError as error:
        raise CampaignError(
            f"{error.filename or campaign} cannot be written: {error.strerror or error}; fix that "
            f"and resume: {resume_command(campaign, manifest)}"
        ) from None


def measure_rounds(campaign: Path, manifest: Manifest) -> bool:
    """Measure the rounds that are missing; return whether all was measured and every check passed.

    A round is done when the journal says so. With launches missing the campaign is not finished.
    """
    progress = CampaignProgress(manifest.rounds)
    progress.say(f"campaign runs/{campaign.name}: {', '.join(manifest.images)}")
    done = done_rounds(campaign, manifest)
    left = manifest.rounds - len(done)
    if left:
        room.refuse_too_little(ROOT, manifest, left)
        progress.say(
            estimate.expectation(ROOT, estimate.Work.of(manifest), left, besides=manifest.campaign)
        )
    for number in range(1, manifest.rounds + 1):
        if number in done:
            continue
        entry = run_round(ROOT, campaign, manifest, number, progress)
        manifest = with_round(manifest, entry)
        write_manifest(campaign, manifest)
        left -= 1
        if missing := missing_of(campaign, number):
            progress.say(f"round {number}: {len(missing)} launch(es) missing")
        if left:
            others = estimate.duration(left * entry.wall_s)
            took = estimate.duration(entry.wall_s)
            progress.say(f"round {number} took {took}; {left} left, about {others}")
    return whole(campaign, manifest, progress)


def measure_waves(campaign: Path, manifest: Manifest, design: Design) -> bool:
    """Measure what a campaign with a budget decides, wave by wave, until nothing more is measured.

    Each decision is in the journal before its first launch. A wave cut by a kill is finished first.
    Returns whether everything was measured and every check passed.
    """
    progress = CampaignProgress(manifest.rounds)
    progress.say(f"campaign runs/{campaign.name}: {', '.join(manifest.images)}")
    work = estimate.Work.of(manifest)
    progress.say(
        f"it has the rounds and cells of {design.repeats}, however long they take"
        if design.repeats
        else estimate.enough_for(ROOT, work, design.budget_s, besides=manifest.campaign)
    )
    known = KnownLaunches()
    try:
        with ReframeSession(ROOT, campaign, manifest, progress, is_told=True) as session:
            while True:
                manifest = measure_decided(campaign, manifest, session)
                decision = decided(campaign, design, known)
                with schedule.held(campaign) as held:
                    held.add(decision)
                    state = held.state
                say_decision(decision, design, progress, state, len(manifest.images))
                manifest = as_decided(manifest, state)
                write_manifest(campaign, manifest)
                if isinstance(decision, Ended):
                    break
    except KeyboardInterrupt:
        with suppress(CampaignError, OSError), schedule.held(campaign) as held:
            spent = spent_s(held.journal.entries)
            held.add(Ended(why="interrupted", spent_s=spent, open_series=None))
        raise
    return whole(campaign, manifest, progress)


def measure_decided(campaign: Path, manifest: Manifest, session: ReframeSession) -> Manifest:
    """Measure what is left of the waves that were decided; return the manifest with their rounds.

    Raises what `run_round` does.
    """
    state = schedule.state_of(campaign)
    if state is None:
        return manifest
    manifest = as_decided(manifest, state)
    session.progress.rounds = manifest.rounds
    entered = {one.round for one in manifest.rounds_done}
    for number in [one.round for wave in state.waves for one in wave.rounds]:
        # A round that a kill left without its entry gets one, so that its failures count.
        if not state.is_settled(number) or number not in entered:
            entry = run_round(ROOT, campaign, manifest, number, session.progress, session)
            manifest = with_round(manifest, entry)
            write_manifest(campaign, manifest)
    return manifest


def as_decided(manifest: Manifest, state: State) -> Manifest:
    """Return the manifest with the rounds of the journal's waves, and how they are tested."""
    from analysis.precision import waves

    rounds = max((one.round for wave in state.waves for one in wave.rounds), default=1)
    return manifest.changed(rounds=rounds, tested_once=waves.is_uniform(state))


def decided(campaign: Path, design: Design, known: KnownLaunches) -> Wave | Ended:
    """Return what a campaign with a budget measures next; raises CampaignError.

    Each launch is read once: those read for an earlier wave are in `known`.
    """
    from analysis.comparison.compare import compare
    from analysis.comparison.result import Comparison
    from analysis.precision import waves

    journal = following(campaign)
    content = journal.read()
    assert content is not None
    state = journal.state

    def compared() -> Comparison:
        return compare(waves.part_of(read_campaign(campaign, known), state))

    if design.repeats:
        spent = spent_s(content.entries)
        return Ended(why="repeated", spent_s=spent, open_series=None)
    return waves.decide(design, content.entries, state, compared)


def whole(campaign: Path, manifest: Manifest, progress: CampaignProgress) -> bool:
    """Say what is missing from a measured campaign; return whether nothing is missing or failed.

    A campaign with missing launches is not finished.
    """
    missing = missing_of(campaign)
    for one in missing[:MOST_NAMED]:
        progress.say(f"missing: {one.name}: {one.cause}")
    if missing:
        others = f" ({len(missing) - MOST_NAMED} more)" * (len(missing) > MOST_NAMED)
        progress.say(
            f"{len(missing)} launch(es) missing{others}; measure them: "
            f"{resume_command(campaign, manifest)}"
        )
    elif not manifest.finished_utc:
        manifest = manifest.changed(finished_utc=files.utc_now())
        write_manifest(campaign, manifest)
    say_overhead(campaign, manifest, progress)
    for sentence in findings(campaign, manifest.site):
        progress.say(sentence)
    return not missing and all(one.reframe_exit_code == 0 for one in manifest.rounds_done)


def say_overhead(campaign: Path, manifest: Manifest, progress: CampaignProgress) -> None:
    """Print how much of the campaign's time the launches themselves took."""
    records = list(read_records(campaign))
    of_launches = sum(record.wall_s or 0.0 for record in records)
    of_rounds = sum(one.wall_s for one in manifest.rounds_done)
    progress.say(
        f"{len(records)} launches took {of_launches:.0f} s, the rounds {of_rounds:.0f} s "
        f"(ratio {of_rounds / max(of_launches, 1e-9):.2f})"
    )


def conclusion(campaign: Path, study: str | None) -> list[str]:
    """Return the arguments of `python -m analysis` after a campaign."""
    return ["conclude", str(campaign), *(["--study", study] if study else [])]


def report(campaign: Path, study: str | None) -> bool:
    """Make the tables and the report, print the answer; return whether that succeeded.

    If so, the journal records it, so that nothing is left to do. Raises CampaignError if that
    cannot be written.
    """
    command = [sys.executable, "-m", "analysis", *conclusion(campaign, study)]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        print(
            f"campaign: what was measured of {campaign.name} is kept; the sentences above say what "
            "could not be made from it, and why. Put that right and make it: "
            f"make run RESUME={campaign.name}",
            file=sys.stderr,
        )
        return False
    try:
        with schedule.held(campaign) as held:
            held.add(Reported())
    except OSError as error:
        raise CampaignError(f"{campaign} cannot be written: {error.strerror}") from None
    return True


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
    options.name = options.name or manifest.name
    options.images = ",".join(
        f"{table.split_variant(name)[0]}+{HOST}" if name in marked else name for name in names
    )


def look(options: argparse.Namespace) -> int:
    """Refuse what can be refused without an image; return 0 for everything else."""
    if options.resume:
        # On the cluster in a box that is the job user, who resumes it there.
        become(owner_of(ROOT / "runs" / Path(options.resume).name), ROOT)
        campaign, manifest = unfinished(options)
        if request.CLUSTER in {options.site, manifest.site} != {manifest.site}:
            raise CampaignError(
                f"{campaign.name} belongs to site {manifest.site}; resume it: "
                f"make run SITE={manifest.site} RESUME={campaign.name}"
            )
        options.site, options.tier = manifest.site, manifest.tier
        # The campaign names it.
        options.site_by_default = False
        options.images, options.checks = ",".join(manifest.images), None
    request.refuse(ROOT, options)
    request.refuse_before_building(ROOT, options)
    refuse_obstacles(ROOT, options)
    return 0
