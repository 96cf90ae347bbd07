"""A campaign's rounds: each cell and implementation once per round, in random order."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from campaign.leftovers import end_leftovers, scheduler_of
from campaign.progress import CampaignProgress
from campaign.reframe_session import ReframeSession, log_of, measures_once
from records import files as folder
from records import reframe_reports, schedule
from records.base import CampaignError
from records.causes import one_line, sentence_in
from records.events import SessionBegan, Stopped
from records.fold import State
from records.kept import read_records
from records.manifest import Manifest, RoundDone
from records.once import left_to_others
from reframe_checks.bin.telling import is_over

#: So often on end ReFrame may end with launches left and none measured.
MOST_IN_VAIN = 3


class TimeIsOver(CampaignError):
    """What drives the campaign has no more time, and the next goes on; the text is a sentence."""


def run_round(
    root: Path, campaign: Path, manifest: Manifest, number: int, progress: CampaignProgress,
    session: ReframeSession | None = None,
) -> RoundDone:  # fmt: skip
    """Measure what is left of a round with ReFrame; return the outcome.

    The given `session` may measure more rounds; without it, one is made for this round alone.

    The round is over when the journal says that each of its launches is done or missing, however
    often ReFrame ends before that. Raises CampaignError if ReFrame gets nowhere, or has measured
    nothing, TimeIsOver if another job is to continue, and OSError if the campaign cannot be
    written.
    """
    session = session or ReframeSession(root, campaign, manifest, progress)
    before, state = 0, schedule.state_of(campaign)
    if state:
        before = state.recorded()
    began, began_utc = time.monotonic(), folder.utc_now()
    code = vain = 0
    # Of a round that is settled only the entry may be missing, and ReFrame has nothing to do.
    is_settled = state is not None and state.is_settled(number)
    if is_settled:
        # A kill may have come between a round's last launch and what is to be measured again.
        with schedule.held(campaign) as held:
            for sentence in held.repeat_blocks(number, manifest.repeat_beyond):
                progress.say(sentence)
            state = held.state
            is_settled = state.is_settled(number)
    others = others_may_measure(state, number, manifest)
    has_been_measured = is_settled and not others
    while not is_settled or others:
        if is_over():
            raise TimeIsOver(f"round {number} continues in the next job")
        recorded, known = (state.recorded(), state.sessions) if state else (0, 0)
        code = session.measure(number)
        with schedule.held(campaign) as held:
            # As a session that has found nothing left of the round, and every image asked: it says
            # that it began once it has planned what it chose.
            ends_as_it_began = isinstance(held.journal.entries[-1].event, SessionBegan)
            # A session that waits for another round has ended its launches, and is not a leftover.
            ended = (
                0 if session.is_running else end_leftovers(scheduler_of(root, manifest.site), held)
            )
            if ended:
                progress.say(f"ended {ended} processes that ReFrame had left behind")
            held.settle(how_it_was_lost(campaign, code))
            held.find_gone(number)
            state = held.state
            if circuit := state.circuit():
                held.add(Stopped(cause=circuit))
                raise CampaignError(
                    f"{circuit}; ReFrame's messages are in {log_of(campaign)}; fix that "
                    f"and resume: {resume_command(campaign, manifest)}"
                )
            if again := held.repeat_blocks(number, manifest.repeat_beyond):
                for sentence in again:
                    progress.say(sentence)
                is_settled = False
                continue
            is_settled = state.is_settled(number)
            # One that could not start has asked nobody.
            has_begun = state.sessions > known
            found_none = has_begun and ends_as_it_began and is_settled
            has_asked = session.is_running or (code >= 0 and found_none)
            others = [] if has_asked else others_may_measure(state, number, manifest)
            if is_settled and not others:
                # ReFrame fails where it finds nothing to do, and here that is as it should be; so
                # is a kill after the last launch.
                code = max(code, 0) if has_begun and not found_none else 0
                break
            if is_over():
                raise TimeIsOver(f"round {number} continues in the next job")
            vain = vain + 1 if state.recorded() <= recorded else 0
            if not has_begun and code >= 0:
                said = sentence_in(reframe_reports.last_messages(log_of(campaign)))
                raise CampaignError(
                    f"round {number} measured nothing{f': {said}' if said else ''}; ReFrame's "
                    f"messages are in {log_of(campaign)}"
                )
            left, of = state.open(number), state.rounds.get(number)
            sentence = f"ReFrame {how_it_ended(code)} " + (
                f"and images that were not asked may measure {others[0]}"
                if is_settled
                else f"with {len(left)} of {len(of)} launches of round {number} left"
                if of is not None
                else f"before it had planned round {number}"
            )
            # The last loss says more than how the process that saw it ended.
            causes = [one.cause for one in state.of(number) if one.cause and one.is_left]
            cause = causes[-1] if causes else ""
            if code >= 0 and not state.recorded():
                # What failed may have been no launch, but what all of them need.
                cause = cause or sentence_in(reframe_reports.last_messages(log_of(campaign))) or ""
            sentence += f" ({cause})" if cause else ""
            if vain == MOST_IN_VAIN:
                held.add(Stopped(cause=one_line(sentence)))
                raise CampaignError(
                    f"{sentence}, {vain} times without measuring anything; its messages are "
                    f"in {log_of(campaign)}; fix that and resume: "
                    f"{resume_command(campaign, manifest)}"
                )
        progress.say(f"{sentence}; it is started again")
    assert state is not None
    if not state.recorded():
        causes = [f" ({one.cause})" for one in state.of(number) if one.cause]
        raise CampaignError(
            f"round {number} measured nothing{''.join(causes[:1])}; ReFrame's messages are in "
            f"{log_of(campaign)}; fix that and resume: {resume_command(campaign, manifest)}"
        )
    wall_s = time.monotonic() - began
    if has_been_measured:
        # At least as long as its launches, which is all that is known of it.
        wall_s = sum(one.wall_s or 0.0 for one in read_records(campaign) if one.round == number)
    return RoundDone(
        round=number,
        started_utc=began_utc,
        wall_s=wall_s,
        launches=state.recorded() - before,
        load_average=os.getloadavg()[0],
        # Including what failed before a RESUME, which this ReFrame did not measure.
        reframe_exit_code=code or int(progress.has_failures(number) or state.has_failures(number)),
    )


def others_may_measure(state: State | None, number: int, manifest: Manifest) -> list[str]:
    """Return the cells of a round that its images could not measure, and others were not asked to.

    ReFrame asks them at the round's end, unless it was killed, or has ended for a launch.
    """
    if state is None or not measures_once(manifest):
        return []
    return left_to_others(state, number, manifest.images)


def resume_command(campaign: Path, manifest: Manifest) -> str:
    """Return the command that resumes a campaign, or the night that it belongs to."""
    night = manifest.night
    if night is None:
        return f"make run RESUME={campaign.name}"
    return f"make nightly RESUME={night.again_of or campaign.name}"


def how_it_was_lost(campaign: Path, code: int) -> str:
    """Return why launches are lost that ReFrame had begun when it ended."""
    said = sentence_in(reframe_reports.last_messages(log_of(campaign))) if code > 0 else ""
    return one_line(f"ReFrame {how_it_ended(code)} during the launch{f': {said}' if said else ''}")


def how_it_ended(code: int) -> str:
    """Return how a process ended, to be printed after its name."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
