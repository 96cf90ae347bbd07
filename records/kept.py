"""What a campaign keeps of its launches: their files, wherever they are.

They are in the campaign's packs (`records.packs`); those of older campaigns, and of samples, are
folders of `launches/`. Whoever reads a launch does it by what is here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from records import digests, packs
from records.acting_user import content_of, opened
from records.base import CampaignError, RecordError
from records.fold import LaunchState, State
from records.following import following
from records.journal import JournalError
from records.launch import RECORD, LaunchRecord, record_in
from records.packs import PackPlace

#: The folder of older campaigns that has one for each launch.
FOLDERS = "launches"


class FolderLaunch:
    """A launch that has its own folder."""

    #: Nobody has said what it was as a whole.
    sha256 = None

    def __init__(self, folder: Path) -> None:
        self.name, self.where = folder.name, folder

    def read(self, name: str) -> bytes:
        """Return what a file of it holds; raises OSError."""
        return content_of(self.where / name)

    def names(self) -> list[str]:
        """Return the names of its files, in order."""
        return sorted(path.name for path in self.where.iterdir() if path.is_file())

    def refuse_changed(self, known: Mapping[str, str]) -> None:
        """Raise RecordError unless its files are what the launch left behind."""
        digests.refuse_changed(self, known)


class Shelf:
    """Opens packs; while it is held, the one that was opened last stays open for what follows.

    `seen` has what was found in packs, with how these were then: of who reads a campaign again.
    """

    def __init__(self) -> None:
        self.seen: dict[Path, tuple[tuple[int, ...], list[PackPlace], list[PackedLaunch]]] = {}
        self._holds: ExitStack | None = None
        self._path: Path | None = None
        self._pack: IO[bytes] | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep a pack open between launches that are read one after the other."""
        with ExitStack() as self._holds:
            try:
                yield
            finally:
                self._holds = self._path = self._pack = None

    @contextmanager
    def opened(self, path: Path) -> Iterator[IO[bytes]]:
        """Open a pack for reading; raises OSError."""
        if self._holds is None:
            with opened(path) as pack:
                yield pack
            return
        if self._pack is None or self._path != path:
            self._path = self._pack = None
            self._holds.close()
            self._pack = self._holds.enter_context(opened(path))
            self._path = path
        yield self._pack


class PackedLaunch:
    """A launch in a pack; `sha256` is of its bytes there, None where no journal says it."""

    def __init__(
        self, pack: Path, segment: packs.PackSegment, sha256: str | None, shelf: Shelf
    ) -> None:
        self.pack, self.segment, self.sha256 = pack, segment, sha256
        self._shelf = shelf
        self.name = segment.launch
        #: As if the pack were a folder, which it is to those who unpack it.
        self.where = pack / segment.launch

    def read(self, name: str) -> bytes:
        """Return what a file of it holds, as the launch left it; raises OSError and RecordError."""
        with self._shelf.opened(self.pack) as pack:
            try:
                return packs.content_of(pack, self.segment, name)
            except RecordError as error:
                raise RecordError(f"{self.where / name}: {error}") from None

    def names(self) -> list[str]:
        """Return the names of its files, in order."""
        return sorted(name.removesuffix(packs.GZ) for name in self.segment.contents)

    def refuse_changed(self, known: Mapping[str, str]) -> None:
        """Raise RecordError unless its files are what the launch left behind."""
        if self.sha256:
            offset = self.segment.offset
            with self._shelf.opened(self.pack) as pack:
                if packs.digest_of(pack, offset, self.segment.end - offset) == self.sha256:
                    return
        # Which of them it is; they alone can tell where no journal does.
        digests.refuse_changed(self, known)
        if self.sha256:
            raise RecordError(
                f"{self.where}: was changed after the launch: its bytes in the pack do not have "
                f"the sha256 of the journal, {self.sha256[:12]}…"
            )


Kept = FolderLaunch | PackedLaunch


