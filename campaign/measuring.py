"""Measure what is missing from a campaign: its rounds, or the waves that a budget decides."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from campaign import beginning, estimate, room
from campaign.decisions import say_decision
from campaign.missing import (
    done_rounds,
    missing_of,
    with_round,
)
from campaign.progress import CampaignProgress
from campaign.quiet import with_quiet
from campaign.reference_findings import findings
from campaign.reframe_session import ReframeSession
from campaign.rounds import resume_command, run_round
from containers import store
from records import files, schedule
from records.base import CampaignError
from records.budget import spent_s
from records.campaign import KnownLaunches, read_campaign
from records.counting import how_many
from records.events import Ended, Wave
from records.fold import State
from records.following import following
from records.kept import Kept, Shelf, kept_launches, records_of
from records.manifest import (
    Design,
    Manifest,
    write_manifest,
)

#: How many missing launches are named.
MOST_NAMED = 10


def measure(campaign: Path, manifest: Manifest) -> bool:
    """Measure the rounds that are missing; return whether every check passed.

    Raises CampaignError if a round measures nothing or the campaign cannot be written.
    """
    try:
        # Whoever keeps a shared installation may build there meanwhile.
        digests = {image.sha256 for image in manifest.images.values()}
        with store.in_use(beginning.ROOT, digests):
            if manifest.design:
                return measure_waves(campaign, manifest, manifest.design)
            return measure_rounds(campaign, manifest)
    except OSError as error:
        if not campaign.is_dir():
            raise CampaignError(
                f"{campaign} is no longer there: it was renamed or removed; give it its name back "
                f"and resume: {resume_command(campaign, manifest)}"
            ) from None
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
        room.refuse_too_little(beginning.ROOT, manifest, left)
        progress.say(
            estimate.expectation(
                beginning.ROOT, estimate.Work.of(manifest), left, besides=manifest.campaign
            )
        )
    for number in range(1, manifest.rounds + 1):
        if number in done:
            continue
        entry = run_round(beginning.ROOT, campaign, manifest, number, progress)
        manifest = with_quiet(campaign, with_round(manifest, entry), progress)
        write_manifest(campaign, manifest)
        left -= 1
        if missing := missing_of(campaign, number):
            progress.say(f"round {number}: {how_many(len(missing), 'launch', 'launches')} missing")
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
        else estimate.enough_for(beginning.ROOT, work, design.budget_s, besides=manifest.campaign)
    )
    known = KnownLaunches()
    try:
        with ReframeSession(beginning.ROOT, campaign, manifest, progress, is_told=True) as session:
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
            entry = run_round(beginning.ROOT, campaign, manifest, number, session.progress, session)
            manifest = with_quiet(campaign, with_round(manifest, entry), session.progress)
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
            f"{how_many(len(missing), 'launch', 'launches')} missing{others}; measure them: "
            f"{resume_command(campaign, manifest)}"
        )
    elif not manifest.finished_utc:
        manifest = manifest.changed(finished_utc=files.utc_now())
        write_manifest(campaign, manifest)
    shelf = Shelf()
    with shelf.held():
        # What stands in the packs is looked for once, for both.
        launches = kept_launches(campaign, shelf)
        say_overhead(launches, manifest, progress)
        for sentence in findings(campaign, launches, manifest.site):
            progress.say(sentence)
    return not missing and all(one.reframe_exit_code == 0 for one in manifest.rounds_done)


def say_overhead(launches: Iterable[Kept], manifest: Manifest, progress: CampaignProgress) -> None:
    """Print how much of the campaign's time the launches themselves took."""
    took = [record.wall_s or 0.0 for record in records_of(launches)]
    of_launches = sum(took)
    of_rounds = sum(one.wall_s for one in manifest.rounds_done)
    ratio = f" (ratio {of_rounds / of_launches:.2f})" if of_launches else ""
    progress.say(
        f"{len(took)} launches took {of_launches:.0f} s, the rounds {of_rounds:.0f} s{ratio}"
    )
