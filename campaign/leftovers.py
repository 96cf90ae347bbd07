"""What a launch leaves running here when ReFrame dies: nothing may be measured meanwhile.

Processes are recognised by a variable of ReFrame's environment, which a job and its children have
and nobody else sets, and by the job's session, which even ranks have that were started without
that environment.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from campaign import queues
from campaign.site_lock import only_campaign
from containers import selection
from records import files, layout, schedule
from records.base import CampaignError
from records.campaign import is_imported
from records.counting import how_many
from records.journal import copied_from
from records.manifest import read_manifest
from records.processes import END_S, end, known, name_of, processes, running_for, stat_of
from records.schedule import Schedule
from site_configs.site_file import LOCAL

#: How long a process that was killed may take to end.
LONGEST_S = 30.0
#: How long a job that was cancelled may stay in the queue: some answers that come late, and what a
#: scheduler needs to end it.
LONGEST_QUEUED_S = 5 * queues.ANSWER_S
#: How often Slurm is asked whether it still has a job.
POLL_S = 1.0
#: The program by which Apptainer mounts an image where the kernel does not do it for users.
MOUNTS = "squashfuse_ll"


class NotAsked(CampaignError):
    """Jobs may still run on a scheduler that is not queried here; the text is a sentence."""

    def __init__(self, campaign: Path, jobs: Collection[str]) -> None:
        super().__init__(may_still_run(campaign, jobs))
        self.jobs = ", ".join(jobs)


def still_ours(campaign: Path, sessions: Mapping[int, int]) -> set[int]:
    """Return which of these sessions still belong to a launch, by their first process' start.

    A number that another process has got since is not ours. Raises CampaignError if the
    first process has ended and others stay: it is unknown whose they are. Mounts that serve no
    container any more are nobody's, and are ended here.
    """
    here, ours = processes(), set()
    for session, start in sessions.items():
        if session in here:
            if here[session].started == start:
                ours.add(session)
            continue
        deadline = time.monotonic() + END_S
        while unknown := of_nobody_known(campaign, session):
            # What is left of a container ends a moment after the last of its launch.
            if time.monotonic() > deadline:
                raise CampaignError(
                    f"process {unknown[0]} may belong to a launch of {campaign.name}, whose first "
                    "process has ended, and nothing is measured while it runs; end it and resume"
                )
            time.sleep(0.05)
    return ours


def of_nobody_known(campaign: Path, session: int) -> list[int]:
    """Return the processes of a session that may not be the campaign's; end mounts for nobody."""
    here = processes()
    members = [pid for pid, one in here.items() if one.session == session]
    end(orphans := set(filter(serves_nobody, members)))
    unknown = [pid for pid in members if here[pid].works_for != str(campaign)]
    return [pid for pid in unknown if pid not in orphans]


def serves_nobody(pid: int) -> bool:
    """Return whether a process has an image mounted for a container whose starter has ended.

    That is what kills leave of a container most often, and it ends by itself only sometimes.
    """
    try:
        _, parent, _, session = stat_of(pid)[:4]
        return name_of(pid) == MOUNTS and stat_of(int(parent))[3] != session
    except (OSError, ValueError, IndexError):
        return False


def end_all(campaign: Path, sessions: Mapping[int, int] | None = None) -> int:
    """End what still works for a campaign whose ReFrame has ended; return how many processes.

    `sessions` are those of its jobs: when the first process of each started, by its number. Raises
    CampaignError if something does not end.
    """
    ours = still_ours(campaign, sessions or {})
    all_of_them: set[int] = set()
    deadline = time.monotonic() + LONGEST_S
    while left := running_for(campaign, ours):
        all_of_them.update(left)
        if time.monotonic() > deadline:
            raise CampaignError(
                f"process {min(left)} of a launch of {campaign.name} has not ended, and nothing is "
                "measured while it runs; end it and resume"
            )
        end(left)
        time.sleep(0.05)
    return len(all_of_them)


