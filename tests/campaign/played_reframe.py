"""A ReFrame that is played: it takes the steps of a session, and does what a test has told it.

Its steps are those of reframe_checks.bin.session; what it measures is made up. A test leaves
`plays.json` in the root: what each start of it does, by number; without one it measures all. What
it measures of a campaign with a budget has values: one cell's implementations differ, the other's
never do. Each start of it is a process, forked from one that has loaded what the journal needs.
"""

import errno
import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from records.base import CampaignError
from records.budget import BEYOND, is_beyond
from records.events import NotStarted, PlannedLaunch
from records.schedule import Schedule, held
from reframe_checks.bin.telling import OVER, TOLD
from tests.whole_records import launch as whole_launch

#: Of HPL, whose output has the fewest lines.
PRINTED = """WR11C2R4 100 10 1 2 0.01 {rate:.4e}
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= 0.005 ...... PASSED
1 tests completed and passed residual checks,
0 tests completed and failed residual checks,
End of Tests.
"""
NAMES = ("alpha-1.0", "beta-1.0")
#: Of a campaign with a budget: by how much the second implementation is faster, and the noise.
DIFFERENCE = {"Linpack grid=1x2 n=100": (0.5, 0.02), "Linpack grid=1x2 n=200": (0.0, 0.2)}


def planned(number: int, schedule: Schedule) -> list[PlannedLaunch]:
    """Return the launches of a round."""
    if schedule.state.design is None:
        cells = {f"Dgemm n={letter}": letter for letter in "ab"}
    else:
        chosen = schedule.state.cells_of(number)
        cells = {cell: cell[-3:] for cell in DIFFERENCE if chosen is None or cell in chosen}
    return [
        PlannedLaunch(launch=f"round{number:03d}_{letters}_{name}", cell=cell, implementation=name)
        for cell, letters in cells.items()
        for name in NAMES
    ]


def rate_of(cell: str, implementation: str, number: int) -> float:
    """Return what a launch measures, in Gflop/s."""
    if cell not in DIFFERENCE:
        return 1.0
    difference, noise = DIFFERENCE[cell]
    drawn = random.Random(f"{cell} {implementation} {number}").gauss(0, noise)
    return float(2 ** (difference * (implementation == NAMES[1]) + drawn))


#: A launch of which a process was stopped.
STOPPED = {"looked_s": 1.0, "others_s": 0.0, "stopped": 1}


#: As ReFrame's own messages, which are there however it ends.
say = partial(print, flush=True)


def numbers() -> Iterator[int]:
    """Yield the rounds that are to be measured."""
    number = int(os.environ["WYEAST_ROUND"])
    yield number
    if TOLD in os.environ:
        with os.fdopen(int(os.environ[TOLD])) as told:
            while True:
                say(OVER.format(number))
                line = told.readline()
                if not line:
                    return
                number = int(line)
                yield number


def main(root: Path) -> int:
    """Measure what is left of rounds, as far as the play lets it; return the exit code."""
    return max(measure(root, number) for number in numbers())


def measure(root: Path, number: int) -> int:
    """Measure what is left of a round, as far as the play lets it; return the exit code."""
    campaign = Path(os.environ["WYEAST_CAMPAIGN"])
    starts, plays = root / "starts", root / "plays.json"
    count = len(starts.read_text()) if starts.exists() else 0
    starts.write_text("x" * (count + 1))
    told = json.loads(plays.read_text()) if plays.exists() else []
    play = told[count] if count < len(told) else {}
    if "before" in play:
        say("no check could be loaded")
        return 1
    if "killed before it planned" in play:
        os.kill(os.getpid(), signal.SIGKILL)
    with held(campaign) as schedule:
        schedule.settle()
        wanted = planned(number, schedule)
        asked = play.get("asks", [one.implementation for one in wanted])
        schedule.plan(number, [one for one in wanted if one.implementation in asked])
        left = schedule.state.open(number)
        schedule.begin_session(number)
        if not left:
            raise CampaignError("every launch is in the campaign already")
        if "killed at once" in play:
            os.kill(os.getpid(), signal.SIGKILL)
        if said := play.get("stopped by an image"):
            say(f"ERROR: run session stopped: {said}")
            return 1
        for done, one in enumerate(left):
            if play.get("pass over") == one.planned.implementation:
                cause = "it waits for ContainerImage, which failed"
                schedule.add(NotStarted(launch=one.name, why="missing", cause=cause))
                continue
            if play.get("leave out") == one.planned.implementation:
                cause = "the ranks share no memory"
                schedule.add(NotStarted(launch=one.name, why="skipped", cause=cause))
                continue
            if done == play.get("time over after"):
                (root / "over").touch()
                return 1
            if is_beyond(schedule.state, schedule.journal.entries, one.name):
                schedule.add(NotStarted(launch=one.name, why="skipped", cause=BEYOND))
                continue
            schedule.intend(one.name)
            if done == play.get("unanswered after"):
                schedule.lost(one.name, "sbatch timed out")
                return 1
            schedule.submitted(one.name, "played")
            if done == play.get("killed after"):
                os.kill(os.getpid(), signal.SIGKILL)
            if done == play.get("stopped after"):
                say("ERROR: run session stopped: memory error")
                say("Log file(s) saved in 'reframe.log'")
                return 1
            if done == play.get("lost after"):
                schedule.lost(one.name, os.strerror(errno.ENOSPC))
                say(f"[     FAIL ] ( {done + 1}/4) {one.name} /01234567 @local:default+container")
                return 1
            words = one.planned.cell.split()
            record = whole_launch(
                experiment=words[0], parameters=dict(word.split("=") for word in words[1:]),
                launch=one.name, round=number, position=schedule.state.next_position(number),
                implementation=one.planned.implementation, cell=one.planned.cell,
                outcome=play.get("outcome", "sound"),
                sentence="it is made up" if play.get("outcome") else None,
                output_format="hpl",
                disturbance=STOPPED if done == play.get("stopped") else None,
                **({"image_file": None} if "image not noted" in play else {}),
            )  # fmt: skip
            rate = rate_of(one.planned.cell, one.planned.implementation, number)
            (root / "stdout").write_text(PRINTED.format(rate=rate))
            place = schedule.pack(record, {"stdout": root / "stdout"})
            if done == play.get("killed before it tells of"):
                os.kill(os.getpid(), signal.SIGKILL)
            schedule.recorded(record, place)
            if done == play.get("renamed after"):
                campaign.rename(campaign.with_name("elsewhere"))
            if done == play.get("deleted after"):
                shutil.rmtree(campaign)
            word = "      OK" if record.outcome == "sound" else "    FAIL"
            say(f"[ {word} ] ( {done + 1}/4) {one.name} /01234567 @local:default+container")
    if "killed at its end" in play:
        os.kill(os.getpid(), signal.SIGKILL)
    return 1 if "worse than a reference" in play else 0


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
