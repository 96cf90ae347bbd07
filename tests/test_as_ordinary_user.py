"""The attacks that an ordinary user meets too, made on one where root runs the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from records import acting_user
from tests.other_user import OTHER, in_child, needs_root, open_folder

__all__ = ["open_folder"]
PROJECT = Path(__file__).resolve().parents[1]
ATTACKS = (
    "tests/containers/test_locking.py", "tests/records/test_acting_user.py",
    "tests/containers/test_guarded.py", "tests/containers/test_admission.py",
    "tests/containers/test_store.py", "tests/records/test_foreign_output.py",
    "tests/reframe_checks/test_guest.py", "tests/records/test_environment.py",
    "tests/records/test_bombs.py",
)  # fmt: skip


@needs_root
def test_an_ordinary_user_withstands_them_too(open_folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
               f"--basetemp={open_folder}/own/pytest", *ATTACKS]  # fmt: skip
    acting_user.give(open_folder / "own", OTHER, OTHER, 0o755)

    def work() -> list[object]:
        acting_user.become(OTHER, PROJECT)
        done = subprocess.run(
            command, cwd=PROJECT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        return [done.returncode, done.stdout + done.stderr]

    code, said = in_child(work)
    assert code == pytest.ExitCode.OK and " passed" in said, said
