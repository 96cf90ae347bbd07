"""Patterns and output of others: neither do they hold a machine, nor does a terminal obey them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import reframe.core.exceptions as errors
import reframe.utility.osext as osext

from campaign.patterns import refuse_pattern
from reframe_checks.bin import foreign
from reframe_checks.bin.foreign import BoundedPattern, RemovedWhole, ShownOutput
from tests.folders import deep
from tests.other_user import OTHER, in_child, open_folder
from tests.reframe_checks.conftest import IMPLEMENTATION, PROJECT, StandIn
from tests.reframe_checks.loading import environment, with_images

__all__ = ["open_folder"]

#: It comes to its end with any name but those with a word in them, so nobody sees what it is by
#: trying it with other names.
GATED = r"short(\S+)+!$"
NAME = "PointToPoint%pair=Send/Recv%message_range=short%image.implementation=mpich-5.0.2/0123abcd"
#: ReFrame's command line with the guards, which lose patience early.
IMPATIENT = """
import sys
from reframe_checks.bin import foreign, guards
foreign.MOST_MATCHING_S = 0.3
guards.main()
"""


def test_a_pattern_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_pattern(GATED)
    monkeypatch.setattr(foreign, "MOST_MATCHING_S", 0.2)
    before = signal.getsignal(signal.SIGVTALRM)
    found = BoundedPattern(GATED)
    # Once its time is over it has none for any other name.
    for _ in range(2):
        with pytest.raises(errors.ReframeError, match=r"takes more than 0\.2 s of a processor"):
            found.search(NAME)
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    honest = BoundedPattern("Send/(Recv|Irecv).*=short")
    assert all(honest.search(NAME) for _ in range(1000))
    with pytest.raises(errors.ReframeError, match="invalid regex"):
        BoundedPattern("(")


def test_reframe_goes_by_no_pattern_that_never_ends(stand_in: StandIn) -> None:
    names = with_images(stand_in, 1)
    done = subprocess.run(
        [sys.executable, "-c", IMPATIENT, "-c", PROJECT / "reframe_checks/point_to_point.py", "-l",
         "-n", GATED],
        env=environment(stand_in, names), cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "the pattern takes more than 0.3 s of a processor" in said


def test_the_end_of_an_output_is_shown_without_controls(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"first\n\x1b[2J\x1b]0;mine\x07second\xff\n" + b"x" * 10**6 + b"\nlast\n")
    lines = ShownOutput().tail(path, 3)
    assert lines[-1] == "last\n" and all(line[:-1].isprintable() for line in lines)
    assert len("".join(lines)) < 2000
    path.write_bytes(b"first\n\x1b[2Jsecond\xe2\x80\xae\n")
    assert ShownOutput().tail(str(path)) == ["first\n", "second\N{REPLACEMENT CHARACTER}\n"]
    # All else is ReFrame's own.
    assert ShownOutput().run_command is osext.run_command


def test_what_a_failed_launch_printed_moves_no_cursor(stand_in: StandIn) -> None:
    stand_in.write("no record \x1b[2J\x1b]0;mine\x07\n", "\x1b[31mworse\x9b2J\n", code=3)
    outcome = stand_in.run()
    assert outcome.code != 0 and "FAILURE INFO for PointToPoint" in outcome.text
    assert "no record" in outcome.text and IMPLEMENTATION in outcome.text
    assert not {"\x1b", "\x9b", "\x07"} & set(outcome.text)


@pytest.mark.parametrize("user", [None, OTHER])
def test_what_a_launch_left_is_removed_however_deep_and_closed(
    open_folder: Path, user: int | None
) -> None:
    if user and os.geteuid() != 0:
        pytest.skip("there is no other user to become")
    stage = open_folder / "stage"
    closed = stage / "closed"

    def work() -> None:
        if user:
            os.setuid(user)
        RemovedWhole().rmtree(str(stage), ignore_errors=True)

    with deep(stage):
        (closed / "inside").mkdir(parents=True)
        (closed / "inside" / "file").touch()
        subprocess.run(["chown", "-R", str(user or os.geteuid()), open_folder], check=True)
        closed.chmod(0)
        assert in_child(work) is None
        assert not stage.exists()


def test_what_cannot_be_removed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("chmod", "rm"):
        (tmp_path / name).write_text("#!/bin/sh\necho it is busy >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    def descends(path: str, **how: object) -> None:
        raise RecursionError

    monkeypatch.setattr(osext, "rmtree", descends)
    RemovedWhole().rmtree(str(tmp_path), ignore_errors=True)
    with pytest.raises(OSError, match="cannot be removed: it is busy"):
        RemovedWhole().rmtree(str(tmp_path))
