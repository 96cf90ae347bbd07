"""The launches of a campaign from plan to record: each step is in the journal before the next.

Whoever holds the journal drives this: ReFrame's process while it measures, the campaign's before
and after. What an earlier holder left in flight is settled first: a launch that is whole in the
pack of its round was judged, and is recorded; any other attempt is lost.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from records import kept, packs
from records.base import CampaignError, NotKept, RecordError
from records.causes import one_line
from records.counting import how_many
from records.disturbance import Outside, why_again
from records.events import (
    Begun,
    Event,
    Gone,
    Intended,
    Lost,
    Planned,
    PlannedLaunch,
    Recorded,
    Repeated,
    Resumed,
    SessionBegan,
    Submitted,
)
from records.files import flush_to_disk
from records.fold import LaunchState, State, refuse_another
from records.following import following
from records.journal import Journal, JournalError, open_journal
from records.launch import LaunchRecord, record_in, values_of_text
from records.left_behind import read_left
from records.manifest import Design
from records.packs import PackPlace
from records.values import FILE as VALUES

#: Hidden, so that it is not bundled.
GIVEN_UP = ".given_up"
#: The cause of an attempt whose end nobody saw.
UNSEEN = "what measured it ended before it was recorded"


class Schedule:
    """The launches of a campaign whose journal is held."""

    def __init__(self, campaign: Path, journal: Journal) -> None:
        self.campaign = campaign
        self.journal = journal
        #: What this holder has put into a pack last.
        self._last: PackPlace | None = None
        self._known = following(campaign)
        self._known.content = journal.content
        refuse_another(campaign, self.state, campaign.name)

    @property
    def state(self) -> State:
        """Return what the journal amounts to."""
        return self._known.state

    def add(self, event: Event, sync: bool = True) -> None:
        """Take in what happened, and put it into the journal; it is there when this returns.

        Without `sync` it gets to the disk with what comes next. Raises OSError where it cannot be
        written, and JournalError for what cannot have happened: then it did not.
        """
        self._known.expect(event)
        try:
            self.journal.append(event, sync)
        except BaseException:
            self._known.fold_anew()
            raise

    def settle(self, cause: str = UNSEEN) -> None:
        """Settle what an earlier holder of the journal left in flight; `cause` is of what is lost.

        Raises OSError where it cannot be written.
        """
        in_flight = [one for one in self.state.launches.values() if one.in_flight]
        for one in in_flight:
            self.lost(one.name, cause)
        for name, number in {packs.pack_name(one.round): one.round for one in in_flight}.items():
            packs.cut(self.campaign / packs.FOLDER / name, self._places(number))

    def resume(self) -> list[str]:
        """Go on with the campaign: settle it, and try again what was given up or is gone.

        So is what the campaign was stopped for: what ended alike one after the other is no result
        of what is compared. Returns the names of what is gone.
        """
        self.settle()
        gone = self.find_gone()
        for name in self.state.stopped_for:
            self._put_aside(self.state.launches[name])
            self.add(Gone(launch=name, cause="the campaign was stopped because of it, and resumed"))
        self.add(Resumed())
        return gone

    def find_gone(self, number: int | None = None) -> list[str]:
        """Have recorded launches, of a round or of all, measured again if they are gone or changed.

        Returns its names. Raises CampaignError where nobody can say what is there.
        """
        there, gone = kept.there(self.campaign, self.state, number), []
        for one in list(self.state.of(number)):
            if one.status == "recorded" and one.name not in there:
                self._put_aside(one)
                cause = "its files are no longer in the campaign as they were recorded"
                self.add(Gone(launch=one.name, cause=cause))
                gone.append(one.name)
        return gone

    def repeat_blocks(self, number: int, beyond: Mapping[Outside, int]) -> list[str]:
        """Have each block of a round measured again, once, that something from outside disturbed.

        The whole block, of which all is settled: its implementations are compared with each other.
        What it gave is kept aside. Returns a sentence for each.
        """
        said = []
        for (_, cell), block in self.state.blocks(number).items():
            recorded = [one for one in block if one.status == "recorded"]
            reasons = {one.name: why_again(one.outside, beyond) for one in recorded}
            why = {name: reason for name, reason in reasons.items() if reason}
            if not why or any(one.is_open or one.is_repeat for one in block):
                continue
            name, reason = next(iter(why.items()))
            names = tuple(one.name for one in recorded)
            cause = one_line(f"{reason} during {name}")
            self.add(Repeated(round=number, cell=cell, launches=names, cause=cause))
            for one in recorded:
                self._put_aside(one)
            count = how_many(len(names), "launch", "launches")
            said.append(f"this block of {count} is measured again: {cause}")
        return said

    def plan(self, number: int, planned: Sequence[PlannedLaunch]) -> None:
        """Have a round's launches planned, in their order; what is planned already stays so.

        Raises CampaignError where a launch is left that is not among them any more.
        """
        names = {one.launch for one in planned}
        if lost := [one.name for one in self.state.left(number) if one.name not in names]:
            raise CampaignError(
                f"round {number} should have {lost[0]} (and {len(lost) - 1} more), which the "
                "checks no longer have; undo the changes to them, or measure a new campaign"
            )
        new = tuple(one for one in planned if one.launch not in self.state.launches)
        for wanted in new if not self.state.is_converted else ():
            # Whatever it is, this journal has not seen it measured.
            self._put_aside(LaunchState(wanted, number))
        if new or number not in self.state.rounds:
            self.add(Planned(round=number, launches=new))
        for one in self.state.open(number) if self.state.is_converted else ():
            found = self._whole(one) if one.attempts == 0 else None
            if found:
                self.add(recorded(*found, 0), sync=False)

    def begin_session(self, number: int) -> None:
        """Say that this process measures a round."""
        self.add(SessionBegan(round=number, process=os.getpid()))

    def intend(self, name: str) -> None:
        """Say that a launch is about to be submitted; it is on the disk when this returns."""
        # Should a kill have come between a block's repetition and this.
        self._put_aside(self.state.launches[name])
        self.add(Intended(launch=name, attempt=self.state.launches[name].attempts + 1))

    def submitted(self, name: str, job: str) -> None:
        """Say what the scheduler calls a launch.

        Nothing waits for the disk here: the launch runs.
        """
        attempt = self.state.launches[name].attempts
        self.add(Submitted(launch=name, attempt=attempt, job=job), sync=False)

    def keep(self, record: LaunchRecord, files: Mapping[str, Path | bytes]) -> None:
        """Put a launch that was judged into the pack of its round, and say that it is there.

        `files` maps the names of its files to what the launch left behind, or what they hold.
        Raises NotKept where the disk does not take it, and OSError where it does not take the line
        of the journal.
        """
        self.recorded(record, self.pack(record, files))

    def pack(self, record: LaunchRecord, files: Mapping[str, Path | bytes]) -> PackPlace:
        """Put a launch that was judged into the pack of its round; it is there on return.

        Raises NotKept where the disk does not take it.
        """
        name, pack = record.launch, packs.pack_name(record.round)
        job = self.job_name(name, self.state.launches[name].attempts)
        folder = self.campaign / packs.FOLDER
        try:
            segment = packs.segment_of(record, with_values(record, files), job)
            if not folder.exists():
                # Not its parents: a campaign that was renamed would be begun under its old name.
                folder.mkdir()
                flush_to_disk(self.campaign)
            last = self._last if self._last and self._last.pack == pack else None
            places = partial(self._places, record.round)
            self._last = packs.append(folder, pack, segment, places, last)
            return self._last
        except OSError as error:
            raise NotKept(
                f"the launch {name} could not be kept in {self.campaign}: {error.strerror}; make "
                f"room and resume: make run RESUME={self.campaign.name}"
            ) from None

    def recorded(self, record: LaunchRecord, place: PackPlace) -> None:
        """Say that a launch is in a pack.

        The next one's intention takes this to the disk; without it the pack speaks for itself.
        """
        attempt = self.state.launches[record.launch].attempts
        self.add(recorded(record, place, attempt), sync=False)

    def job_name(self, name: str, attempt: int) -> str:
        """Return what the scheduler is to call an attempt that is intended.

        No other attempt of any campaign has it, nor of a copy of this one, whose journal has gone
        on by itself; of 15 letters, since PBS may take no more.
        """
        intended = next(
            entry for entry in reversed(self.journal.entries)
            if isinstance(entry.event, Intended)
            and (entry.event.launch, entry.event.attempt) == (name, attempt)
        )  # fmt: skip
        digest = hashlib.sha256(json.dumps([intended.before, name, attempt]).encode()).hexdigest()
        return f"wy-{digest[:12]}"

    def mark_of(self, name: str, attempt: int) -> Path:
        """Return the file that tells a job, before it starts anything, that it is too late."""
        return self.campaign / GIVEN_UP / self.job_name(name, attempt)

    def give_up_unanswered(self) -> list[str]:
        """Keep jobs from starting that the scheduler never confirmed or denied.

        Returns the names of all such jobs: one may have started before. Raises OSError where that
        cannot be written.
        """
        names = []
        for one in self.state.launches.values():
            if one.status == "intended":
                self._mark(one)
                names.append(self.job_name(one.name, one.attempts))
            names += [self.job_name(one.name, attempt) for attempt in one.unanswered]
        return names

    def jobs_in_flight(self) -> dict[str, str]:
        """Return what the scheduler calls the attempts that it has taken, by our names of them."""
        return {
            self.job_name(one.name, one.attempts): one.job
            for one in self.state.launches.values()
            if one.in_flight and one.job
        }

    def give_up_in_flight(self) -> None:
        """Keep jobs from starting that belong to an attempt whose end nobody knows.

        Raises OSError where that cannot be written.
        """
        for one in self.state.launches.values():
            if one.in_flight:
                self._mark(one)

    def _mark(self, one: LaunchState) -> None:
        mark = self.mark_of(one.name, one.attempts)
        mark.parent.mkdir(exist_ok=True)
        mark.touch()

    def lost(self, name: str, cause: str) -> None:
        """Say that an attempt gave nothing that could be kept; one that is whole is recorded.

        That one was judged, and only the journal did not take it. Raises OSError where it still
        does not: then the launch stays where it is, for who settles it next. Raises JournalError
        for what is not in flight, which is left as it is.
        """
        one = self.state.launches[name]
        if not one.in_flight:
            raise JournalError(f"{name} is {one.status}, so no attempt at it can have been lost")
        found = self._whole(one)
        if found:
            self.add(recorded(*found, one.attempts))
            return
        if one.status == "intended":
            self._mark(one)
        self._put_aside(one)
        self.add(Lost(launch=name, attempt=one.attempts, cause=one_line(cause)))

    def _whole(self, one: LaunchState) -> tuple[LaunchRecord, PackPlace | None] | None:
        """Return the record of a launch that is whole in the campaign, and its place, if it is.

        It is that of its last attempt; what was measured without this journal is of none.
        """
        jobs = [self.job_name(one.name, one.attempts)] if one.attempts else []
        file = self.campaign / packs.FOLDER / packs.pack_name(one.round)
        found = packs.last_of(file, one.name, self._places(one.round), jobs)
        if found:
            return found
        try:
            return record_in(kept.FolderLaunch(self.campaign / kept.FOLDERS / one.name)), None
        except RecordError:
            return None

    def _places(self, number: int) -> list[PackPlace]:
        """Return where launches are in the pack of a round: its own, and those of rounds beside."""
        name, rounds = packs.pack_name(number), packs.rounds_beside(number)
        return [
            one.place for beside in rounds for one in self.state.of(beside)
            if one.place and one.place.pack == name
        ]  # fmt: skip

    def _put_aside(self, one: LaunchState) -> None:
        """Make room for another attempt where a folder is in a launch's place, and keep that.

        What is in a pack stays where it is, and no longer counts.
        """
        folder = self.campaign / kept.FOLDERS / one.name
        if os.path.lexists(folder):
            aside = folder.with_name(f".{one.name}.attempt{one.attempts}")
            folder.rename(aside)


def with_values(record: LaunchRecord, files: Mapping[str, Path | bytes]) -> dict[str, Path | bytes]:
    """Return the files of a launch with its values next to its output; raises OSError.

    What cannot be read has none: who reads the campaign says so, and why.
    """
    stdout = files.get("stdout", b"")
    if record.outcome == "sound":
        with suppress(RecordError, ValueError):
            text = stdout if isinstance(stdout, bytes) else read_left(stdout)
            values = values_of_text(record, text)
            # What was read is kept, and not what another reading would give.
            return {**files, "stdout": text, VALUES: values.model_dump_json().encode()}
    return dict(files)


def recorded(record: LaunchRecord, place: PackPlace | None, attempt: int) -> Recorded:
    """Return the journal's entry for a launch that is in the campaign."""
    return Recorded(
        launch=record.launch, attempt=attempt, position=record.position, outcome=record.outcome,
        cause=record.sentence if record.outcome != "sound" else None, place=place,
        outside=record.disturbance.from_outside() if record.disturbance else {},
    )  # fmt: skip