def pack_files(campaign: Path) -> list[Path]:
    """Return a campaign's packs, in the order of its rounds."""
    return sorted((campaign / packs.FOLDER).glob("round*.tar"))


def has_launches(campaign: Path) -> bool:
    """Return whether a campaign has anything of a launch, wherever that is."""
    folder = next((campaign / FOLDERS).glob(f"[!.]*/{RECORD}"), None)
    return folder is not None or any(map(has_any, pack_files(campaign)))


def has_any(path: Path) -> bool:
    """Return whether a pack has anything of a launch that can be read."""
    try:
        with opened(path) as pack:
            return next(packs.segments_of(pack), None) is not None
    except OSError:
        return False


def kept_launches(campaign: Path, shelf: Shelf | None = None) -> list[Kept]:
    """Return the launches of a campaign as far as they are there, in the order of their names.

    Packs are opened by a `shelf`.
    """
    try:
        known = following(campaign)
        return kept_by(campaign, known.state if known.read() else None, shelf)
    except JournalError:
        return kept_by(campaign, None, shelf)


def kept_by(campaign: Path, state: State | None, shelf: Shelf | None = None) -> list[Kept]:
    """Return the launches of a campaign as far as they are there, in the order of their names.

    What counts in a pack is what the journal amounts to; of what it never planned, what stands
    last. Packs are opened by a `shelf`.
    """
    shelf = shelf or Shelf()
    places = placed(state.of(None)) if state else {}
    found: list[Kept] = []
    for path in pack_files(campaign):
        try:
            found += packed_in(path, places.get(path.name, []), state, shelf)
        except OSError:
            # Whoever reads the journal as well says what is missing.
            continue
    # One in flight when an older campaign was killed is hidden: never whole, never counted.
    folders = (campaign / FOLDERS).glob("*")
    found += [FolderLaunch(path) for path in folders if not path.name.startswith(".")]
    return sorted(found, key=lambda one: one.name)


def placed(launches: Iterable[LaunchState]) -> dict[str, list[LaunchState]]:
    """Return those of these that are in packs, by pack."""
    found: dict[str, list[LaunchState]] = defaultdict(list)
    for one in launches:
        if one.place:
            found[one.place.pack].append(one)
    return found


def packed_in(
    path: Path, launches: list[LaunchState], state: State | None, shelf: Shelf
) -> list[PackedLaunch]:
    """Return what counts of a pack: those of its launches that the journal has, and what it lacks.

    A pack that consists of the journal's launches alone is looked into once, until it is changed.
    Raises OSError where it cannot be read.
    """
    places = [one.place for one in launches if one.place]
    status = path.stat()
    stamp = (status.st_ino, status.st_size, status.st_ctime_ns)
    if path in shelf.seen and shelf.seen[path][:2] == (stamp, places):
        return shelf.seen[path][2]
    found = found_in(path, launches, shelf)
    if are_all(places, status.st_size) and ends_after(places, path, shelf):
        shelf.seen[path] = stamp, places, found
        return found
    known = state.launches if state else {}
    return found + [one for one in last_in(path, shelf) if one.name not in known]


def are_all(places: Iterable[PackPlace], size: int) -> bool:
    """Return whether a pack of so many bytes has nothing but what is in these places."""
    end = 0
    for place in sorted(places, key=lambda one: one.offset):
        if place.offset != end:
            return False
        end = place.end
    return size == end + len(packs.end_mark(end))


def ends_after(places: Iterable[PackPlace], path: Path, shelf: Shelf) -> bool:
    """Return whether a pack has nothing but the mark of its end after the last of these places.

    Its size does not tell: a short launch may take no more than that mark. Raises OSError where it
    cannot be read.
    """
    with shelf.opened(path) as pack:
        pack.seek(max((place.end for place in places), default=0))
        return not pack.read(packs.TAR_RECORD).strip(b"\0")


