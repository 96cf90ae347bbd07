"""Every test is run in one lane, and what has failed in any of them is in the last lines."""

import argparse
import asyncio
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import lanes
from tests.lanes import CLUSTER, FAST, LANES, PROJECT, Done, Lane, Run, Taken, outcomes, summary


def test_every_test_is_in_one_lane() -> None:
    kinds = ("real", "serial", "measures", "cluster", "browser")
    for marked in itertools.product((False, True), repeat=len(kinds)):
        names = dict(zip(kinds, marked, strict=True))
        # What runs by itself is real, or needs the cluster.
        if (names["serial"] or names["measures"]) and not (names["real"] or names["cluster"]):
            continue
        found = [lane.name for lane in LANES if eval(lane.marks, {}, names)]
        assert len(found) == 1, (names, found)
        [lane] = (lane for lane in LANES if lane.name in found)
        assert not lane.marked or any(names[name] for name in lane.marked)


def test_a_lane_s_files_are_those_with_its_markers() -> None:
    assert FAST.files() == []
    assert "tests/cluster/test_link.py" in CLUSTER.files()
    assert "tests/test_lanes.py" not in CLUSTER.files()


def test_outcomes_of_all_lanes_are_one_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert False\n"
        "@pytest.mark.skip\ndef test_left_out(): pass\n"
        "@pytest.fixture\ndef broken(): raise ValueError\n"
        "def test_without_its_fixture(broken): pass\n"
    )
    record = tmp_path / "record.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null",
               f"--rootdir={tmp_path}", f"--junitxml={record}", str(file)]  # fmt: skip
    assert subprocess.run(command, capture_output=True, cwd=tmp_path).returncode == 1
    busy = Done("real.py::test_busy", "real", "passed", 900.0, 1234.5)
    waiting = Done("real.py::test_waiting", "real", "passed", 3600.0, 0.5)
    done = [*outcomes("fast", record, 1), waiting, busy]
    monkeypatch.setattr(lanes, "cores", lambda: 2)
    taken = {"fast": Taken(30.0, 45.0), "real": Taken(3650.2, 5445.6)}
    lines = summary(done, taken, 3660.4)
    assert lines[:5] == [
        "slowest tests, in seconds, and in seconds of processor time:",
        "  3600.0      0.5  real      real.py::test_waiting",
        "   900.0   1234.5  real      real.py::test_busy",
        "minutes of each lane: fast 0.5, real 60.8",
        "minutes of processors: fast 0.8, real 90.8; 75% of 2 processors' time",
    ]
    assert sorted(lines[5:-1]) == [
        "ERROR test_some::test_without_its_fixture", "FAILED test_some::test_bad",
    ]  # fmt: skip
    closing = lines[-1].strip("= ")
    assert closing == "1 failed, 3 passed, 1 skipped, 1 error in 3660.40s (1:01:00)"


BUSY_TESTS = r"""
import subprocess, sys, time
WAITS = "import time\nwhile time.process_time() < {}: pass"
def spend(seconds): subprocess.run([sys.executable, "-c", WAITS.format(seconds)], check=True)
def test_idle(): time.sleep(0.5)
def test_busy(): spend(0.5)
class Test:
    def setup_method(self): spend(0.5)
    def test_for_which_something_is_made(self): pass
"""


@pytest.mark.parametrize("how", [[], ["-n2"]], ids=["by itself", "by workers"])
def test_a_test_s_time_of_the_processors_is_in_its_record(tmp_path: Path, how: list[str]) -> None:
    record, file = tmp_path / "record.xml", tmp_path / "test_some.py"
    file.write_text(BUSY_TESTS)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest",
         "-c", "/dev/null", f"--rootdir={tmp_path}", f"--junitxml={record}", *how, str(file)],
        cwd=PROJECT, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    found = {one.name.rpartition("::")[2]: one.busy for one in outcomes("fast", record, 0)}
    assert found.keys() == {"test_idle", "test_busy", "test_for_which_something_is_made"}
    assert (
        found["test_idle"]
        < 0.5
        <= min(found["test_busy"], found["test_for_which_something_is_made"])
    )


