"""Tests' files in memory: where there is room, until whoever made the folder has gone."""

import argparse
import subprocess
import sys
from pathlib import Path

from tests import memory
from tests.lanes import FAST, REAL


def test_a_folder_in_memory_goes_with_what_is_in_it(tmp_path: Path) -> None:
    with memory.folder(tmp_path, 0) as own:
        assert own
        (own / "file").write_text("1")
        # Another run's, at the same time.
        with memory.folder(tmp_path, 0) as other:
            assert other and other != own
        assert (own / "file").exists()
    assert not list(tmp_path.iterdir())


def test_what_a_killed_run_has_left_goes_with_the_next(tmp_path: Path) -> None:
    killed = (
        "import os, pathlib, sys; from tests import memory\n"
        "with memory.folder(pathlib.Path(sys.argv[1]), 0): os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", killed, tmp_path]).returncode == 9
    assert len(list(tmp_path.iterdir())) == 1
    with memory.folder(tmp_path, 0) as own:
        assert list(tmp_path.iterdir()) == [own]


def test_without_room_or_a_folder_there_is_none(tmp_path: Path) -> None:
    with memory.folder(tmp_path / "missing") as own:
        assert own is None
    with memory.folder(tmp_path, memory.room(tmp_path) + 2**40) as own:
        assert own is None
    assert not list(tmp_path.iterdir())


def test_only_tests_of_no_container_have_it(tmp_path: Path) -> None:
    options = argparse.Namespace(long=False, tests=[], memory=tmp_path)
    word = f"--basetemp={tmp_path}/fast"
    assert word in FAST.command(options, tmp_path / "record")
    assert not any("basetemp" in one for one in REAL.command(options, tmp_path / "record"))
    options.memory = None
    assert not any("basetemp" in one for one in FAST.command(options, tmp_path / "record"))
