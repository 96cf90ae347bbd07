"""Packs: what is kept of the launches of a round, one after the other in one file.

Each of a campaign's first rounds has a pack of its own, later ones share one: file systems of
clusters count files.

A pack is a tar, and is only ever added to: its end mark moves on. What is kept of a launch is a
segment of it: its record, and then the files that the record has digests of, each in the launch's
folder. A file that takes less room so is compressed, and has `.gz` after its name; its digest is
that of what the launch left behind. A segment is whole when all of them are there with these
digests: by that it is known what a kill has cut. Of a launch that was measured again the earlier
segment stays where it is; the journal says which one counts.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Annotated

from pydantic import BaseModel, ConfigDict, Field

from records import files
from records.base import Count, OneOfMany, Positive, RecordError
from records.launch import RECORD, LaunchRecord, finished_launch, record_of, record_text
from records.left_behind import read_left
from records.manifest import Sha256

#: The folder of a campaign that has its packs.
FOLDER = "packs"
#: So many rounds have a pack each, and so many of the later ones share one: of 300 it is 34.
ALONE, TOGETHER = 20, 20
BLOCK = 512
#: By which a tar ends; GNU tar, when it takes something out, needs it to end at whole records.
END_BYTES = 2 * BLOCK
TAR_RECORD = 20 * BLOCK
GZ = ".gz"
#: Of a file in a pack that is compressed; a larger one is kept as it is.
MOST_BYTES = 2**30
CHUNK_BYTES = 2**20
#: Of a name; more is none of ours.
LONGEST_NAME = 2**12


class PackPlace(OneOfMany, BaseModel):
    """Where a launch is in a campaign's packs; the digest is of the pack's bytes there."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    pack: Annotated[str, Field(pattern=r"^round([0-9]{3,6}|s[0-9]{3,6}-[0-9]{3,6})\.tar$")]
    offset: Count
    length: Positive
    sha256: Sha256

    @property
    def end(self) -> int:
        """Return where the pack continues."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file in a pack: where its header begins, where what it holds, how long that is."""

    begin: int
    data: int
    size: int

    @property
    def end(self) -> int:
        """Return where the next file begins."""
        return self.data + filled(self.size)


@dataclass(slots=True)
class PackSegment:
    """What a pack has of a launch, whole or not: its files by the names that they have there."""

    launch: str
    offset: int
    contents: dict[str, PackedFile] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Return where the last file of it ends."""
        return max(content.end for content in self.contents.values())


def rounds_beside(round_number: int) -> range:
    """Return the rounds whose launches are in one pack with those of a round."""
    if round_number <= ALONE:
        return range(round_number, round_number + 1)
    first = round_number - (round_number - ALONE - 1) % TOGETHER
    return range(first, first + TOGETHER)


def pack_name(round_number: int) -> str:
    """Return the name of the pack of a round's launches."""
    rounds = rounds_beside(round_number)
    if len(rounds) == 1:
        return f"round{round_number:03d}.tar"
    return f"rounds{rounds[0]:03d}-{rounds[-1]:03d}.tar"


