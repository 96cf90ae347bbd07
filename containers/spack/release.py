"""The archives of our programs' releases and their digests: `python -m containers.spack.release`.

A release is benchmarks/ at one commit, packed the same at any time. The recipe of our programs has
its digest, by which Spack knows the archive wherever it lies.
"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path

from containers.programs import ProvisionError
from containers.sources import sha256_of
from containers.spack import mirror
from containers.spack import tool as spack
from containers.spack.recipes import SpackError
from records.acting_user import git
from records.command_words import CommandWords
from records.files import put_in_place

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
RECIPE = "spack_repo/wyeast/packages/wyeast_benchmarks/package.py"
PINNED = re.compile(r'version\("(?P<version>[\d.]+)", sha256="(?P<sha256>[0-9a-f]{64})"\)')
VERSION = re.compile(r"\d+(\.\d+)+")


def pinned(root: Path) -> dict[str, str]:
    """Return the releases that the recipe knows: version → SHA-256 of the archive."""
    return dict(PINNED.findall((root / RECIPE).read_text()))


def check(root: Path) -> list[str]:
    """Make the archives of all releases, and return a line for each: path and digest.

    Raises SpackError where one is not what the recipe asks for, or has no history to make it from.
    """
    known, lines = pinned(root), []
    made = mirror.releases(root)
    for version, placed in zip(json.loads((root / mirror.RELEASES).read_text()), made, strict=True):
        archive, digest = _archive(root, version), sha256_of(placed)
        if known.get(version) != digest:
            raise SpackError(
                f"{archive} has the digest {digest}, and {RECIPE} asks for "
                f"{known.get(version, 'no such release')}: the history was rewritten, or git or "
                f"gzip pack otherwise here; take the archive from whoever made the release"
            )
        lines.append(f"{archive}  sha256 {digest}, as the recipe asks")
    return lines


def _archive(root: Path, version: str) -> Path:
    """Return where a release's archive is, as the recipe's address has it."""
    return spack.folder(root) / "releases" / f"wyeast-benchmarks-{version}.tar.gz"


def make(root: Path, version: str) -> list[str]:
    """Make the archive of a new release, which is the checkout's commit.

    Return where it is, and the lines that let the recipe know it. Raises SpackError where that is
    no new version, or benchmarks/ has what is in no commit.
    """
    if not VERSION.fullmatch(version):
        raise SpackError(f"VERSION={version} is not a version; give one such as 0.2.0")
    if version in pinned(root):
        raise SpackError(f"{RECIPE} has {version} already; give a new VERSION")
    commit, changed = (
        git(root, "rev-parse", "HEAD"),
        git(root, "status", "--porcelain", "benchmarks"),
    )
    if commit is None or changed is None:
        raise SpackError(f"{root} has no history to make a release of; clone the repository")
    if changed.strip():
        raise SpackError("benchmarks/ has changes that are in no commit; commit them first")
    named, target = commit.decode().strip(), _archive(root, version)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as scratch:
        prefix = f"wyeast-benchmarks-{version}"
        archive = mirror.archive_of(root, named, prefix, Path(scratch), "benchmarks")
        digest = sha256_of(archive)
        put_in_place(archive, target)
    return [
        f"{target}  sha256 {digest}",
        f"{RECIPE} knows it by this line:",
        f'    version("{version}", sha256="{digest}")',
        f"and {mirror.RELEASES} by this entry, for whoever makes it again:",
        f'    "{version}": "{named}"',
    ]


def main() -> int:
    """Make the archives, or print a sentence on why not."""
    parser = CommandWords(
        prog="python -m containers.spack.release",
        description="Make the archives of our programs' releases in .wyeast/spack/releases and "
        "hold them against the recipe's digests, or make one of a new release.",
    )
    parser.add_argument("--version", default="", help="of a new release, of the checkout's commit")
    options = parser.parse_args()
    try:
        lines = make(ROOT, options.version) if options.version else check(ROOT)
    except (SpackError, ProvisionError) as error:
        print(f"spack-release: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
