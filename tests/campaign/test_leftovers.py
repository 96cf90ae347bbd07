"""What still works for a campaign is found and ended, and nothing else."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from campaign import leftovers, queues
from records import processes
from records.base import CampaignError
from records.processes import known, named, stat_of

PROJECT = Path(__file__).resolve().parents[2]


def start(campaign: Path, command: str, **more: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "WYEAST_MEASURED_BY": str(campaign), **more}
    return subprocess.Popen(["sh", "-c", command], env=environment, start_new_session=True)


def wait_for(campaign: Path, count: int) -> dict[int, processes.Process]:
    while len(found := processes.running_for(campaign)) < count:
        time.sleep(0.02)
    return found


def test_a_job_with_all_it_has_started_is_ended(tmp_path: Path) -> None:
    campaign, other = tmp_path / "c", tmp_path / "c-again1"
    job = start(campaign, "setsid sleep 600 & sleep 600 & wait")
    # As a container does, whose processes do not have its environment.
    hidden = start(campaign, "exec env -i sleep 600")
    beside = start(other, "exec sleep 600")
    try:
        wait_for(campaign, 3)
        wait_for(other, 1)
        while b"WYEAST" in Path(f"/proc/{hidden.pid}/environ").read_bytes():
            time.sleep(0.02)
        assert leftovers.end_all(campaign, known([named(hidden.pid)])) == 4
        assert job.wait() == hidden.wait() == -9 and beside.poll() is None
        assert leftovers.end_all(campaign) == 0
    finally:
        for process in (job, hidden, beside):
            process.kill()
            process.wait()


def test_a_number_that_another_process_has_got_since_is_spared(tmp_path: Path) -> None:
    campaign = tmp_path / "c"
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    pid, start, boot = named(stranger.pid).split(":")
    recycled = [f"{pid}:{int(start) - 1}:{boot}", pid, f"{pid}:{start}:another-boot", "1:x:y"]
    try:
        for name in recycled:
            assert leftovers.end_all(campaign, known([name])) == 0, name
        assert stranger.poll() is None
        assert leftovers.end_all(campaign, known([f"{pid}:{start}:{boot}"])) == 1
    finally:
        stranger.kill()
        stranger.wait()
    assert named(stranger.pid) == str(stranger.pid), "one that has gone is not told from others"


def test_after_a_job_a_session_that_has_got_its_number_is_spared(tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    [(pid, began)] = known([named(stranger.pid)]).items()
    try:
        for other in (began - 1, None):
            assert processes.end_what_is_left(tmp_path, pid, other) == [], other
        assert stranger.poll() is None
        assert processes.end_what_is_left(tmp_path, pid, began) == ["sleep"]
    finally:
        stranger.kill()
        stranger.wait()


def test_a_number_is_asked_for_no_more_once_nothing_of_its_session_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever gets it then may have lost its first process too."""
    monkeypatch.setattr(processes, "POLL_S", 0.0)
    asked: list[set[int]] = []
    member, marked = (processes.Process(session, 1, None) for session in (2**22 + 1, 2**22 + 2))
    looks = [{7: member, 8: marked}, {8: marked}, {8: marked}, {}]

    def running_for(_: Path, sessions: set[int], since: int) -> dict[int, processes.Process]:
        asked.append(sessions)
        return looks.pop(0)

    monkeypatch.setattr(processes, "running_for", running_for)
    assert processes.end_what_is_left(tmp_path, member.session, 1) == []
    assert asked == [{member.session}, {member.session}, set(), set()]


def test_a_process_whose_session_has_lost_its_first_is_neither_ended_nor_measured_beside(
    tmp_path: Path,
) -> None:
    script = "sleep 600 & echo $!"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True,
                          text=True) as first:  # fmt: skip
        assert first.stdout
        left = int(first.stdout.readline())
        try:
            # Its number is kept until it is waited for.
            name = named(first.pid)
            first.wait()
            with pytest.raises(CampaignError, match=f"process {left} may belong to a launch of c,"):
                leftovers.end_all(tmp_path / "c", known([name]))
            os.kill(left, 0)
        finally:
            os.kill(left, 9)


