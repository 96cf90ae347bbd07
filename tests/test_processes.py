"""What a lane or a test leaves ends with it, and what ends beside it is waited for."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from records.processes import boot_id, named, stat_of
from tests.processes import MARK, end_marked, is_abandoned, mark

PROJECT = Path(__file__).resolve().parents[1]


#: An orphan becomes `sleep` in its own time.
LEFT = """
import subprocess, time
from pathlib import Path
from tests import processes

def leave():
    subprocess.run(["setsid", "sh", "-c", "setsid sleep 600 & exec sleep 0"], check=True)
    comms = {"sleep\\n"}
    while {Path(f"/proc/{one}/comm").read_text() for one in processes.children()} != comms:
        time.sleep(0.05)

processes.become_subreaper()
assert processes.end_what_is_left() == []
leave()
assert processes.end_what_is_left() == ["sleep"]
assert processes.end_what_is_left() == []
stays = subprocess.Popen(["sleep", "600"])
leave()
assert processes.end_what_is_left({stays.pid}) == ["sleep"] and stays.poll() is None
kill = processes.os.kill
def refuse(*_): raise PermissionError
processes.os.kill = refuse
said = f"sleep (process {stays.pid} may not be ended, and stays)"
assert processes.end_what_is_left() == [said] and stays.poll() is None
processes.os.kill = kill
assert processes.end_what_is_left() == ["sleep"]
"""


def test_what_a_lane_has_left_is_ended() -> None:
    subprocess.run([sys.executable, "-c", LEFT], cwd=PROJECT, check=True, timeout=300)


#: Leaves an orphan that ends, and itself ends when nothing of that is to be seen any more.
ORPHAN = """
file=$(mktemp); (setsid sh -c 'echo $$ >"$0"' "$file" &)
until [ -s "$file" ] && ! [ -e "/proc/$(cat "$file")" ]; do sleep 0.1; done
rm "$file"; exit 3
"""


def test_orphans_that_ended_beside_a_lane_do_not_stay_visible() -> None:
    code = (
        "import sys; from tests import processes\n"
        "processes.become_subreaper()\n"
        "assert processes.run(['timeout', '300', 'sh', '-c', sys.argv[1]]) == 3\n"
    )
    subprocess.run([sys.executable, "-c", code, ORPHAN], cwd=PROJECT, check=True)


#: A launch in the foreground of a shell, which waits for it: a test that failed leaves such.
TREE = """
import subprocess
from tests import processes
stays = subprocess.Popen(["sleep", "600"])
left = subprocess.Popen(["sh", "-c", "sleep 600; exit 1"])
while not processes.children(left.pid):
    pass
[below] = processes.children(left.pid)
processes.end_with_descendants([left.pid])
assert stays.poll() is None and processes.children() == {stays.pid}
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


#: Leaves an orphan in a session of its own, what that has started without any variable, and one
#: that was started by it and has left; all end with those that have the mark.
LEAVE = """
import subprocess, sys
from pathlib import Path
subprocess.Popen(["setsid", "sh", "-c",
    "echo $$ >>$0; env -i sh -c 'echo $$ >>$0; exec sleep 600' $0 & "
    "env -i setsid sh -c 'echo $$ >>$0; exec sleep 600' $0 & wait", sys.argv[1]])
while not (path := Path(sys.argv[1])).exists() or path.read_text().count("\\n") < 3:
    pass
"""


def leave(file: Path) -> list[int]:
    """Leave processes as a test does that has killed a campaign; return them."""
    subprocess.run([sys.executable, "-c", LEAVE, file], check=True)
    return [int(line) for line in file.read_text().split()]


def has_ended(pid: int) -> bool:
    try:
        return stat_of(pid)[0] in "ZX"
    except OSError:
        return True


def end(pids: list[int]) -> bool:
    """Return whether processes end soon: one that is killed has no environment a little before."""
    deadline = time.monotonic() + 600
    while not all(map(has_ended, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return all(map(has_ended, pids))


def test_what_a_test_has_orphaned_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, os.environ[MARK])
    stays = leave_marked(tmp_path / "stays", "another")
    goes = leave_marked(tmp_path / "goes", "one")
    names = end_marked(os.environ[MARK].__eq__)
    assert len(names) == 3 and end(goes) and not any(map(has_ended, stays))
    assert end_marked(lambda mark: mark.endswith("another")) and end(stays)


def leave_marked(file: Path, test: str) -> list[int]:
    mark(test)
    return leave(file)


def test_what_killed_tests_of_this_checkout_have_left_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not what is of tests that run, or of another checkout's."""
    assert not is_abandoned(f"{PROJECT}|{named(os.getpid())}|one")
    assert not is_abandoned(f"/other|{os.getpid()}:1:{boot_id()}|one")
    gone = f"{PROJECT}|{os.getpid()}:1:{boot_id()}|one"
    assert is_abandoned(gone) and is_abandoned(f"{PROJECT}|{os.getpid()}:1:0|one")
    monkeypatch.setenv(MARK, gone)
    left = leave(tmp_path / "left")
    assert end_marked(gone.__eq__) and end(left)
