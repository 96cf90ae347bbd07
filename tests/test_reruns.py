"""Tests that are run again and again: how often each of them passed."""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.lanes import MEASURES, PROJECT, cores
from tests.reruns import NOT_BESIDE, busy, command


def test_a_test_that_fails_now_and_then_is_listed_with_its_runs(tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(
        "from pathlib import Path\n"
        "def test_always(): pass\n"
        "def test_every_other_time():\n"
        "    mark = Path(__file__).with_name('mark')\n"
        "    if mark.exists():\n"
        "        mark.unlink()\n"
        "        raise AssertionError('it had the mark')\n"
        "    mark.touch()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "tests.reruns", "--times=3", "--busy=0", "--", str(file)],
        cwd=PROJECT, capture_output=True, text=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and "it had the mark" in done.stdout, done.stdout + done.stderr
    assert [line for line in lines if line.startswith("run ")] == [
        "run 1 of 3: 2 tests, 0 failed", "run 2 of 3: 2 tests, 1 failed",
        "run 3 of 3: 2 tests, 0 failed",
    ]  # fmt: skip
    first, second, last = lines[-3:]
    assert first.startswith("2 passed, 1 failed, ") and first.endswith("::test_every_other_time")
    assert second.startswith("3 passed, 0 failed, ") and second.endswith("::test_always")
    assert last.startswith("3 runs beside 0 busy process(es) a core, ")


def test_all_that_measures_is_run_but_for_what_says_why_not() -> None:
    words = command([], Path("record.xml"))
    files = [word for word in words if word.startswith("tests/")]
    assert set(MEASURES.files()) == {*files, *NOT_BESIDE} and not set(files) & set(NOT_BESIDE)
    assert command(["tests/test_one.py"], Path("record.xml"))[-1] == "tests/test_one.py"


def test_processes_compute_meanwhile_and_none_is_left() -> None:
    def states(session: int) -> list[str]:
        said = subprocess.run(["ps", "-o", "stat=", "-s", str(session)], capture_output=True)
        return [state for state in said.stdout.decode().split() if not state.startswith("Z")]

    with busy(2 * cores()) as session:
        while len(states(session)) < 2 * cores():
            time.sleep(0.01)
        assert session != os.getsid(0)
    while states(session):
        time.sleep(0.01)