def filled(size: int) -> int:
    """Return what so many bytes take in a tar."""
    return -(-size // BLOCK) * BLOCK


def end_mark(end: int) -> bytes:
    """Return the zeros that end a tar whose last file ends at a place."""
    return bytes(-(-(end + END_BYTES) // TAR_RECORD) * TAR_RECORD - end)


def member(name: str, content: bytes, seconds: float) -> bytes:
    """Return a file as a tar has it; `seconds` since the epoch are its time."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime = len(content), int(seconds)
    header = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    return header + content + bytes(filled(len(content)) - len(content))


def segment_of(record: LaunchRecord, sources: Mapping[str, Path | bytes], job: str) -> bytes:
    """Return what a pack has of a launch: its record, with the digests of its files, and these.

    A source that is not there, since the launch never wrote it, or is no file, is kept as an empty
    file. Raises OSError where one cannot be read, and CampaignError for a name that no file can
    have.
    """
    contents = {
        name: source if isinstance(source, bytes) else what_is_left(source)
        for name, source in sources.items()
    }
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    # As whoever reads it will see it, names of files too.
    kept = finished_launch(record, sha256=digests, job=job)
    ended = datetime.fromisoformat(kept.ended_utc).timestamp()
    parts = [member(f"{kept.launch}/{RECORD}", record_text(kept).encode(), ended)]
    for name, content in contents.items():
        stored = name
        if len(content) <= MOST_BYTES and name + GZ not in contents:
            compressed = gzip.compress(content, 6, mtime=0)
            if filled(len(compressed)) < filled(len(content)):
                stored, content = name + GZ, compressed
        parts.append(member(f"{kept.launch}/{stored}", content, ended))
    return b"".join(parts)


def what_is_left(source: Path) -> bytes:
    """Return what a launch has left in a file, nothing where that is no file.

    Raises OSError where the disk does not give it.
    """
    try:
        return read_left(source)
    except (FileNotFoundError, RecordError):
        return b""


def members_of(pack: IO[bytes], start: int = 0) -> Iterator[tuple[str, PackedFile]]:
    """Yield the files of a pack from a place on, by name, up to where it is torn or damaged."""
    size = pack.seek(0, os.SEEK_END)
    begin = at = start
    name: str | None = None
    while at + BLOCK <= size:
        pack.seek(at)
        try:
            info = tarfile.TarInfo.frombuf(pack.read(BLOCK), "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            return
        found = PackedFile(begin, at + BLOCK, info.size)
        if info.size < 0 or found.end > size:
            return
        at = found.end
        if info.type == tarfile.GNUTYPE_LONGNAME and info.size <= LONGEST_NAME:
            name = pack.read(info.size).rstrip(b"\0").decode(errors="surrogateescape")
        elif info.isreg():
            yield name or info.name, found
            name, begin = None, at
        else:
            return


def texts_of(pack: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield what all files of a pack hold, unpacked, by name, also of launches that do not count.

    What is beyond them, torn or damaged, comes last, without a name, as it is.
    """
    end = 0
    for segment in segments_of(pack):
        for stored in segment.contents:
            name = stored.removesuffix(GZ)
            try:
                yield f"{segment.launch}/{name}", content_of(pack, segment, name)
            except RecordError:
                continue
        end = segment.end
    pack.seek(end)
    yield "", pack.read()


def segments_of(pack: IO[bytes], start: int = 0) -> Iterator[PackSegment]:
    """Yield what a pack has of launches from a place on, whole or not."""
    segment: PackSegment | None = None
    for name, content in members_of(pack, start):
        launch, _, file = name.partition("/")
        if file == RECORD or (segment and launch != segment.launch):
            if segment:
                yield segment
            segment = PackSegment(launch, content.begin) if file == RECORD else None
        if segment:
            segment.contents[file] = content
    if segment:
        yield segment


def segment_at(pack: IO[bytes], start: int) -> PackSegment | None:
    """Return the launch that begins at a place of a pack, if one does."""
    segment = next(segments_of(pack, start), None)
    return segment if segment and segment.offset == start else None


def content_of(pack: IO[bytes], segment: PackSegment, name: str) -> bytes:
    """Return a file of a launch as the launch left it.

    Raises FileNotFoundError where the segment has none, and RecordError where it cannot be
    unpacked.
    """
    stored = name if name in segment.contents else name + GZ
    if stored not in segment.contents:
        raise FileNotFoundError(f"{segment.launch} has no {name}")
    found = segment.contents[stored]
    if found.size > MOST_BYTES:
        raise RecordError(f"it has more than {MOST_BYTES / 1e6:.0f} MB")
    pack.seek(found.data)
    content = pack.read(found.size)
    if stored == name:
        return content
    unpacking = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacking.decompress(content, MOST_BYTES + 1)
    except zlib.error as error:
        raise RecordError(f"it cannot be unpacked: {error}") from None
    if not unpacking.eof or len(unpacked) > MOST_BYTES:
        raise RecordError("it cannot be unpacked: it is cut off, or too large")
    return unpacked


def digest_of(pack: IO[bytes], offset: int, length: int) -> str:
    """Return the SHA-256 of a part of a pack."""
    pack.seek(offset)
    digest = hashlib.sha256()
    while chunk := pack.read(min(length, CHUNK_BYTES)):
        digest.update(chunk)
        length -= len(chunk)
    return digest.hexdigest()


def whole(pack: IO[bytes], segment: PackSegment) -> LaunchRecord | None:
    """Return the record of a segment, if all that it has digests of is there."""
    try:
        text = content_of(pack, segment, RECORD).decode()
        record = record_of(LaunchRecord, files.json_of(text), segment.launch)
        for name, digest in record.sha256.items():
            if hashlib.sha256(content_of(pack, segment, name)).hexdigest() != digest:
                return None
    except (OSError, ValueError):
        return None
    return record if record.launch == segment.launch else None


def reachable(pack: IO[bytes], places: Iterable[PackPlace]) -> list[PackSegment]:
    """Return what a pack has of launches, in order, also after what is damaged in it.

    `places` are those that the journal has.
    """
    found: dict[int, PackSegment] = {}
    for start in sorted({0, *(place.offset for place in places)}):
        for segment in segments_of(pack, start):
            if segment.offset in found:
                break
            found[segment.offset] = segment
    return [found[offset] for offset in sorted(found)]


def ends_with(pack: IO[bytes], place: PackPlace) -> bool:
    """Return whether a launch is in its place of a pack, and nothing behind it."""
    there = segment_at(pack, place.offset)
    pack.seek(place.end)
    return bool(there and there.end == place.end and pack.read(BLOCK) == bytes(BLOCK))


def end_of(pack: IO[bytes], places: Collection[PackPlace]) -> int:
    """Return where a pack continues: after its last launch, unless a kill has cut that one."""
    size = pack.seek(0, os.SEEK_END)
    if not size:
        return 0
    if places:
        last_place = max(places, key=lambda place: place.end)
        if ends_with(pack, last_place):
            return last_place.end
    found = reachable(pack, places)
    if found:
        last = found[-1]
        is_recorded = any((one.offset, one.end) == (last.offset, last.end) for one in places)
        if not is_recorded and not whole(pack, last):
            found.pop()
    return max((segment.end for segment in found), default=0)


def append(
    folder: Path, name: str, segment: bytes, places: Callable[[], Collection[PackPlace]],
    last: PackPlace | None = None,
) -> PackPlace:  # fmt: skip
    """Add a launch to a pack of a folder, made where there is none; it is there on return.

    `places` gives those of the pack that the journal has, and is not asked where what was added
    `last` ends it. What a kill has cut at its end is cut off first. Raises OSError where it cannot
    be written: then it is not in the pack.
    """
    path = folder / name
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags, 0o644), "r+b", buffering=0) as pack:
        is_new = not os.fstat(pack.fileno()).st_size
        end = last.end if last and ends_with(pack, last) else end_of(pack, places())
        try:
            pack.truncate(end)
            pack.seek(end)
            left = memoryview(segment + end_mark(end + len(segment)))
            while left:
                left = left[pack.write(left) :]
            os.fsync(pack.fileno())
        except BaseException:
            pack.truncate(end)
            with suppress(OSError):
                pack.seek(end)
                pack.write(end_mark(end))
            raise
    if is_new:
        files.flush_to_disk(folder)
    return PackPlace(
        pack=name, offset=end, length=len(segment), sha256=hashlib.sha256(segment).hexdigest()
    )


def cut(path: Path, places: Collection[PackPlace]) -> None:
    """Cut off what stands after the last whole launch of a pack, if it is there; raises OSError."""
    if not path.exists():
        return
    with open(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), "r+b") as pack:
        end = end_of(pack, places)
        pack.truncate(end)
        pack.seek(end)
        pack.write(end_mark(end))


def last_of(
    path: Path, launch: str, places: Collection[PackPlace], jobs: Collection[str]
) -> tuple[LaunchRecord, PackPlace] | None:
    """Return what a pack has last of a launch, if it is whole and the journal does not have it.

    With `jobs` only what is of one of these. Raises OSError where the pack cannot be read.
    """
    try:
        opened = path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        return None
    known = {place.sha256 for place in places}
    with opened as pack:
        for segment in reversed(reachable(pack, places)):
            if segment.launch != launch:
                continue
            offset, length = segment.offset, segment.end - segment.offset
            sha256 = digest_of(pack, offset, length)
            # By its bytes: where one is taken out, what stands behind it moves.
            if sha256 in known:
                continue
            record = whole(pack, segment)
            if record and (not jobs or record.job in jobs):
                return record, PackPlace(
                    pack=path.name, offset=offset, length=length, sha256=sha256
                )
    return None
