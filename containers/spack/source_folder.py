"""A folder of sources, under any names: archives and patches, unpacked releases, repositories.

A file is known by its digest, and an unpacked release by that of its archive. A repository
(`<name>.git`, or a checkout) has the archives of its tags and commits and its patches, made as
their addresses' server makes them.
"""

import re
import subprocess
from pathlib import Path

from containers.sources import sha256_of
from containers.spack import mirror as spack_mirror
from containers.spack import release_tree
from containers.spack.recipes import Needed, SpackError

#: How long git may take to write one commit as a patch, in seconds.
PATIENCE_S = 120.0

#: Addresses of what a forge makes of a repository: a tag's archive, in both of the addresses that
#: there are, a commit's, an archive that a project uploads for its tag, a patch.
ARCHIVE = re.compile(r"/(?P<name>[^/]+)/archive/(?:refs/tags/)?(?P<what>[^/]+)\.tar\.gz$")
RELEASE = re.compile(
    r"/(?P<name>[^/]+)/releases/download/(?P<what>[^/]+)/(?P<prefix>[^/]+)\.tar\.gz$"
)
PATCH = re.compile(r"/(?P<name>[^/]+)/commit/(?P<what>[0-9a-f]+)\.patch\b")


class SourceFolder:
    """What a folder has of sources."""

    def __init__(self, folder: Path) -> None:
        """Look at all that is in it; raises SpackError where it is no folder, or not readable."""
        self.folder = folder
        self.files: dict[str, Path] = {}
        #: Unpacked releases by the digests of their archives.
        self.trees: dict[str, Path] = {}
        self.repositories: dict[str, Path] = {}
        try:
            if not folder.is_dir():
                raise SpackError(f"SOURCES={folder} is not a folder")
            self._look(folder)
        except OSError as error:
            raise SpackError(f"SOURCES={folder} cannot be read: {error}") from None

    def _look(self, folder: Path) -> None:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                self.files.setdefault(sha256_of(path), path)
            elif is_repository(path):
                self.repositories.setdefault(path.name.removesuffix(".git"), path)
            elif release_tree.is_release(path):
                self.trees.setdefault(release_tree.digest_of(path), path)
            elif path.is_dir() and not path.is_symlink():
                self._look(path)

    def provide(self, source: Needed, into: Path) -> Path | None:
        """Return the file with a source's digest, made in `into` where it is no file here."""
        if source.sha256 in self.files:
            return self.files[source.sha256]
        if source.sha256 in self.trees:
            return release_tree.packed(self.trees[source.sha256], into)
        for address in source.addresses:
            made = self._made(address, into)
            if made is not None and sha256_of(made) == source.sha256:
                return made
        return None

    def _made(self, address: str, into: Path) -> Path | None:
        """Return what an address of a forge would serve, by the folder's repositories."""
        bare = address.partition("?")[0]
        for pattern in (ARCHIVE, RELEASE, PATCH):
            match = pattern.search(bare)
            if match is None or match["name"] not in self.repositories:
                continue
            repository, what = self.repositories[match["name"]], match["what"]
            if pattern is PATCH:
                return patch_of(repository, what, into)
            # As the forge calls it: a tag loses the v of its number.
            prefix = match.groupdict().get("prefix") or (
                f"{match['name']}-{re.sub(r'^v(?=[0-9])', '', what)}"
            )
            try:
                return spack_mirror.archive_of(repository, what, prefix, into)
            except SpackError:
                # It does not have the tag; another address may name one that it has.
                continue
        return None


def is_repository(path: Path) -> bool:
    """Return whether a folder is a repository of git, bare or with what is checked out."""
    return (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())


def patch_of(repository: Path, commit: str, into: Path) -> Path | None:
    """Return a commit as a patch with full names of its objects; None where it is not there.

    Raises SpackError where git does not end.
    """
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), "-c", "safe.directory=*", "format-patch", "--full-index",
             "--no-signature", "--stdout", f"{commit}^..{commit}"],
            capture_output=True, timeout=PATIENCE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SpackError(
            f"git format-patch of {commit} did not end within {PATIENCE_S:g} s in {repository}: "
            f"put the patch itself into the folder"
        ) from None
    if done.returncode:
        return None
    path = into / f"{commit}.patch"
    path.write_bytes(done.stdout)
    return path