def end_queued(
    campaign: Path, scheduler: str, jobs: Mapping[str, str], names: Iterable[str] = ()
) -> None:
    """Cancel the jobs of a ReFrame that has died, and wait until they have left the scheduler.

    `jobs` are the numbers that the scheduler gave, by the names that we gave, `names` those of jobs
    that may have been submitted without an answer. Raises CampaignError if one stays, and NotAsked
    if the scheduler is not one that is queried here.
    """
    if not queues.can_be_asked(scheduler):
        if jobs:
            raise NotAsked(campaign, jobs.values())
        return
    wanted = [*jobs, *names]
    deadline = time.monotonic() + LONGEST_QUEUED_S
    while (left := queues.queued(scheduler, wanted)) != []:
        # However late the answer came.
        if left:
            queues.cancel(scheduler, left)
        if time.monotonic() > deadline:
            raise CampaignError(
                may_still_run(campaign, left or [jobs.get(one, one) for one in wanted])
            )
        time.sleep(POLL_S)


def may_still_run(campaign: Path, jobs: Iterable[str]) -> str:
    """Return why nothing is measured while jobs of a campaign may run."""
    return (
        f"job {', '.join(jobs)} of a ReFrame that has died may still run, and nothing is "
        f"measured meanwhile; end it and resume: make run RESUME={campaign.name}"
    )


def end_leftovers(scheduler: str, held: Schedule, goes_on: bool = False) -> int:
    """End what a dead ReFrame left here and in the queue; return how many processes ended here.

    If somebody `goes_on`, a job of a scheduler that cannot be queried is only reported, and starts
    nothing if it has not begun yet; otherwise that raises NotAsked. Raises CampaignError if
    something does not end, and OSError if the campaign cannot be written.
    """
    jobs = held.jobs_in_flight()
    if scheduler == LOCAL:
        return end_all(held.campaign, known(list(jobs.values())))
    try:
        end_queued(held.campaign, scheduler, jobs, held.give_up_unanswered())
    except NotAsked as left:
        if not goes_on:
            raise
        held.give_up_in_flight()
        print(
            f"job {left.jobs} of {held.campaign.name}, whose ReFrame has died, may still run and "
            f"disturb what is measured now: the scheduler {scheduler} is not queried here; if it "
            "has begun, stop this, end the job and resume; if not, it will start nothing",
            file=sys.stderr,
        )
    return end_all(held.campaign)


def end_leftovers_of_the_dead(root: Path, site: str) -> None:
    """End what killed campaigns of this checkout left behind, here or on a site.

    The caller holds the site, and campaigns that are measuring are not touched. Raises
    CampaignError if something does not end, and OSError if a campaign cannot be written.
    """
    runs = layout.runs(root)
    at_work = {Path(one.works_for) for one in processes().values() if one.works_for}
    for campaign in sorted(runs.iterdir()) if runs.is_dir() else ():
        try:
            manifest = read_manifest(campaign)
        except CampaignError:
            continue
        is_killed = manifest.site == site and not manifest.finished_utc
        if not (is_killed or campaign in at_work) or not files.belongs_to_us(campaign):
            continue
        # Its jobs are of where it was measured, where it may be measured still.
        if is_imported(campaign):
            continue
        with ExitStack() as stack:
            try:
                if manifest.site != site:
                    # Even if both are here: the lock of the machine may have been refused.
                    has_machine = are_here(root, site, manifest.site)
                    stack.enter_context(only_campaign(root, manifest.site, has_machine))
            except CampaignError:
                # It is being measured, or its site is no longer there.
                continue
            if ended := end_all(campaign) + end_in_flight(root, campaign, manifest.site):
                count = how_many(ended, "process", "processes")
                print(f"ended {count} that runs/{campaign.name} had left running")


def are_here(root: Path, *sites: str) -> bool:
    """Return whether the launches of all these sites run on this machine."""
    return all(selection.runs_here(root, site) for site in sites)


def end_in_flight(root: Path, campaign: Path, site: str) -> int:
    """End what a killed campaign's journal has in flight; return how many processes.

    Its journal is not changed: resuming the campaign settles it.
    """
    try:
        state = schedule.state_of(campaign)
        if not state or not state.may_have_jobs() or copied_from(campaign):
            return 0
        held = ExitStack()
        book = held.enter_context(schedule.held(campaign))
    except CampaignError:
        # It is unknown, or somebody measures it by hand, which no lock prevents.
        return 0
    with held:
        return end_leftovers(scheduler_of(root, site), book, goes_on=True)


def scheduler_of(root: Path, site: str) -> str:
    """Return ReFrame's name of a site's scheduler."""
    return str(selection.site_data(root, site)["scheduler"])
