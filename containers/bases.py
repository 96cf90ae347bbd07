"""The two Debian roots that images are built on: one to compile on, one to run on."""

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from containers import apt, programs, sources
from containers.apptainer import Admitted, ImageError, command, state_of
from containers.bootstrap import Bootstrap
from containers.commands import BuildProgress, StepError, log_path, run_logged
from containers.table import Implementation, ImplementationTable
from records import layout
from records.files import put_in_place

# Increased when mmdebstrap's options change, so that bases are made again.
RECIPE = "3"
LEFT_OUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")
# Licences, and the one manual that a package (lam4-dev) fails to install without.
KEPT = ("/usr/share/doc/*/copyright", "/usr/share/man/*/MPI_Comm_set_name_lam4-dev.3.gz")
DEFINITION = "containers/base-docker.def"


@dataclass(frozen=True)
class Base:
    """A base as requested: identified by the digest of what decides its content."""

    name: str
    bootstrap: Bootstrap
    debian: sources.Debian
    packages: tuple[str, ...]
    definition: str

    def digest(self) -> str:
        """Return the SHA-256 of what the base is made from."""
        parts = [self.name, self.bootstrap, list(self.packages)]
        if self.bootstrap == "docker":
            parts += [self.debian.docker, self.definition]
        else:
            parts += [self.debian.suite, list(LEFT_OUT), RECIPE]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def path(self, state: Path) -> Path:
        """Return the path of the base's file."""
        ending = "sif" if self.bootstrap == "docker" else "sqfs"
        return state / "bases" / f"{self.name}-{self.bootstrap}-{self.digest()[:12]}.{ending}"


def bases_of(
    root: Path,
    table: ImplementationTable,
    implementation: Implementation,
    pinned: sources.Sources,
    bootstrap: Bootstrap,
) -> tuple[Base, Base]:
    """Return the base to build on and the base to run on.

    They are the common ones, unless the implementation needs packages of its own, which are pinned,
    or must not have some of the common ones.
    Raises SourceError for a package that sources.lock does not pin.
    """
    definition = (root / DEFINITION).read_text() if bootstrap == "docker" else ""

    without = set(implementation.without)

    def base(name: str, common: Iterable[str], own: Iterable[str], shared: bool = False) -> Base:
        packages = [f"{package}={pinned.package_version(package)}" for package in own]
        # An implementation that Spack builds on the distribution's MPI shares that one's base.
        suffix = implementation.name.removesuffix("-spack")
        name = f"{name}-{suffix}" if (own or without) and not shared else name
        kept = [package for package in common if package not in without]
        return Base(name, bootstrap, pinned.debian, (*kept, *packages), definition)

    own = implementation.packages
    if implementation.builder == "spack":
        common = (*table.bases.build, *table.bases.spack)
        run = base("run", table.bases.run, own.run)
        if not implementation.external:
            # Without any MPI of the distribution: configure scripts would find the libraries that
            # its development packages bring, which are not in the image.
            return base("build-source", common, own.build), run
        # One base for all of these: a lock then does not depend on which of them is built. Builds
        # with other options that bring packages have their own.
        every = (table.resolve(name) for name in table.built_by("spack"))
        names = {
            package
            for one in every
            if one.external and one.build_of is None
            for package in one.packages.build
        }
        shared = not without and names.issuperset(own.build)
        return base("build-spack", common, sorted(names.union(own.build)), shared), run
    return base("build", table.bases.build, own.build), base("run", table.bases.run, own.run)


def admit(base: Base, state: Path) -> Admitted:
    """Return an existing base whose programs may run; raises ImageError unless it is ours.

    The file must belong to root, the caller or the owner of the checkout, and nobody else may
    write it.
    """
    path = base.path(state)
    before = state_of(path)
    status = path.lstat()
    ours = {0, os.geteuid(), state.stat().st_uid}
    if not stat.S_ISREG(status.st_mode) or status.st_uid not in ours or status.st_mode & 0o002:
        raise ImageError(
            f"{path} cannot be trusted: it is not a regular file, belongs to another user, or can "
            "be written by others; remove it, and it will be made again"
        )
    return Admitted(path, before)


def ensure_bases(bases: Iterable[Base], root: Path, progress: BuildProgress) -> None:
    """Make the missing bases in parallel: each keeps one core busy."""
    lacking = [base for base in bases if not base.path(layout.state(root)).exists()]

    def make(base: Base) -> None:
        path = make_base(base, root, log_path(root, f"{base.name}-base"))
        progress.say(f"the {base.name} base is ready, {path.stat().st_size / 1e6:.0f} MB")

    for base in lacking:
        progress.say(f"making the {base.name} base with {base.bootstrap}")
    with ThreadPoolExecutor() as pool:
        list(pool.map(make, lacking))


