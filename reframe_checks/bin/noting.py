"""What happens to the launches of a session, recorded in the campaign's journal.

An attempt that a disk or a folder spoils is lost, and ends the session: the campaign starts
another one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

import reframe.core.exceptions as errors
from reframe.frontend.executors import TaskEventListener

from records import files
from records import launch as launches
from records.base import CampaignError, NotKept
from records.causes import of_command, one_line
from records.counting import how_many
from records.events import NotStarted
from records.processes import MARK, end_what_is_left, known, named
from records.schedule import Schedule
from reframe_checks.bin.output_limit import cut
from reframe_checks.bin.telling import LEFT, is_over
from reframe_checks.bin.waiting import WaitedTooLong
from reframe_checks.mixins import recording
from reframe_checks.mixins.recording import RecordedCheck

#: The errors of a job that was cancelled in the queue: it ran nothing that could have failed.
NEVER_RAN = (WaitedTooLong, errors.JobBlockedError)
#: The errors of a submission after which it is unknown whether the scheduler has the job.
UNANSWERED = (errors.SpawnedProcessError, errors.JobSchedulerError)


def is_of_the_disk(error: BaseException | None) -> bool:
    """Return whether an error, or its cause, concerns files and not what was measured."""
    while error is not None:
        if isinstance(error, OSError | NotKept):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def never_ran(error: BaseException | None) -> bool:
    """Return whether a job was cancelled in the queue: nothing in it can have failed."""
    # The second are ReFrame's words for PBS jobs.
    return isinstance(error, NEVER_RAN) or (
        isinstance(error, errors.JobError) and "maximum pending time exceeded" in str(error)
    )


class Told(TaskEventListener):  # type: ignore[misc]
    """Records in the journal what happens to the launches of a session."""

    def __init__(self, schedule: Schedule, proven: set[str], unproven: dict[str, str]) -> None:
        self.schedule = schedule
        #: When each job of this machine began, by its process: in the kernel's ticks since boot.
        self.began: dict[int, int] = {}
        #: What passed in this session, and what failed or was skipped and why: ReFrame's names.
        self.proven = proven
        self.unproven = unproven

    def on_task_success(self, task: Any) -> None:
        """Note that this need not run again for its dependents; keep what is not kept yet."""
        self.keep_judged(task)
        self.proven.add(task.check.unique_name)
        self.unproven.pop(task.check.unique_name, None)

    def is_unproven(self, task: Any, said: str) -> None:
        """Note that those that wait for this are not measured, and why."""
        self.proven.discard(task.check.unique_name)
        self.unproven[task.check.unique_name] = said

    def name_of(self, task: Any) -> str | None:
        """Return the name of a task's launch if it still has to be settled."""
        name = task.check.launch_name() if isinstance(task.check, RecordedCheck) else None
        one = self.schedule.state.launches.get(name or "")
        return name if one and one.is_open else None

    def on_task_setup(self, task: Any) -> None:
        """End the session before a launch that another job is to begin."""
        if self.name_of(task) and is_over():
            raise errors.FailureLimitError("the time for starting launches is over")

    def on_task_run(self, task: Any) -> None:
        """Record the scheduler's name of the launch."""
        job, name = task.check.job, self.name_of(task)
        called = str(job.jobid) if job else ""
        if job and job.scheduler.is_local:
            called = named(int(job.jobid))
            self.began |= known([called])
        if name and self.schedule.state.launches[name].status == "intended":
            self.schedule.submitted(name, called)

    def on_task_exit(self, task: Any) -> None:
        """End what the job left running: none of it may disturb the next launch.

        What it left on the nodes of a scheduler it has ended itself, and is told.
        """
        recording.left_running = 0
        job = task.check.job
        if job is None:
            return
        if job.scheduler.is_local:
            campaign = Path(os.environ.get(MARK) or self.schedule.campaign)
            # ReFrame has it as text.
            process = int(job.jobid)
            left = end_what_is_left(campaign, process, self.began.pop(process, None))
        else:
            left = task.check.left_on_nodes() if isinstance(task.check, RecordedCheck) else []
        if left:
            recording.left_running = len(left)
            names = ", ".join(dict.fromkeys(map(one_line, left)))
            count = how_many(len(left), "process", "processes")
            print(
                f"{LEFT}{task.check.display_name} left {count} running, ended since: {names}",
                flush=True,
            )

        if isinstance(task.check, RecordedCheck) and task.check.has_unseen_nodes():
            print(
                f"{LEFT}{task.check.display_name} may have left processes running: not all of its "
                "nodes could be looked at", flush=True,
            )  # fmt: skip

    def on_task_failure(self, task: Any) -> None:
        """Say what failed, and end the session if all launches fail for the same reason."""
        self.tell_failure(task)
        if circuit := self.schedule.state.circuit():
            raise errors.FailureLimitError(circuit)

    def tell_failure(self, task: Any) -> None:
        """Record that a launch failed before it was judged, or that an attempt was lost."""
        if not is_of_the_disk(task.exc_info[1]):
            self.keep_judged(task)
        if task.failed_stage in ("run_complete", "run_wait"):
            # It was killed and did not end by itself.
            self.on_task_exit(task)
        reason = errors.what(*task.exc_info) or "the launch was lost"
        reason = of_command(reason, getattr(task.exc_info[1], "stderr", None) or "")
        said = one_line(f"{task.failed_stage}: {reason}")
        self.is_unproven(task, said)
        is_lost = is_of_the_disk(task.exc_info[1]) or never_ran(task.exc_info[1])
        name = self.name_of(task)
        if not name:
            if is_lost and task.check.is_fixture():
                raise errors.FailureLimitError(f"{task.check.display_name} proves nothing: {said}")
            return
        status = self.schedule.state.launches[name].status
        if is_lost or (status == "intended" and isinstance(task.exc_info[1], UNANSWERED)):
            if not self.schedule.state.launches[name].in_flight:
                self.schedule.intend(name)
            self.lose(name, said)
        if not self.schedule.state.launches[name].in_flight and task.check.wanted:
            # It failed before it was submitted: that is an attempt, too, and is kept.
            self.schedule.intend(name)
        if self.schedule.state.launches[name].in_flight:
            self.keep_failed(task, said)
        else:
            self.schedule.add(NotStarted(launch=name, why="failed", cause=said))

    def keep_judged(self, task: Any) -> None:
        """Keep a launch that was judged sound and whose metrics were not or could not be read."""
        name = self.name_of(task)
        if name and task.check.is_sound:
            try:
                task.check.keep(self.schedule, "sound", None)
            except (CampaignError, OSError) as error:
                self.lose(name, str(error))

    def lose(self, name: str, said: str) -> NoReturn:
        """Record that an attempt was lost, unless it turns out to be recorded; end the session."""
        self.schedule.lost(name, said)
        is_kept = self.schedule.state.launches[name].status == "recorded"
        what = "is recorded, and the session ends" if is_kept else "is lost"
        raise errors.FailureLimitError(f"{name} {what}: {said}")

    def keep_failed(self, task: Any, sentence: str) -> None:
        """Keep what is left of a launch that ended before it could be judged.

        Its time was over or its job vanished.
        """
        check = task.check
        stage = Path(check.stagedir)
        try:
            asked = check.wanted or check.asked()
        except CampaignError as error:
            self.lose(check.launch_name(), str(error))
        record = launches.finished_launch(
            # It was not timed, and a clock may have been set meanwhile.
            asked, position=None, ended_utc=max(asked.started_utc, files.utc_now()), wall_s=None,
            exit_code=None, outcome="failed", sentence=sentence,
        )  # fmt: skip
        for stream in ("stdout", "stderr"):
            cut(check.output_path(stream))
        kept = {
            "stdout": check.output_path("stdout"), "stderr": check.output_path("stderr"),
            "job.sh": stage / "rfm_job.sh",
        }  # fmt: skip
        try:
            self.schedule.keep(record, kept)
        except NotKept as error:
            self.lose(asked.launch, str(error))

    def on_task_skip(self, task: Any) -> None:
        """Record that no attempt is made at a launch, and whether that may change another time.

        What waits for a launch that failed is failed with it. What waits for anything else, such as
        an image that cannot be opened now, is missing.
        """
        self.is_unproven(task, said_by(task))
        name = self.name_of(task)
        if not name:
            return
        waited_for = [case.check for case in task.testcase.deps
                      if case.check.unique_name in self.unproven]  # fmt: skip
        if not waited_for:
            self.schedule.add(NotStarted(launch=name, why="skipped", cause=said_by(task)))
            return
        found = [self.schedule.state.launches.get(check.launch_name())
                 if isinstance(check, RecordedCheck) else None for check in waited_for]  # fmt: skip
        failed = all(
            one and (one.status == "failed" or one.outcome in ("suspect", "failed"))
            for one in found
        )
        skipped = all(one and one.status == "skipped" for one in found)
        cause = said_by(task)
        if not skipped:
            first = waited_for[0]
            reason = self.unproven[first.unique_name]
            cause = f"it waits for {first.display_name}, which failed: {reason}"
        why = "failed" if failed else "skipped" if skipped else "missing"
        event = {"launch": name, "why": why, "cause": one_line(cause)}
        self.schedule.add(NotStarted.model_validate(event))

    def nothing(self, task: Any) -> None:
        """Ignore what says nothing about a launch."""

    on_task_compile = on_task_compile_exit = nothing
    on_task_xfailure = on_task_xsuccess = on_task_abort = nothing


def said_by(task: Any) -> str:
    """Return why a task was skipped."""
    return one_line(str(task.exc_info[1]))
