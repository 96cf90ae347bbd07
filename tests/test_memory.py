"""Tests' files in memory, where there is enough of it."""

import argparse
import os
import subprocess
from pathlib import Path

import pytest

from tests import memory
from tests.lanes import FAST, REAL

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


@needs_root
def test_what_a_command_writes_there_is_in_memory_and_goes_with_it() -> None:
    with memory.folder_in_memory(0) as own:
        assert own
        said = subprocess.run(
            memory.with_memory(own, ["sh", "-c", f"echo 1 >{own}/file; stat -f -c %T {own}"]),
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert said == "tmpfs\n" and not list(own.iterdir())
    assert not own.exists()


def test_without_enough_memory_there_is_no_folder() -> None:
    with memory.folder_in_memory(2**60) as own:
        assert own is None


def test_whoever_may_not_mount_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "with_memory", lambda *_: ["false"])
    with memory.folder_in_memory(0) as own:
        assert own is None


def test_only_tests_of_no_container_have_it(tmp_path: Path) -> None:
    options = argparse.Namespace(long=False, tests=[], memory=tmp_path)
    word = f"--basetemp={tmp_path}/files"
    command = FAST.command(options, tmp_path / "record")
    assert command[:2] == ["unshare", "--mount"] and word in command
    assert word not in REAL.command(options, tmp_path / "record")
    options.memory = None
    assert word not in FAST.command(options, tmp_path / "record")