def make_base(base: Base, root: Path, log: Path) -> Path:
    """Make a base elsewhere and move it into place; raises StepError or AptError."""
    state = layout.state(root)
    path = base.path(state)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"new-{path.name}")
    aside.unlink(missing_ok=True)
    try:
        if base.bootstrap == "docker":
            _from_registry(base, root, aside, log)
        else:
            _from_mirror(base, state, aside, log)
        put_in_place(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    for old in path.parent.glob(f"{base.name}-{base.bootstrap}-*"):
        if old != path:
            old.unlink()
    return path


def _from_mirror(base: Base, state: Path, target: Path, log: Path) -> None:
    """Make a base by mmdebstrap, piped into squashfs so that no tree of foreign owners is left."""
    suite, keyring = base.debian.suite, Path("/usr/share/keyrings") / base.debian.keyring
    found = apt.sources_of_suite(suite, apt.machine_sources(), apt.machine_codename())
    lines = []
    for source in found:
        # A key embedded in the configuration cannot be part of a sources.list line.
        signed_by = source.signed_by or ""
        key = signed_by if signed_by.startswith("/") and "\n" not in signed_by else str(keyring)
        options = f"signed-by={key}" + (" trusted=yes" if source.trusted else "")
        for uri in source.uris:
            lines += [f"deb [{options}] {uri} {s} {' '.join(source.components)}"
                      for s in source.suites]  # fmt: skip
    mmdebstrap = programs.find("mmdebstrap", state)
    assert mmdebstrap is not None, "containers.programs.ensure has installed it"
    command = [
        str(mmdebstrap),
        # /bin as a link to /usr/bin from the start: the package that would convert it brings Perl.
        f"--hook-dir={mmdebstrap.resolve().parents[1]}/share/mmdebstrap/hooks/merged-usr",
        "--variant=apt",
        f"--mode={'root' if os.geteuid() == 0 else 'unshare'}",
        f"--include={','.join(base.packages)}",
        '--aptopt=APT::Install-Recommends "false"',
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT),
        *(f"--dpkgopt=path-include={pattern}" for pattern in KEPT),
        suite,
        "-",
        *lines,
    ]
    # lz4: a base is read once per image, and is quick to write. Without devices: Apptainer mounts
    # the machine's, and cannot make any when it unpacks the base in a user namespace.
    squash = [str(programs.find("sqfstar", state)), "-comp", "lz4", "-quiet", "-no-progress",
              "-root-mode", "755", str(target), "dev/*"]  # fmt: skip
    if not pack(command, squash, log):
        raise StepError(f"mmdebstrap of the {base.name} base failed{_lacking(log)}", log)


def pack(archiver: list[str], packer: list[str], log: Path) -> bool:
    """Pipe an archive from one program into another, and return whether both ended well."""
    with log.open("ab") as output:
        # mmdebstrap signals its whole process group when it fails; ours must not be in it.
        with subprocess.Popen(
            archiver, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=output,
            start_new_session=True,
        ) as archive:  # fmt: skip
            assert archive.stdout is not None
            packed = subprocess.run(packer, stdin=archive.stdout, stdout=output, stderr=output)
            # An archive is padded beyond its end, where a packer has ended already: who then still
            # writes must not find the pipe closed.
            while not packed.returncode and archive.stdout.read(1 << 16):
                pass
        for program, code in ((archiver, archive.returncode), (packer, packed.returncode)):
            if code:
                output.write(f"{Path(program[0]).name} ended with {code}\n".encode())
    return not (archive.returncode or packed.returncode)


def _lacking(log: Path) -> str:
    """Return, for the end of a sentence, which pinned version the mirror lacks."""
    found = re.search(
        r"E: Version '(?P<version>[^']*)' for '(?P<package>[^']*)' was not found",
        log.read_text(errors="replace"),
    )
    if not found:
        return ""
    return (
        f", since the mirror does not have {found['package']} {found['version']}, which "
        f"{sources.LOCK} "
        "pins: use a mirror that has it, or pin another version there"
    )


def _from_registry(base: Base, root: Path, target: Path, log: Path) -> None:
    """Make a base from an image in a container registry."""
    scratch = layout.state(root) / "build" / f"base-{base.name}"
    scratch.mkdir(parents=True, exist_ok=True)
    insecure = ["--no-https"] if base.debian.docker.startswith("localhost:") else []
    try:
        run_logged(
            command("build", "--fakeroot", *insecure,
                    "--mksquashfs-args", "-comp lz4",
                    "--build-arg", f"image={base.debian.docker}",
                    "--build-arg", f"packages={' '.join(base.packages)}",
                    target, root / DEFINITION),
            f"the {base.name} base from {base.debian.docker}",
            log,
            scratch,
        )  # fmt: skip
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
