"""ReFrame's schedulers, asked with patience: one that does not answer ends no launch.

ReFrame takes a Slurm job to be complete whenever squeue does not list it, even if squeue failed:
unfinished output would be judged, and the next launch would run beside this one. Here a
job is complete when Slurm has answered that it is no longer in the queue.

While a job waits in a queue, the reason is printed after a minute and now and then. No command of a
scheduler is waited for without end.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import ParseError

import reframe.core.exceptions as errors
import reframe.utility.osext as osext
from reframe.core.schedulers import flux, local, lsf, oar, pbs, sge, slurm
from reframe.core.schedulers.local import LocalJobScheduler
from reframe.core.schedulers.lsf import LsfJobScheduler
from reframe.core.schedulers.pbs import PbsJobScheduler, PbsProJobScheduler
from reframe.core.schedulers.sge import SgeJobScheduler
from reframe.core.schedulers.slurm import SlurmJobScheduler, SqueueJobScheduler

from records.causes import one_line
from reframe_checks.bin.output_limit import bounded
from reframe_checks.bin.waiting import PENDING, WaitedTooLong, Waiting
from reframe_checks.bin.waking import steady_time, time_of_slurm, until_it_ends
from reframe_checks.mixins.asking import NoAnswer, ask

#: How long a command of a scheduler's may take, in seconds; it is asked again at the next poll.
PATIENCE_S = 60.0
#: What bjobs says on stderr of a job that it does not know, and for how long it has to say so until
#: the job is taken to be over, in seconds.
NOT_FOUND = re.compile(r"^Job <(\d+)> is not found", re.MULTILINE)
FORGOTTEN_S = 60.0
#: How often Grid Engine is asked whether it hears of a running job's nodes, and for how long it has
#: to say that it does not until the job is given up, in seconds.
HEARD_S = 60.0
UNHEARD_S = 60.0


def state_in_queue(jobid: str) -> str | None:
    """Return a job's state in Slurm's queue, or None where it is no longer there.

    Raises NoAnswer where Slurm does not say.
    """
    command = ["squeue", "--noheader", f"--jobs={jobid}", "--format=%T"]
    try:
        return ask(command, PATIENCE_S).strip() or None
    except NoAnswer as error:
        if "Invalid job id" in str(error):
            return None
        raise


def poll_until_answered(scheduler: Any, *jobs: Any) -> None:
    """Poll jobs as ReFrame does, but let none complete until Slurm confirms it."""
    before = {job: job.state for job in jobs if job is not None}
    poll_and_speak(scheduler, *jobs, poll=unguarded_poll)
    for job, state in before.items():
        if job.state != "COMPLETED" or state == "COMPLETED":
            continue
        try:
            found = state_in_queue(job.jobid)
        except NoAnswer as error:
            found = state or "PENDING"
            waiting.look(job, str(error))
        if found:
            job._state = found


unguarded_poll = SqueueJobScheduler.poll


def poll_and_speak(scheduler: Any, *jobs: Any, poll: Callable[..., None] | None = None) -> None:
    """Poll jobs as ReFrame does by Slurm's accounting, and say what they wait for.

    What does not answer leaves a job as it was: nobody would watch one that is given up for it.
    """
    unanswered = None
    try:
        (poll or silent_poll)(scheduler, *jobs)
    except errors.SpawnedProcessError as error:
        unanswered = one_line(str(error))
    for job in jobs:
        if job is not None and (unanswered or job.state != "COMPLETED"):
            waiting.look(job, unanswered)


silent_poll = SlurmJobScheduler.poll
waiting = Waiting()
#: Of jobs of schedulers other than Slurm, which are not asked what a job waits for.
waiting_elsewhere = Waiting(wait_of=lambda job: "its scheduler is not asked for the reason")


def patient(poll: Callable[..., None]) -> Callable[..., None]:
    """Return a scheduler's poll that says what a job waits for, as `poll_and_speak` does of Slurm.

    One that is not answered leaves the job as it was.
    """

    def poll_and_wait(scheduler: Any, *jobs: Any) -> None:
        unanswered = None
        try:
            poll(scheduler, *jobs)
        except (errors.SpawnedProcessError, errors.JobSchedulerError, ParseError) as error:
            unanswered = one_line(str(error))
        for job in jobs:
            if job is not None and (unanswered or job.state != "COMPLETED"):
                waiting_elsewhere.look(job, unanswered)
            if job is not None and job.state == "ERROR":
                # It ran nothing that could have failed.
                why = f"the scheduler could not start it (`qstat -j {job.jobid}` says why)"
                give_up(
                    scheduler, job, errors.JobBlockedError(f"{why}, so it was deleted", job.jobid)
                )

    return poll_and_wait


def give_up(scheduler: Any, job: Any, error: errors.JobError) -> None:
    """End a job with an error that Grid Engine would keep in its queue for ever."""
    with suppress(errors.SpawnedProcessError, errors.JobSchedulerError):
        scheduler.cancel(job)
    job._state, job._exception = "COMPLETED", error


class LostNodes:
    """Grid Engine's jobs on nodes that it hears nothing of: to it they run for ever.

    Not even a time limit ends them, which the lost node would see to.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        #: When each job was first seen to run, and when to be on a node that is not heard of.
        self.runs: dict[str, float] = {}
        self.since: dict[str, float] = {}
        self.next = 0.0

    def look(self, scheduler: Any, jobs: Sequence[Any]) -> None:
        """Give up those of the polled jobs that have been on a lost node for long enough."""
        over = (*PENDING, "ERROR", "COMPLETED")
        running = [job for job in jobs if job is not None and job.state not in over]
        self.runs = {job.jobid: self.runs.get(job.jobid, self.now()) for job in running}
        # Most launches are over before anybody is asked: that could disturb them.
        first = min(self.runs.values(), default=self.now())
        if self.now() < max(self.next, first + HEARD_S):
            return
        self.next = self.now() + HEARD_S
        try:
            lost = self.on_lost_nodes()
        except (NoAnswer, ParseError):
            return
        self.since = {job: self.since.get(job, self.now()) for job in lost}
        for job in running:
            if job.jobid in lost and self.now() - self.since[job.jobid] >= UNHEARD_S:
                give_up(scheduler, job, errors.JobError(
                    f"node failure: Grid Engine hears nothing of {lost[job.jobid]}, which this job "
                    f"is on; it was given up, and may need `qdel -f {job.jobid}` by an operator",
                    job.jobid,
                ))  # fmt: skip

    @staticmethod
    def on_lost_nodes() -> dict[str, str]:
        """Return the jobs that are on nodes that are not heard of, each with the names of these.

        Raises NoAnswer and ParseError where Grid Engine does not say.
        """
        said = ask(
            ["qstat", "-xml", "-f", "-g", "t", "-qs", "u", "-u", osext.osuser()], PATIENCE_S
        )  # fmt: skip
        found: dict[str, list[str]] = {}
        for queue in ElementTree.fromstring(said).iter("Queue-List"):
            node = queue.findtext("name", "").partition("@")[2]
            for job in queue.iter("JB_job_number"):
                found.setdefault(job.text or "", []).append(node)
        return {job: ", ".join(dict.fromkeys(nodes)) for job, nodes in found.items()}


