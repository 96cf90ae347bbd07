"""What would doom a campaign on this machine, looked at in its first seconds.

Nothing is built, pulled or asked of a scheduler's controller before that. What only the nodes can
say, their first job does: the preflight.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from campaign import provenance, room
from campaign.site_lock import only_campaign
from containers import ability, selection
from records import layout
from records.base import CampaignError
from site_configs.installation_entries import images_in
from site_configs.machine import Machine, scheduler
from site_configs.site_file import SCHEDULERS

#: What tells a process that it is in a job, by Slurm, PBS, LSF, Grid Engine or Flux.
OF_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE", "FLUX_JOB_ID")


def refuse_obstacles(root: Path, options: argparse.Namespace) -> None:
    """Raise CampaignError for what dooms a campaign here, and ProvisionError for no containers.

    Of the cluster in a box only what is outside of it is looked at.
    """
    site = str(options.site)
    if options.site_by_default and not options.estimate:
        refuse_login_node(Machine(), os.environ)
    room.refuse_least(root, site)
    if selection.in_a_box(root, site):
        return
    data = selection.site_data(root, site)
    if missing := missing_commands(data, Machine()):
        raise CampaignError(
            f"site {site} submits jobs by `scheduler: {data['scheduler']}`, and this machine has "
            f"no {', '.join(missing)} on PATH: measure from where jobs are submitted"
        )
    if selection.runs_here(root, site):
        refuse_noexec(room.places(root, site)[1])
        # Where neither names any, images are what is measured.
        words = options.images or ",".join(data.get("implementations", ()))
        if not words or images_in(words):
            ability.refuse_inability()
        for sentence in provenance.limits(data).get("limited", ()):
            print(f"note: {sentence}")
    if not options.driver:
        with only_campaign(root, site):
            pass


def refuse_noexec(place: Path) -> None:
    """Raise CampaignError where no program may be started from the folder of launches.

    ReFrame writes a script for each there. Schedulers read theirs.
    """
    there = next(one for one in (place, *place.parents) if one.exists())
    if os.statvfs(there).f_flag & os.ST_NOEXEC:
        raise CampaignError(
            f"{there} is mounted noexec, and the scripts of launches are started in {place}: "
            f"measure from a folder elsewhere: {layout.HOME}=<folder>"
        )


def refuse_login_node(machine: Machine, variables: Mapping[str, str]) -> None:
    """Raise CampaignError where this is a machine that others submit their jobs from."""
    if any(variables.get(name) for name in OF_JOBS):
        return
    kind, evidence = scheduler(machine)
    if kind != "local":
        raise CampaignError(
            f"this machine submits jobs ({evidence}), and you are not inside a job: other "
            "users' work would distort this campaign, and it would disturb them. Describe the "
            "cluster, and measure on its nodes: make new-site NAME=<name>; or say that you want "
            "this machine measured: make run SITE=local"
        )


def missing_commands(site: Mapping[str, Any], machine: Machine) -> list[str]:
    """Return the commands that a site's jobs are submitted and started by and that are missing."""
    wanted = [*SCHEDULERS[site["scheduler"]], *(["srun"] if site["launch"] == "srun" else [])]
    return [command for command in wanted if not machine.has(command)]
