"""A campaign that is driven by its own jobs: `make run DRIVER=job`.

Centres kill long processes on login nodes, and a campaign takes as long as its launches wait. So
short jobs drive it, one after the other: each resumes the campaign as RESUME does, and begins
launches for a part of its time; then the next one, which waits for it in the queue, takes over.
The last one cancels the next. This module submits such jobs; each runs campaign/driver_job.py.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
from pathlib import Path
from typing import Any

from campaign import beginning, queues, resuming
from campaign.site_lock import only_campaign
from containers import selection
from records import layout, schedule
from records.base import CampaignError
from records.environment import of_own_job
from records.fold import State

JOB = "job"
#: How long a driver's job may take unless the site says otherwise, in seconds.
TIME_S = 4 * 3600.0
#: A driver measures nothing itself.
OPTIONS = ("--nodes=1", "--ntasks=1", "--cpus-per-task=1")
LOG = Path("reframe") / "driver.log"


def kind(words: str) -> str:
    """Return how a campaign is driven; raise CampaignError for an unknown way."""
    if words != JOB:
        raise CampaignError(
            f"DRIVER={words} is unknown: without DRIVER the campaign is driven from here, with "
            f"DRIVER={JOB} by jobs"
        )
    return words


def refuse(root: Path, site: str) -> None:
    """Raise CampaignError for a site where no job can drive a campaign."""
    scheduler = selection.site_data(root, site)["scheduler"]
    if scheduler not in queues.SLURM:
        raise CampaignError(
            f"DRIVER={JOB} needs Slurm, and site {site} has `scheduler: {scheduler}`; measure "
            "without it, and if the process is killed for running too long, continue with RESUME"
        )


def forget_own_job() -> None:
    """Make what is submitted from within a Slurm job an independent job."""
    for name in of_own_job(os.environ):
        del os.environ[name]


def name_of(campaign: Path) -> str:
    """Return the name that all jobs of a campaign's driver have, of 15 letters."""
    return f"wyd-{hashlib.sha256(os.fsencode(campaign)).hexdigest()[:11]}"


def time_limit(seconds: float) -> str:
    """Return a time as Slurm takes it."""
    whole = max(1, round(seconds))
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def command_of(
    root: Path, campaign: Path, data: dict[str, Any], site: str, words: list[str], after: str | None
) -> list[str]:
    """Return the command that submits a driver's job; `words` are for it, `after` is the last."""
    driver = shlex.join(["exec", "python", "-m", "campaign.driver_job", campaign.name, *words])
    # A job may have nothing of the variables of whoever submits it (SBATCH_EXPORT=NONE).
    own = {"SITE": site}
    if layout.is_shared(root):
        # It is named here, whatever an activation has chosen before, and where.
        own |= {layout.HOME: str(layout.home(root)), layout.CHOSEN: ""}
    variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in own.items())
    return [
        "sbatch", "--parsable", f"--job-name={name_of(campaign)}", f"--chdir={root}",
        f"--output={campaign / LOG}", "--open-mode=append", "--no-requeue",
        # The next job continues; the same one is not requeued.
        *([f"--dependency=afterany:{after}"] if after else []),
        *data.get("access", []), *OPTIONS,
        f"--time={time_limit(data.get('driver_time_s', TIME_S))}", *data.get("driver_options", []),
        f"--wrap=export {variables} && . ./activate && {driver}",
    ]  # fmt: skip


def submit(
    root: Path, campaign: Path, site: str, words: list[str], after: str | None = None
) -> str:
    """Submit a driver's job; return its number. Raises CampaignError if that fails."""
    data = selection.site_data(root, site)
    done = queues.ask(command_of(root, campaign, data, site, words, after))
    if done is None:
        raise CampaignError(
            f"sbatch did not answer, so it is unknown whether a job drives {campaign.name}; see: "
            f"squeue --name={name_of(campaign)}"
        )
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise CampaignError(f"no job can drive {campaign.name}: {said}")
    # On several clusters the cluster's name follows.
    return done.stdout.strip().partition(";")[0]


def call_off(campaign: Path) -> None:
    """Cancel the further jobs of a campaign's driver."""
    queues.ask([
        "scancel", "--quiet", f"--user={os.geteuid()}", f"--name={name_of(campaign)}",
        "--state=PENDING",
    ])  # fmt: skip


def progress_of(state: State | None, vain: int) -> list[str]:
    """Return what a driver passes to the next one: how far the campaign was when it began."""
    recorded, sessions = (state.recorded(), state.sessions) if state else (0, 0)
    return [f"--recorded={recorded}", f"--sessions={sessions}", f"--vain={vain}"]


def begin(options: argparse.Namespace) -> int:
    """Make a campaign, or take one that can be resumed, and have jobs drive it; return 0.

    Raises CampaignError, and what a new campaign raises.
    """
    root, site = beginning.ROOT, str(options.site)
    if options.resume:
        campaign, _ = resuming.unfinished(options)
        jobs = queues.of_slurm([name_of(campaign)])
        if jobs != []:
            by = f"is already driven by job {', '.join(jobs)}" if jobs else "may be driven already"
            raise CampaignError(
                f"{campaign.name} {by}{'' if jobs else ', and Slurm does not say'}; see: "
                f"squeue --name={name_of(campaign)}"
            )
    else:
        with only_campaign(root, site):
            campaign, _ = beginning.new_campaign(options)
    again = f"make run SITE={site} RESUME={campaign.name} DRIVER={JOB}"
    try:
        (campaign / LOG).parent.mkdir(exist_ok=True)
        job = submit(root, campaign, site, progress_of(schedule.state_of(campaign), -1))
    except (CampaignError, OSError) as error:
        raise CampaignError(f"{error}; nothing was measured; start it with: {again}") from None
    print(f"campaign runs/{campaign.name}: driven by job {job} and the later jobs of that name")
    print(f"follow it: tail -F runs/{campaign.name}/{LOG}")
    print(f"its jobs:  squeue --name={name_of(campaign)}")
    print(f"stop it:   scancel --name={name_of(campaign)}")
    print(f"resume it: {again}")
    if not selection.site_data(root, site).get("driver_options"):
        print(
            f"its job takes one core where the launches of site {site} run, so it may disturb "
            "them, or block those that need all nodes; to give it another partition, set "
            "`driver_options` in site.yaml"
        )
    return 0
