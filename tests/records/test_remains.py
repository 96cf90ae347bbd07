"""What a command that was killed has left is removed by the next; what is in use stays."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from records.files import write_whole
from records.locks import scratch
from tests.network_locks import nfs

__all__ = ["nfs"]

#: Holds a folder, or a file on its way to its name, until it is killed.
HOLDERS = {
    "folder": "with locks.scratch(Path('.'), '.unpacked-') as aside:",
    "file": "with files.replacing(Path('a.tar.gz')) as aside:",
}


@pytest.fixture(params=HOLDERS)
def held(request: pytest.FixtureRequest, tmp_path: Path) -> "subprocess.Popen[str]":
    code = (
        f"from pathlib import Path\nfrom records import files, locks\n{HOLDERS[request.param]}\n"
        " print(flush=True)\n input()\n"
    )
    path = str(Path(__file__).resolve().parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout and process.stdout.readline()
    return process


def remains(folder: Path) -> list[str]:
    """Return what is hidden in a folder, which is an hour old from now on."""
    found = sorted(folder.glob(".*"))
    for path in found:
        os.utime(path, (0, 0))
    return [path.name for path in found]


def use(folder: Path) -> None:
    with scratch(folder, ".unpacked-"):
        pass
    write_whole(folder / "a.tar.gz", "whole")


def test_what_is_held_stays_and_what_a_killed_process_left_goes(
    held: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    [name] = remains(tmp_path)
    try:
        use(tmp_path)
        assert remains(tmp_path) == [name], "its maker is at work"
    finally:
        held.send_signal(signal.SIGKILL)
        held.wait()
    assert remains(tmp_path) == [name]
    use(tmp_path)
    assert remains(tmp_path) == []
    assert (tmp_path / "a.tar.gz").read_text() == "whole"


def test_other_names_and_what_was_made_this_moment_stay(tmp_path: Path) -> None:
    for name in (".a.tar.gz.7", ".b.tar.gz.7"):
        (tmp_path / name).touch()
    os.utime(tmp_path / ".b.tar.gz.7", (0, 0))
    use(tmp_path)
    assert sorted(path.name for path in tmp_path.glob(".*")) == [".a.tar.gz.7", ".b.tar.gz.7"]


def test_without_locks_files_are_written_and_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    others = tmp_path / ".a.json.1"
    others.write_text("of another process")
    os.utime(others, (0, 0))
    write_whole(tmp_path / "a.json", "whole")
    assert (tmp_path / "a.json").read_text() == "whole" and others.exists()


def test_on_nfs_it_goes_too(tmp_path: Path, nfs: None) -> None:
    left, held = (tmp_path / f".a.tar.gz.{number}" for number in (1, 2))
    for path in (left, held):
        path.touch()
    remains(tmp_path)
    with held.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        use(tmp_path)
    assert remains(tmp_path) == [held.name]
