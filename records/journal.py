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
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from records import files
from records.acting_user import open_folder, rights_of_owner
from records.base import CampaignError
from records.causes import one_line
from records.events import (
    Entry,
    Event,
)
from records.locks import LockHeld, exclusive, note_in
from records.processes import boot_id
from records.program_output import explain

FILE = "journal.jsonl"
#: Hidden, so that it is not bundled. It names the folder of who held it last.
LOCK = ".journal.lock"
HELD_IN = re.compile(r"process \d+ of (.+) since ", re.DOTALL)
#: The digest for the missing line before the first one.
NOTHING = "0" * 64


class JournalError(CampaignError):
    """A journal that cannot be read, written or trusted; the text is a sentence."""


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


def copied_from(campaign: Path) -> Path | None:
    """Return the campaign that one was copied from, as with its checkout, if that is still there.

    Nobody knows of one that was written here since.
    """
    try:
        held_in = HELD_IN.match(note_in(campaign / LOCK))
        other = Path(held_in[1]) if held_in else campaign
        if other.samefile(campaign):
            return None
        with (other / FILE).open("rb") as theirs, (campaign / FILE).open("rb") as ours:
            return other if theirs.readline() == ours.readline() else None
    except (OSError, ValueError):
        return None


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
            raise JournalError(f"an earlier write to {self.path} failed; start again")
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
def open_journal(
    campaign: Path, known: Content | None = None, begins: bool = True
) -> Iterator[Journal]:  # fmt: skip
    """Open a campaign's journal for its one writer; it is made if this `begins` it.

    What is `known` of it is not read again. A torn last line is cut off. Raises JournalError while
    another process writes it, for a damaged one, and where there is none to go on with; OSError
    where it cannot be written.
    """
    path = campaign / FILE
    if not campaign.is_dir():
        raise JournalError(f"{campaign} is no longer there: renamed or removed; nothing is written")
    try:
        note = f"process {os.getpid()} of {campaign.absolute()} since {files.utc_now()}"
        with exclusive(campaign / LOCK, note):
            folder = open_folder(campaign)
            try:
                flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                flags |= os.O_CREAT if begins else 0
                try:
                    descriptor = os.open(FILE, flags, 0o644, dir_fd=folder)
                except FileNotFoundError:
                    raise JournalError(
                        f"{path} is no longer there: its campaign was renamed or removed; nothing "
                        "is written"
                    ) from None
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
