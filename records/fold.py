"""The state that a campaign's journal gives: of each launch, and what is left to measure.

A pure function of the events: folding the same events, or any first part of them, gives the
same states. Nothing else decides whether a round is done, least of all how a process ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from records.counting import how_many
from records.disturbance import Outside
from records.events import (
    Begun,
    Ended,
    Event,
    Gone,
    Intended,
    Lost,
    NotStarted,
    Planned,
    PlannedLaunch,
    Recorded,
    Repeated,
    Reported,
    Resumed,
    SessionBegan,
    Stopped,
    Submitted,
    Wave,
)
from records.journal import FILE, JournalError
from records.manifest import Design, Manifest
from records.packs import PackPlace

#: So often an attempt at a launch may be lost before the launch is given up until RESUME.
MOST_LOSSES = 2
#: This many attempts in a row that fail or are lost for one cause are not a result of the
#: comparison.
MOST_ALIKE = 10
Status = Literal["planned", "intended", "submitted", "recorded", "skipped", "failed", "missing"]
#: What a session does nothing more about.
SETTLED = ("recorded", "skipped", "failed", "missing")


@dataclass
class LaunchState:
    """A launch of a round, and how far it is."""

    planned: PlannedLaunch
    round: int
    status: Status = "planned"
    #: How many attempts were made, and how many of them were lost since the last RESUME.
    attempts: int = 0
    losses: int = 0
    job: str | None = None
    #: The attempts that were lost before a scheduler had said that it has them.
    unanswered: tuple[int, ...] = ()
    position: int | None = None
    outcome: Literal["sound", "suspect", "failed"] | None = None
    #: Where a recorded launch is; None if it has its own folder.
    place: PackPlace | None = None
    #: Why the last attempt was lost, or none was made.
    cause: str | None = None
    #: What came from outside while it ran; whether it is of a block that is measured again for it.
    outside: dict[Outside, int] = field(default_factory=dict)
    is_repeat: bool = False
    #: The session that it was recorded in, counted from 1; 0 of what has no journal.
    session: int = 0

    @property
    def name(self) -> str:
        """Return the name of the launch."""
        return self.planned.launch

    @property
    def is_open(self) -> bool:
        """Return whether a session still has to settle it."""
        return self.status not in SETTLED

    @property
    def is_left(self) -> bool:
        """Return whether a RESUME would measure it."""
        return self.is_open or self.status == "missing"

    @property
    def in_flight(self) -> bool:
        """Return whether an attempt at it was begun whose end is unknown."""
        return self.status in ("intended", "submitted")


@dataclass
class State:
    """A campaign according to its journal."""

    campaign: str | None = None
    #: Its first launches were measured without a journal, so that some may have been lost unseen.
    is_converted: bool = False
    launches: dict[str, LaunchState] = field(default_factory=dict)
    #: The rounds that were planned, with their launches in the drawn order.
    rounds: dict[int, list[LaunchState]] = field(default_factory=dict)
    sessions: int = 0
    #: Why it was given up, until somebody resumes it.
    stopped: str | None = None
    #: The attempts at launches that failed or were lost last, one after the other, and for what.
    alike: str | None = None
    alike_names: tuple[str, ...] = ()
    #: What was recorded of those for which the campaign stopped, until it is to be measured again.
    stopped_for: tuple[str, ...] = ()
    #: Of a campaign with a budget: how it decides, its waves, and why it measures nothing more.
    design: Design | None = None
    #: Of what its manifest declared; None of one from before that was noted.
    declared_sha256: str | None = None
    waves: list[Wave] = field(default_factory=list)
    ended: Ended | None = None
    #: Whether there are tables and a report of all that was recorded.
    is_reported: bool = False

    def cells_of(self, number: int) -> tuple[str, ...] | None:
        """Return the cells chosen for a round, None if it has all."""
        for wave in self.waves:
            for one in wave.rounds:
                if one.round == number:
                    return one.cells
        return None

    def blocks(self, number: int | None = None) -> dict[tuple[int, str], list[LaunchState]]:
        """Return the launches of all rounds or one by their block: their round and cell."""
        found: dict[tuple[int, str], list[LaunchState]] = {}
        for one in self.of(number):
            found.setdefault((one.round, one.planned.cell), []).append(one)
        return found

    def split(self) -> set[tuple[int, str]]:
        """Return the blocks that were cut, as by a kill, and finished by another session."""
        return {
            block
            for block, of in self.blocks().items()
            if len({one.session for one in of if one.status == "recorded"}) > 1
        }

    def left(self, number: int | None = None) -> list[LaunchState]:
        """Return what a RESUME would measure, of all rounds or one, in the random order."""
        return [one for one in self.of(number) if one.is_left]

    def open(self, number: int | None = None) -> list[LaunchState]:
        """Return what a session still has to settle, of all rounds or one, in the random order."""
        return [one for one in self.of(number) if one.is_open]

    def of(self, number: int | None) -> Iterator[LaunchState]:
        """Return the launches of a round, or of all, in the drawn order."""
        for one in sorted(self.rounds) if number is None else [number]:
            yield from self.rounds.get(one, ())

    def has_failures(self, number: int) -> bool:
        """Return whether a launch of a round failed, or is suspect."""
        return any(
            one.status == "failed" or one.outcome in ("suspect", "failed")
            for one in self.of(number)
        )

    def may_have_jobs(self) -> bool:
        """Return whether a scheduler may have a job whose end nobody saw."""
        return any(one.in_flight or one.unanswered for one in self.of(None))

    def is_settled(self, number: int) -> bool:
        """Return whether a round was planned and each launch of it is done or missing."""
        return number in self.rounds and not self.open(number)

    def is_done(self, number: int) -> bool:
        """Return whether a round was planned and has nothing left for a RESUME."""
        return number in self.rounds and not self.left(number)

    def next_position(self, number: int) -> int:
        """Return the next launch's place in the order of a round."""
        return max((one.position or 0 for one in self.of(number)), default=0) + 1

    def circuit(self) -> str | None:
        """Return why launches fail, if enough in a row fail alike; else None.

        A failure of only one of several implementations is a result, and stops nothing.
        """
        if len(self.alike_names) < MOST_ALIKE:
            return None
        known = {one.planned.implementation for one in self.launches.values()}
        failing = {self.launches[name].planned.implementation for name in self.alike_names}
        if len(failing) < min(2, len(known)):
            return None
        return f"{len(self.alike_names)} launches in a row ended alike: {self.alike}"

    def _count_alike(self, launch: LaunchState, cause: str | None) -> None:
        kind = None if cause is None else alike(cause, launch)
        if kind != self.alike:
            self.alike, self.alike_names = kind, ()
        if kind is not None:
            self.alike_names += (launch.name,)

    def recorded(self) -> int:
        """Return how many launches are recorded."""
        return sum(one.status == "recorded" for one in self.launches.values())

    def apply(self, event: Event) -> None:
        """Take in what happened next; raise JournalError for what cannot have happened."""
        if isinstance(event, Begun):
            if self.campaign is not None:
                raise JournalError("the journal begins twice")
            self.campaign, self.is_converted = event.campaign, event.converted
            self.design, self.declared_sha256 = event.design, event.declared_sha256
            return
        if self.campaign is None:
            raise JournalError("the journal does not begin with a campaign")
        if isinstance(event, Stopped):
            self.stopped = event.cause
            if self.circuit():
                ended = dict.fromkeys((*self.stopped_for, *self.alike_names))
                self.stopped_for = tuple(
                    name for name in ended if self.launches[name].status == "recorded"
                )
        elif isinstance(event, Reported):
            self.is_reported = True
        elif isinstance(event, Wave):
            self._begin_wave(event)
        elif isinstance(event, Ended):
            if self.design is None:
                raise JournalError("the journal ends a budget, but the campaign has none")
            self.ended = event
        elif isinstance(event, Resumed):
            self._resume()
        elif isinstance(event, SessionBegan):
            self.sessions += 1
        elif isinstance(event, Planned):
            self._plan(event)
        elif isinstance(event, Repeated):
            self._repeat(event)
        else:
            self._advance(self._known(event.launch), event)

    def _known(self, name: str) -> LaunchState:
        try:
            return self.launches[name]
        except KeyError:
            raise JournalError(f"the journal has {name}, which was not planned") from None

    def _begin_wave(self, wave: Wave) -> None:
        after = max((one.round for before in self.waves for one in before.rounds), default=0)
        numbers = [one.round for one in wave.rounds]
        expected = list(range(after + 1, after + 1 + len(numbers)))
        if self.design is None or self.ended or wave.number != len(self.waves) + 1:
            raise JournalError(f"the journal has wave {wave.number}, which cannot come here")
        if not numbers or numbers != expected:
            raise JournalError(f"wave {wave.number} of the journal does not continue the rounds")
        self.waves.append(wave)

    def _resume(self) -> None:
        self.stopped = self.ended = self.alike = None
        self.alike_names = ()
        for launch in self.launches.values():
            launch.losses = 0
            if launch.status == "missing":
                launch.status = "planned"

    def _plan(self, event: Planned) -> None:
        if twice := [one.launch for one in event.launches if one.launch in self.launches]:
            raise JournalError(f"the journal plans {twice[0]} twice")
        self.rounds.setdefault(event.round, [])
        for planned in event.launches:
            self.launches[planned.launch] = LaunchState(planned, event.round)
            self.rounds[event.round].append(self.launches[planned.launch])

    def _repeat(self, event: Repeated) -> None:
        for launch in [self._known(name) for name in event.launches]:
            block = (launch.round, launch.planned.cell) == (event.round, event.cell)
            is_first = launch.status == "recorded" and not launch.is_repeat
            self._need(launch, event, block and is_first)
            launch.status, launch.cause, launch.is_repeat = "planned", event.cause, True
            launch.position = launch.outcome = launch.place = None

    def _advance(
        self, launch: LaunchState, event: Intended | Submitted | Recorded | Lost | NotStarted | Gone
    ) -> None:
        if isinstance(event, Gone):
            self._need(launch, event, launch.status == "recorded")
            launch.status, launch.cause = "planned", event.cause
            launch.position = launch.outcome = launch.place = None
            self.stopped_for = tuple(name for name in self.stopped_for if name != launch.name)
        elif isinstance(event, Intended):
            next_one = event.attempt == launch.attempts + 1
            self._need(launch, event, launch.status == "planned" and next_one)
            launch.status, launch.attempts, launch.job = "intended", event.attempt, None
        elif isinstance(event, NotStarted):
            self._need(launch, event, launch.status == "planned")
            launch.status, launch.cause = event.why, event.cause
        elif isinstance(event, Submitted):
            self._need(launch, event, launch.status == "intended" and self._is_last(launch, event))
            launch.status, launch.job = "submitted", event.job
        elif isinstance(event, Lost):
            self._need(launch, event, launch.in_flight and self._is_last(launch, event))
            if launch.status == "intended":
                launch.unanswered += (event.attempt,)
            launch.losses += 1
            launch.status = "missing" if launch.losses >= MOST_LOSSES else "planned"
            launch.cause = event.cause
            self._count_alike(launch, event.cause)
        else:
            before = self.is_converted and launch.status == "planned" and launch.attempts == 0
            known = before if event.attempt == 0 else launch.in_flight
            self._need(launch, event, known and self._is_last(launch, event))
            launch.status, launch.outcome = "recorded", event.outcome
            launch.position, launch.cause, launch.place = event.position, None, event.place
            launch.outside, launch.session = dict(event.outside), self.sessions
            if event.attempt:
                self._count_alike(launch, event.cause)
            self.is_reported = False

    @staticmethod
    def _is_last(launch: LaunchState, event: Submitted | Recorded | Lost) -> bool:
        return event.attempt == launch.attempts

    @staticmethod
    def _need(launch: LaunchState, event: Event, is_possible: bool) -> None:
        if not is_possible:
            raise JournalError(
                f"the journal has {event.kind!r} of {launch.name}, which is {launch.status} after "
                f"{how_many(launch.attempts, 'attempt')}"
            )


