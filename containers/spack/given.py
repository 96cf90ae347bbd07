"""What a folder of sources has of what locks are built from: `python -m containers.spack.given`.

What is found goes into the mirror that Spack is given; what is not found is said before anything is
built. As a program it first fills the folder from the distribution's source packages and from the
addresses that recipes name.
"""

import os
import re
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from containers import apt
from containers.programs import ProvisionError
from containers.sources import SourceError, load_sources, sha256_of
from containers.spack import environment as spack_environment
from containers.spack import mirror as spack_mirror
from containers.spack import recipes, release_tree
from containers.spack import tool as spack
from containers.spack.recipes import Needed, SpackError
from containers.spack.source_folder import SourceFolder
from containers.table import TableError, load_table
from records import layout
from records.command_words import CommandWords
from records.files import put_in_place

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
#: How long a server may be silent, in seconds.
SILENCE = 30.0


def meant(typed: str) -> Path:
    """Return the folder that a user has typed, whole, since Spack is elsewhere."""
    return Path(layout.meant_anywhere(typed))


@dataclass(frozen=True)
class SourceRow:
    """One source that is needed, and where it is: None where it is missing."""

    needed: Needed
    where: str | None


def look(
    lists: Iterable[list[Needed]], given: SourceFolder, mirror: Path | None
) -> list[SourceRow]:
    """Return where each source is: in the folder, or else in the mirror.

    What the folder has is put into the mirror, where one is given.
    """
    rows: dict[tuple[str, ...], SourceRow] = {}
    for source in (one for needed in lists for one in needed if one.place is not None):
        assert source.place is not None
        key = (source.package, source.version, source.address)
        if key in rows:
            continue
        target = mirror / source.place if mirror else None
        there = target is not None and target.exists()
        if not there:
            with tempfile.TemporaryDirectory() as scratch:
                found = given.provide(source, Path(scratch))
                there = found is not None
                if found is not None and target is not None:
                    spack_mirror.put_copy(found, target)
        rows[key] = SourceRow(source, "have" if there else None)
    return [rows[key] for key in sorted(rows)]


def table(rows: list[SourceRow]) -> list[str]:
    """Return the lines of a table of sources: what each is, whether it is here, its address.

    Of what is missing the digest is whole: by it, and by nothing else, a file is known.
    """
    lines = [["package", "version", "", "sha256", "address"]]
    for row in rows:
        digest = row.needed.sha256 or "-"
        lines.append([
            row.needed.package, row.needed.version, row.where or "missing",
            digest[:12] if row.where else digest, row.needed.address,
        ])  # fmt: skip
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    digests = max(len(line[3]) for line in lines)
    return [
        "  ".join([*(word.ljust(w) for word, w in zip(line, widths, strict=False)),
                   line[3].ljust(digests), line[4]]).rstrip()
        for line in lines
    ]  # fmt: skip


def refuse_missing(rows: list[SourceRow], given: Path) -> None:
    """Raise SpackError where a source is missing."""
    missing = [row for row in rows if row.where is None]
    if missing:
        raise SpackError(
            f"{len(missing)} of {len(rows)} sources are missing, and nothing was built: put files "
            f"with these digests into {given}, under any name, or a git repository that they are "
            f"made of; where there is a network: make spack-sources SOURCES={given}"
        )


def serve(root: Path, found: spack.Spack, names: Iterable[str], folder: Path) -> list[SourceRow]:
    """Print the table of what implementations are built from, and serve to Spack what is here.

    The table is printed before anything is built. Raises SpackError where something is missing.
    """
    given = SourceFolder(folder)
    lists = needed_of(root, found, names)
    own_archives(root, given)
    rows = look(lists, given, spack_mirror.folder(root))
    print("\n".join([*table(rows), *unknown(given, rows)]), flush=True)
    refuse_missing(rows, folder)
    return rows


def needed_of(root: Path, found: spack.Spack, names: Iterable[str]) -> list[list[Needed]]:
    """Return what each of the implementations is built from, by its lock."""
    return [
        recipes.needed(root, found, spack_environment.lock_path(root, name).read_text())
        for name in names
    ]


def own_archives(root: Path, given: SourceFolder) -> None:
    """Put the archives that sources.lock pins where they are looked for, if the folder has them."""
    for source in load_sources(root).archives.values():
        target = layout.state(root) / "downloads" / source.file
        if source.sha256 in given.files and not target.exists():
            spack_mirror.put_copy(given.files[source.sha256], target)