silent_sge_poll = SgeJobScheduler.poll
lost_nodes = LostNodes()


def poll_gridengine(scheduler: Any, *jobs: Any) -> None:
    """Poll jobs as ReFrame does, and give up those that are on a lost node."""
    silent_sge_poll(scheduler, *jobs)
    lost_nodes.look(scheduler, jobs)


class Forgotten:
    """LSF's jobs that it says are not found: it forgets those that ended, an hour later or so.

    bjobs then fails, and ReFrame knows nothing of any job that it asked of together. It may also
    not yet have found a job that was just submitted, so it has to say so for some time.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        #: When each was first not found.
        self.since: dict[str, float] = {}

    def poll(self, scheduler: Any, *jobs: Any) -> None:
        """Poll jobs as ReFrame does; those that are forgotten for long enough are complete."""
        asked = [job for job in jobs if job is not None and job.state != "COMPLETED"]
        try:
            silent_lsf_poll(scheduler, *asked)
        except errors.SpawnedProcessError as error:
            gone = {job.jobid for job in asked} & set(NOT_FOUND.findall(str(error.stderr or "")))
            if not gone:
                raise
        else:
            gone = set()
        self.since = {job: self.since.get(job, self.now()) for job in gone}
        if known := [job for job in asked if job.jobid not in gone] if gone else []:
            silent_lsf_poll(scheduler, *known)
        for job in asked:
            if job.jobid in gone and self.now() - self.since[job.jobid] >= FORGOTTEN_S:
                job._state, job._completed = "COMPLETED", True


silent_lsf_poll = LsfJobScheduler.poll
forgotten = Forgotten()


def cancel_those_that_wait_too_long(scheduler: Any, jobs: Sequence[Any]) -> None:
    """Cancel jobs as ReFrame does, and have each end as one that was never run."""
    waiting_jobs = [job for job in jobs if not job.is_cancelling]
    silent_cancel(scheduler, waiting_jobs)
    for job in waiting_jobs:
        if job.is_cancelling:
            job._exception = WaitedTooLong(
                "it has waited in the queue for longer than the site allows (longest_wait_s: "
                f"{job.max_pending_time:g}) and was cancelled", job.jobid,
            )  # fmt: skip


silent_cancel = SlurmJobScheduler._cancel_if_pending_too_long


def nodelist_once(job: Any) -> Any:
    """Return the nodes that a Slurm job had: what scontrol has said of them, asked until it does.

    ReFrame wants them for each message that it logs, and none of these may end a session: without
    an answer they are unknown.
    """
    if job._nodelist:
        return job._nodelist
    try:
        return silent_nodelist.fget(job)
    except (errors.SpawnedProcessError, OSError):
        return job._nodelist


silent_nodelist = slurm._SlurmJob.nodelist


class Answered:
    """Stands in for ReFrame's `osext` where it asks a scheduler: no command is awaited for ever."""

    def __getattr__(self, name: str) -> Any:
        """Return what is left as it is."""
        return getattr(osext, name)

    @staticmethod
    def run_command(command: Any, *words: Any, timeout: float | None = None, **more: Any) -> Any:
        """Run a command as ReFrame does, for a minute at most where it names no time."""
        return osext.run_command(command, *words, timeout=timeout or PATIENCE_S, **more)


def ask_in_time() -> None:
    """Have ReFrame ask all schedulers in this way, and end jobs that print without end."""
    SqueueJobScheduler.poll = bounded(poll_until_answered)
    SlurmJobScheduler.poll = bounded(poll_and_speak)
    LocalJobScheduler.poll = until_it_ends.noting(bounded(LocalJobScheduler.poll))
    slurm._SlurmJob.nodelist = property(nodelist_once)
    SlurmJobScheduler._cancel_if_pending_too_long = cancel_those_that_wait_too_long
    SgeJobScheduler.poll = poll_gridengine
    LsfJobScheduler.poll = lambda scheduler, *jobs: forgotten.poll(scheduler, *jobs)
    for scheduler in (PbsJobScheduler, PbsProJobScheduler, LsfJobScheduler, SgeJobScheduler):
        scheduler.poll = bounded(patient(scheduler.poll))
    for module in (local, pbs, lsf, sge, oar, flux):
        module.time = steady_time
    slurm.time = time_of_slurm
    for module in (slurm, pbs, lsf, sge):
        module.osext = Answered()
        module._run_strict = partial(module.osext.run_command, check=True)
