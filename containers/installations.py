"""Our programs as a site has installed them: what is measured on the machine itself, in no image.

A site names them (`installations` of site.yaml), for example what Spack has installed. The site's
file says what an image's labels would; the digest of everything that the programs load stands where
the image's stands.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from containers import loaded_libraries, trust
from containers.apptainer import run_apart, state_of
from containers.images import ImageError, checked_labels
from containers.labels import PREFIX, Labels
from containers.packing import implementation_of
from containers.sources import sha256_of
from containers.table import Implementation, ImplementationEntry, Packed, TableError, load_table
from records import environment
from records.manifest import OUTSIDE
from site_configs.installation_entries import NAMED, is_installation

#: What a record has in the place of who signed an image.
SIGNATURE = "not verified: installed by the site"
#: Without which nothing is measured, and by which each is proven first.
FIRST = "preflight"
#: What Open MPI's launcher asks root for. In a container, root is that of a user namespace; here it
#: is the machine's, so that only the site may say it.
OF_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
#: Where an MPI keeps what it loads by itself, beside its library.
COMPONENTS = ("openmpi", "pmix", "prte")
#: How long the loader may take to say what all programs load, in seconds, and how much it may say.
PATIENCE_S, MOST_SAID_BYTES = 120.0, 2**24


class InstallationError(ImageError):
    """An installation cannot be measured; the text is a sentence."""


@dataclass(frozen=True)
class Installation:
    """An installation of our programs, as its site's file has it."""

    #: With NAMED at its end.
    name: str
    folder: Path
    mpiexec: str | None
    #: What a job does before the launch, and the variables that ranks have.
    prepare: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    #: The variables from outside that the site names.
    from_outside: tuple[str, ...]
    #: What an image would have as its labels.
    words: tuple[tuple[str, str], ...]

    @property
    def labels(self) -> Labels:
        """Return them as those of an image."""
        return Labels.of(dict(self.words), self.name)

    def has(self, program: str) -> bool:
        """Return whether a program is there."""
        return os.access(self.folder / program, os.X_OK)


@dataclass(frozen=True)
class Contents:
    """What the programs of an installation are and load, and the state in which it was read."""

    sha256: str
    libraries: Mapping[str, Any]
    states: Mapping[Path, tuple[int, ...]]

    @property
    def mpi(self) -> list[str]:
        """Return the paths of the MPI's libraries."""
        groups = self.libraries["loaded"]
        return [name for one in groups for name in one["by"] if name.startswith("/")]

    def is_still_there(self) -> bool:
        """Return whether every file of it is the one that was read, by what a file system says."""
        return all(_state(path) == state for path, state in self.states.items())


def of_site(root: Path, site: Mapping[str, Any], name: str) -> Installation:
    """Return an installation of a site by its name; raise InstallationError where it is not there.

    Looked at is what takes no time: the folder, its first program and the launcher.
    """
    own = site.get("installations") or {}
    entry = own.get(name.removesuffix(NAMED))
    if not is_installation(name) or not isinstance(entry, Mapping):
        known = ", ".join(f"{one}{NAMED}" for one in own) or "none"
        raise InstallationError(
            f"{name} is no installation that `installations` of the site's file names; it names "
            f"{known}"
        )
    folder, mpiexec = Path(entry["prefix"]) / "bin", entry.get("mpiexec")
    image = _as_packed(root, name, entry)
    found = Installation(
        name, folder, mpiexec, tuple(entry.get("prepare", ())),
        tuple({**_of_family(image), **entry.get("environment", {})}.items()),
        environment.named(site), tuple(_labels(image, name).items()),
    )  # fmt: skip
    if not Path(entry["prefix"]).is_dir():
        raise InstallationError(
            f"{name}: there is no folder {entry['prefix']} on this machine, which `prefix` names"
        )
    if not found.has(FIRST):
        raise InstallationError(
            f"{name}: {folder} has no program {FIRST}: give the prefix under which Spack's "
            "wyeast-benchmarks, or `make -C benchmarks install PREFIX=`, has put the programs"
        )
    if mpiexec and not os.access(mpiexec, os.X_OK):
        raise InstallationError(
            f"{name}: {mpiexec}, which `mpiexec` names, is no program that can be started here"
        )
    return found


def _as_packed(root: Path, name: str, entry: Mapping[str, Any]) -> Implementation:
    """Return the implementation that an image of that MPI would be; raise InstallationError."""
    packed = Packed(prefix=entry["prefix"], library="", files={}, libraries={})
    try:
        own = ImplementationEntry(
            family=entry["family"], version=entry["version"], builder="prefix", packed=packed,
            pmi=entry.get("pmi"), mpiexec=entry.get("mpiexec"),
        )  # fmt: skip
        return implementation_of(name.removesuffix(NAMED), own, load_table(root))
    except TableError as error:
        raise InstallationError(str(error)) from None


