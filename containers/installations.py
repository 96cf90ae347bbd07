"""Our programs as a site has installed them: what is measured on the machine itself, in no image.

A site names them (`installations` of site.yaml), for example what Spack has installed. The site's
file says what an image's labels would; the digest of everything that the programs load stands where
the image's stands.
"""

import hashlib
import json
import os
import secrets
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from records.causes import one_line, sentence_in
from records.manifest import OUTSIDE
from site_configs.installation_entries import NAMED, is_installation
from site_configs.launchers import prepared

#: What a record has in the place of who signed an image.
SIGNATURE = "not verified: installed by the site"
#: Without which nothing is measured, and by which each is proven first.
FIRST = "preflight"
#: What Open MPI's launcher asks root for. In a container, root is that of a user namespace; here it
#: is the machine's, so that only the site may say it.
OF_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
#: Where an MPI, and what it is made of, keep what they load by themselves: folders beside libraries
#: of these names.
COMPONENTS = {
    "libmpi": "openmpi*", "libopen-": "openmpi*", "libpmix": "pmix*", "libprrte": "prte*",
    "libuc": "ucx", "libfabric": "libfabric",
}  # fmt: skip
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
    #: What a job does before the launch, after what the site has all jobs do (`before`), and the
    #: variables that ranks have.
    before: tuple[str, ...]
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

    @property
    def preparation(self) -> list[str]:
        """Return the lines of a shell that prepare a launch, or end it with a sentence.

        Without what a module would load, another MPI may be found, and measured under this name.
        """
        lines = []
        for number, command in enumerate(self.prepare, 1):
            words = f"{self.name}: command {number} of `prepare` fails: {one_line(command)}"
            fails = f"[ $? = 0 ] || {{ echo {shlex.quote(words)} >&2; exit 1; }}"
            # Of a comment alone, what was before it would count.
            lines += [":", command, fails]
        return lines

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
            f"{name} is not an installation that `installations` of the site's file names; it "
            f"names {known}"
        )
    folder, mpiexec = Path(entry["prefix"]) / "bin", entry.get("mpiexec")
    image = _as_packed(root, name, entry)
    found = Installation(
        name, folder, mpiexec, tuple(prepared(site)), tuple(entry.get("prepare", ())),
        tuple({**_of_family(image), **entry.get("environment", {})}.items()),
        environment.named(site), tuple(_labels(image, name).items()),
    )  # fmt: skip
    try:
        is_there = Path(entry["prefix"]).is_dir()
        is_ours = is_there and found.has(FIRST) and _is_of_this_machine(folder / FIRST)
    except OSError as error:
        raise InstallationError(f"{name}: {error.filename}: {error.strerror}") from None
    if not is_there:
        raise InstallationError(
            f"{name}: there is no folder {entry['prefix']} on this machine, which `prefix` names"
        )
    if not found.has(FIRST):
        raise InstallationError(
            f"{name}: {folder} has no program {FIRST}: give the prefix under which Spack's "
            "wyeast-benchmarks, or `make -C benchmarks install PREFIX=`, has put the programs"
        )
    if not is_ours:
        raise InstallationError(
            f"{name}: {folder / FIRST} is not a program of this machine ({os.uname().machine}): "
            "give the prefix of programs that were compiled for it"
        )
    if mpiexec and not os.access(mpiexec, os.X_OK):
        raise InstallationError(
            f"{name}: {mpiexec}, which `mpiexec` names, is not a program that can be started here"
        )
    return found


