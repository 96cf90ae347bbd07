"""The archive of a bundle: the same bytes for the same content, unpacked only into its folder.

It is a gzipped tar with one folder, whose first file, SHA256SUMS, names every other one (as
`sha256sum --check` reads it). Nothing that it does not name is unpacked.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from records.causes import harmless, one_line
from records.files import replacing

SUMS = "SHA256SUMS"
#: Of a whole bundle unpacked, unless another limit is given.
MOST_BYTES = 64 * 2**30
MOST_FILES = 2_000_000
#: That a file may be in; Python neither makes nor removes folders that are much deeper.
MOST_FOLDERS = 64
#: Of the list of digests and of what tar says of one file, which are read into memory.
MOST_BYTES_OF_SUMS = 2**28
MOST_BYTES_AT_ONCE = 2**24
#: What a list of digests can name; surrogates stand for bytes that are no UTF-8.
PLAIN_NAME = re.compile(r"[^\x00-\x1f\\\x7f\ud800-\udfff]+")


def is_plain(name: str) -> bool:
    """Return whether a list of digests can name a file so, and a terminal show it."""
    is_flat = name.count("/") <= MOST_FOLDERS
    return is_flat and PLAIN_NAME.fullmatch(name) is not None and harmless(name) == name


class BundleError(Exception):
    """A bundle cannot be made, read or trusted; the text is a sentence."""


@dataclass(frozen=True)
class Member:
    """A file of a bundle: where its content is, or the content itself."""

    source: Path | bytes
    executable: bool = False

    @property
    def size(self) -> int:
        """Return its length in bytes."""
        return len(self.source) if isinstance(self.source, bytes) else self.source.stat().st_size

    def digest(self) -> str:
        """Return its SHA-256 in hexadecimal digits."""
        if isinstance(self.source, bytes):
            return hashlib.sha256(self.source).hexdigest()
        with self.source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def open(self) -> IO[bytes]:
        """Return its content for reading."""
        return io.BytesIO(self.source) if isinstance(self.source, bytes) else self.source.open("rb")


class Digested:
    """A file that is read once, with the digest of what was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        content = self._file.read(size)
        self._hash.update(content)
        return content

    def digest(self) -> str:
        """Return the SHA-256 of all that was read."""
        return self._hash.hexdigest()


def refuse_beyond_limits(members: Mapping[str, Member], most: int = MOST_BYTES) -> None:
    """Raise BundleError for files that `unpack` with the same limit would refuse."""
    if len(members) > MOST_FILES:
        raise BundleError(
            f"it would hold {len(members)} files, and could not be unpacked: at most {MOST_FILES} "
            "are allowed; pack what belongs together, such as ReFrame's logs, into fewer files"
        )
    size = sum(member.size for member in members.values())
    if size > most:
        raise BundleError(
            f"it would hold {size} bytes, and could not be unpacked with the limit of {most}; "
            "leave the images out, or raise the limit with MOST_BYTES= here and in the rerun"
        )
    # Of each file 64 digits, two spaces, its name and the end of the line.
    listed = sum(67 + len(name.encode(errors="surrogateescape")) for name in members)
    if listed > MOST_BYTES_OF_SUMS:
        raise BundleError(
            f"its list of digests would have {listed} bytes, and could not be unpacked: at most "
            f"{MOST_BYTES_OF_SUMS} are allowed; pack files with long names into fewer files"
        )


def sums_of(members: Mapping[str, Member]) -> dict[str, str]:
    """Return the digest of each file, by name; raises BundleError for an impossible name."""
    for name in members:
        if not is_plain(name):
            raise BundleError(f"{name!r} cannot be the name of a file in a bundle; rename it")
    return {name: members[name].digest() for name in sorted(members)}


def sums_text(sums: Mapping[str, str]) -> bytes:
    """Return the list of digests as `sha256sum --check` reads it."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items())).encode()


def write(
    path: Path, top: str, members: Mapping[str, Member], sums: Mapping[str, str], time_s: int
) -> None:
    """Write an archive in one step; `time_s` (since the epoch) is the time of every file.

    Raises BundleError for a file that changed meanwhile, OSError if it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    listed = {SUMS: Member(sums_text(sums)), **dict(sorted(members.items()))}
    with (
        replacing(path) as file,
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=time_s) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, member in listed.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size, info.mtime = member.size, time_s
            info.mode = 0o755 if member.executable else 0o644
            with member.open() as content:
                read = Digested(content)
                archive.addfile(info, read)
            if name != SUMS and read.digest() != sums[name]:
                raise BundleError(f"{name} changed while it was packed; pack it again")


