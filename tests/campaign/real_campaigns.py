"""Real campaigns that tests begin, follow, kill and go on with, on any site of this machine."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars

from analysis.comparison.compare import compare
from records import schedule
from records.campaign import read_campaign
from records.events import Event, Lost
from records.journal import read_journal
from records.kept import kept_launches
from records.manifest import read_manifest

PROJECT = Path(__file__).resolve().parents[2]

#: Campaigns that a test has begun: one whose assertion fails does not wait for them.
BEGUN: list[subprocess.Popen[str]] = []
#: What a campaign is told beside another checkout's, or beside a build: that is nobody's fault.
BUSY = "two at once would disturb each other; wait until it has ended"
BUSY_POLL_S = 2.0
#: What one says that has stopped: kills of ReFrame alone may follow each other so closely that
#: nothing, or nothing of a launch, is measured.
CAN_BE_RESUMED = "make run RESUME="
IN_A_LAUNCH = "in a launch"

Begin = Callable[..., "subprocess.Popen[str]"]


def begin(command: str, **variables: str) -> subprocess.Popen[str]:
    """Start a command of the activated shell, in a process group of its own."""
    process = subprocess.Popen(
        ["bash", "-c", f". ./activate && exec {command}"],
        cwd=PROJECT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, start_new_session=True, env={**os.environ, **variables},
    )  # fmt: skip
    BEGUN.append(process)
    return process


def start(*options: str, name: str) -> subprocess.Popen[str]:
    """Start a campaign as `make run` does."""
    return begin(f"python -m campaign {' '.join(options)}", NAME=name)


def campaigns(name: str, site: str = "local") -> list[Path]:
    """Return the folders of the campaigns of a name."""
    return sorted((PROJECT / "runs").glob(f"*-{site}-{name}"))


def begun(name: str, site: str) -> Path | None:
    """Return the campaign of a name, if it was begun: a folder that a kill has left may be none."""
    found = [path for path in campaigns(name, site) if (path / "manifest.json").is_file()]
    return found[0] if found else None


def launches_in(path: Path) -> int:
    """Return how many launches a campaign has, also when its folder has just been made."""
    return len(kept_launches(path))


def working_for(campaign: Path) -> list[tuple[str, str]]:
    """Return the numbers and command lines of processes that work for a campaign."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"WYEAST_CAMPAIGN={campaign}".encode() in environment.read_bytes():
                command = (environment.parent / "cmdline").read_bytes()
                found.append((environment.parent.name, command.replace(b"\0", b" ").decode()))
        except OSError:
            continue  # it ended while we looked
    return found


def driving(name: str) -> list[int]:
    """Return the numbers of the processes that measure campaigns of a name, not what they start."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = command.read_bytes().decode(errors="replace").split("\0")
            if words[1:3] == ["-m", "campaign"] and any(name in word for word in words):
                found.append(int(command.parent.name))
    return found


def kill(pids: list[int]) -> None:
    """Kill processes that may have ended meanwhile."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def removed(name: str, site: str = "local") -> Iterator[None]:
    """Leave nothing of the campaigns whose names begin like this."""
    try:
        yield
    finally:
        while BEGUN:
            process = BEGUN.pop()
            if process.poll() is None:
                process.kill()
                process.wait()
        for path in campaigns(f"{name}*", site):
            # What works for it ends with it, or is ended.
            kill([int(pid) for pid, _ in working_for(path)])
            shutil.rmtree(path)


def finished(process: subprocess.Popen[str]) -> str:
    """Wait for a campaign that must end well; return what it printed."""
    out, _ = process.communicate(timeout=1500)
    assert process.returncode == 0, out
    return out


def is_whole(path: Path | None) -> bool:
    """Return whether a campaign is measured and reported.

    Its exit code does not tell: on a busy machine something may be worse than its reference.
    """
    state = schedule.state_of(path) if path else None
    return bool(path and state and state.is_reported and read_manifest(path).finished_utc)


def seconds_unhindered(begin_as: Begin, site: str, name: str) -> float:
    """Return how long a campaign takes that nobody kills, once no other one keeps it waiting."""
    while True:
        began = time.monotonic()
        out, _ = begin_as("--name", name).communicate(timeout=1500)
        if is_whole(begun(name, site)):
            return time.monotonic() - began
        assert BUSY in out, out
        time.sleep(BUSY_POLL_S)


