"""What a campaign ran on and with: the facts in its manifest."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from containers import images, trust
from containers.apptainer import command, exec_options
from records import nodes
from records.acting_user import git
from site_configs.machine import Machine, pmi_types

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
    # A site with a cluster in a box is what that cluster is made by.
    boxed = (root / "site_configs" / site / "cluster.yaml").is_file()
    patterns = (*INPUTS, f"site_configs/{site}/*", *(("cluster/*.py",) if boxed else ()))
    paths = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    return {str(path.relative_to(root)): sha256_of(path) for path in sorted(paths)}


def machine() -> dict[str, Any]:
    """Return the facts about this machine that affect measurements.

    Under a scheduler this is where campaigns are started; `nodes/` has the machines that measure.
    """
    seen = nodes.of_this_machine()
    return {**nodes.facts(seen), **nodes.conditions(seen)}


def said_by(*words: str) -> str | None:
    """Return what a command prints, or None if it does not exist or fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def software(root: Path, site: Mapping[str, Any]) -> dict[str, Any]:
    """Return the versions of what starts, isolates and schedules a site's launches.

    `pmi` are the PMI types that srun offers; None if the site does not start ranks with srun.
    """
    by_srun = site.get("launch") == "srun"
    return {
        "reframe": version("reframe-hpc"),
        "apptainer": said_by(*command("--version")),
        "slurm": said_by("sinfo", "--version"),
        "pmi": " ".join(sorted(pmi_types(Machine()))) or None if by_srun else None,
        "python": platform.python_version(),
        "wyeast_commit": (git(root, "rev-parse", "HEAD") or b"").decode().strip() or None,
        "wyeast_changes": bool((git(root, "status", "--porcelain") or b"").strip()),
    }


def describe_images(
    root: Path, implementations: list[str], site: Mapping[str, Any]
) -> dict[str, Any]:
    """Return digest, signature, labels and inner manifest of each image, after verifying it.

    Raises containers.images.ImageError for an image that is missing, not the locked one, or not
    what the site's data allow.
    """
    described = {}
    for implementation in implementations:
        image = trust.admit(root, implementation, site)
        manifest = said_by(
            *command("exec", *exec_options(), image, "cat", "/opt/wyeast/manifest.json")
        )
        described[implementation] = {
            "sha256": images.entry_of(root, implementation)["sha256"],
            "signature": trust.signature_status(root, implementation, site),
            "labels": images.labels(image),
            "manifest": json.loads(manifest) if manifest else None,
        }
    return described
