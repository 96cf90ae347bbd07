"""What comes from outside while a launch runs: only what is certain, and never the launch's own."""

import subprocess
import sys
from pathlib import Path

import pytest

from records.disturbance import (
    COMMAND,
    Disturbance,
    disturbance,
    look_of,
    stops_noted,
    stops_of,
    why_again,
)

#: Ends when it has used so much of a processor, and not before.
BUSY = "import time\nwhile time.process_time() < {}: pass"


def stat(
    pid: int, parent: int, own: int, waited_for: int = 0, *, name: str = "x", flags: int = 0,
    started: int = 5,
) -> str:  # fmt: skip
    """Return a line of /proc/PID/stat."""
    fields = [*"S", parent, pid, pid, 0, -1, flags, 0, 0, 0, 0, own, 0, waited_for, 0, 20, 0, 1, 0,
              started, 0]  # fmt: skip
    return f"{pid} ({name}) {' '.join(map(str, fields))}"


def look(*processes: str, uptime: float = 100.0, carriers: int = 1) -> list[str]:
    """Return what COMMAND prints in a script of process 30, which process 20 has started."""
    links = [f"/sys/class/net/{link}/carrier_changes:{carriers}" for link in ("eth0", "veth9")]
    ours = [stat(1, 0, 0), stat(20, 1, 0)]
    return ["30", f"{uptime} 0.0", *ours, *processes, *links]


def seen(before: list[str], after: list[str], is_local: bool = True) -> Disturbance:
    """Return what came from outside in ten seconds."""
    found = disturbance(look(*before), look(*after, uptime=110.0), is_local)
    assert found is not None
    return found


def test_others_are_named_and_what_is_the_launchs_is_not_theirs() -> None:
    found = seen(
        [
            stat(30, 20, 10), stat(40, 1, 1000, name="make (all)"), stat(41, 1, 5, name="idle"),
            stat(2, 0, 0), stat(3, 2, 10, flags=0x00200000), stat(50, 1, 7, name="old"),
        ],
        [
            # The script has waited for its ranks, and those that started it for others of it.
            stat(20, 1, 200, 300), stat(30, 20, 500, 900), stat(1, 0, 90, 800),
            stat(40, 1, 1150, name="make (all)"), stat(41, 1, 5, name="idle"),
            stat(3, 2, 900, flags=0x00200000), stat(60, 1, 700, name="new"),
            # Its number was given to another process.
            stat(50, 1, 400, started=9, name="young"),
        ],
    )  # fmt: skip
    assert found.others == {"make (all)": 1.5} and found.others_s == 1.5
    assert found.share == pytest.approx(0.15) and found.is_shared


def test_of_children_that_have_ended_only_what_they_used_meanwhile_counts() -> None:
    before = [stat(30, 20, 0), stat(40, 1, 0, name="make"), stat(41, 40, 500, 20, name="cc"),
              stat(42, 41, 100, name="as")]  # fmt: skip
    after = [stat(30, 20, 0), stat(40, 1, 0, 900, name="make")]
    assert seen(before, after).others == {"make": 2.8}
    # Under a scheduler its daemons wait for ranks, too.
    assert seen(before, after, is_local=False).others == {}


def test_a_little_of_others_marks_nothing() -> None:
    before, after = [stat(40, 1, 0, name="cron")], [stat(40, 1, 90, name="cron")]
    assert not seen(before, after).is_shared
    short = disturbance(look(*before), look(stat(40, 1, 4, name="cron"), uptime=100.1), True)
    assert short is not None and short.share > 0.1 and not short.is_shared


def test_carriers_that_change_are_counted_of_the_nodes_own_links() -> None:
    found = disturbance(look(), look(uptime=101.0, carriers=3), True)
    assert found is not None and found.carriers == 2
    of_all = disturbance(look(), look(uptime=101.0), True, stopped=3, carriers=4)
    assert of_all is not None and of_all.from_outside() == {"stopped": 3, "carriers": 4}


@pytest.mark.parametrize("cut", [[], ["30"], ["30", ""], ["x", "1.0 2"], ["30", "99.0 1"]])
def test_what_the_node_does_not_tell_is_not_made_up(cut: list[str]) -> None:
    assert disturbance(look(), cut, True) is None


@pytest.mark.parametrize(
    "line", ["", "1 (x", "1 (x) S 1", "(x) " + "S " * 30, "7 (a) S" + " x" * 30]
)
def test_a_line_that_is_not_a_process_is_ignored(line: str) -> None:
    found = look_of([*look(), line])
    assert found is not None and set(found.processes) == {1, 20}


def test_what_is_repeated_is_beyond_what_was_declared() -> None:
    assert why_again({"stopped": 1}, {"stopped": 0}) == (
        "one of its processes was stopped and continued"
    )
    assert why_again({"stopped": 1}, {"stopped": 1}) is None
    assert why_again({"carriers": 5}, {}) is None, "older campaigns declared nothing"


def test_a_machine_tells_its_own_work_from_others(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", BUSY.format(10**6)])
    try:
        before, after = tmp_path / "before", tmp_path / "after"
        # Until the other one has certainly used its share, whatever else runs here.
        used = (
            f"import os, pathlib, time\nstat = pathlib.Path('/proc/{other.pid}/stat')\n"
            "ticks = lambda: int(stat.read_text().rpartition(')')[2].split()[11])\n"
            "began = ticks()\nwhile ticks() < began + 40: time.sleep(0.02)"
        )
        script = f'{COMMAND} >"{before}"\n"{sys.executable}" -c "{used}"\n{COMMAND} >"{after}"\n'
        subprocess.run(["bash", "-c", script], check=True)
    finally:
        other.kill()
        other.wait()
    looks = [path.read_text().splitlines() for path in (before, after)]
    for lines in looks:
        found = look_of(lines)
        # Of all that runs here, the other one alone, which has the name that ours has, too.
        assert found is not None and other.pid in found.processes
    own = [*looks[0][:2], *(line for line in looks[0][2:] if line.startswith(f"{other.pid} "))]
    told = disturbance(own, looks[1], True)
    assert told is not None and 0.4 <= told.others_s <= told.looked_s + 0.1
    whole = disturbance(looks[0], looks[1], True)
    assert whole is not None and whole.others_s >= told.others_s


def test_stops_are_counted_by_their_lines(tmp_path: Path) -> None:
    assert stops_noted(tmp_path / "none") == 0
    (tmp_path / "stops").write_text("\n\n")
    assert stops_noted(tmp_path / "stops") == 2


def test_what_nobody_counted_is_not_never() -> None:
    assert stops_of(0, 0) == 0 and stops_of(1, 2, 0) == 3
    assert stops_of(0, None) is None and stops_of(0, 0, None) is None
    # What was seen was there, whoever else did not look.
    assert stops_of(1, None) == 1 and stops_of(0, 2, None) == 2
    found = disturbance(look(), look(uptime=101.0), True)
    assert found is not None and found.stopped is None and not found.from_outside()
