"""Renew the locks of spack.yaml and say what changed: `python -m containers.spack.lock`."""

import os
import sys
import time
from pathlib import Path

from containers import apt
from containers.commands import StepError
from containers.locking import BuildError
from containers.programs import ProvisionError
from containers.sources import SourceError
from containers.spack import build_options, recipes
from containers.spack import environment as spack_environment
from containers.spack import site as spack_site
from containers.spack import tool as spack
from containers.spack.recipes import SpackError
from containers.table import TABLE, TableError, load_table
from records.command_words import CommandWords
from records.files import write_whole

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))


def renew(root: Path, names: list[str]) -> list[str]:
    """Renew the locks of implementations, one after the other; return those that failed."""
    if words := spack_site.sentence(root):
        print(f"spack-lock: {words}", file=sys.stderr)
    found = spack.provide(root)
    failed = []
    table = load_table(root)
    for name in names:
        if build_options.define(root, table, name):
            print(f"{spack_environment.ENVIRONMENT} defines {name} now, as {TABLE} says")
    for name in names:
        base = spack_environment.provide_base(root, name)
        start = time.monotonic()
        path = spack_environment.lock_path(root, name)
        old = path.read_text() if path.exists() else None
        try:
            new = spack_environment.concretize(root, found, base, name)
        except SpackError as error:
            print(f"spack-lock: {error}", file=sys.stderr)
            failed.append(name)
            continue
        lines = spack_environment.difference(old, new)
        # Spack writes what is the same in another order each time: what has not changed keeps its
        # bytes, since images are made from them.
        kept = old if old is not None and lines == ["no change"] else new
        try:
            kept = spack_environment.with_sources(kept, recipes.needed(root, found, kept))
        except SpackError as error:
            print(f"spack-lock: {name}: {error}", file=sys.stderr)
            failed.append(name)
            continue
        if kept != old:
            path.parent.mkdir(exist_ok=True)
            write_whole(path, kept)
        print(f"{name}, by Spack {found.version} in {time.monotonic() - start:.0f} s:")
        for line in lines:
            print(f"    {line}")
        sys.stdout.flush()
    return failed


def main() -> int:
    """Renew the requested locks, or print a sentence on why not."""
    parser = CommandWords(
        prog="python -m containers.spack.lock",
        description="Renew the locks in spack_locks/ and say what changed.",
    )
    parser.add_argument(
        "--implementations", default="", metavar="a,b", help="which implementations (default: all)"
    )
    options = parser.parse_args()
    try:
        known = load_table(ROOT).built_by("spack")
        names = spack_environment.asked_for(options.implementations) or known
        unknown = [name for name in names if name not in known]
        if unknown:
            raise SpackError(f"{unknown[0]} is not built by Spack; these are: {', '.join(known)}")
        failed = renew(ROOT, names)
    except (
        ProvisionError, SourceError, SpackError, TableError, BuildError, StepError, apt.AptError,
    ) as error:  # fmt: skip
        print(f"spack-lock: {error}", file=sys.stderr)
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