def _labels(image: Implementation, name: str) -> dict[str, str]:
    """Return what the image would have as labels, who built it and its variants apart."""
    own = {
        key: value for key, value in image.labels().items()
        if key != f"{PREFIX}builder" and not key.startswith(f"{PREFIX}variant.")
    }  # fmt: skip
    return checked_labels(own, name)


def _of_family(image: Implementation) -> dict[str, str]:
    """Return the variables that images of the family have and that are of no place in them."""
    return {
        key: value for key, value in image.environment.items()
        if key not in OF_ROOT and "/" not in value and "$" not in value
    }  # fmt: skip


def contents(found: Installation) -> Contents:
    """Return what an installation is; raise InstallationError where the loader does not tell.

    Read once a process, in about a second; asked again, it is read anew if a file has changed.
    """
    known = _read(found)
    if not known.is_still_there():
        _read.cache_clear()
        known = _read(found)
    return known


@cache
def _read(found: Installation) -> Contents:
    said = _asked(found)
    lacking = {match["name"]: None for match in loaded_libraries.LACKING.finditer(said)}
    if lacking:
        raise InstallationError(
            f"{found.name}: the loader does not find {', '.join(lacking)}, which programs in "
            f"{found.folder} need: have `prepare` load it, as by `spack load` or `module load`"
        )
    libraries = loaded_libraries.read(said, str(found.folder))
    if libraries is None:
        raise InstallationError(
            f"{found.name}: the loader (ldd) does not say what the programs in {found.folder} "
            "load, so it would be unknown what is measured"
        )
    read = Contents("", libraries, {})
    files = [
        *sorted(path for path in found.folder.iterdir() if path.is_file()),
        # What programs of ours load by themselves, to profile others.
        *sorted((found.folder.parent / "lib").glob("libwyeast_*.so")),
        *([Path(found.mpiexec)] if found.mpiexec else []),
        *map(Path, libraries["sha256"]),
        *_components(read.mpi),
    ]
    states = {path: _state(path) for path in files}
    try:
        digests = {str(path): sha256_of(path) for path in files}
    except OSError as error:
        raise InstallationError(f"{found.name}: {error}") from None
    whole = Contents(
        hashlib.sha256(json.dumps(sorted(digests.items())).encode()).hexdigest(), libraries, states
    )
    if not whole.is_still_there():
        raise InstallationError(f"{found.name} changed while it was being read; run this again")
    return whole


def _components(libraries: Iterable[str]) -> list[Path]:
    """Return what an MPI loads by itself from beside its libraries, so that ldd does not tell."""
    folders = {Path(one).parent / name for one in libraries for name in COMPONENTS}
    return sorted(path for folder in folders for path in folder.glob("*.so") if path.is_file())


def _asked(found: Installation) -> str:
    """Return what the loader says of the programs, after what a job prepares."""
    script = "\n".join([*found.prepare, loaded_libraries.question_of(str(found.folder))])
    try:
        done = run_apart(
            ["bash", "-c", script], PATIENCE_S, most_bytes=MOST_SAID_BYTES,
            env={**environment.environment(os.environ, found.from_outside),
                 **dict(found.variables), "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallationError(
            f"{found.name}: what its programs load cannot be asked: {error}"
        ) from None
    return done.stdout


def _state(path: Path) -> tuple[int, ...]:
    try:
        return state_of(path)
    except OSError:
        return ()


def facts(root: Path, site: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return what a manifest has of an installation, in the place of an image's facts.

    Raises InstallationError.
    """
    found = of_site(root, site, name)
    known = contents(found)
    return {
        "sha256": known.sha256,
        "signature": SIGNATURE,
        "labels": dict(found.words),
        "manifest": None,
        "libraries": known.libraries,
        "runs": OUTSIDE,
    }


def refuse_unusable(root: Path, site: Mapping[str, Any], name: str) -> None:
    """Raise ImageError for an image or an installation that the site cannot measure."""
    if is_installation(name):
        contents(of_site(root, site, name))
    else:
        trust.admit(root, name, site)


def command_of(found: Installation, spared: Iterable[str], command: Sequence[str]) -> list[str]:
    """Return the words after `into_container TABLE TMP MEMORY` that start an installation's ranks.

    `spared` are words VARIABLE=value that the launch adds to the installation's own.
    """
    own = [f"{name}={value}" for name, value in found.variables]
    return ["--outside", str(found.folder), "env", *own, *spared, *command]
