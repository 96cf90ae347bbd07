"""A clock that is set during a launch is told, and no duration is below nothing for it."""

from tests.reframe_checks.conftest import StandIn
from tests.reframe_checks.rates import linpack

#: In the launch's folder the second time is of the day before.
DATE = """#!/bin/sh
case $PWD in *SerialLinpack*) ;; *) exec /bin/date "$@" ;; esac
[ -e dated ] || { touch dated; exec /bin/date "$@"; }
echo $(($(/bin/date +%s) - 86400)).5
"""


def test_a_clock_that_is_set_back_makes_the_launch_suspect(stand_in: StandIn) -> None:
    date = stand_in.root / "bin" / "date"
    date.write_text(DATE)
    date.chmod(0o755)
    # Of a bash before version 5, which has to ask a program.
    (stand_in.root / "older").write_text("unset EPOCHREALTIME\n")
    stand_in.variables["BASH_ENV"] = str(stand_in.root / "older")
    stand_in.write(linpack())
    outcome = stand_in.run(only="^SerialLinpack")
    assert outcome.code != 0
    [launch] = outcome.launches
    assert launch["outcome"] == "suspect"
    sentence = str(launch["sentence"])
    assert sentence.startswith("suspect: the clock of the launch's first node was set back by 86")
    assert isinstance(launch["wall_s"], float) and launch["wall_s"] >= 0
    assert str(launch["started_utc"]) <= str(launch["ended_utc"])
    assert set(launch["sha256"]) == {"stdout", "stderr", "job.sh"}