def _is_of_this_machine(path: Path) -> bool:
    """Return whether a file is a program that processors as this one's start; raises OSError."""
    heads = []
    for one in (path, Path(sys.executable)):
        # What is no file at all does not block.
        with open(os.open(one, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            heads.append(file.read(20) if one.is_file() else b"")
    # That it is a program, of so many bits, in which order, for which processors.
    first, own = (head[:6] + head[18:] for head in heads)
    return first == own


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
    variables = _variables_of(found)
    said = _asked(found, variables, f"{found.folder}/*")
    lacking = {match["name"]: None for match in loaded_libraries.LACKING.finditer(said)}
    if lacking:
        raise InstallationError(
            f"{found.name}: the loader does not find {', '.join(lacking)}, which programs in "
            f"{found.folder} need: have `prepare` load it, as by `spack load` or `module load`"
        )
    libraries = loaded_libraries.read(said, str(found.folder))
    if libraries is None:
        raise InstallationError(_unknown(found))
    try:
        # What several of them load is read once.
        files = dict.fromkeys([
            *sorted(path for path in found.folder.iterdir() if path.is_file()),
            # What programs of ours load by themselves, to profile others.
            *sorted((found.folder.parent / "lib").glob("libwyeast_*.so")),
            *map(Path, libraries["sha256"]),
            *_brought(found, variables, libraries["sha256"]),
        ])  # fmt: skip
        states = {path: _state(path) for path in files}
        digests = {str(path): sha256_of(path) for path in files}
    except OSError as error:
        raise InstallationError(f"{found.name}: {error}") from None
    whole = Contents(
        hashlib.sha256(json.dumps(sorted(digests.items())).encode()).hexdigest(), libraries, states
    )
    if not whole.is_still_there():
        raise InstallationError(f"{found.name} changed while it was being read; run this again")
    return whole


def _unknown(found: Installation) -> str:
    return (
        f"{found.name}: the loader (ldd) does not say what the programs in {found.folder} load, so "
        "it would be unknown what is measured"
    )


def _brought(
    found: Installation, variables: Mapping[str, str], loaded: Iterable[str]
) -> Iterable[Path]:
    """Return the launcher, what an MPI loads by itself, and all that these load.

    Raises InstallationError where the loader does not tell.
    """
    known = dict[Path, None]()
    new = [*([Path(found.mpiexec)] if found.mpiexec else []), *_components(loaded)]
    while new:
        said = _asked(found, variables, shlex.join(map(str, new)))
        told = loaded_libraries.read(said, "")
        if told is None:
            raise InstallationError(_unknown(found))
        known |= dict.fromkeys([*new, *_resolved(told["sha256"])])
        new = [path for path in _components(told["sha256"]) if path not in known]
    return known


def _components(libraries: Iterable[str]) -> list[Path]:
    """Return what is loaded from beside libraries by themselves, so that ldd does not tell."""
    folders = {
        folder
        for one in libraries
        for begins, pattern in COMPONENTS.items()
        if Path(one).name.startswith(begins)
        # A distribution has the name in a folder of many, and the file in the MPI's own.
        for parent in {Path(one).parent, Path(os.path.realpath(one)).parent}
        for folder in parent.glob(pattern)
    }
    # A component may load what it is beside, as `libfabric/../libfabric.so`, and so on for ever.
    return sorted({*_resolved(path for one in folders for path in one.glob("*.so"))})


def _resolved(paths: Iterable[str | Path]) -> Iterator[Path]:
    """Yield the files of that name, without links and detours; nothing of what is no file."""
    for one in paths:
        path = Path(os.path.realpath(one))
        if path.is_file():
            yield path


def _variables_of(found: Installation) -> dict[str, str]:
    """Return the variables of ranks, after what a job prepares; raises InstallationError."""
    # What is prepared may print something, too.
    mark = secrets.token_hex()
    script = "\n".join([
        *found.before, *found.preparation, f"echo {mark}",
        f"exec env {shlex.join(f'{name}={value}' for name, value in found.variables)} env -0",
    ])  # fmt: skip
    outside = environment.environment(os.environ, found.from_outside)
    done = _run(found, ["-c", script], {**outside, "LC_ALL": "C"})
    _, is_there, said = done.stdout.partition(f"{mark}\n")
    if not is_there:
        why = sentence_in(done.stderr) or "it ends the shell"
        raise InstallationError(
            f"{found.name}: what a job prepares (`prepare`) fails where campaigns are started: "
            f"{why.removeprefix(f'{found.name}: ')}"
        )
    pairs = (line.partition("=") for line in said.split("\0") if line)
    return {name: value for name, _, value in pairs} | {"LC_ALL": "C"}


def _asked(found: Installation, variables: Mapping[str, str], files: str) -> str:
    """Return what the loader says of files, the words of a shell that name them."""
    # From its standard input a shell reads scripts of any length.
    return _run(found, [], variables, loaded_libraries.question_of(files)).stdout


def _run(
    found: Installation, words: Sequence[str], variables: Mapping[str, str], text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a shell as a job's; raises InstallationError where that is not possible."""
    try:
        return run_apart(
            ["bash", *words], PATIENCE_S, env=variables, text=text, most_bytes=MOST_SAID_BYTES
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise InstallationError(
            f"{found.name}: what its programs load cannot be asked: {error}"
        ) from None


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
