"""The end of a launch of this machine is noticed as it comes, and not at the next look."""

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from reframe_checks.bin import waking
from reframe_checks.bin.waking import UntilItEnds
from tests.reframe_checks.conftest import StandIn

#: Whoever waits for so long waits for ever, in seconds.
FOR_EVER_S = 1e6


@dataclass
class Job:
    """A job of this machine, as far as a poll knows it."""

    process: subprocess.Popen[bytes]

    @property
    def jobid(self) -> str:
        return str(self.process.pid)


class Scheduler:
    """A scheduler of this machine."""

    @staticmethod
    def finished(job: Job) -> bool:
        return job.process.poll() is not None


@pytest.fixture
def job() -> Iterator[Job]:
    """Give a job that ends when its input does."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        yield Job(process)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return for how long somebody sleeps, which nobody then does."""
    seconds: list[float] = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    return seconds


def looked_at(*jobs: Job | None) -> UntilItEnds:
    until = UntilItEnds()
    until.noting(lambda scheduler, *jobs: None)(Scheduler(), *jobs)
    return until


def test_who_waits_for_a_launch_goes_on_as_it_ends(job: Job, slept: list[float]) -> None:
    until = looked_at(None, job)
    assert job.process.stdin
    job.process.stdin.close()
    until.sleep(FOR_EVER_S)
    assert not slept and os.waitid(os.P_PID, job.process.pid, os.WEXITED | os.WNOWAIT)
    # Who polls it finds out how it ended, as if nobody had waited.
    assert job.process.wait() == 0


def test_one_that_runs_is_looked_at_again(
    job: Job, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waking, "LOOK_AGAIN_S", 0.001)
    looked_at(job).sleep(0.0)
    assert not slept and job.process.poll() is None


def test_without_one_launch_to_wait_for_the_time_passes_as_reframe_asks(
    job: Job, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at().sleep(1.5)
    # As with a scheduler's, which nobody looked at here; or with several at a time.
    looked_at(job, job).sleep(2.5)

    def unknown(*_: Any) -> int:
        raise OSError(38, os.strerror(38))

    monkeypatch.setattr(os, "pidfd_open", unknown)
    looked_at(job).sleep(3.5)
    assert slept == [1.5, 2.5, 3.5]


def test_a_session_that_looks_once_in_an_age_ends_with_its_launches(stand_in: StandIn) -> None:
    rate = str(1 / FOR_EVER_S)
    stand_in.variables = {"RFM_POLL_RATE_MAX": rate, "RFM_POLL_RATE_MIN": rate}
    outcome = stand_in.run()
    assert outcome.code == 0 and len(outcome.launches) == 1, outcome.text
