"""A release by the folder that it unpacks to: its name and version, and an archive of that folder.

The archive is the same at any time and on any machine: of the folder it has the names, the
contents, what may be executed and the links, and nothing else.
"""

import hashlib
import lzma
import os
import re
import stat
import tarfile
import zlib
from pathlib import Path
from typing import IO, Any

from containers.spack.recipes import SpackError

#: What a release has at its top, of which at least one file is there: how it is built, or how its
#: own instructions for that are called.
MARKS = frozenset({
    "CMakeLists.txt", "GNUmakefile", "INSTALL", "Makefile", "Makefile.am", "Makefile.in",
    "README.install", "autogen.sh", "bootstrap", "configure", "configure.ac", "configure.in",
    "makefile", "meson.build", "pyproject.toml", "setup.py",
})  # fmt: skip
#: When all files in an archive were changed: the start of 2000. Tools take 0 for no time at all.
CHANGED_AT = 946_684_800


def named(top: str) -> tuple[str, str] | None:
    """Return the name and the version of a release that a folder's name says; None without."""
    # A name may have digits where something is between it and the version.
    for name in (r"[A-Za-z][\w+.-]*?[-_]", "[A-Za-z]+"):
        if match := re.fullmatch(rf"(?P<name>{name})v?(?P<version>\d[\w.+-]*)", top):
            return match["name"].rstrip("-_").lower(), match["version"]
    return None


def is_release(folder: Path) -> bool:
    """Return whether a folder is what an archive of a release was unpacked to."""
    return named(folder.name) is not None and any((folder / mark).is_file() for mark in MARKS)


def identified(path: Path) -> tuple[str, str] | None:
    """Return name and version of what an archive has, by the folder in it; None where it says none.

    The folder is what a release is unpacked to, whatever the archive was called since.
    """
    try:
        with tarfile.open(path) as archive:
            first = archive.next()
    except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError):
        return None
    return named(first.name.removeprefix("./").partition("/")[0]) if first else None


class _Digest:
    """A file that keeps of what is written only the digest."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def write(self, content: bytes) -> int:
        self.sha256.update(content)
        return len(content)


def digest_of(folder: Path) -> str:
    """Return the SHA-256 of a release's archive, as `packed` makes it; raises as that does."""
    written = _Digest()
    _write(folder, written)
    return written.sha256.hexdigest()


def packed(folder: Path, into: Path) -> Path:
    """Return an archive of a release's folder, made in `into`.

    Raises SpackError for what no archive can have, and OSError for what cannot be read.
    """
    path = into / f"{folder.name}.tar"
    with path.open("wb") as file:
        _write(folder, file)
    return path


def _write(folder: Path, out: IO[bytes] | _Digest) -> None:
    # Not compressed: another version of a compressor writes other bytes.
    written: Any = out
    with tarfile.open(
        fileobj=written, mode="w|", format=tarfile.GNU_FORMAT, encoding="utf-8",
        errors="surrogateescape",
    ) as archive:  # fmt: skip
        _add(archive, folder, folder.name)


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    """Add a file, a link, or a folder with all in it."""
    entry = tarfile.TarInfo(name)
    entry.mtime = CHANGED_AT
    # The folder itself may be a link to where the release is.
    status = path.stat() if name == path.name else path.lstat()
    if stat.S_ISDIR(status.st_mode):
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(entry)
        for inner in sorted(os.listdir(path), key=os.fsencode):
            _add(archive, path / inner, f"{name}/{inner}")
    elif stat.S_ISLNK(status.st_mode):
        entry.type, entry.mode, entry.linkname = tarfile.SYMTYPE, 0o777, os.readlink(path)
        archive.addfile(entry)
    elif stat.S_ISREG(status.st_mode):
        entry.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
        with path.open("rb") as file:
            entry.size = os.fstat(file.fileno()).st_size
            archive.addfile(entry, file)
    else:
        raise SpackError(
            f"{path} is not a file, folder or link, so no archive can be made of the release "
            "that it is in: remove it"
        )
