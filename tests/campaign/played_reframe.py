"""A ReFrame that is played: it takes the steps of a session, and does what a test has told it.

Its steps are those of reframe_checks.bin.session; what it measures is made up. A test leaves
`plays.json` in the root: what each start of it does, by number; without one it measures all.
"""

import errno
import json
import os
import signal
import sys
from pathlib import Path

from records import launch as launches
from records.base import CampaignError
from records.journal import NotStarted, PlannedLaunch
from records.schedule import held
from tests.whole_records import launch as whole_launch

#: Of HPL, whose output has the fewest lines.
PRINTED = """WR11C2R4 100 10 1 2 0.01 1.0e+00
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= 0.005 ...... PASSED
1 tests completed and passed residual checks,
0 tests completed and failed residual checks,
End of Tests.
"""
NAMES = ("alpha-1.0", "beta-1.0")


def planned(number: int) -> list[PlannedLaunch]:
    """Return the launches of a round."""
    return [
        PlannedLaunch(
            launch=f"round{number:03d}_{cell}_{name}", cell=f"Dgemm n={cell}", implementation=name
        )
        for cell in "ab"
        for name in NAMES
    ]


def main(root: Path) -> int:
    """Measure what is left of a round, as far as the play lets it; return the exit code."""
    campaign, number = Path(os.environ["WYEAST_CAMPAIGN"]), int(os.environ["WYEAST_ROUND"])
    starts, plays = root / "starts", root / "plays.json"
    count = len(starts.read_text()) if starts.exists() else 0
    starts.write_text("x" * (count + 1))
    told = json.loads(plays.read_text()) if plays.exists() else []
    play = told[count] if count < len(told) else {}
    if "before" in play:
        print("no check could be loaded")
        return 1
    if "killed before it planned" in play:
        os.kill(os.getpid(), signal.SIGKILL)
    with held(campaign) as schedule:
        schedule.settle()
        schedule.plan(number, planned(number))
        left = schedule.state.open(number)
        if not left:
            raise CampaignError("every launch is in the campaign already")
        schedule.begin_session(number)
        if "killed at once" in play:
            os.kill(os.getpid(), signal.SIGKILL)
        for done, one in enumerate(left):
            if play.get("pass over") == one.planned.implementation:
                cause = "it waits for ContainerImage, which failed"
                schedule.add(NotStarted(launch=one.name, why="missing", cause=cause))
                continue
            schedule.intend(one.name)
            if done == play.get("unanswered after"):
                schedule.lost(one.name, "sbatch timed out")
                return 1
            schedule.submitted(one.name, "played")
            if done == play.get("killed after"):
                os.kill(os.getpid(), signal.SIGKILL)
            if done == play.get("lost after"):
                schedule.lost(one.name, os.strerror(errno.ENOSPC))
                print(f"[     FAIL ] ( {done + 1}/4) {one.name} /01234567 @local:default+container")
                return 1
            record = whole_launch(
                one.name, round=number, position=schedule.state.next_position(number),
                implementation=one.planned.implementation, cell=one.planned.cell,
                outcome=play.get("outcome", "sound"),
                sentence="it is made up" if play.get("outcome") else None,
                output_format="hpl",
            )  # fmt: skip
            (root / "stdout").write_text(PRINTED)
            launches.write_launch(campaign, record, {"stdout": root / "stdout"})
            if done == play.get("killed before it tells of"):
                os.kill(os.getpid(), signal.SIGKILL)
            schedule.recorded(record)
            word = "      OK" if record.outcome == "sound" else "    FAIL"
            print(f"[ {word} ] ( {done + 1}/4) {one.name} /01234567 @local:default+container")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[2]))
