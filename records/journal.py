"""The journal of a campaign: what became of each launch, one event per line, append-only.

`journal.jsonl` is what decides whether anything is left to measure. A line has its number, the
SHA-256 of the line before it, when it was written (by the clock that is never set, in seconds since
the machine `boot` started, and in UTC) and its event. A last line without its end was cut by a kill
or a full disk: readers ignore it, and the next writer cuts it off. Any other damage is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from records import files
from records.acting_user import open_folder, rights_of_owner
from records.base import (
    CampaignError,
    Count,
    Duration,
    Number,
    OneOfMany,
    Positive,
    RoundNumber,
    Seconds,
)
from records.causes import one_line
from records.disturbance import Often, Outside
from records.launch import LaunchName
from records.locks import LockHeld, exclusive
from records.manifest import Design, ImageName, PlainName, Sha256, Utc
from records.packs import PackPlace
from records.processes import boot_id
from records.program_output import explain

FILE = "journal.jsonl"
#: Hidden, so that it is not bundled.
LOCK = ".journal.lock"
#: The digest for the missing line before the first one.
NOTHING = "0" * 64


class JournalError(CampaignError):
    """A journal that cannot be read, written or trusted; the text is a sentence."""


class Fact(OneOfMany, BaseModel):
    """A part of a journal; a key that this version does not know is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Begun(Fact):
    """The campaign was made; `converted` if its first launches were measured without a journal."""

    kind: Literal["begun"] = "begun"
    campaign: PlainName
    converted: bool = False
    #: Of a campaign with a budget.
    design: Design | None = None
    #: Of what the manifest declares; None of campaigns from before it was noted.
    declared_sha256: Sha256 | None = None


class Resumed(Fact):
    """The campaign is resumed: what was given up is tried again."""

    kind: Literal["resumed"] = "resumed"


class SessionBegan(Fact):
    """A process of ReFrame began to measure what is left of a round."""

    kind: Literal["session"] = "session"
    round: RoundNumber
    process: Positive


class PlannedLaunch(Fact):
    """A launch that a round is to have."""

    launch: LaunchName
    cell: str
    implementation: ImageName


class Planned(Fact):
    """The launches of a round, in their drawn order, written before the first of them starts."""

    kind: Literal["planned"] = "planned"
    round: RoundNumber
    launches: tuple[PlannedLaunch, ...]

    @model_validator(mode="after")
    def each_once(self) -> Planned:
        """Refuse a launch that is planned twice."""
        names = [one.launch for one in self.launches]
        if len(set(names)) < len(names):
            raise ValueError("a launch is planned twice")
        return self


class Intended(Fact):
    """An attempt at a launch is about to be handed to the scheduler."""

    kind: Literal["intended"] = "intended"
    launch: LaunchName
    attempt: Number


class Submitted(Fact):
    """The scheduler has accepted an attempt; `job` is its name for it, here that of a process."""

    kind: Literal["submitted"] = "submitted"
    launch: LaunchName
    attempt: Number
    job: str


class Recorded(Fact):
    """The launch is in the campaign, judged; attempt 0 is from before there was a journal."""

    kind: Literal["recorded"] = "recorded"
    launch: LaunchName
    attempt: Count
    #: In the order in which the round was measured; None of what was never judged.
    position: Number | None
    outcome: Literal["sound", "suspect", "failed"]
    #: Why it is not sound.
    cause: str | None = None
    #: None for a launch with its own folder, from before there were packs.
    place: PackPlace | None = None
    #: How often came from outside what a block may be measured again for.
    outside: dict[Outside, Often] = {}


class Repeated(Fact):
    """A whole block is measured again, once: something from outside came between.

    What it had given is kept aside.
    """

    kind: Literal["repeated"] = "repeated"
    round: RoundNumber
    cell: str
    launches: tuple[LaunchName, ...]
    cause: str


class Lost(Fact):
    """An attempt that left nothing to keep, through no fault of the program."""

    kind: Literal["lost"] = "lost"
    launch: LaunchName
    attempt: Number
    cause: str


class NotStarted(Fact):
    """A launch that was not attempted, and why.

    `skipped` is what the site cannot measure, `failed` what waited for a launch that failed, and
    `missing` what may succeed another time.
    """

    kind: Literal["not started"] = "not started"
    launch: LaunchName
    why: Literal["skipped", "failed", "missing"]
    cause: str