def test_a_lane_that_was_killed_is_an_error(tmp_path: Path) -> None:
    record = tmp_path / "record.xml"
    [killed] = outcomes("real", record, -9)
    record.write_text('<testsuite><testcase classname="a" name="b" time="1"/></testsuite>')
    assert [one.outcome for one in outcomes("real", record, 3)] == ["passed", "errors"]
    assert [one.outcome for one in outcomes("real", record, 0)] == ["passed"]
    lines = summary([killed], {"real": Taken(5.0, 5.0)}, 5.0)
    assert lines[2] == "ERROR the lane ended with exit code -9"
    assert lines[-1].strip("= ") == "0 passed, 1 error in 5.00s (0:00:05)"


@dataclass(frozen=True)
class Scripted(Lane):
    """A lane that is a shell script, in a folder that all lanes have."""

    script: str = ""

    def command(self, options: argparse.Namespace, record: Path, folder: Path) -> list[str]:
        """Return what runs it."""
        script = f"folder='{folder}'; cd '{record.parent}'; {self.script}"
        return [sys.executable, "-m", "tests.processes", "sh", "-c", script]


@pytest.fixture(autouse=True)
def own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the folders that lanes make for their tests in the folder of this one."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def scripted(name: str, script: str, niceness: int = 0) -> Scripted:
    return Scripted(name, "", "", niceness, script=script)


def test_a_lane_s_time_of_the_processors_is_that_of_all_it_starts(tmp_path: Path) -> None:
    # Busy for a while that it reads off its own clock, in an orphan that has left its session.
    busy = f"{sys.executable} -c 'import time\nwhile time.process_time() < 1: pass'"
    script = f"setsid sh -c '{busy.replace(chr(39), chr(34))}; touch over' & {await_file('over')}"
    run = Run(argparse.Namespace(), tmp_path, {**os.environ})
    asyncio.run(run.stage([[scripted("busy", script)]]))
    assert run.codes == {"busy": 0} and run.taken["busy"].busy >= 1


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="Linux has no autogroups")
def test_a_lane_that_stands_back_does_so_as_a_session(tmp_path: Path) -> None:
    look = "cat /proc/self/autogroup >{0}"
    # Its niceness is told to Linux before the other one begins.
    rows = [
        [scripted("nice", f"{await_file('beside')}; {look.format('nice')}", niceness=5)],
        [scripted("beside", look.format("beside"))],
    ]
    asyncio.run(Run(argparse.Namespace(), tmp_path, {**os.environ}).stage(rows))
    nice, beside = ((tmp_path / name).read_text().split() for name in ("nice", "beside"))
    assert nice[1:] == ["nice", "5"] and beside[0] != nice[0]


def test_what_a_lane_s_tests_have_written_goes_unless_one_has_failed(tmp_path: Path) -> None:
    writes = 'mkdir -p "$folder/of a test/deep"; touch "$folder/of a test/file"; ls -d "$folder"'

    def folders_after(*codes: int) -> set[str]:
        lanes = [scripted(f"lane{k}", f"{writes}; exit {code}") for k, code in enumerate(codes)]
        run = Run(argparse.Namespace(), tmp_path, {**os.environ})
        asyncio.run(run.stage([lanes]))
        assert run.remove_folders().wait() == 0
        links = [path for path in tmp_path.iterdir() if path.is_symlink()]
        assert all((path / "of a test" / "file").exists() for path in links)
        assert {path.readlink() for path in links} == set(tmp_path.glob("wyeast-*"))
        return {path.name.partition(".")[0] for path in links}

    assert folders_after(0, 1, 5) == {"lane1"}
    # A lane's folder is there until the lane has run again.
    assert folders_after(0) == {"lane1"}
    assert folders_after(1, 1) == {"lane0", "lane1"}
    assert len(list(tmp_path.glob("wyeast-*"))) == 2
    assert folders_after(0, 0) == set()


