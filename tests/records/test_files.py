"""A file is replaced whole, for good and through nothing that somebody laid there."""

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from records import acting_user, files

PROJECT = Path(__file__).resolve().parents[2]
#: What gives a file or a folder its name, or opens a file beside it under a name drawn for it.
BY_HAND = re.compile(r"\.rename\(|os\.replace\(|\baside\.replace\(|mkstemp|os\.fsync\(")
#: The one way, and what replaces nothing: caches that are dropped, folders that take turns.
MAY = {
    "records/files.py": 3,
    # A night's raw output, set aside before it is removed; a clone fetched anew; a sample's
    # predecessor, moved away; the cache of a node's disk, dropped before a cold start.
    "campaign/retention.py": 1, "containers/spack/tool.py": 1, "records/sample.py": 1,
    "reframe_checks/mixins/page_cache.py": 1,
    # A journal and a pack are added to and never replaced; what is in the way of a launch, of
    # before there were packs, is set aside.
    "records/journal.py": 3, "records/packs.py": 1, "records/schedule.py": 1,
    # A column of a table has another name.
    "analysis/studies/relations.py": 1,
}  # fmt: skip


def entries(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_nothing_else_replaces_a_file_by_hand() -> None:
    rooms = ("analysis", "campaign", "cluster", "containers", "costs", "inference", "records",
             "reframe_checks", "site_configs")  # fmt: skip
    found = {
        str(path.relative_to(PROJECT)): len(hits)
        for room in rooms
        for path in sorted((PROJECT / room).rglob("*.py"))
        if (hits := BY_HAND.findall(path.read_text()))
    }
    assert found == MAY


@pytest.mark.parametrize("trap", ["link", "dangling link", "second name", "left over"])
def test_it_is_written_through_nothing_that_was_laid_there(tmp_path: Path, trap: str) -> None:
    path, elsewhere = tmp_path / "a.json", tmp_path / "elsewhere"
    aside = files.aside_of(path)
    elsewhere.write_text("not ours")
    match trap:
        case "link":
            aside.symlink_to(elsewhere)
        case "dangling link":
            aside.symlink_to(tmp_path / "nowhere")
        case "second name":
            aside.hardlink_to(elsewhere)
        case "left over":
            aside.write_text("half of")
    files.write_whole(path, "whole")
    assert path.read_text() == "whole" and not path.is_symlink()
    assert elsewhere.read_text() == "not ours"
    assert entries(tmp_path) == ["a.json", "elsewhere"]


def test_what_appears_meanwhile_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, elsewhere = tmp_path / "a.json", tmp_path / "elsewhere"
    elsewhere.write_text("not ours")
    unlink = Path.unlink

    def replaced(self: Path, missing_ok: bool = False) -> None:
        unlink(self, missing_ok)
        monkeypatch.setattr(Path, "unlink", unlink)
        self.symlink_to(elsewhere)

    monkeypatch.setattr(Path, "unlink", replaced)
    with pytest.raises(FileExistsError):
        files.write_whole(path, "whole")
    assert elsewhere.read_text() == "not ours" and not path.exists()


def fails(_: Path) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("where", ["writing", "flushing"])
def test_what_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    path = tmp_path / "a.json"
    files.write_whole(path, "before")
    if where == "flushing":
        monkeypatch.setattr(files, "flush_to_disk", fails)
    with pytest.raises(OSError, match="Input/output"), files.replacing(path) as file:
        file.write(b"half")
        if where == "writing":
            fails(path)
    assert path.read_text() == "before" and entries(tmp_path) == ["a.json"]


def made(folder: Path) -> Path:
    folder.mkdir()
    (folder / "b").mkdir()
    (folder / "b" / "c").write_text("c")
    (folder / "link").symlink_to("b")
    return folder


def linked(link: Path) -> Path:
    link.symlink_to("nowhere")
    return link


WAYS: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "file": (lambda path: files.write_whole(path, "text"), {".there.N"}),
    "JSON": (lambda path: files.write_json(path, {"a": 1}), {".there.N"}),
    "folder": (
        lambda path: files.put_in_place(made(path.with_name("new")), path), {"new", "b", "c"}
    ),
    # Also one to what is not there.
    "link": (lambda path: files.put_in_place(linked(path.with_name("new")), path), set()),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_content_is_on_the_disk_before_the_name_and_the_name_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    steps: list[str] = []
    rename, fsync = Path.rename, os.fsync

    def noted(descriptor: int) -> None:
        name = Path(os.readlink(f"/proc/self/fd/{descriptor}")).name
        steps.append(name.replace(f".{os.getpid()}", ".N"))
        fsync(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        steps.append("RENAME")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(Path, "rename", renamed)
    write, flushed = WAYS[way]
    write(tmp_path / "there")
    at = steps.index("RENAME")
    assert set(steps[:at]) == flushed and steps[at + 1 :] == [tmp_path.name]


def test_rights_are_the_users_habit_or_as_asked(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        files.write_whole(tmp_path / "own", "x")
        files.write_whole(tmp_path / "for all", "x", 0o644)
    finally:
        os.umask(before)
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "for all").stat().st_mode & 0o777 == 0o644


#: Reads with little more memory than there is to read: as `ulimit -v` of a user may leave it.
LIMITED = """
import resource, sys
from pathlib import Path
from records import acting_user, left_behind
pages = int(Path("/proc/self/statm").read_text().split()[0])
most = pages * resource.getpagesize() + 2**28
resource.setrlimit(resource.RLIMIT_AS, (most, most))
for read in (acting_user.content_of, left_behind.read_left):
    print(len(read(Path(sys.argv[1]))))
"""


@pytest.mark.parametrize("size", [0, 3_000_001])
def test_whoever_may_use_little_memory_reads_what_is_small(tmp_path: Path, size: int) -> None:
    """The largest file that is read has as much as such a limit allows in all."""
    path = tmp_path / "file"
    path.write_bytes(bytes(size))
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, path], env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == 2 * [str(size)], done.stderr


def test_a_file_that_grows_while_it_is_read_is_read_as_far_as_it_may_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    status = SimpleNamespace(st_mode=path.stat().st_mode, st_size=10)
    monkeypatch.setattr(os, "fstat", lambda _: status)
    assert acting_user.content_of(path) == b"x" * 100
    monkeypatch.setattr(acting_user, "MOST_BYTES", 99)
    with pytest.raises(OSError, match="it has more than"):
        acting_user.content_of(path)