def test_a_process_that_ends_a_moment_after_the_first_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(["sh", "-c", "sleep 600 & echo $!"], stdout=subprocess.PIPE,
                          start_new_session=True, text=True) as first:  # fmt: skip
        assert first.stdout
        left = int(first.stdout.readline())
        name = named(first.pid)
        first.wait()
        # It ends while it is waited for, however long that takes.
        looks = []

        def pause(seconds: float) -> None:
            looks.append(seconds)
            os.kill(left, 9)
            wait_for_end(left)

        monkeypatch.setattr(time, "sleep", pause)
        monkeypatch.setattr(leftovers, "END_S", 3000.0)
        assert leftovers.end_all(tmp_path / "c", known([name])) == 0 and len(looks) == 1


def test_a_mount_that_serves_no_container_any_more_holds_up_nobody(tmp_path: Path) -> None:
    """Apptainer's helper knows nothing of a campaign, and outlives a starter that is killed."""
    mount = tmp_path / leftovers.MOUNTS
    shutil.copy("/bin/sleep", mount)
    with subprocess.Popen(["sh", "-c", f"{mount} 600 & echo $!"], stdout=subprocess.PIPE,
                          start_new_session=True, text=True) as first:  # fmt: skip
        assert first.stdout
        left = int(first.stdout.readline())
        name = named(first.pid)
        first.wait()
        assert leftovers.end_all(tmp_path / "c", known([name])) == 0
    wait_for_end(left)


def wait_for_end(pid: int) -> None:
    """Wait until a process of nobody's has ended, or only waits to be noticed."""
    with suppress(OSError):
        while stat_of(pid)[0] != "Z":
            os.sched_yield()


def test_a_shell_that_names_the_campaign_and_what_started_this_are_spared(tmp_path: Path) -> None:
    shell = start(tmp_path / "another", "exec sleep 600", WYEAST_CAMPAIGN=str(tmp_path))
    own = f"""
from pathlib import Path
from campaign import leftovers, queues
print(leftovers.end_all(Path({str(tmp_path)!r})))
"""
    try:
        wait_for(tmp_path / "another", 1)
        # The shell waits for the process that looks.
        done = subprocess.run(
            ["sh", "-c", '"$@"; echo spared', "sh", sys.executable, "-c", own],
            env={**os.environ, processes.MARK: str(tmp_path)}, cwd=PROJECT,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stdout.split() == ["0", "spared"], done.stderr
        assert shell.poll() is None
    finally:
        shell.kill()
        shell.wait()


def test_what_does_not_end_is_not_measured_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "running_for", lambda *_: {2**30})
    monkeypatch.setattr(leftovers, "LONGEST_S", 0.1)
    with pytest.raises(CampaignError, match="has not ended, and nothing is measured while it"):
        leftovers.end_all(tmp_path)


def slurm(folder: Path, monkeypatch: pytest.MonkeyPatch, squeue: str) -> Path:
    """Put a Slurm first on PATH; return what lists the words that scancel was given."""
    cancelled = folder / "cancelled"
    for name, text in (("squeue", squeue), ("scancel", f'echo "$@" >>{cancelled}')):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(leftovers, "LONGEST_QUEUED_S", 0.1)
    monkeypatch.setattr(leftovers, "POLL_S", 0.05)
    return cancelled


def test_a_job_that_is_left_in_the_queue_is_cancelled_and_no_other_that_has_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The cluster has begun to count anew since: 17 is still ours, and 18 is somebody else's.
    squeue = f"""[ ! -e {tmp_path}/cancelled ] || exit 0
case "$*" in *--name=wy-1,wy-2*) echo 17 ;; *--jobs=*) echo 17; echo 18 ;; esac"""
    cancelled = slurm(tmp_path, monkeypatch, squeue)
    monkeypatch.setattr(leftovers, "LONGEST_QUEUED_S", 30)
    leftovers.end_queued(tmp_path, "squeue", {"wy-1": "17", "wy-2": "18"})
    words = cancelled.read_text().split()
    assert "17" in words and "18" not in words
    leftovers.end_queued(tmp_path, "squeue", {})
    assert cancelled.read_text().count("\n") == 1, "where nothing is left, nobody is asked"


def test_a_job_that_came_without_an_answer_is_found_by_its_name_and_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is there until it is cancelled, and then for one more answer.
    squeue = f"""case "$*" in *--name=wy-1,wy-2*) ;; *) exit 0 ;; esac
[ -e {tmp_path}/gone ] || echo 21
[ ! -e {tmp_path}/cancelled ] || touch {tmp_path}/gone"""
    cancelled = slurm(tmp_path, monkeypatch, squeue)
    monkeypatch.setattr(leftovers, "LONGEST_QUEUED_S", 30)
    monkeypatch.setattr(leftovers, "POLL_S", 0)
    leftovers.end_queued(tmp_path, "slurm", {}, ["wy-1", "wy-2"])
    assert (tmp_path / "gone").exists()
    assert {line.split()[-1] for line in cancelled.read_text().splitlines()} == {"21"}


