"""Pack an MPI that is installed under a prefix of this machine, with the libraries it needs."""

import fnmatch
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from containers.apptainer import Admitted, command, exec_options, run_apart
from containers.installed import FOLDERS, Installed, PrefixError, libraries_of
from containers.other_builds import Packages
from containers.sources import sha256_of
from containers.table import (
    LOCAL,
    TABLE,
    Implementation,
    ImplementationEntry,
    ImplementationTable,
    Packed,
)
from records import layout
from records.files import write_whole

#: Where an image has the libraries that are neither the MPI's own nor Debian's.
LIBRARIES = "/opt/wyeast/lib"
#: What containers have of the machine that they run on, or do not let everybody into.
COVERED = ("/tmp", "/var/tmp", "/dev", "/proc", "/sys", "/root")
WHOLE_SYSTEM = ("/", "/usr", "/usr/local", "/opt", "/home")
LEFT_OUT = ("share/man/*", "share/doc/*", "share/info/*", "*.pyc")
#: The C library and its loader are the image's.
C_LIBRARY = re.compile(
    r"(ld-linux.*|libc|libm|libmvec|libdl|libpthread|librt|libresolv|libutil|libanl|libnsl|"
    r"libnss_\w+|libthread_db|libBrokenLocale)\.so.*"
)


def check_name(name: str, found: Installed, table: ImplementationTable) -> None:
    """Raise PrefixError for a name that is taken, or that contradicts the MPI."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", name):
        raise PrefixError(
            f"NAME={name}: a name consists of lower-case letters, digits, `-`, `_` and `.`; "
            f"{found.family}-{found.version} is an example"
        )
    taken = table.implementations.get(name)
    if taken and taken.builder != "prefix":
        raise PrefixError(
            f"NAME={name}: {TABLE} already has an implementation of that name; choose another"
        )
    claimed = max((f for f in table.families if re.match(rf"{f}(-|$)", name)), key=len, default="")
    numbers = re.search(r"(?<![\d.])\d+(?:\.\d+)+", name)
    wrong_version = numbers and not f"{found.version}.".startswith(f"{numbers[0]}.")
    if (claimed and claimed != found.family) or wrong_version:
        raise PrefixError(
            f"NAME={name}: the MPI under {found.prefix} says that it is {found.family} "
            f"{found.version}; call it {found.family}-{found.version}, or choose a name "
            "without family and version"
        )


def check_place(found: Installed) -> None:
    """Raise PrefixError for a prefix that an image cannot have, or that holds more than an MPI."""
    prefix = found.prefix
    closed = [folder for folder in COVERED if prefix.is_relative_to(folder)]
    if closed:
        raise PrefixError(
            f"{prefix} cannot hold an MPI in an image, because containers take {closed[0]} from "
            "the machine that they run on, or hide it; install it elsewhere, such "
            f"as /opt/{found.family}-{found.version}"
        )
    if str(prefix) in WHOLE_SYSTEM:
        raise PrefixError(
            f"{prefix} holds more than an MPI; give a folder that contains only the MPI"
        )


def entry_of(found: Installed, table: ImplementationTable, packed: Packed) -> ImplementationEntry:
    """Return the entry in the table of an MPI under a prefix."""
    # What the table knows of another of its kind holds for it, too.
    major = found.version.partition(".")[0]
    alike = [
        table.resolve(name)
        for name, entry in table.implementations.items()
        if entry.family == found.family
        and entry.version.partition(".")[0] == major
        and entry.builder != "prefix"
    ]
    common = alike[0] if alike else table.families[found.family]
    return ImplementationEntry(
        family=found.family,
        version=found.version,
        builder="prefix",
        pmi=found.pmi,
        compiler=f"{found.prefix}/bin/mpicc",
        # The family's are for wheels; here the machine's own libraries are packed.
        packages=Packages(),
        environment={
            name: value.replace("/opt/mpi", str(found.prefix))
            for name, value in common.environment.items()
        },
        packed=packed,
    )


def implementation_of(
    name: str, entry: ImplementationEntry, table: ImplementationTable
) -> Implementation:
    """Return what an entry would mean in the table."""
    others = {**table.implementations, name: entry}
    return table.model_copy(update={"implementations": others}).resolve(name)


def files_of(prefix: Path, left_out: list[str]) -> Iterator[tuple[Path, Path]]:
    """Yield each file and link to pack, with what is packed for it: itself, or its target.

    A link that leads out of the prefix is packed as its target.
    """
    for path in sorted(prefix.rglob("*")):
        place = path.relative_to(prefix).as_posix()
        if any(fnmatch.fnmatchcase(place, pattern) for pattern in (*LEFT_OUT, *left_out)):
            continue
        if path.is_symlink():
            target = path.resolve()
            inside = target.is_relative_to(prefix.resolve()) or not target.is_file()
            yield path, path if inside else target
        elif path.is_file():
            yield path, path


def digests(prefix: Path, left_out: list[str]) -> dict[str, str]:
    """Return the SHA-256 of each file to pack, or where a link points; raises PrefixError."""
    try:
        return {
            str(path): f"-> {content.readlink()}" if content.is_symlink() else sha256_of(content)
            for path, content in files_of(prefix, left_out)
        }
    except OSError as error:
        raise PrefixError(f"{error.filename} cannot be read: {error.strerror}") from None


def is_elf(path: Path) -> bool:
    """Return whether a file is a program or a library."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def foreign_libraries(
    prefix: Path, programs: list[Path]
) -> tuple[dict[str, Path], dict[str, Path]]:
    """Return the libraries of the machine that files under a prefix load, and those it lacks.

    They are neither under the prefix nor of the C library; those that it lacks are given with a
    file that wants them.
    """
    linked, missing = libraries_of(programs, prefix)
    return {
        name: path
        for name, path in sorted(linked.items())
        if not path.resolve().is_relative_to(prefix.resolve()) and not C_LIBRARY.fullmatch(name)
    }, missing