def found_in(
    path: Path, launches: Iterable[LaunchState], shelf: Shelf | None = None
) -> list[PackedLaunch]:
    """Return what of these a pack has, where it was put or, if others were taken out, elsewhere.

    Raises OSError where it cannot be read.
    """
    found, shelf = [], shelf or Shelf()
    elsewhere: dict[str, packs.PackSegment] | None = None
    with shelf.opened(path) as pack:
        size = pack.seek(0, 2)
        for one in launches:
            place: PackPlace | None = one.place
            assert place
            segment = packs.segment_at(pack, place.offset)
            if not segment or segment.launch != one.name or place.end > size:
                if elsewhere is None:
                    elsewhere = {
                        packs.digest_of(pack, other.offset, other.end - other.offset): other
                        for other in packs.reachable(pack, ())
                    }
                segment = elsewhere.get(place.sha256)
            if segment:
                found.append(PackedLaunch(path, segment, place.sha256, shelf))
    return found


def last_in(path: Path, shelf: Shelf) -> list[PackedLaunch]:
    """Return what a pack has last of each launch, without one that is cut off at its end.

    Raises OSError where it cannot be read.
    """
    with shelf.opened(path) as pack:
        segments = list(packs.segments_of(pack))
        if segments and not packs.whole(pack, segments[-1]):
            segments.pop()
    last = {segment.launch: segment for segment in segments}
    return [PackedLaunch(path, segment, None, shelf) for segment in last.values()]


def read_records(campaign: Path) -> Iterator[LaunchRecord]:
    """Yield the records of a campaign's launches that can be read, without their outputs."""
    shelf = Shelf()
    with shelf.held():
        yield from records_of(kept_launches(campaign, shelf))


def records_of(launches: Iterable[Kept]) -> Iterator[LaunchRecord]:
    """Yield the records of those launches that can be read, without their outputs."""
    for one in launches:
        try:
            yield record_in(one)
        except (RecordError, OSError):
            # Whoever reads the campaign with its outputs says which and why.
            continue


def there(campaign: Path, state: State, number: int | None = None) -> set[str]:
    """Return the names of the recorded launches, of a round or of all, that are there as recorded.

    Of packs all bytes are read, and what was changed counts as gone. Raises CampaignError if that
    cannot be determined, rather than calling all of them gone.
    """
    recorded = [one for one in state.of(number) if one.status == "recorded"]
    names: set[str] = set()
    if any(one.place is None for one in recorded):
        folder = campaign / FOLDERS
        refuse_unreadable(folder)
        whole = {path.parent.name for path in folder.glob(f"[!.]*/{RECORD}")}
        names |= {one.name for one in recorded if one.place is None and one.name in whole}
    if places := placed(recorded):
        refuse_unreadable(campaign / packs.FOLDER)
        for name, launches in places.items():
            try:
                names |= set(whole_in(campaign / packs.FOLDER / name, launches))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise unreadable(campaign / packs.FOLDER / name, error) from None
    return names


def whole_in(path: Path, launches: Iterable[LaunchState]) -> Iterator[str]:
    """Yield the names of those of these whose bytes a pack has; raises OSError."""
    shelf = Shelf()
    with shelf.held(), shelf.opened(path) as pack:
        for one in found_in(path, launches, shelf):
            begin, end = one.segment.offset, one.segment.end
            if packs.digest_of(pack, begin, end - begin) == one.sha256:
                yield one.name


def refuse_unreadable(folder: Path) -> None:
    """Raise CampaignError if it cannot be determined what is in a folder."""
    try:
        next(folder.iterdir(), None)
    except OSError as error:
        raise unreadable(folder, error) from None


def unreadable(path: Path, error: OSError) -> CampaignError:
    """Return the sentence for a campaign whose launches cannot be determined."""
    return CampaignError(
        f"{path} cannot be read: {error.strerror}; put it back and resume, or measure a new "
        "campaign"
    )
