"""A release by its folder: its name, and an archive that depends on nothing but what is in it."""

import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from containers import sources
from containers.spack import release_tree
from containers.spack.recipes import SpackError
from containers.spack.source_folder import SourceFolder


@pytest.mark.parametrize(
    ("top", "found"),
    [("openmpi-4.1.6", ("openmpi", "4.1.6")), ("NPB3.4.1", ("npb", "3.4.1")),
     ("mvapich2-2.3.7-1", ("mvapich2", "2.3.7-1")), ("./hpl-2.3", ("hpl", "2.3")),
     ("sources", None)],
)  # fmt: skip
def test_an_archive_is_of_what_its_folder_is_called(
    tmp_path: Path, top: str, found: tuple[str, str] | None
) -> None:
    (tmp_path / "x").write_text("x")
    with tarfile.open(tmp_path / "archive", "w:xz") as archive:
        archive.add(tmp_path / "x", f"{top}/x")
    assert release_tree.identified(tmp_path / "archive") == found
    (tmp_path / "archive").write_bytes(b"\x1f\x8b and no archive")
    assert release_tree.identified(tmp_path / "archive") is None


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A release's folder, with a link, an empty folder, a script, and a name that is too long."""
    folder = tmp_path / "one" / "mpi-1.2"
    (folder / ("deep-" * 15) / ("deeper-" * 15)).mkdir(parents=True)
    (folder / ("deep-" * 15) / ("deeper-" * 15) / "long.c").write_text("int a;\n")
    (folder / "empty").mkdir()
    (folder / "configure").write_text("#!/bin/sh\n")
    (folder / "configure").chmod(0o755)
    (folder / "latest").symlink_to("configure")
    return folder


#: Of the folder above: it must be the same with another Python, and in years.
DIGEST = "5d0e034faf29a5bb39c9370c49d4f68cceab644bc9dea63ce59e1ee499282d08"


def test_the_archive_of_a_folder_is_the_same_everywhere_and_at_any_time(
    tmp_path: Path, tree: Path
) -> None:
    assert release_tree.digest_of(tree) == DIGEST
    other = tmp_path / "other" / "mpi-1.2"
    shutil.copytree(tree, other, symlinks=True)
    for number, path in enumerate([other, *other.rglob("*")]):
        os.utime(path, (number, 10 * number), follow_symlinks=False)
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() or path.stat().st_mode & 0o100 else 0o600)
    # A second name of a file is a file like another.
    shutil.copy(other / "configure", tree / "copy")
    os.link(other / "configure", other / "copy")
    assert release_tree.digest_of(other) == release_tree.digest_of(tree) != DIGEST
    link = tmp_path / "links" / "mpi-1.2"
    link.parent.mkdir()
    link.symlink_to(other)
    assert release_tree.digest_of(link) == release_tree.digest_of(tree)


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: (tree / "configure").write_text("#!/bin/bash\n"),
        lambda tree: (tree / "configure").chmod(0o644),
        lambda tree: (tree / "configure").rename(tree / "configured"),
        lambda tree: (tree / "empty").rmdir(),
        lambda tree: [(tree / "latest").unlink(), (tree / "latest").symlink_to("empty")],
    ],
    ids=["content", "executable", "name", "folder", "link"],
)
def test_what_decides_what_is_built_decides_the_digest(
    tree: Path, change: Callable[[Path], object]
) -> None:
    change(tree)
    assert release_tree.digest_of(tree) != DIGEST


def test_what_is_packed_has_the_digest_and_unpacks_to_the_folder(
    tmp_path: Path, tree: Path
) -> None:
    archive = release_tree.packed(tree, tmp_path)
    assert archive.name == "mpi-1.2.tar" and sources.sha256_of(archive) == DIGEST
    assert release_tree.identified(archive) == ("mpi", "1.2")
    (tmp_path / "unpacked").mkdir()
    # Ours are the program's bytes, whatever reads them.
    subprocess.run(["tar", "-xf", str(archive), "-C", str(tmp_path / "unpacked")], check=True)
    assert release_tree.digest_of(tmp_path / "unpacked" / "mpi-1.2") == DIGEST
    listed = subprocess.run(
        ["tar", "-tf", str(archive)], capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()
    assert len(listed) == 1 + len(list(tree.rglob("*")))


def test_a_pipe_is_in_no_release(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    with pytest.raises(
        SpackError, match=r"mpi-1\.2/pipe is not a file, folder or link, .*remove it"
    ):
        SourceFolder(tree.parent)


@pytest.mark.parametrize(
    ("name", "mark", "is_one"),
    [("hpl-2.3", "configure", True), ("NPB3.4.1", "README.install", True),
     ("archives-2024", "README", False), ("downloads", "Makefile", False)],
)  # fmt: skip
def test_a_release_is_told_by_its_name_and_by_how_it_is_built(
    tmp_path: Path, name: str, mark: str, is_one: bool
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / mark).write_text("")
    assert release_tree.is_release(tmp_path / name) == is_one
    found = SourceFolder(tmp_path)
    # What is in another folder are sources of their own.
    assert (len(found.trees), len(found.files)) == ((1, 0) if is_one else (0, 1))


def test_a_repository_is_no_unpacked_release(tmp_path: Path) -> None:
    (tmp_path / "hpl-2.3" / ".git").mkdir(parents=True)
    (tmp_path / "hpl-2.3" / "configure").write_text("")
    found = SourceFolder(tmp_path)
    assert (found.trees, list(found.repositories)) == ({}, ["hpl-2.3"])
