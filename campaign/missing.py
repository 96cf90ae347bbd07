"""What a campaign still lacks, by its journal: nothing else says that a round is done."""

from __future__ import annotations

from pathlib import Path

from records import schedule
from records.fold import LaunchState, State, refuse_another
from records.kept import read_records, there
from records.manifest import Manifest, RoundDone

#: Of what a campaign does not lack: why an earlier attempt was lost, or it was left out, is known.
MEASURED_OR_NOT_ASKED = ("recorded", "skipped")


def state_of(campaign: Path, manifest: Manifest) -> State | None:
    """Return the state that a campaign's journal gives, or None if it has none, like older ones.

    Raises CampaignError for a damaged journal and for another campaign's.
    """
    state = schedule.state_of(campaign)
    if state:
        refuse_another(campaign, state, manifest.campaign)
    return state


def has_something_left(campaign: Path, manifest: Manifest) -> bool:
    """Return whether a finished campaign has lost launches, or lacks its report.

    Raises CampaignError for a journal that cannot be used.
    """
    state = None if manifest.raw_removed_utc else state_of(campaign, manifest)
    if state is None:
        return False
    names = there(campaign, state)
    gone = [one for one in state.of(None) if one.status == "recorded" and one.name not in names]
    return bool(gone) or is_open(state, manifest) or not state.is_reported


def is_open(state: State, manifest: Manifest) -> bool:
    """Return whether the journal has launches left, or lacks a round of the manifest."""
    return bool(state.left()) or any(one.round not in state.rounds for one in manifest.rounds_done)


def first_failure(campaign: Path) -> str | None:
    """Return which launch failed first, or else is missing, and why; None if there is none.

    What was left out on purpose has a cause as well, and is neither.
    """
    failed = [one for one in read_records(campaign) if one.outcome != "sound"]
    if failed:
        first = min(failed, key=lambda one: one.ended_utc)
        return f"{first.launch}: {first.sentence}"
    state = schedule.state_of(campaign)
    launches = state.of(None) if state else ()
    lacks = (one for one in launches if one.cause and one.status not in MEASURED_OR_NOT_ASKED)
    return next((f"{one.name}: {one.cause}" for one in lacks), None)


def done_rounds(campaign: Path, manifest: Manifest) -> set[int]:
    """Return the rounds with nothing left to measure, according to the journal."""
    done = {one.round for one in manifest.rounds_done}
    state = state_of(campaign, manifest)
    if state is None:
        return done
    # What a round should have contained is unknown if the journal does not have it.
    return {number for number in done if state.is_done(number)}


def with_round(manifest: Manifest, entry: RoundDone) -> Manifest:
    """Return the manifest with a measured round added to what it had of that round."""
    rounds = {one.round: one for one in manifest.rounds_done}
    facts = entry.facts
    if before := rounds.get(entry.round):
        facts = {**facts, "wall_s": before.wall_s + entry.wall_s}
        facts["launches"] = (before.launches or 0) + (entry.launches or 0)
    all_facts = {number: one.facts for number, one in rounds.items()} | {entry.round: facts}
    return manifest.changed(rounds_done=[all_facts[number] for number in sorted(all_facts)])


def missing_of(campaign: Path, number: int | None = None) -> list[LaunchState]:
    """Return what a measured campaign, or one of its rounds, lacks."""
    state = schedule.state_of(campaign)
    return state.left(number) if state else []
