"""Inputs from package registries, pinned by hash in `containers/sources.lock`."""

import fnmatch
import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from containers import apt
from records.files import put_in_place

LOCK = "containers/sources.lock"
SCHEMA = "wyeast-sources-2"


class SourceError(Exception):
    """An input is missing or not the pinned one; the text is a sentence with the next step."""


@dataclass(frozen=True)
class Source:
    """One pinned file; `bytes` is its size."""

    name: str
    version: str
    file: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Debian:
    """The Debian that images stand on: suite, keyring's file name, and the container image."""

    suite: str
    keyring: str
    docker: str


@dataclass(frozen=True)
class Sources:
    """What sources.lock pins; `packages` are Debian's, each with its version.

    Of a wheel there is a file for each architecture, by the kernel's name of it.
    """

    debian: Debian
    wheels: dict[str, dict[str, Source]]
    archives: dict[str, Source]
    packages: dict[str, str]

    def wheel(self, name: str, implementation: str, architecture: str = "") -> Source:
        """Return a wheel that an implementation is made of, for this machine's architecture.

        Raises SourceError where none is pinned.
        """
        architecture = architecture or platform.machine()
        if name not in self.wheels:
            raise SourceError(
                f"{LOCK} pins no wheel `{name}`, which {implementation} is built from; it has "
                f"{', '.join(self.wheels)}"
            )
        files = self.wheels[name]
        if architecture not in files:
            others = [one for one, of in self.wheels.items() if architecture in of]
            raise SourceError(
                f"{LOCK} pins the wheel `{name}`, which {implementation} is built from, for "
                f"{', '.join(files)} and not for this machine's {architecture}; "
                + (f"for that it has {', '.join(others)}" if others else "it has none for that")
            )
        return files[architecture]

    def package_version(self, package: str) -> str:
        """Return the version of a Debian package; raises SourceError where none is pinned."""
        if package not in self.packages:
            raise SourceError(
                f"{LOCK} pins no version of the Debian package `{package}`; add it to `packages` "
                f"(apt-cache policy {package} shows the mirror's)"
            )
        return self.packages[package]


def load_sources(root: Path) -> Sources:
    """Return what sources.lock pins; raises SourceError."""
    path = root / LOCK
    try:
        data: dict[str, Any] = json.loads(path.read_text())
        if data["schema"] != SCHEMA:
            raise SourceError(f"{path}: schema is {data['schema']}, not {SCHEMA}")
        return Sources(
            Debian(**data["debian"]),
            {key: _by_architecture(**value) for key, value in data["wheels"].items()},
            {key: Source(**value) for key, value in data["archives"].items()},
            dict(data["packages"].items()),
        )
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"{path} is malformed: {error}") from None


def _by_architecture(name: str, version: str, files: dict[str, Any]) -> dict[str, Source]:
    return {one: Source(name, version, **of) for one, of in files.items()}


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch_wheel(source: Source, state: Path) -> Path:
    """Return a pinned wheel, downloaded by pip if it is not there; raises SourceError."""
    return _fetch(source, state, _pip_download)


def fetch_archive(source: Source, state: Path, suite: str) -> Path:
    """Return a pinned source archive, downloaded by apt-get if it is not there.

    Raises SourceError.
    """

    def download(wanted: Source, folder: Path) -> None:
        private = apt.of_suite(state, suite, "deb-src")
        private.update()
        private.run("source", "--download-only", "--tar-only", wanted.name, where=folder)

    return _fetch(source, state, download)


def unpack_wheel(wheel: Path, prefix: Path, left_out: list[str]) -> None:
    """Unpack a wheel's files under a prefix, as an installation would.

    Beside the files for the prefix, a wheel has the package's own (`*.dist-info`): its licences
    are kept. Files whose path under the prefix matches one of `left_out` are not unpacked.
    """
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            top, _, rest = entry.filename.partition("/")
            if top.endswith(".data") and rest.startswith("data/"):
                target = prefix / rest.removeprefix("data/")
            elif top.endswith(".dist-info") and rest.startswith(("licenses/", "LICENSE")):
                target = prefix / "share" / "licenses" / rest.removeprefix("licenses/")
            else:
                continue
            if ".." in target.parts or entry.is_dir():
                continue
            place = target.relative_to(prefix).as_posix()
            if any(fnmatch.fnmatchcase(place, pattern) for pattern in left_out):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as packed, target.open("wb") as file:
                shutil.copyfileobj(packed, file)
            mode = entry.external_attr >> 16 & 0o777
            target.chmod(mode | 0o644)


def _pip_download(source: Source, folder: Path) -> None:
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{source.name}=={source.version} --hash=sha256:{source.sha256}\n")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
         "--only-binary", ":all:", "--require-hashes", "-r", requirement, "-d", folder],
        capture_output=True,
        text=True,
    )  # fmt: skip
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        if any("DO NOT MATCH THE HASHES" in line for line in lines):
            raise SourceError(
                f"the wheel {source.name} {source.version} of the package index does not have the "
                f"sha256 of {LOCK}: do not use it; find out which of the two is wrong"
            )
        reason = lines[0].removeprefix("ERROR: ") if lines else "pip failed"
        raise SourceError(reason)


def _fetch(source: Source, state: Path, download: Callable[[Source, Path], None]) -> Path:
    """Return the pinned file from the downloads folder, filled by `download` if need be."""
    path = state / "downloads" / source.file
    if path.exists():
        _check(source, path)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=path.parent, prefix="incoming-"))
    try:
        download(source, aside)
        if not (aside / source.file).exists():
            found = ", ".join(sorted(p.name for p in aside.iterdir())) or "nothing"
            raise SourceError(f"the registry has {found} where {LOCK} names {source.file}")
        _check(source, aside / source.file)
        put_in_place(aside / source.file, path)
    except apt.AptError as error:
        raise SourceError(_unavailable(source, path, str(error))) from None
    except SourceError as error:
        if "sha256" in str(error):
            raise
        raise SourceError(_unavailable(source, path, str(error))) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return path


def _unavailable(source: Source, path: Path, reason: str) -> str:
    return (
        f"{source.name} {source.version} cannot be downloaded ({reason}); check the network, or "
        f"put the file at {path}: its sha256 is checked"
    )


def _check(source: Source, path: Path) -> None:
    found = sha256_of(path)
    if found != source.sha256:
        raise SourceError(
            f"{path} has sha256 {found}, but {LOCK} pins {source.sha256}: remove the file and "
            f"run the build again; if it differs again, do not use it"
        )