def test_a_job_is_ended_however_late_each_answer_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, cancelled = [0.0], []
    # It is there until it is cancelled, and for one more answer.
    answers = iter([["21"], ["21"], []])

    def late(*_: object) -> list[str]:
        now[0] += queues.ANSWER_S - 1
        return next(answers)

    monkeypatch.setattr(queues, "queued", late)
    monkeypatch.setattr(queues, "cancel", lambda _, jobs: cancelled.extend(jobs))
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda _: None)
    leftovers.end_queued(tmp_path, "slurm", {"wy-1": "21"})
    assert set(cancelled) == {"21"} and next(answers, None) is None


def test_nothing_is_measured_while_nobody_says_whether_a_job_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled = slurm(tmp_path, monkeypatch, "exit 1")
    with pytest.raises(CampaignError, match="job wy-1 of a ReFrame that has died may still run"):
        leftovers.end_queued(tmp_path, "slurm", {}, ["wy-1"])
    assert not cancelled.exists(), "a name is no number to cancel"


@pytest.mark.parametrize(
    ("scheduler", "squeue"),
    [("slurm", "echo 18"), ("slurm", "exit 1"), ("oar", "true"), ("pbs", "true")],
)
def test_nothing_is_measured_beside_a_job_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheduler: str, squeue: str
) -> None:
    slurm(tmp_path, monkeypatch, squeue)
    with pytest.raises(CampaignError, match="18 of a ReFrame that has died may still run"):
        leftovers.end_queued(tmp_path, scheduler, {"wy-1": "18"})


#: A scheduler's command that lists jobs, as a shell has it: ours are `$ours`, and 18 is a
#: stranger's.
LISTS = {
    "pbs": ("qselect", "qdel", 'case "$*" in *"-N wy_1") echo "$ours";; esac'),
    "torque": ("qselect", "qdel", 'case "$*" in *"-s EHQRTW -N wy_1") echo "$ours";; esac'),
    "lsf": (
        "bjobs", "bkill",
        'case "$*" in *"-J wy-1") if [ -n "$ours" ]; then '
        'echo "$ours    me  RUN   normal     login       node1       wy-1       Nov 25 03:00"; '
        'else echo "Job <wy-1> is not found" >&2; exit 255; fi;; '
        '*) echo "Job <wy-2> is not found" >&2; exit 255;; esac',
    ),
    "sge": (
        "qstat", "qdel",
        """echo "<?xml version='1.0'?><job_info><queue_info>"
for job in ${ours:+$ours:wy-1} 18:wy-3; do
  echo "<job_list state='running'><JB_job_number>${job%:*}</JB_job_number>"
  echo "<JAT_prio>0.5</JAT_prio><JB_name>${job#*:}</JB_name></job_list>"
done
echo '</queue_info></job_info>' """,
    ),
}  # fmt: skip


@pytest.mark.parametrize("scheduler", LISTS)
def test_jobs_of_other_schedulers_are_found_by_their_names_cancelled_and_awaited(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, cancels, text = LISTS[scheduler]
    cancelled = slurm(tmp_path, monkeypatch, "exit 1")
    # It is there for one more answer after it was cancelled.
    gone = tmp_path / "gone"
    ours = f"ours=21; [ ! -e {gone} ] || ours=; [ ! -e {cancelled} ] || touch {gone}"
    for name, said in ((lists, f"{ours}\n{text}"), (cancels, f'echo "$@" >>{cancelled}')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{said}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(leftovers, "LONGEST_QUEUED_S", 30)
    leftovers.end_queued(tmp_path, scheduler, {"wy-1": "21"}, ["wy-2"])
    assert gone.exists()
    assert set(cancelled.read_text().split()) == {"21"}


@pytest.mark.parametrize("scheduler", LISTS)
def test_nothing_is_measured_while_another_scheduler_does_not_answer(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, _, _ = LISTS[scheduler]
    slurm(tmp_path, monkeypatch, "exit 1")
    (tmp_path / lists).write_text("#!/bin/sh\necho cannot connect to server >&2\nexit 111\n")
    (tmp_path / lists).chmod(0o755)
    with pytest.raises(CampaignError, match="job 21 of a ReFrame that has died may still run"):
        leftovers.end_queued(tmp_path, scheduler, {"wy-1": "21"})