@contextmanager
def held(campaign: Path, begins: bool = False) -> Iterator[Schedule]:
    """Hold a campaign's journal, made where there is none if this `begins` it.

    One process at a time can. Raises JournalError where another has it, where it is damaged, and
    where it is to go on and there is none; OSError where it cannot be written.
    """
    with open_journal(campaign, following(campaign).content, begins) as journal:
        schedule = Schedule(campaign, journal)
        if schedule.state.campaign is None and not begins:
            raise JournalError(f"{journal.path} is empty; put back what was in it")
        yield schedule


def begin(
    campaign: Path, is_converted: bool = False, design: Design | None = None,
    declared_sha256: str | None = None,
) -> None:  # fmt: skip
    """Make the journal of a campaign; `is_converted` if it has launches from before it had one.

    `design` is that of a budget, `declared_sha256` what its manifest is known by.

    Raises JournalError where it has one that cannot be used, OSError where it cannot be written.
    """
    with held(campaign, begins=True) as schedule:
        if schedule.state.campaign is None:
            schedule.add(
                Begun(
                    campaign=campaign.name, converted=is_converted, design=design,
                    declared_sha256=declared_sha256,
                )
            )  # fmt: skip


def state_of(campaign: Path) -> State | None:
    """Return what a campaign's journal amounts to, or None where it has none, as older ones.

    It is only looked at, and what this process has read of it is not read again; what is returned
    goes on with the journal. Raises JournalError where it cannot be read or is damaged.
    """
    known = following(campaign)
    return None if known.read() is None else known.state
