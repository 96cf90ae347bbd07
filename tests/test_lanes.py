"""Every test is run in one lane, and what has failed in any of them is in the last lines."""

import itertools
import subprocess
import sys
from pathlib import Path

from tests.lanes import LANES, PROJECT, Done, outcomes, summary


def test_every_test_is_in_one_lane() -> None:
    kinds = ("real", "measures", "cluster", "browser")
    for marked in itertools.product((False, True), repeat=len(kinds)):
        names = dict(zip(kinds, marked, strict=True))
        # What measures is real.
        if names["measures"] and not names["real"]:
            continue
        found = [lane.name for lane in LANES if eval(lane.marks, {}, names)]
        assert len(found) == 1, (names, found)


def test_outcomes_of_all_lanes_are_one_summary(tmp_path: Path) -> None:
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
    done = [*outcomes("fast", record, 1), Done("real.py::test_slow", "real", "passed", 3600.0)]
    lines = summary(done, {"fast": 30.0, "real": 3650.2})
    assert lines[:3] == [
        "slowest tests:",
        "  3600.0 s  real      real.py::test_slow",
        "minutes of each lane: fast 0.5, real 60.8",
    ]
    assert sorted(lines[3:-1]) == [
        "ERROR test_some::test_without_its_fixture", "FAILED test_some::test_bad",
    ]  # fmt: skip
    closing = lines[-1].strip("= ")
    assert closing == "1 failed, 2 passed, 1 skipped, 1 error in 3680.20s (1:01:20)"


def test_a_lane_that_was_killed_is_an_error(tmp_path: Path) -> None:
    record = tmp_path / "record.xml"
    [killed] = outcomes("real", record, -9)
    record.write_text('<testsuite><testcase classname="a" name="b" time="1"/></testsuite>')
    assert [one.outcome for one in outcomes("real", record, 3)] == ["passed", "errors"]
    assert [one.outcome for one in outcomes("real", record, 0)] == ["passed"]
    lines = summary([killed], {"real": 5.0})
    assert lines[1] == "ERROR the lane ended with exit code -9"
    assert lines[-1].strip("= ") == "0 passed, 1 error in 5.00s (0:00:05)"


#: An orphan becomes `sleep` in its own time.
LEFT = """
import subprocess, time
from pathlib import Path
from tests import lanes

def leave():
    subprocess.run(["setsid", "sh", "-c", "setsid sleep 600 & exec sleep 0"], check=True)
    while {Path(f"/proc/{child}/comm").read_text() for child in lanes.children()} != {"sleep\\n"}:
        time.sleep(0.05)

lanes.become_subreaper()
assert lanes.end_what_is_left() == []
leave()
assert lanes.end_what_is_left() == ["sleep"]
assert lanes.end_what_is_left() == []
stays = subprocess.Popen(["sleep", "600"])
leave()
assert lanes.end_what_is_left({stays.pid}) == ["sleep"] and stays.poll() is None
kill = lanes.os.kill
def refuse(*_): raise PermissionError
lanes.os.kill = refuse
said = f"sleep (process {stays.pid} may not be ended, and stays)"
assert lanes.end_what_is_left() == [said] and stays.poll() is None
lanes.os.kill = kill
assert lanes.end_what_is_left() == ["sleep"]
"""


def test_what_a_lane_has_left_is_ended() -> None:
    subprocess.run([sys.executable, "-c", LEFT], cwd=PROJECT, check=True, timeout=300)


#: Leaves an orphan that ends, and itself ends when nothing of that is to be seen any more.
ORPHAN = """
file=$(mktemp); (setsid sh -c 'echo $$ >"$0"' "$file" &)
until [ -s "$file" ] && ! [ -e "/proc/$(cat "$file")" ]; do sleep 0.1; done
rm "$file"; exit 3
"""


def test_what_ends_beside_a_lane_is_not_seen_for_ever() -> None:
    code = (
        "import os, sys; from tests import lanes\n"
        "lanes.become_subreaper()\n"
        "assert lanes.run(['timeout', '300', 'sh', '-c', sys.argv[1]], dict(os.environ)) == 3\n"
    )
    subprocess.run([sys.executable, "-c", code, ORPHAN], cwd=PROJECT, check=True)


#: A launch in the foreground of a shell, which waits for it: a test that failed leaves such.
TREE = """
import subprocess
from tests import lanes
stays = subprocess.Popen(["sleep", "600"])
left = subprocess.Popen(["sh", "-c", "sleep 600; exit 1"])
while not lanes.children(left.pid):
    pass
[below] = lanes.children(left.pid)
lanes.end_with_descendants([left.pid])
assert stays.poll() is None and lanes.children() == {stays.pid}
# Whoever takes in orphans waits for it; a signal comes in its own time.
ended = False
while not ended:
    try:
        ended = open(f"/proc/{below}/stat").read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        ended = True
stays.kill()
stays.wait()
"""


def test_what_a_test_has_left_ends_with_what_it_has_started() -> None:
    subprocess.run([sys.executable, "-c", TREE], cwd=PROJECT, check=True)