def whom_to_kill(name: str, path: Path | None, drawn: random.Random) -> list[int]:
    """Return what a kill hits: a campaign's process, its ReFrame, or all that works for it."""
    works = working_for(path) if path else []
    reframes = [int(pid) for pid, words in works if "reframe_checks.bin.guards" in words]
    which = drawn.choice(["campaign", "reframe", "all"])
    if which == "reframe" and reframes:
        return reframes
    return driving(name) + ([int(pid) for pid, _ in works] if which == "all" else [])


def moment_of(path: Path | None) -> str:
    """Return in words what a campaign is doing, by its journal."""
    state = schedule.state_of(path) if path else None
    if state is None or not state.rounds:
        return "before a round was planned"
    if any(one.in_flight for one in state.of(None)):
        return IN_A_LAUNCH
    return "between launches" if state.left() else "after the last launch of a round"


def measured_with_kills(
    begin_as: Begin, site: str, name: str, kills: int, longest_s: float, seed: int
) -> tuple[list[Path], Counter[str]]:
    """Measure campaigns that are killed so often, at random instants, and gone on with.

    Each is begun and resumed by `begin_as`, which gets its options; between two kills pass up to
    `longest_s` seconds. Where one is whole before all kills are spent, another one is begun.
    Returns the campaigns, and how many kills came at which moments.
    """
    drawn = random.Random(seed)
    moments: Counter[str] = Counter()
    number = 0
    while True:
        own = f"{name}-{number}"
        path = begun(own, site)
        process = begin_as(*(["--resume", path.name] if path else ["--name", own]))
        is_killed = False
        while moments.total() < kills and not is_killed:
            with suppress(subprocess.TimeoutExpired):
                process.wait(drawn.uniform(0, longest_s))
                break
            path = begun(own, site)
            moment, hit = moment_of(path), whom_to_kill(own, path, drawn)
            is_killed = not set(hit).isdisjoint(driving(own))
            kill(hit)
            moments.update([moment] if hit else [])
        out, _ = process.communicate(timeout=1500)
        if is_whole(begun(own, site)):
            if moments.total() >= kills:
                whole = [begun(f"{name}-{count}", site) for count in range(number + 1)]
                return [one for one in whole if one], moments
            number += 1
        elif BUSY in out:
            time.sleep(BUSY_POLL_S)
        else:
            assert is_killed or CAN_BE_RESUMED in out, out


def events_of(campaign: Path) -> list[Event]:
    """Return what happened in a campaign, by its journal."""
    content = read_journal(campaign)
    assert content is not None
    return content.events


def counts(campaign: Path) -> dict[str, dict[tuple[str, ...], int]]:
    """Return how many launches the tables of a campaign and its comparison have of each cell."""
    read = read_campaign(campaign)
    assert not read.problems, [f"{one.where}: {one.sentence}" for one in read.problems]
    assert read.manifest.finished_utc and (campaign / "report.html").is_file()
    launches = polars.read_parquet(campaign / "tables" / "launches.parquet")
    keys = ("round", "cell", "implementation", "outcome")
    return {
        "launches": Counter(tuple(map(str, row)) for row in launches.select(keys).iter_rows()),
        "comparison": {
            (cell.name, name): len(values)
            for cell in compare(read).cells for name, values in cell.values.items()
        },
    }  # fmt: skip


def assert_kills_change_no_count(
    begin_as: Begin, site: str, name: str, kills: int, seed: int
) -> None:
    """Measure one campaign unhindered and others that are killed: all have the same counts.

    As `measured_with_kills`; between two kills pass up to a quarter of what the first one takes.
    What came of the kills is printed.
    """
    with removed(name, site):
        took = seconds_unhindered(begin_as, site, f"{name}-whole")
        [whole] = campaigns(f"{name}-whole", site)
        killed, moments = measured_with_kills(begin_as, site, name, kills, took / 4, seed)
        lost = Counter(isinstance(event, Lost) for path in killed for event in events_of(path))
        print(f"{moments.total()} kills in {len(killed)} campaigns of {took:.0f} s: "
              f"{dict(moments)}; {lost[True]} attempts lost")  # fmt: skip
        assert moments[IN_A_LAUNCH] and lost[True], "no kill came in a launch"
        for path in killed:
            assert counts(path) == counts(whole), path.name
