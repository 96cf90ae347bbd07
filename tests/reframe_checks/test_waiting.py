"""Waiting in the queue speaks: after a minute, again after minutes, with the scheduler's reason."""

import io
import os
import time
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import reframe.core.exceptions as errors
from reframe.core.schedulers import flux, local, lsf, oar, pbs, sge
from reframe.core.schedulers import slurm as slurm_of_reframe

from campaign.progress import CampaignProgress
from reframe_checks.bin import schedulers, waiting
from reframe_checks.bin.noting import never_ran
from reframe_checks.bin.output_limit import bounded
from reframe_checks.bin.telling import WAITS
from reframe_checks.bin.waiting import Waiting
from reframe_checks.mixins import asking


def slurm(folder: Path, monkeypatch: pytest.MonkeyPatch, squeue: str, sinfo: str) -> Path:
    """Put a Slurm first on PATH that answers so; return what counts how often it was asked."""
    asked = folder / "asked"
    for name, answer in (("squeue", squeue), ("sinfo", sinfo)):
        (folder / name).write_text(f"#!/bin/sh\necho {name} >>{asked}\n{answer}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return asked


class Job:
    """A job of ReFrame's, as far as it is looked at."""

    jobid, state = "17", "PENDING"


class Clock:
    """A clock that a test sets, in seconds."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_what_grid_engine_could_not_start_is_deleted_and_said() -> None:
    """It stays in its queue as `Eqw`, and ReFrame would look at it for ever."""
    job = SimpleNamespace(jobid="17", state="PENDING", _exception=None)
    cancelled: list[object] = []

    def poll(_: object, job: SimpleNamespace) -> None:
        job.state = "ERROR"

    schedulers.patient(poll)(SimpleNamespace(cancel=cancelled.append), job)
    assert cancelled == [job] and job._state == "COMPLETED"
    assert "could not start it (`qstat -j 17` says why), so it was deleted" in str(job._exception)
    # It is lost and not failed: nothing of it ran.
    assert never_ran(job._exception)


#: What Grid Engine 8.1.9 says of queues that it hears nothing of, and of jobs in them.
UNHEARD = """<?xml version='1.0'?>
<job_info>
  <queue_info>
    <Queue-List>
      <name>all.q@node2</name>
      <slots_used>1</slots_used>
      <state>u</state>
      <job_list state="running">
        <JB_job_number>17</JB_job_number>
        <JB_owner>wyeast</JB_owner>
        <state>dr</state>
        <master>SLAVE</master>
      </job_list>
    </Queue-List>
  </queue_info>
  <job_info>
  </job_info>
</job_info>
"""
NONE_UNHEARD = "<?xml version='1.0'?>\n<job_info>\n<queue_info>\n</queue_info>\n</job_info>\n"


def test_a_job_of_grid_engine_on_a_lost_node_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays in the queue for ever, and cannot be deleted, since nobody there ends it."""
    asked, answer = tmp_path / "asked", tmp_path / "answer"
    (tmp_path / "qstat").write_text(f'#!/bin/sh\necho "$*" >>{asked}\ncat {answer}\n')
    (tmp_path / "qstat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    clock = Clock()
    cancelled: list[object] = []
    scheduler = SimpleNamespace(cancel=cancelled.append)
    jobs = [
        SimpleNamespace(jobid=name, state=state, _state=state, _exception=None)
        for name, state in (("17", "RUNNING"), ("18", "RUNNING"), ("19", "PENDING"))
    ]
    lost = schedulers.LostNodes(clock)

    def look(after_s: float, said: str) -> int:
        clock.now += after_s
        answer.write_text(said)
        lost.look(scheduler, [*jobs, None])
        return len(asked.read_text().splitlines()) if asked.exists() else 0

    # Beside a launch of less than a minute nobody is asked, and beside a longer one now and then.
    assert look(0, UNHEARD) == 0 and look(59, UNHEARD) == 0
    assert look(1, UNHEARD) == 1 and look(30, UNHEARD) == 1 and not cancelled
    # It has been heard of again, or does not answer.
    assert look(30, NONE_UNHEARD) == 2 and look(60, UNHEARD) == 3 and look(60, "busy") == 4
    assert not cancelled
    assert look(60, UNHEARD) == 5
    assert cancelled == [jobs[0]] and jobs[0]._state == "COMPLETED"
    said = str(jobs[0]._exception)
    assert "node failure: Grid Engine hears nothing of node2, which this job is on" in said
    assert "`qdel -f 17`" in said
    # Something of it ran.
    assert not never_ran(jobs[0]._exception)
    assert [job._exception for job in jobs[1:]] == [None, None]
    assert "-qs u" in asked.read_text() and "-g t" in asked.read_text()


def test_grid_engine_s_jobs_are_looked_at_as_they_are_polled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[object] = []
    told = SimpleNamespace(look=lambda *words: seen.append(words))
    monkeypatch.setattr(schedulers, "lost_nodes", told)
    monkeypatch.setattr(schedulers, "silent_sge_poll", lambda *_: None)
    schedulers.poll_gridengine("scheduler", "a job", None)
    assert seen == [("scheduler", ("a job", None))]


@pytest.mark.parametrize(
    ("squeue", "sinfo", "said"),
    [
        ("PENDING|debug|Resources", "up|2|mix\nup|1|drain", "Resources"),
        ("PENDING|debug|PartitionDown", "down|3|idle", "PartitionDown; partition debug is down"),
        ("PENDING|debug|PartitionInactive", "inact|3|idle", "partition debug is inact"),
        ("PENDING|debug|ReqNodeNotAvail, UnavailableNodes:n[1-3]", "up|2|drain*\nup|1|down",
         "no node of partition debug accepts jobs: 2 drain*, 1 down"),
        ("PENDING|debug|Priority", None, "Priority"),
    ],
)  # fmt: skip
def test_what_a_job_waits_for_is_said_with_what_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squeue: str, sinfo: str | None, said: str
) -> None:
    answer = "exit 1" if sinfo is None else f"cat <<'.'\n{sinfo}\n."
    slurm(tmp_path, monkeypatch, f"echo '{squeue}'", answer)
    assert str(waiting.wait_of("17")).endswith(said)


def test_waiting_speaks_after_a_minute_and_again_and_never_while_the_job_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = slurm(tmp_path, monkeypatch, "echo 'PENDING|debug|Resources'", "echo 'up|1|idle'")
    lines: list[str] = []
    clock = Clock()
    told = Waiting(lines.append, clock)
    job = SimpleNamespace(jobid="17", state="PENDING")
    for after, count in ((0, 0), (59, 0), (1, 1), (1, 1), (298, 1), (1, 2), (300, 3)):
        clock.now += after
        told.look(job)
        assert len(lines) == count, (after, lines)
    assert lines[0] == "[ WAIT     ] job 17 has waited for 1 min: Resources"
    assert lines[2] == "[ WAIT     ] job 17 has waited for 11 min: Resources"
    before = asked.read_text()
    job.state = "RUNNING"
    clock.now += 10_000
    told.look(job)
    told.look(SimpleNamespace(jobid="18", state="PENDING"))
    assert len(lines) == 3 and asked.read_text() == before, "nobody is asked beside a launch"


@pytest.mark.parametrize(
    ("squeue", "said"),
    [
        ("exec sleep 600", "squeue did not answer within 0.1 s"),
        ("echo 'squeue: error: Munge encode failed' >&2; exit 1",
         "squeue: error: Munge encode failed"),
    ],
    ids=["hangs", "munge stopped"],
)  # fmt: skip
def test_a_slurm_that_does_not_answer_is_reported_and_stops_no_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squeue: str, said: str
) -> None:
    slurm(tmp_path, monkeypatch, squeue, "exit 1")
    if "sleep" in squeue:
        monkeypatch.setattr(asking, "PATIENCE_S", 0.1)
    clock, lines = Clock(), list[str]()
    told = Waiting(lines.append, clock)
    job = SimpleNamespace(jobid="17", state=None)
    told.look(job)
    clock.now += 100
    told.look(job)
    assert lines == [
        f"{WAITS}job 17 has waited for 2 min: the scheduler does not say what happened to it: "
        f"{said}"
    ]


