"""What a job runs that drives a campaign for a while (campaign/driver.py)."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from campaign import __main__ as campaigns
from campaign import beginning, driver
from campaign.rounds import TimeIsOver
from campaign.site_lock import SiteIsBusy
from containers import selection
from containers.ending import exit_code
from records import files, layout, schedule
from records.acting_user import act_for
from records.base import CampaignError
from records.command_words import CommandWords
from reframe_checks.bin.telling import UNTIL

#: The share of its time in which launches are begun; the rest is for the last one's wait and run.
BEGINS = 0.75
#: The chain ends after so many jobs in a row that began to measure and recorded no launch.
MOST_IN_VAIN = 3
#: How often a driver looks whether another campaign has left the site, in seconds.
POLL_S = 10.0


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = CommandWords(
        prog="python -m campaign.driver_job",
        description="Continue a campaign for the duration of this Slurm job; the next job, "
        "which this one submits, does the same. `make run DRIVER=job` starts the chain.",
    )
    parser.add_argument("campaign", help="a campaign of runs/")
    for name in ("recorded", "sessions", "vain"):
        parser.add_argument(f"--{name}", type=int, default=0, help="as the last job found it")
    return parser.parse_args(words)


def drive(options: argparse.Namespace, own: str, began: float) -> int:
    """Resume a campaign; return the exit code. `own` is this job, `began` when it started.

    Raises what a campaign raises.
    """
    root = beginning.ROOT
    campaign = layout.runs(root) / Path(options.campaign).name
    site = beginning.read_manifest(campaign.name).site
    limit = float(selection.site_data(root, site).get("driver_time_s", driver.TIME_S))
    until = began + BEGINS * limit
    os.environ[UNTIL] = str(until)
    state = schedule.state_of(campaign)
    vain = options.vain
    if state and state.sessions > options.sessions:
        vain = 0 if state.recorded() > options.recorded else vain + 1
    if vain >= MOST_IN_VAIN:
        raise CampaignError(
            f"{vain} jobs in a row ended before a launch was recorded: a launch, with its wait, "
            f"takes longer than a driver has, {limit:g} s; give it more (`driver_time_s` in "
            "site.yaml), and resume: "
            f"make run SITE={site} RESUME={campaign.name} DRIVER={driver.JOB}"
        )

    def next_job() -> str:
        # Not before this one has ended, in whatever way.
        return driver.submit(root, campaign, site, driver.progress_of(state, max(vain, 0)), own)

    following: str | None = None
    try:
        following = next_job()
    except CampaignError as error:
        print(f"driver: {error}; it will be requested again at the end", file=sys.stderr)
    try:
        code = when_free(lambda: go_on(campaign.name, site), until)
    except TimeIsOver as over:
        following = following or next_job()
        print(f"driver: {over}: job {following}")
        return 0
    except BaseException:
        driver.call_off(campaign)
        raise
    driver.call_off(campaign)
    return code


def go_on(campaign: str, site: str) -> int:
    """Measure what is missing from a campaign, and report it; return the exit code."""
    return campaigns.work(campaigns.arguments([f"--resume={campaign}", f"--site={site}"]))


def when_free(work: Callable[[], int], until: float) -> int:
    """Do work that needs the site, once no other campaign has it.

    Raises TimeIsOver if that takes too long, and whatever the work raises.
    """
    while True:
        try:
            return work()
        except SiteIsBusy as error:
            if time.monotonic() + POLL_S >= until:
                raise TimeIsOver(f"{error}; the next job waits for it") from None
        time.sleep(POLL_S)


def main() -> int:
    """Drive a campaign for the duration of a job; return the exit code."""
    began, own = time.monotonic(), os.environ.get("SLURM_JOB_ID", "")
    act_for(beginning.ROOT)
    os.environ.setdefault("WYEAST_ROOT", str(beginning.ROOT))
    files.only_owner_writes()
    options = arguments()
    driver.forget_own_job()

    def work() -> int:
        if not own:
            raise CampaignError(
                "this is not a Slurm job; to have jobs drive a campaign: make run "
                f"RESUME={options.campaign} DRIVER={driver.JOB}"
            )
        return drive(options, own, began)

    return exit_code("driver", work, beginning.ERRORS, "resume: make run "
                     f"RESUME={options.campaign} DRIVER={driver.JOB}")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
