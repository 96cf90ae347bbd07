"""What a campaign ran on and with: the facts of its manifest."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from containers import images, trust
from containers.apptainer import apptainer_command, exec_options

# Everything that decides what is measured and that is not inside an image.
INPUTS = (
    "containers/*.def",
    "containers/implementations.yaml",
    "containers/sources.lock",
    "containers/images.lock",
    "requirements.lock",
    "reframe_checks/**/*.py",
    "site_configs/settings.py",
)


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def input_digests(root: Path, site: str) -> dict[str, str]:
    """Return the digests of the files that decide what a campaign measures."""
    patterns = (*INPUTS, f"site_configs/{site}/*")
    paths = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    return {str(path.relative_to(root)): sha256_of(path) for path in sorted(paths)}


def first_line(path: str) -> str | None:
    """Return the first line of a file of the kernel, or None where there is none."""
    try:
        return Path(path).read_text().splitlines()[0].strip() or None
    except (OSError, IndexError, UnicodeDecodeError):
        return None


def of_processor(field: str) -> str | None:
    """Return a field of the first processor in /proc/cpuinfo."""
    match = re.search(rf"^{field}\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    return match.group(1).strip() if match else None


def network() -> dict[str, dict[str, str | None]]:
    """Return the network interfaces with their state and speed (Mbit/s, as the kernel says)."""
    interfaces = sorted(Path("/sys/class/net").iterdir())
    return {
        interface.name: {
            "state": first_line(f"{interface}/operstate"),
            "speed_mbit_per_s": first_line(f"{interface}/speed"),
        }
        for interface in interfaces
        if interface.name != "lo" and interface.is_dir()
    }


def machine() -> dict[str, Any]:
    """Return the facts of this machine that bear on a measurement."""
    return {
        "hostname": platform.node(),
        "kernel": platform.release(),
        "kernel_command_line": first_line("/proc/cmdline"),
        "cpu_model": of_processor("model name"),
        "cpu_flags": of_processor("flags"),
        "microcode": of_processor("microcode"),
        "cores": len(os.sched_getaffinity(0)),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "governor": first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "transparent_huge_pages": first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "load_average": os.getloadavg()[0],
        "network": network(),
    }


def said_by(*command: str) -> str | None:
    """Return what a command prints, or None where there is no such command or it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def software(root: Path) -> dict[str, Any]:
    """Return the versions of what starts, isolates and schedules the launches."""
    return {
        "reframe": version("reframe-hpc"),
        "apptainer": said_by(str(apptainer_command()), "--version"),
        "slurm": said_by("sinfo", "--version"),
        "python": platform.python_version(),
        "wyeast_commit": said_by("git", "-C", str(root), "rev-parse", "HEAD"),
        "wyeast_changes": bool(said_by("git", "-C", str(root), "status", "--porcelain")),
    }


def describe_images(
    root: Path, implementations: list[str], site: Mapping[str, Any]
) -> dict[str, Any]:
    """Return digest, labels and inner manifest of each image, after verifying it.

    Raises containers.images.ImageError for an image that is missing, not the locked one, or not
    what the site's data allow.
    """
    described = {}
    for implementation in implementations:
        path = trust.admit(root, implementation, site)
        manifest = said_by(
            str(apptainer_command()),
            "exec",
            *exec_options(),
            str(path),
            "cat",
            "/opt/wyeast/manifest.json",
        )
        described[implementation] = {
            "sha256": images.entry_of(root, implementation)["sha256"],
            "labels": images.labels(path),
            "manifest": json.loads(manifest) if manifest else None,
        }
    return described
