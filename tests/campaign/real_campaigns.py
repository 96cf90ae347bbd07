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
from records.campaign import read_campaign
from records.kept import kept_launches

PROJECT = Path(__file__).resolve().parents[2]

#: Campaigns that a test has begun: one whose assertion fails does not wait for them.
BEGUN: list[subprocess.Popen[str]] = []
#: What a second campaign is told, on a machine where others measure too.
BUSY = "another campaign is measuring"
#: What one is told that is resumed when all is done, and one whose ReFrame got nowhere.
IS_WHOLE = "is finished; there is nothing left to resume"
IN_VAIN = "times without measuring anything"

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


def whom_to_kill(name: str, path: Path | None, drawn: random.Random) -> list[int]:
    """Return what a kill hits: a campaign's process, its ReFrame, or all that works for it."""
    works = working_for(path) if path else []
    reframes = [int(pid) for pid, words in works if "reframe_checks.bin.guards" in words]
    which = drawn.choice(["campaign", "reframe", "all"])
    if which == "reframe" and reframes:
        return reframes
    return driving(name) + ([int(pid) for pid, _ in works] if which == "all" else [])


def measured_with_kills(
    begin_as: Begin, site: str, name: str, kills: int, longest_s: float, seed: int
) -> list[Path]:
    """Measure campaigns that are killed so often, at random instants, and gone on with.

    Each is begun and resumed by `begin_as`, which gets its options; between two kills pass up to
    `longest_s` seconds. Where one is whole before all kills are spent, another one is begun.
    Returns the campaigns.
    """
    drawn = random.Random(seed)
    number = done = 0
    while True:
        own = f"{name}-{number}"
        found = campaigns(own, site)
        process = begin_as(*(["--resume", found[0].name] if found else ["--name", own]))
        is_killed = False
        while done < kills and not is_killed:
            with suppress(subprocess.TimeoutExpired):
                process.wait(drawn.uniform(0, longest_s))
                break
            found = campaigns(own, site)
            hit = whom_to_kill(own, found[0] if found else None, drawn)
            is_killed = not set(hit).isdisjoint(driving(own))
            kill(hit)
            done += bool(hit)
        out, _ = process.communicate(timeout=1500)
        if process.returncode == 0 or IS_WHOLE in out:
            if done >= kills:
                return [one for count in range(number + 1)
                        for one in campaigns(f"{name}-{count}", site)]  # fmt: skip
            number += 1
        elif BUSY in out:
            # Of another checkout: that is no fault of this one.
            time.sleep(2.0)
        else:
            # Of three ReFrames that were killed in a row, none may have measured anything.
            assert is_killed or IN_VAIN in out, out


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
    """
    with removed(name, site):
        began = time.monotonic()
        finished(begin_as("--name", f"{name}-whole"))
        took = time.monotonic() - began
        [whole] = campaigns(f"{name}-whole", site)
        for killed in measured_with_kills(begin_as, site, name, kills, took / 4, seed):
            assert counts(killed) == counts(whole), killed.name