def survey(found: Installed, left_out: list[str], base: Admitted) -> tuple[Packed, list[str]]:
    """Return what is to be packed, and which of the libraries it names the machine itself lacks.

    The base that the image will run on is asked what it has. Raises PrefixError if that C
    library is too old.
    """
    prefix = found.prefix
    files = digests(prefix, left_out)
    programs = [c for p, c in files_of(prefix, left_out) if not c.is_symlink() and is_elf(c)]
    linked, missing = foreign_libraries(prefix, programs)
    of_base = set(_in_base(base, "ldconfig -p | awk 'NR > 1 { print $1 }'").split())
    libraries = {name: path for name, path in linked.items() if name not in of_base}
    with tempfile.TemporaryDirectory(dir=base.path.parent, prefix="libraries-") as folder:
        for name, path in libraries.items():
            shutil.copy(path, Path(folder) / name)
        copies = [f"{LIBRARIES}/{name}" for name in libraries]
        said = _in_base(
            base,
            f"LD_LIBRARY_PATH={':'.join([*library_folders(found), LIBRARIES])} "
            "xargs -d '\\n' ldd 2>&1",
            f"--bind={prefix}:{prefix}:ro",
            f"--bind={folder}:{LIBRARIES}:ro",
            text="\n".join([*map(str, programs), *copies]),
        )
    too_new = re.search(r"(\S+): version `(\S+)' not found \(required by (\S+)\)", said)
    if too_new:
        library, version, wants = too_new.groups()
        raise PrefixError(
            f"{wants} needs {version} of {Path(library).name}, which is newer than that of the "
            "images' Debian; use an MPI built on a system no newer than that"
        )
    lacking = [f"{name} (for {path})" for name, path in missing.items() if name not in of_base]
    packed = Packed(
        prefix=str(prefix),
        library=found.said,
        files=files,
        libraries={f"{path}": sha256_of(path) for path in libraries.values()},
    )
    return packed, lacking


def library_folders(found: Installed) -> list[str]:
    """Return where the MPI's own libraries are."""
    folders = [str(found.library.parent)]
    folders += [str(found.prefix / f) for f in FOLDERS if (found.prefix / f).is_dir()]
    return list(dict.fromkeys(folders))


def _in_base(base: Admitted, script: str, *options: str, text: str = "") -> str:
    """Return the output of a shell in a base."""
    words = command("exec", *exec_options(), *options, base, "sh", "-c", script)
    return run_apart(words, cwd="/", text=text).stdout


def entry_path(root: Path, name: str) -> Path:
    """Return the file of an entry that `make image` writes."""
    return layout.home(root) / LOCAL / f"{name}.yaml"


def write_entry(path: Path, entry: ImplementationEntry) -> None:
    """Write an entry; nobody ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(
        path,
        "# Written by make image; docs/reference/images.md explains the keys.\n"
        + yaml.safe_dump(entry.model_dump(exclude_unset=True), sort_keys=False),
    )


def check(implementation: Implementation, needed: bool) -> None:
    """Raise PrefixError if what an image was packed from has changed since.

    A missing source matters only if it is needed: an image is complete in itself.
    """
    packed, name = implementation.packed, implementation.name
    assert packed is not None
    again = f"make image PREFIX={packed.prefix} NAME={name}"
    if not Path(packed.prefix).is_dir():
        if needed:
            raise PrefixError(
                f"{packed.prefix}, which {name} is packed from, is gone, and its image has to be "
                f"rebuilt; install that MPI again, or remove {LOCAL}/{name}.yaml"
            )
        return
    changed = digests(Path(packed.prefix), implementation.left_out) != packed.files
    if needed:
        changed |= any(
            not Path(path).is_file() or sha256_of(Path(path)) != digest
            for path, digest in packed.libraries.items()
        )
    if changed:
        raise PrefixError(
            f"the MPI under {packed.prefix} is no longer the one that {name} was packed from; pack "
            f"it again: {again}"
        )


def pack(packed: Packed, left_out: list[str], folder: Path) -> None:
    """Lay out what is packed in a folder that becomes the image's /opt/wyeast."""
    prefix = Path(packed.prefix)
    build, libraries = folder / "build", folder / "lib"
    libraries.mkdir()
    for path in map(Path, packed.libraries):
        # The name by which it is asked for, not that of the file behind a link.
        shutil.copy(path, libraries / path.name)
    with tarfile.open(build / "mpi.tar", "w") as archive:
        for path, content in files_of(prefix, left_out):
            entry = archive.gettarinfo(content, arcname=str(path))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            if entry.isreg():
                entry.mode |= 0o444
                with content.open("rb") as file:
                    archive.addfile(entry, file)
            else:
                archive.addfile(entry)
    own = [prefix / folder for folder in FOLDERS if (prefix / folder).is_dir()]
    (build / "loader.conf").write_text("".join(f"{path}\n" for path in [*own, LIBRARIES]))
