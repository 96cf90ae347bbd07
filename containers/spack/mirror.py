"""A mirror of sources for Spack: `python -m containers.spack.mirror`.

It is filled from what a machine without the internet has, and by Spack where there is one.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from containers import apt
from containers.commands import StepError
from containers.locking import BuildError
from containers.programs import ProvisionError
from containers.sources import SourceError, fetch_archive, load_sources, sha256_of
from containers.spack import environment as spack_environment
from containers.spack import site as spack_site
from containers.spack import tool as spack
from containers.spack.recipes import SpackError
from containers.spack.tool import Spack
from containers.table import TableError, load_table
from records import layout
from records.command_words import CommandWords
from records.files import put_in_place, replacing

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
#: Version of our programs → the commit that it is.
RELEASES = "spack_repo/wyeast/releases.json"


def folder(root: Path) -> Path:
    """Return where the mirror is, in the layout that Spack reads."""
    return spack.folder(root) / "mirror"


def fill(root: Path, archives: Iterable[Path]) -> None:
    """Put the distribution's archives and Spack's compiler wrapper into the mirror."""
    for archive in archives:
        _place(root, archive)
    wrapper(root)


def _place(root: Path, archive: Path) -> Path:
    target = _place_of(root, sha256_of(archive))
    if not target.exists():
        put_copy(archive, target)
    return target


def put_copy(file: Path, target: Path) -> None:
    """Copy a file to a place, completely or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with file.open("rb") as content, replacing(target) as copy:
        shutil.copyfileobj(content, copy)


def _place_of(root: Path, digest: str) -> Path:
    # Where Spack looks for an archive: by its digest.
    return folder(root) / "_source-cache" / "archive" / digest[:2] / f"{digest}.tar.gz"


def wrapper(root: Path) -> Path:
    """Return Spack's compiler wrapper's archive, made from its repository as upstream makes it.

    Every compiled package needs it. Spack compares its digest with the one in its own recipe.
    """
    name, release = "compiler-wrapper", spack.RELEASES["compiler-wrapper"]
    there = _place_of(root, spack.WRAPPER_SHA256)
    if there.exists():
        return there
    repository = spack.clone(root, name)
    with tempfile.TemporaryDirectory() as scratch:
        prefix = f"{name}-{release.removeprefix('v')}"
        return _place(root, archive_of(repository, release, prefix, Path(scratch)))


def archive_of(repository: Path, commit: str, prefix: str, into: Path, *paths: str) -> Path:
    """Return an archive of a commit, or of paths in it, the same at any time.

    Its bytes depend on nothing but the commit: git dates all files by it, and gzip is told no name.
    """
    packed = subprocess.run(
        ["git", "-C", str(repository), "-c", "safe.directory=*", "archive",
         "--format=tar", f"--prefix={prefix}/", commit, *paths],
        capture_output=True,
    )  # fmt: skip
    if packed.returncode:
        raise SpackError(
            f"{repository} has no {commit} to make {prefix} from: {packed.stderr.decode().strip()}"
        )
    done = subprocess.run(["gzip", "-n"], input=packed.stdout, capture_output=True, check=True)
    path = into / f"{prefix}.tar.gz"
    path.write_bytes(done.stdout)
    return path


def releases(root: Path) -> list[Path]:
    """Return the archives of our programs' releases, made into the mirror from git's history.

    They are also made where the recipe's own address points, for a Spack without our mirror. Raises
    SpackError where the checkout has no history, as one that was copied without it.
    """
    made = []
    target = spack.folder(root) / "releases"
    target.mkdir(parents=True, exist_ok=True)
    for version, commit in json.loads((root / RELEASES).read_text()).items():
        with tempfile.TemporaryDirectory(dir=target, prefix=".new-") as scratch:
            prefix = f"wyeast-benchmarks-{version}"
            archive = archive_of(root, commit, prefix, Path(scratch), "benchmarks")
            made.append(_place(root, archive))
            put_in_place(archive, target / archive.name)
    return made


def create(root: Path, found: Spack, implementation: str) -> list[str]:
    """Let Spack download all sources of a lock into the mirror; return its words on what failed.

    It runs in the base, which is made first where it is not there, as is the one that the image
    runs on: where there is no network, neither could be made.
    """
    base = spack_environment.provide_base(root, implementation, to_run=True)
    environment = spack_environment.prepare(root, implementation)
    done = spack_environment.run(
        root, found, base, implementation, environment,
        "mirror", "create", "-d", "/mnt/mirror", "--all",
        # The checkout's own sources are not archives.
        "--exclude-specs", "wyeast-benchmarks@develop",
    )  # fmt: skip
    if done.returncode == 0:
        return []
    lines = (done.stderr + done.stdout).strip().splitlines()
    return [line.strip() for line in lines if "rror" in line or "failed" in line] or lines[-12:]


def main() -> int:
    """Fill the mirror and say what it has."""
    parser = CommandWords(
        prog="python -m containers.spack.mirror",
        description="Fill .wyeast/spack/mirror with the sources that Spack builds from, and make "
        "the bases of the images, to be carried to a machine without the internet; "
        "docs/how-to/spack.md says what else to carry.",
    )
    parser.add_argument("--implementations", default="", metavar="a,b")
    options = parser.parse_args()
    try:
        if words := spack_site.sentence(ROOT):
            print(f"spack-mirror: {words}", file=sys.stderr)
        found = spack.provide(ROOT)
        pinned = load_sources(ROOT)
        files = [
            fetch_archive(source, layout.state(ROOT), pinned.debian.suite)
            for source in pinned.archives.values()
        ]
        fill(ROOT, files)
        releases(ROOT)
        names = spack_environment.asked_for(options.implementations)
        for name in names or spack_environment.of_the_distribution(load_table(ROOT)):
            lines = create(ROOT, found, name)
            if lines:
                print(f"spack-mirror: {name}: not every source could be fetched:", file=sys.stderr)
                print("\n".join(f"    {line}" for line in lines), file=sys.stderr)
                return 1
    except (
        ProvisionError, SourceError, SpackError, TableError, BuildError, StepError, apt.AptError,
    ) as error:  # fmt: skip
        print(f"spack-mirror: {error}", file=sys.stderr)
        return 1
    archives = sorted(path for path in folder(ROOT).rglob("*") if path.is_file())
    print(f"{folder(ROOT)}: {len(archives)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