def test_silence_about_a_running_job_is_reported_after_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = slurm(tmp_path, monkeypatch, "exit 1", "exit 1")
    clock, lines = Clock(), list[str]()
    told = Waiting(lines.append, clock)
    job = SimpleNamespace(jobid="17", state="RUNNING")
    for after, unanswered, count in (
        (0, None, 0), (500, "no port", 0), (59, "no port", 0), (1, "no port", 1),
        (10, None, 1), (400, None, 1), (1, "no port", 1), (60, "no port", 2),
    ):  # fmt: skip
        clock.now += after
        told.look(job, unanswered)
        assert len(lines) == count, (after, lines)
    assert lines[0].endswith("does not say what happened to it: no port")
    assert not asked.exists(), "beside a launch nobody asks more than ReFrame does"


@pytest.mark.parametrize("poll", [schedulers.poll_until_answered, schedulers.poll_and_speak])
def test_both_ways_to_poll_slurm_look(poll: object, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def fails(*_: object) -> None:
        raise errors.SpawnedProcessTimeout("squeue", "", "", 60)

    told = SimpleNamespace(look=lambda *words: seen.append(words))
    monkeypatch.setattr(schedulers, "waiting", told)
    job = Job()
    for answer in (lambda *_: None, fails):
        monkeypatch.setattr(schedulers, "unguarded_poll", answer)
        monkeypatch.setattr(schedulers, "silent_poll", answer)
        poll(None, job, None)
    assert seen[0] == (job, None) and seen[1][0] == job  # type: ignore[index]
    assert "timed out" in str(seen[1]), "a poll that hangs gives up no job"


def test_a_scheduler_other_than_slurm_that_does_not_answer_gives_up_no_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, lines = Clock(), list[str]()
    told = Waiting(lines.append, clock, schedulers.waiting_elsewhere.wait_of)
    monkeypatch.setattr(schedulers, "waiting_elsewhere", told)
    answers: list[Exception | None] = [
        None, errors.SpawnedProcessTimeout("qstat", "", "", 60), None,
        errors.JobSchedulerError("qstat failed"),
    ]  # fmt: skip

    def poll(scheduler: object, *jobs: object) -> None:
        if answer := answers.pop(0):
            raise answer

    job = SimpleNamespace(jobid="17", state="QUEUED")
    for _ in range(4):
        schedulers.patient(poll)(None, job, None)
        clock.now += 300
    assert [line.partition("min: ")[2] for line in lines] == [
        "its scheduler is not asked for the reason",
    ], "a silence of less than a minute is not told"
    answers += 2 * [errors.JobSchedulerError("qstat failed")]
    schedulers.patient(poll)(None, job)
    assert lines[-1].endswith("what happened to it: qstat failed")


@pytest.mark.parametrize("code", [0, 255])
def test_a_job_that_lsf_has_forgotten_is_over_once_it_has_said_so_for_a_minute(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bjobs that fails for one job tells of none, however many it was asked of."""
    (tmp_path / "known").write_text("17 u RUN q\n18 u PEND q\n")
    (tmp_path / "bjobs").write_text(
        '#!/bin/sh\nshift 3\nfor job; do grep "^$job " ' + str(tmp_path / "known") + " || "
        f'{{ echo "Job <$job> is not found" >&2; code={code}; }}; done\nexit ${{code:-0}}\n'
    )
    (tmp_path / "bjobs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    clock = Clock()
    scheduler = SimpleNamespace(log=lambda *_: None)
    poll = schedulers.patient(schedulers.Forgotten(clock).poll)
    jobs = [SimpleNamespace(jobid=name, _state=None, state=None) for name in ("17", "18", "19")]

    def polled() -> list[str | None]:
        poll(scheduler, *jobs, None)
        for job in jobs:
            job.state = job._state
        return [job._state for job in jobs]

    if not code:
        # What an answer without failure means is ReFrame's to say.
        assert polled() == ["RUNNING", "PENDING", "COMPLETED"]
        return
    assert polled() == ["RUNNING", "PENDING", None]
    clock.now += 30
    (tmp_path / "known").write_text("18 u RUN q\n19 u PEND q\n")
    assert polled() == ["RUNNING", "RUNNING", "PENDING"], "a new job was not known at first"
    clock.now += 59
    assert polled()[0] == "RUNNING"
    clock.now += 1
    assert polled() == ["COMPLETED", "RUNNING", "PENDING"]
    # Any other failure is no answer.
    (tmp_path / "bjobs").write_text("#!/bin/sh\necho 'LSF is down. Please wait' >&2; exit 255\n")
    clock.now += 600
    assert polled() == ["COMPLETED", "RUNNING", "PENDING"]


@pytest.fixture
def asked_in_time(monkeypatch: pytest.MonkeyPatch) -> list[ModuleType]:
    """Have ReFrame ask all schedulers with a short limit; return their modules."""
    modules: list[ModuleType] = [slurm_of_reframe, pbs, lsf, sge]
    for module in modules:
        for attribute in ("osext", "_run_strict"):
            monkeypatch.setattr(module, attribute, getattr(module, attribute))
    for module in (local, oar, flux, *modules):
        monkeypatch.setattr(module, "time", module.time)
    changed = {one for module in [*modules, schedulers] for one in vars(module).values()
               if isinstance(one, type) and "poll" in vars(one)}  # fmt: skip
    for one in changed:
        for attribute in {"poll", "_cancel_if_pending_too_long"} & vars(one).keys():
            monkeypatch.setattr(one, attribute, getattr(one, attribute))
    monkeypatch.setattr(schedulers, "PATIENCE_S", 0.1)
    schedulers.ask_in_time()
    return modules


def test_each_scheduler_is_asked_with_a_time_limit(asked_in_time: list[ModuleType]) -> None:
    for module in asked_in_time:
        for run in (module.osext.run_command, module._run_strict):
            with pytest.raises(errors.SpawnedProcessTimeout):
                run("sleep 600")
        polls = {vars(one)["poll"] for one in vars(module).values()
                 if isinstance(one, type) and "poll" in vars(one)}  # fmt: skip
        assert polls and all(poll.__module__ == bounded.__module__ for poll in polls)


#: Knows of a job that it was asked for since its own day or before.
SACCT = """#!/bin/sh
[ "$1" = -S ] || exit 1
since=$(date -d "$2" +%s) && [ "$since" -gt 0 ] || exit 1
echo 'JobID|State|ExitCode|End|NodeList'
[ "$since" -gt "$(date +%s)" ] || echo '17|COMPLETED|0:0|1700000000|node1'
"""


@pytest.mark.parametrize("ahead_s", [0, 400 * 86400])
@pytest.mark.usefixtures("asked_in_time")
def test_a_job_that_a_clock_ahead_has_submitted_is_found_once_the_clock_is_set_back(
    ahead_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedulers, "PATIENCE_S", 60.0)
    (tmp_path / "sacct").write_text(SACCT)
    (tmp_path / "sacct").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    scheduler = slurm_of_reframe.SlurmJobScheduler.__new__(slurm_of_reframe.SlurmJobScheduler)
    vars(scheduler).update(
        _sacct="sacct", _num_sacct_failures=0, _max_sacct_failures=0, _update_state_count=0,
        _pending_job_reason_poll_freq=10, log=lambda *_, **__: None,
    )  # fmt: skip
    monkeypatch.setattr(slurm_of_reframe.rt, "temp_environment", lambda **_: nullcontext())
    job: Any = SimpleNamespace(
        jobid="17", submit_time=time.time() + ahead_s, max_pending_time=None, state="RUNNING",
        is_cancelling=True,
        _completion_time=None,
    )  # fmt: skip
    schedulers.silent_poll(scheduler, job)
    assert job._state == "COMPLETED"


def test_no_command_of_a_scheduler_is_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schedulers, "PATIENCE_S", 0.1)
    with pytest.raises(errors.SpawnedProcessTimeout):
        schedulers.Answered().run_command("sleep 600")
    assert schedulers.Answered().run_command("true", check=True).returncode == 0


def test_the_campaign_says_what_its_job_waits_for() -> None:
    out = io.StringIO()
    line = f"{WAITS}job 17 has waited for 1 min: Resources\n"
    CampaignProgress(3, out).follow(2, [line], io.StringIO())
    assert "round 2/3  job 17 has waited for 1 min: Resources\n" in out.getvalue()


@pytest.mark.parametrize("answer", ["exec /bin/sleep 600", "exit 1", None])
def test_nodes_that_nobody_names_end_no_session(
    answer: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedulers, "PATIENCE_S", 0.2)
    monkeypatch.setattr(slurm_of_reframe, "osext", schedulers.Answered())
    monkeypatch.setenv("PATH", str(tmp_path))
    job: Any = slurm_of_reframe._SlurmJob.__new__(slurm_of_reframe._SlurmJob)
    job._nodelist, job._nodespec, job._state = [], "node[1-2]", "COMPLETED"
    scontrol = tmp_path / "scontrol"
    if answer:
        scontrol.write_text(f"#!/bin/sh\n{answer}\n")
        scontrol.chmod(0o755)
    assert schedulers.nodelist_once(job) == []
    scontrol.write_text(f"#!/bin/sh\necho asked >>{tmp_path}/asked; echo node1; echo node2\n")
    scontrol.chmod(0o755)
    for _ in range(2):
        assert schedulers.nodelist_once(job) == ["node1", "node2"]
    assert (tmp_path / "asked").read_text() == "asked\n"