class Gone(Fact):
    """A launch that was recorded is measured again.

    It is no longer in the campaign, or no longer counts there: the campaign stopped for it.
    """

    kind: Literal["gone"] = "gone"
    launch: LaunchName
    cause: str


class Stopped(Fact):
    """The campaign was given up for now, and why."""

    kind: Literal["stopped"] = "stopped"
    cause: str


class WaveRound(Fact):
    """A round of a wave; `cells` are those that it measures, None for all of them."""

    round: RoundNumber
    cells: tuple[str, ...] | None


class WaveScore(Fact):
    """The value of a cell when a wave was chosen: its next look's blocks, seconds, and rate.

    The rate is expected decisions per second, by its best look to come.
    """

    cell: str
    blocks: Number
    seconds: Duration
    rate: Annotated[float, Field(ge=0)]


class Wave(Fact):
    """What a campaign with a budget decided to measure next, before it does.

    `why`: `begin` is all, `chosen` where decisions are near, `uniform` all once more if the
    budget is too small to choose. From the second wave on, all is what is compared.
    """

    kind: Literal["wave"] = "wave"
    number: Number
    why: Literal["begin", "chosen", "uniform"]
    rounds: tuple[WaveRound, ...]
    scores: tuple[WaveScore, ...]
    predicted_s: Duration | None
    spent_s: Duration


class Ended(Fact):
    """A campaign with a budget measures nothing more, and why.

    `decided`: no series is open; `hopeless`: what is left would decide none; `budget`: no look
    that may decide one is over in time; `repeated`: all waves of another campaign are measured;
    `unknown`: series are open, and no launch says how long one takes; `interrupted`: until
    somebody resumes it.
    """

    kind: Literal["ended"] = "ended"
    why: Literal["budget", "decided", "hopeless", "unknown", "repeated", "interrupted"]
    spent_s: Duration
    open_series: Count | None


class Reported(Fact):
    """Tables and report were made of all that was recorded."""

    kind: Literal["reported"] = "reported"


Event = (
    Begun | Resumed | SessionBegan | Planned | Intended | Submitted | Recorded | Lost | NotStarted
    | Gone | Stopped | Reported | Wave | Ended | Repeated
)  # fmt: skip


class Entry(Fact):
    """A line of a journal."""

    seq: Positive
    before: Sha256
    monotonic_s: Seconds
    utc: Utc
    boot: Annotated[str, Field(pattern=r"^[0-9a-f-]{1,64}$")]
    event: Annotated[Event, Field(discriminator="kind")]


@dataclass
class Content:
    """What was read of a journal: its entries, their size in bytes, its last line's sum.

    It grows as lines are added to the file: what has been read is not read again.
    """

    entries: list[Entry] = field(default_factory=list)
    size: int = 0
    last: str = NOTHING
    #: Where the last line begins.
    last_begin: int = 0
    #: Which file it was, how large, and when it was changed, in ns, as it was last read.
    file: tuple[int, int] | None = None
    seen: tuple[int, int] = (0, 0)

    @property
    def events(self) -> list[Event]:
        """Return what happened, in order."""
        return [entry.event for entry in self.entries]

    def take_in(self, data: bytes, where: object) -> None:
        """Add the lines that follow, without a torn last one; raise JournalError for a bad one."""
        # Anything after the last line end is torn.
        for text in data.split(b"\n")[:-1]:
            line = text + b"\n"
            place = f"{where}:{len(self.entries) + 1}"
            try:
                entry = Entry.model_validate_json(line)
            except ValidationError as error:
                said = one_line(explain(error))
                raise JournalError(f"{place}: the journal is damaged: {said}") from None
            if entry.seq != len(self.entries) + 1 or entry.before != self.last:
                raise JournalError(
                    f"{place}: the journal is damaged: the line before is not the one that was "
                    "written"
                )
            self.add(entry, line)

    def add(self, entry: Entry, line: bytes) -> None:
        """Add an entry that stands in the file as this line."""
        self.entries.append(entry)
        self.last, self.last_begin = hashlib.sha256(line).hexdigest(), self.size
        self.size += len(line)

    def goes_on(self, descriptor: int, found: os.stat_result) -> bool:
        """Return whether a file is the one that was read, to which at most lines were added.

        It is another, or was rewritten, where the last line is not in its place any more, or
        where it was changed and has not grown.
        """
        size, changed_ns = self.seen
        is_same = self.file == (found.st_dev, found.st_ino) and found.st_size >= self.size
        if not is_same or (found.st_size == size and found.st_ctime_ns != changed_ns):
            return False
        line = os.pread(descriptor, self.size - self.last_begin, self.last_begin)
        return not self.entries or hashlib.sha256(line).hexdigest() == self.last

    def note(self, found: os.stat_result) -> None:
        """Note how the file was when it was last read or written."""
        self.file = (found.st_dev, found.st_ino)
        self.seen = (found.st_size, found.st_ctime_ns)