class Bounded:
    """The unpacked stream of an archive, which refuses large reads and reads beyond a limit."""

    def __init__(self, file: gzip.GzipFile, most: int) -> None:
        self._file, self._most = file, most

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; raise BundleError for too many."""
        if not 0 <= size <= MOST_BYTES_AT_ONCE or self._file.tell() > self._most:
            raise BundleError("it holds more than the limit for a bundle")
        return self._file.read(size)

    def seek(self, place: int) -> int:
        """Seek to a place in the stream; raise BundleError for one beyond the limit."""
        if place > self._most:
            raise BundleError("it holds more than the limit for a bundle")
        return self._file.seek(place)

    def tell(self) -> int:
        """Return the place in the stream."""
        return self._file.tell()


def place_of(info: tarfile.TarInfo, top: str | None) -> tuple[str, str]:
    """Return the folder and the name in it of a file of an archive; raise BundleError for others.

    It must be a plain file below the one folder of the archive, by a name without detours.
    """
    if not info.isreg() or info.issparse():
        raise BundleError(f"{info.name!r} in it is not a regular file")
    folder, _, name = info.name.partition("/")
    plain = str(PurePosixPath(info.name)) == info.name and ".." not in info.name.split("/")
    if not plain or not name or folder in ("", ".") or not is_plain(info.name):
        raise BundleError(f"{info.name!r} in it is not the name of a file in one folder")
    if top is not None and folder != top:
        raise BundleError(f"{info.name!r} in it is outside {top}")
    return folder, name


def parse_sums(text: bytes) -> dict[str, str]:
    """Return the digests of a list by name; raise BundleError for a line that is not one."""
    sums = {}
    lines = text.decode(errors="replace").removesuffix("\n")
    # As sha256sum has lines: Python ends one at other characters, too.
    for number, line in enumerate(lines.split("\n") if lines else (), 1):
        found = re.fullmatch(r"([0-9a-f]{64})  (.+)", line)
        if not found:
            raise BundleError(f"line {number} of its {SUMS} is not the digest of a file")
        sums[found[2]] = found[1]
    return sums


def read_sums(path: Path) -> tuple[str, dict[str, str]]:
    """Return an archive's folder and the digests that it begins with; raises BundleError."""
    with refusals_of(path), opened(path, MOST_BYTES_OF_SUMS + 2**20) as archive:
        return _sums_at(archive)


@contextmanager
def refusals_of(path: Path) -> Iterator[None]:
    """Turn whatever is wrong with an archive into a BundleError that names it."""
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        # Without the first bytes of what is no archive.
        plain = str(error).partition(" (b")[0]
        raise BundleError(f"{path} is not a bundle, or is damaged ({plain})") from None
    except OSError as error:
        raise BundleError(f"{path} cannot be unpacked: {error.strerror or error}") from None
    except BundleError as error:
        raise BundleError(f"{path}: {error}") from None


def opened(path: Path, most: int) -> tarfile.TarFile:
    """Return an archive for reading from its beginning to its end."""
    return tarfile.open(fileobj=Bounded(gzip.open(path), most), mode="r:")  # type: ignore[call-overload,no-any-return]


def _sums_at(archive: tarfile.TarFile) -> tuple[str, dict[str, str]]:
    info = archive.next()
    top, name = place_of(info, None) if info else ("", "")
    if info is None or name != SUMS or info.size > MOST_BYTES_OF_SUMS:
        raise BundleError(f"it does not begin with its {SUMS}, so it is not a bundle")
    content = archive.extractfile(info)
    assert content is not None
    text = b"".join(iter(lambda: content.read(2**20), b""))
    return top, parse_sums(text)


def unpack(path: Path, folder: Path, most: int = MOST_BYTES) -> tuple[str, dict[str, str]]:
    """Unpack a bundle into a folder; return the name of its own folder there and the digests.

    Raises BundleError for what is not a complete bundle, has other content than its list of digests
    says, would write elsewhere, or holds more than `most` bytes or than the disk has room for. The
    folder is then to be thrown away.
    """
    room = min(most, shutil.disk_usage(folder).free)
    with refusals_of(path):
        # Headers take room in the stream, too: up to a few blocks of 512 bytes for a file.
        with opened(path, most + MOST_BYTES_OF_SUMS + 4096 * MOST_FILES) as archive:
            top, sums = _sums_at(archive)
            if len(sums) > MOST_FILES:
                raise BundleError(f"it holds {len(sums)} files; at most {MOST_FILES} are allowed")
            missing, taken = set(sums), 0
            while info := archive.next():
                # Python keeps each entry that it has read.
                archive.members = []  # type: ignore[attr-defined]
                _, name = place_of(info, top)
                taken += info.size
                if taken > room:
                    raise BundleError(
                        f"it holds more than {room} bytes, which is the limit or all that the "
                        "disk has room for; raise the limit with MOST_BYTES= or make room"
                    )
                if name not in missing:
                    raise BundleError(f"{name} in it is not in its {SUMS}, or is listed twice")
                missing.remove(name)
                _take(archive, info, folder / top / name, sums[name])
        if missing:
            first = one_line(min(missing))
            raise BundleError(f"it is incomplete: {len(missing)} files are missing, {first}")
    return top, sums


def _take(archive: tarfile.TarFile, info: tarfile.TarInfo, target: Path, digest: str) -> None:
    content = archive.extractfile(info)
    assert content is not None
    target.parent.mkdir(parents=True, exist_ok=True)
    read = Digested(content)
    # Never through an existing file: each name comes once, and nothing unpacked is a link.
    with target.open("xb") as file:
        while block := read.read(2**20):
            file.write(block)
    target.chmod(0o755 if info.mode & 0o100 else 0o644)
    if read.digest() != digest:
        raise BundleError(f"{target.name} in it does not match its digest in {SUMS}")