def unknown(given: SourceFolder, rows: Iterable[SourceRow]) -> list[str]:
    """Return, in words, which releases of the folder are of a package that is asked for.

    They have another digest than the one that its recipe knows.
    """
    rows = list(rows)
    digests = {row.needed.sha256 for row in rows}
    # An archive's address is where upstream has it; that of a folder is only what it is called.
    found = [
        *((digest, path, release_tree.identified(path), "the folder in it", "…")
          for digest, path in given.files.items() if digest not in digests),
        *((digest, path, release_tree.named(path.name), "its name", f'"file:///{path.name}.tar"')
          for digest, path in given.trees.items() if digest not in digests),
    ]  # fmt: skip
    lines = []
    for digest, path, said, by, address in found:
        of_name = [row.needed for row in rows if said and row.needed.package == said[0]]
        if not said or not of_name:
            continue
        name, version = said
        asked = ", ".join(dict.fromkeys(needed.version for needed in of_name))
        lines.append(
            f"{path} is {name} {version} by {by}, and not what the lock has ({asked}): "
            f"to build it, add to spack_repo/wyeast/packages/{name.replace('-', '_')}/package.py "
            f'version("{version}-given", sha256="{digest}", url={address}), name it in spack.yaml, '
            "and renew the lock"
        )
    return lines


# Filling a folder.


def fill(root: Path, folder: Path, rows: list[SourceRow], say: Callable[[str], None]) -> None:
    """Bring what is missing into a folder: from the distribution first, then from upstream."""
    missing = {row.needed.sha256: row.needed for row in rows if row.where is None}
    for bring in (from_distribution, from_repository_of_spack, from_upstream):
        for source in [one for one in missing.values() if one.sha256]:
            with tempfile.TemporaryDirectory(dir=folder, prefix=".incoming-") as scratch:
                for path in bring(root, source, Path(scratch)):
                    digest = sha256_of(path)
                    if digest in missing:
                        put_in_place(path, folder / path.name)
                        say(f"{missing.pop(digest).package}: {folder / path.name}")


def from_distribution(root: Path, source: Needed, into: Path) -> Iterator[Path]:
    """Give the upstream archives of the distribution's source package of this name.

    It is the name of Spack's package, or of the archive.
    """
    private = apt.of_suite(layout.state(root), load_sources(root).debian.suite, "deb-src")
    archive = re.match(r"([A-Za-z][A-Za-z0-9+-]*?)[-_]v?\d", Path(source.address).name)
    for name in dict.fromkeys([source.package, *([archive[1].lower()] if archive else [])]):
        try:
            private.update()
            private.run("source", "--download-only", "--tar-only", name, where=into)
        except apt.AptError:
            # It has no such package, or none here: upstream is asked.
            continue
    yield from sorted(into.glob("*.orig*.tar.*"))


def from_repository_of_spack(root: Path, source: Needed, into: Path) -> Iterator[Path]:
    """Give Spack's compiler wrapper, which is made from its repository."""
    if source.sha256 == spack.WRAPPER_SHA256:
        try:
            made = spack_mirror.wrapper(root)
        except ProvisionError:
            return
        yield Path(shutil.copy(made, into / Path(source.address).name))


def from_upstream(root: Path, source: Needed, into: Path) -> Iterator[Path]:
    """Give the file that the first of a source's addresses that answers serves."""
    for address in source.addresses:
        name = Path(address.partition("?")[0]).name or "source"
        path = into / name
        try:
            with urllib.request.urlopen(address, timeout=SILENCE) as answer, path.open("wb") as out:
                shutil.copyfileobj(answer, out)
        except (OSError, ValueError, urllib.error.URLError):
            continue
        yield path
        return


def main() -> int:
    """Fill a folder of sources and say what it has."""
    parser = CommandWords(
        prog="python -m containers.spack.given",
        description="Fill a folder with what implementations are built from by Spack: from the "
        "distribution's source packages first, then from upstream; and list what is missing.",
    )
    parser.add_argument("--sources", required=True, metavar="FOLDER")
    parser.add_argument("--implementations", default="", metavar="a,b")
    options = parser.parse_args()
    folder = meant(options.sources)
    try:
        found = spack.provide(ROOT)
        known = load_table(ROOT)
        names = spack_environment.asked_for(options.implementations)
        names = names or spack_environment.from_archives_of_the_distribution(known)
        for name in names:
            known.resolve(name)
        lists = needed_of(ROOT, found, names)
        folder.mkdir(parents=True, exist_ok=True)
        given = SourceFolder(folder)
        rows = look(lists, given, None)
        if any(row.where is None for row in rows):
            fill(ROOT, folder, rows, print)
            given = SourceFolder(folder)
            rows = look(lists, given, None)
        print("\n".join([*table(rows), *unknown(given, rows)]), flush=True)
        refuse_missing(rows, folder)
    except (
        ProvisionError, SourceError, SpackError, TableError, apt.AptError, OSError,
    ) as error:  # fmt: skip
        print(f"spack-sources: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