def alike(cause: str, launch: LaunchState) -> str:
    """Return a cause without what differs between launches: names and numbers."""
    planned = launch.planned
    for name in (planned.launch, planned.cell, planned.implementation):
        cause = cause.replace(name, "…")
    return re.sub(r"[0-9]+(?:\.[0-9]+)?", "#", cause)


def fold(events: Iterable[Event]) -> State:
    """Return the state after events; raise JournalError for what cannot have happened."""
    state = State()
    for event in events:
        state.apply(event)
    return state


def refuse_another(campaign: Path, state: State, name: str) -> None:
    """Raise JournalError if the journal in a campaign's folder is not that of `name`."""
    if state.campaign in (None, name):
        return
    file = campaign / FILE
    raise JournalError(
        f"{file} is the journal of {state.campaign}, not of {name}; put its own back, or, if "
        f"the folder was renamed: mv {campaign.parent.name}/{campaign.name} "
        f"{campaign.parent.name}/{state.campaign}"
    )


def changed_manifest(state: State, manifest: Manifest) -> str | None:
    """Return a sentence if a manifest no longer declares what it did before the first launch.

    This cannot be checked for a part of a campaign, or for one that was redacted.
    """
    is_whole = not (manifest.redacted or manifest.sample)
    if not is_whole or state.declared_sha256 in (None, manifest.declared_sha256()):
        return None
    return (
        f"the manifest of {manifest.campaign} was changed: it no longer declares what it declared "
        "before the first launch (its design, images, inputs or machine)"
    )
