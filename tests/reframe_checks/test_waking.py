"""The end of a launch is noticed as it comes, and a clock that is set makes nobody wait or end."""

import os
import select
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from reframe.frontend.executors import policies

from reframe_checks.bin import waking
from reframe_checks.bin.waking import SteadyTime, UntilItEnds
from tests.reframe_checks.conftest import StandIn
from tests.reframe_checks.test_session import during_the_launch

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


class BoundedWait:
    """Waits as the kernel's poll does, but not for ever, and notes whether it saw an end."""

    def __init__(self, seen: list[bool]) -> None:
        self.seen, self.poll_object = seen, select.poll()

    def register(self, descriptor: int, events: int) -> None:
        self.poll_object.register(descriptor, events)

    def poll(self, milliseconds: float) -> None:
        self.seen.append(bool(self.poll_object.poll(min(milliseconds, 60_000))))


def test_who_waits_for_a_launch_goes_on_as_it_ends(
    job: Job, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    bounded = SimpleNamespace(poll=lambda: BoundedWait(seen), POLLIN=select.POLLIN)
    monkeypatch.setattr(waking, "select", bounded)
    until = looked_at(None, job)
    assert job.process.stdin
    job.process.stdin.close()
    until.sleep(FOR_EVER_S)
    assert seen == [True], "it has waited for the time and not for the launch"
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


DAY_S = 86400.0


@pytest.mark.parametrize("step", [-DAY_S, DAY_S])
def test_time_that_passes_is_none_of_a_clock_that_is_set(
    step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    steady = SteadyTime()
    began, real = steady.time(), time.time
    assert abs(began - real()) < DAY_S / 2
    monkeypatch.setattr(time, "time", lambda: real() + step)
    assert 0 <= steady.time() - began < DAY_S / 2
    # Whatever else the module has is left as it is.
    assert steady.strftime is time.strftime


def test_a_clock_that_is_set_back_makes_nobody_wait_until_it_is_as_late_again(
    slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "time", UntilItEnds())
    options = {"poll_rate_max": 2, "poll_rate_min": 2, "poll_rate_decay": 0.1}
    played = type("Runtime", (), {"get_option": lambda self, name: options.get(name[10:])})
    monkeypatch.setattr(policies.rt, "runtime", played)
    control = policies._PollController()
    control.reset_poll_rate()
    control.snooze()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - DAY_S)
    control.snooze()
    assert len(slept) == 2 and max(slept) <= 1.0


def test_a_clock_that_is_set_during_a_launch_does_not_end_it(stand_in: StandIn) -> None:
    stand_in.variables = {"PYTHONPATH": f"{stand_in.root}:{stand_in.project}"}
    (stand_in.root / "sitecustomize.py").write_text(
        "import os, time\nreal = time.time\n"
        f"time.time = lambda: real() + {DAY_S} * os.path.exists({str(stand_in.root / 'set')!r})\n"
    )
    # As long as it takes to be looked at once more.
    during_the_launch(stand_in, f"touch {stand_in.root}/set; sleep {2 * waking.LOOK_AGAIN_S}")
    outcome = stand_in.run()
    [launch] = outcome.launches
    assert outcome.code == 0 and launch["outcome"] == "sound", launch["sentence"]