def content_of(data: bytes, where: object) -> Content:
    """Return the content of a journal's bytes, without a torn last line.

    Raises JournalError for any other damage.
    """
    content = Content()
    content.take_in(data, where)
    return content


def _read(descriptor: int, known: Content | None, where: object) -> Content:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise JournalError(f"the {FILE} of this campaign is not an ordinary file with one name")
    content = known if known and known.goes_on(descriptor, found) else Content()
    parts, at = [], content.size
    while part := os.pread(descriptor, 2**24, at):
        parts.append(part)
        at += len(part)
    content.take_in(b"".join(parts), where)
    content.note(found)
    return content


def read_journal(campaign: Path, known: Content | None = None) -> Content | None:
    """Return the content of a campaign's journal, or None if it has none, like older ones.

    Of what is `known` of it already, only what was added is read, and added to that. It is only
    read. Raises JournalError if it cannot be read or is damaged.
    """
    path = campaign / FILE
    try:
        with rights_of_owner(campaign):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(path, flags)
        try:
            return _read(descriptor, known, path)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from None


class Journal:
    """A journal that is open for writing."""

    def __init__(self, path: Path, descriptor: int, content: Content) -> None:
        self.path = path
        self.content = content
        self._descriptor = descriptor
        self._is_broken = False

    @property
    def entries(self) -> list[Entry]:
        """Return its lines, in order."""
        return self.content.entries

    def append(self, event: Event, sync: bool = True) -> Entry:
        """Add an event; with `sync` it is on the disk when this returns.

        Raises OSError if it could not be written: then it is not in the journal, unless it is
        unknown what is on the disk, after which nothing more can be added.
        """
        if self._is_broken:
            raise JournalError(f"{self.path} could not be written before; start again")
        # Also where a signal ends this half-way: then the file and this object differ.
        self._is_broken = True
        entry = Entry(
            seq=len(self.entries) + 1, before=self.content.last, monotonic_s=time.monotonic(),
            utc=files.utc_now(), boot=boot_id(), event=event,
        )  # fmt: skip
        line = f"{json.dumps(entry.model_dump(mode='json'), allow_nan=False)}\n".encode("ascii")
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError:
            os.ftruncate(self._descriptor, self.content.size)
            self._is_broken = False
            raise
        self.content.add(entry, line)
        self._is_broken = False
        if sync:
            self.sync()
        return entry

    def sync(self) -> None:
        """Flush what was added to the disk; raises OSError, after which nothing can be added."""
        try:
            os.fsync(self._descriptor)
        except OSError:
            # The kernel may have dropped what it could not write: what is there is unknown.
            self._is_broken = True
            raise


@contextmanager
def open_journal(campaign: Path, known: Content | None = None) -> Iterator[Journal]:
    """Open a campaign's journal for its one writer; create it if there is none.

    What is `known` of it is not read again. A torn last line is cut off. Raises JournalError while
    another process writes it and for a damaged one, and OSError where it cannot be written.
    """
    path = campaign / FILE
    if not campaign.is_dir():
        raise JournalError(f"{campaign} is no longer there: renamed or removed; nothing is written")
    try:
        with exclusive(campaign / LOCK, f"process {os.getpid()} since {files.utc_now()}"):
            folder = open_folder(campaign)
            try:
                flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
                descriptor = os.open(FILE, flags | os.O_CLOEXEC, 0o644, dir_fd=folder)
                try:
                    content = _read(descriptor, known, path)
                    if content.size < os.fstat(descriptor).st_size:
                        os.ftruncate(descriptor, content.size)
                    os.fsync(descriptor)
                    os.fsync(folder)
                    try:
                        yield Journal(path, descriptor, content)
                    finally:
                        content.note(os.fstat(descriptor))
                finally:
                    os.close(descriptor)
            finally:
                os.close(folder)
    except LockHeld as holder:
        raise JournalError(
            f"another process is measuring {campaign.name} ({holder}); wait until it has ended"
        ) from None