def await_file(name: str) -> str:
    return f"until [ -e {name} ]; do sleep 0.05; done"


def test_rows_are_beside_each_other_and_each_ends_what_it_has_left(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Each leaves a process; that of the other row stays until its own lane ends.
    left = "setsid sh -c 'echo $$ >{0}.left; exec sleep 600' & " + await_file("{0}.left")
    front = f"{left.format('front')}; touch front; {await_file('beside')}; echo front said"
    then = f"touch then; {await_file('alive')}; exit 3"
    beside = (
        f"{left.format('beside')}; echo beside said; touch beside; {await_file('then')}; "
        "kill -0 $(cat beside.left) && ! kill -0 $(cat front.left) && touch alive"
    )
    rows = [[scripted("front", front), scripted("then", then)], [scripted("beside", beside)]]
    run = Run(argparse.Namespace(), tmp_path, {**os.environ})
    asyncio.run(run.stage(rows))
    assert (
        run.codes == {"front": 0, "then": 3, "beside": 0} and run.taken.keys() == run.codes.keys()
    )
    assert {(one.lane, one.outcome) for one in run.done} == {("then", "errors")}
    assert not Path(f"/proc/{(tmp_path / 'beside.left').read_text().strip()}").exists()
    said = capfd.readouterr().out
    words = ("front said", "lane then:", "lane beside:\n", "beside said", "sleep")
    places = [said.index(word) for word in words[:-1]] + [said.rindex("sleep")]
    assert places == sorted(places), said


def test_builds_are_kept_that_are_sound_and_by_the_same_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, archives = tmp_path / "benchmarks" / "one.c", tmp_path / "containers" / "sources.lock"
    for path in (source, archives):
        path.parent.mkdir()
        path.write_text("one")
    monkeypatch.setattr(lanes, "PROJECT", tmp_path)
    own = lanes.builds(tmp_path / "kept")
    for name in ("whole", "broken"):
        (own / name).mkdir()
    (own / "whole" / lanes.SOUND).touch()
    (own / "whole.lock").touch()
    assert lanes.builds(tmp_path / "kept") == own
    assert {path.name for path in own.iterdir()} == {"whole", "whole.lock"}
    # Which objects are of that is known of each.
    source.write_text("another")
    assert lanes.builds(tmp_path / "kept") == own
    archives.write_text("another")
    other = lanes.builds(tmp_path / "kept")
    assert other != own and list((tmp_path / "kept").iterdir()) == [other]


#: Runs lanes until it is interrupted.
INTERRUPTED = """
import argparse, asyncio, os, sys
from pathlib import Path
from tests.lanes import Run
from tests.test_lanes import await_file, scripted
lane = "trap 'sleep 0.3; echo {0} >>ended; exit' INT; touch {0}; " + await_file("never")
rows = [[scripted("front", lane.format("front"), niceness=5)],
        [scripted("beside", lane.format("beside"))]]
asyncio.run(Run(argparse.Namespace(), Path(sys.argv[1]), {**os.environ}).stage(rows))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_the_run_ends_all_lanes_first(number: signal.Signals, tmp_path: Path) -> None:
    """Also where it was started by a shell in the background, which has it ignore interrupts."""
    ignores = [] if number == signal.SIGINT else ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]
    process = subprocess.Popen(
        [*ignores, sys.executable, "-c", INTERRUPTED, tmp_path],
        cwd=PROJECT, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while not all((tmp_path / name).exists() for name in ("front", "beside")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=300)
    assert process.returncode in (-signal.SIGINT, 1)
    assert "KeyboardInterrupt" in said or "CancelledError" in said
    assert sorted((tmp_path / "ended").read_text().split()) == ["beside", "front"]


def test_lanes_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, tmp_path], cwd=PROJECT)
    while not all((tmp_path / name).exists() for name in ("front", "beside")):
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    ended, deadline = tmp_path / "ended", time.monotonic() + 300
    while not ended.exists() or len(ended.read_text().split()) < 2:
        assert time.monotonic() < deadline, "a lane goes on alone"
        time.sleep(0.05)
