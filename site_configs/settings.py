"""Gather every site folder into ReFrame's configuration.

A site is a folder with `site.yaml` (data) and `references.yaml`. This file is ReFrame's
`settings.py` when `RFM_CONFIG_PATH` names this folder; it holds no fact about any site.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

SITES = Path(__file__).resolve().parent
PROJECT = SITES.parent
CURRENT = os.environ.get("RFM_SYSTEM", "local").partition(":")[0]
# One folder a site: on a cluster in a box, jobs are another user's than those of `local`.
STATE = PROJECT / ".wyeast" / "reframe" / CURRENT

# ReFrame opens its log here before it makes the folder.
STATE.mkdir(parents=True, exist_ok=True)

# Double-precision operations per cycle and core: two fused multiply-add units of that width.
VECTOR_OPERATIONS = (("avx512f", 32), ("avx2", 16), ("avx", 8))
TURBO_ALLOWANCE = 2.0  # highest turbo over the base clock that a virtual machine may hide


def detected_processor() -> tuple[int, float]:
    """Return (cores, peak FLOP/s upper limit) of this machine from /proc/cpuinfo."""
    text = Path("/proc/cpuinfo").read_text()
    cores = len(os.sched_getaffinity(0))
    clocks = [float(mhz) * 1e6 for mhz in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", text, re.M)]
    flags = set(re.findall(r"^flags\s*:\s*(.*)$", text, re.M)[0].split()) if clocks else set()
    operations = next((count for flag, count in VECTOR_OPERATIONS if flag in flags), 8)
    clock = max(clocks, default=3e9)
    return cores, cores * operations * clock * TURBO_ALLOWANCE


def detected_memory() -> int:
    """Return this machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def load_site(name: str) -> dict[str, Any]:
    """Return a site's data with its overrides and every `detect` replaced by what is found here."""
    site: dict[str, Any] = yaml.safe_load((SITES / name / "site.yaml").read_text())
    overrides = PROJECT / site.get("overrides", "")
    if overrides.is_file():
        site |= yaml.safe_load(overrides.read_text())
    detectors: dict[str, Callable[[], float]] = {
        "cores_per_node": lambda: detected_processor()[0],
        "memory_bytes_per_node": detected_memory,
        "peak_flops_per_node": lambda: detected_processor()[1],
        "processors": lambda: detected_processor()[0],
    }
    for key, detector in detectors.items():
        if site.get(key) == "detect":
            site[key] = detector()
    return site


def system(name: str, site: dict[str, Any]) -> dict[str, Any]:
    """Return ReFrame's description of a site."""
    return {
        "name": name,
        "descr": site["description"],
        "hostnames": site["hostnames"],
        "modules_system": "nomod",
        "prefix": str(STATE),
        "partitions": [
            {
                "name": site["partition"],
                "scheduler": site["scheduler"],
                "launcher": "local" if site["launch"] == "mpiexec" else site["launch"],
                "sched_options": {
                    "use_nodes_option": True,
                    # A controller that restarts is waited for, as long as the timeout says.
                    "job_submit_timeout": 120,
                    "resubmit_on_errors": ["Unable to contact slurm controller"],
                },
                "access": site.get("access", []),
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
NAMES = sorted((path.parent.name for path in SITES.glob("*/site.yaml")), key=lambda n: n == "local")

DATA = {name: load_site(name) for name in NAMES}

# Launches are short. Processes of this machine are looked at often at first, but never so often
# that the looking shows; a scheduler is asked by a command, so it is asked at most twice a second.
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
    "storage": [{"enable": True, "backend": "sqlite", "sqlite_db_file": str(STATE / "results.db")}],
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
