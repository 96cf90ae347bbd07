"""Gather every site folder into ReFrame's configuration.

A site is a folder with `site.yaml` (data) and `references.yaml`. This file is ReFrame's
`settings.py` when `RFM_CONFIG_PATH` names this folder; it holds no fact about any site.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from records import files, layout
from site_configs.entries import SiteError
from site_configs.processor import detected_memory, detected_processor, fabrics
from site_configs.references_file import check_references
from site_configs.site_file import WHOLE_NODES, read_site

SITES = Path(__file__).resolve().parent
PROJECT = SITES.parent
CURRENT = os.environ.get("RFM_SYSTEM", "local").partition(":")[0]
# One folder a site: on a cluster in a box, jobs are another user's than those of `local`.
STATE = layout.state(PROJECT) / "reframe" / CURRENT

# ReFrame opens its log here before it makes the folder. What root made it would be root's.
if os.geteuid() == layout.home(PROJECT).stat().st_uid:
    # This is read before a command has come to that.
    files.only_owner_writes()
    STATE.mkdir(parents=True, exist_ok=True)


def file_of(site: str, name: str) -> Path:
    """Return a file of a site's folder: the user's before the one beside this file."""
    own = layout.sites(PROJECT) / site / name
    return own if layout.is_shared(PROJECT) and own.exists() else SITES / site / name


def load_site(name: str) -> dict[str, Any]:
    """Return a site's data with its overrides and every `detect` replaced by what is found here.

    Raises SiteError for invalid files, including references.
    """
    site = read_site(file_of(name, "site.yaml"), PROJECT)
    check_references(file_of(name, "references.yaml"), PROJECT, name, site["partition"])
    detectors: dict[str, Callable[[], float | bool]] = {
        "cores_per_node": lambda: detected_processor()[0],
        "memory_bytes_per_node": detected_memory,
        "peak_flops_per_node": lambda: detected_processor()[1],
        "processors": lambda: detected_processor()[0],
        "spare_init_wait": lambda: not fabrics(),
    }
    for key, detector in detectors.items():
        if site.get(key) == "detect":
            site[key] = detector()
    return site


def whole_nodes(site: dict[str, Any]) -> dict[str, Any]:
    """Return how ReFrame has the site's options of jobs.

    Its backend of Grid Engine leaves out `access`, and needs the number of slots in words of the
    site, since parallel environments have any names: there the options are a resource, for which
    each check says how many (reframe_checks/mixins/experiment.py).
    """
    access = site.get("access", [])
    if site["scheduler"] != "sge":
        return {"access": access}
    return {"resources": [{"name": WHOLE_NODES, "options": access}]}


def system(name: str, site: dict[str, Any]) -> dict[str, Any]:
    """Return ReFrame's description of a site."""
    return {
        "name": name,
        "descr": site["description"],
        "hostnames": site["hostnames"],
        "modules_system": site.get("modules_system", "nomod"),
        "prefix": str(STATE),
        "partitions": [
            {
                "name": site["partition"],
                "scheduler": site["scheduler"],
                # The checks put the site's own in the place of ReFrame's `mpirun`.
                "launcher": "local" if site["launch"] == "mpiexec" else site["launch"],
                "sched_options": {
                    "use_nodes_option": True,
                    # A controller that restarts is waited for, as long as the timeout says.
                    "job_submit_timeout": 120,
                    "resubmit_on_errors": ["Unable to contact slurm controller"],
                },
                **whole_nodes(site),
                "prepare_cmds": site.get("prepare", []),
                "modules": site.get("modules", []),
                "environs": ["container"],
                "container_platforms": [{"type": "Apptainer"}],
                "features": ["wyeast"],
                # One launch at a time: a neighbour would be measured too.
                "max_jobs": 1,
                "processor": {"num_cpus": site["cores_per_node"]},
                "extras": {"site": {**site, "name": name}},
            }
        ],
    }


# `local` matches every host, so it goes last.
FOLDERS = (SITES, *((layout.sites(PROJECT),) if layout.is_shared(PROJECT) else ()))
NAMES = sorted(
    {path.parent.name for folder in FOLDERS for path in folder.glob("*/site.yaml")},
    key=lambda name: (name == "local", name),
)


def load_all(names: list[str]) -> dict[str, dict[str, Any]]:
    """Return every site's data; leave out an invalid one, with a warning, unless it is in use."""
    found = {}
    for name in names:
        try:
            found[name] = load_site(name)
        except SiteError as error:
            if name == CURRENT:
                sys.exit(str(error))
            print(f"site {name} is left out: {error}", file=sys.stderr)
    return found


DATA = load_all(NAMES)

# Launches are short. That a process of this machine has ended is noticed at once where the kernel
# tells (reframe_checks/bin/waking.py); elsewhere it is looked at often at first, but never so often
# that the looking shows. A scheduler is asked by a command, so it is asked at most twice a second.
POLLS_PER_S = (50, 10) if DATA.get(CURRENT, {}).get("scheduler") in ("local", None) else (2, 2)

site_configuration = {
    "systems": [system(name, site) for name, site in DATA.items()],
    "environments": [{"name": "container", "features": ["container"]}],
    "general": [
        {
            "check_search_path": [str(PROJECT / "reframe_checks")],
            "report_file": str(STATE / "reports" / "run-{sessionid}.json"),
            "resolve_module_conflicts": False,
            "use_login_shell": False,
            "remote_detect": False,
            "poll_rate_max": POLLS_PER_S[0],
            "poll_rate_min": POLLS_PER_S[1],
        }
    ],
    # Campaigns keep what was measured; a database of ReFrame's own would grow with every night.
    "storage": [{"enable": False}],
    "logging": [
        {
            "level": "debug",
            "handlers": [
                {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"},
                {
                    "type": "file",
                    "name": str(STATE / "reframe.log"),
                    "level": "debug",
                    "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                    "append": False,
                },
            ],
            "handlers_perflog": [],
        }
    ],
}
