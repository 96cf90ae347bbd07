"""What a campaign ran on and with: the facts in its manifest."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from containers import images, installations, labels, loaded_libraries, trust
from containers.apptainer import command, launch_options, run_apart
from containers.selection import runs_here, site_data
from containers.spack import installed_packages
from containers.table import split_variant
from records import environment, layout, nodes
from records.acting_user import git
from records.base import CampaignError
from records.files import json_of
from records.manifest import OUTSIDE, Manifest
from records.references import PROPOSED
from site_configs import launchers
from site_configs.installation_entries import is_installation
from site_configs.machine import Machine, pmi_types
from site_configs.quota import quota
from site_configs.site_file import LOCAL

#: Everything that decides what a campaign runs and how that is judged and kept, and that is not
#: inside an image. What only describes it, such as a report, is not included.
INPUTS = (
    "requirements.lock",
    # Images, what is in them, and how they are found, admitted and started.
    "containers/*.def",
    "containers/implementations.yaml",
    "containers/sources.lock",
    "containers/apptainer.py",
    "containers/apptainer_setup.py",
    "containers/guarded.py",
    "containers/images.py",
    "containers/installations.py",
    "containers/installed.py",
    "containers/labels.py",
    "containers/loaded_libraries.py",
    "containers/other_builds.py",
    "containers/packing.py",
    "containers/selection.py",
    "containers/store.py",
    "containers/table.py",
    "containers/trust.py",
    # What is started, with which options of ReFrame's, and by which scripts.
    "campaign/reframe_session.py",
    "campaign/rounds.py",
    "reframe_checks/**/*.py",
    "reframe_checks/**/*.yaml",
    "reframe_checks/bin/reframe",
    "reframe_checks/launchers/*",
    "site_configs/*.py",
    # What reads a launch's output, judges it and writes it down.
    "inference/intervals.py",
    "inference/latency_bandwidth.py",
    "records/**/*.py",
    "records/*.yaml",
)
#: What else decides, if a campaign with a budget chooses what it measures next.
INPUTS_OF_CHOICES = (
    "analysis/comparison/cells.py",
    "analysis/comparison/compare.py",
    "analysis/comparison/families.py",
    "analysis/comparison/metrics.py",
    "analysis/comparison/oversubscription.py",
    "analysis/comparison/result.py",
    "analysis/comparison/verdict.py",
    "analysis/precision/waves.py",
    "analysis/tables/launch_names.py",
    "inference/allocation.py",
    "inference/estimates.py",
    "inference/families.py",
    "inference/looks.py",
)
#: Those that act through the images alone, whose digests are compared separately.
OF_IMAGES = re.compile(r"containers/.*\.(?:def|yaml|lock)")
#: The software of a machine that is checked again before each session.
INSTALLED = ("reframe", "apptainer", "slurm", "pmi", "launchers")
#: Files next to them that decide nothing: proposed references, which are not yet accepted, and
#: leftovers of editors and half-written files.
NO_INPUTS = re.compile(rf"\..*|.*~|#.*#|{re.escape(PROPOSED)}")
#: Of what a program of an image or a machine says of itself: some kilobytes do.
MOST_SAID_BYTES = 2**24
#: How many changes are named.
MOST_NAMED = 5
#: Options that tell a scheduler who pays and who asks, each with its value.
WHO = re.compile(r"(-A|-U|-M|-P|--(?:account|uid|gid|wckey|mail-user))(=|\s+|(?=\S))\S+")


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def input_digests(root: Path, site: str, has_budget: bool) -> dict[str, str]:
    """Return the digests of the files that decide what a campaign measures."""
    # A site with a cluster in a box also depends on the code that makes that cluster.
    boxed = layout.site_file(root, site, "cluster.yaml").is_file()
    patterns = (
        *INPUTS, *(("cluster/*.py",) if boxed else ()), *(INPUTS_OF_CHOICES if has_budget else ())
    )  # fmt: skip
    found = {path for pattern in patterns for path in root.glob(pattern)}
    # Of a user's home only this and its lock of images count: nothing else there is run or read.
    found |= {*layout.all_seen(layout.sites(root) / site, "*")}
    paths = {
        layout.name_of(root, path): path for path in found
        if path.is_file() and not NO_INPUTS.fullmatch(path.name)
    }  # fmt: skip
    digests = {name: sha256_of(path) for name, path in paths.items()}
    if (content := images.lock_content(root)) is not None:
        digests[images.LOCK] = hashlib.sha256(content).hexdigest()
    return dict(sorted(digests.items()))


def machine() -> dict[str, Any]:
    """Return the facts about this machine that affect measurements.

    Under a scheduler this is where campaigns are started; `nodes/` has the machines that measure.
    """
    seen = nodes.of_this_machine()
    return {**nodes.facts(seen), **nodes.conditions(seen)}


def limits(site: Mapping[str, Any]) -> dict[str, Any]:
    """Return what else a manifest has of a machine that measures: sentences on its limits, if any.

    Those of a scheduler's nodes are not those of where the campaign is started.
    """
    if site["scheduler"] != LOCAL:
        return {}
    facts = nodes.facts(nodes.of_this_machine())
    said = quota().sentences(facts["cores"] or 1, facts["memory_bytes"] or 0)
    return {"limited": said} if said else {}


def variables(site: Mapping[str, Any], here: Mapping[str, str]) -> dict[str, Any]:
    """Return what a manifest records of the variables of whoever starts a campaign.

    `environment` has all of their names, and `variables_removed` the names of those that are not
    handed on, since the site does not name them.
    """
    return {
        "environment": environment.values(here),
        "variables_removed": environment.removed(here, environment.named(site)),
    }


def without_accounts(site: Mapping[str, Any]) -> dict[str, Any]:
    """Return a site's data without who pays for its jobs and who asks for them."""
    if "access" not in site:
        return dict(site)
    return {**site, "access": [WHO.sub(r"\1\2…", str(one)) for one in site["access"]]}


def said_by(*words: str) -> str | None:
    """Return what a command prints, or None if it does not exist, fails or prints too much."""
    try:
        done = run_apart(
            words, patience_s=30, most_bytes=MOST_SAID_BYTES,
            env=environment.environment(os.environ),
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return (done.stdout.strip() or None) if done.returncode == 0 else None


def software(root: Path, site: Mapping[str, Any]) -> dict[str, Any]:
    """Return the versions of what starts, isolates and schedules a site's launches.

    `pmi` are the PMI types that srun offers; None if the site does not start ranks with srun.
    `launchers` are those of the machine; None if the site does not start ranks with them.
    """
    by_srun = site.get("launch") == "srun"
    return {
        "reframe": version("reframe-hpc"),
        "apptainer": said_by(*command("--version")),
        "slurm": said_by("sinfo", "--version"),
        "pmi": " ".join(sorted(pmi_types(Machine()))) or None if by_srun else None,
        "launchers": ", ".join(map(str, launchers.of_site(site))) or None,
        "python": platform.python_version(),
        "wyeast_commit": (git(root, "rev-parse", "HEAD") or b"").decode().strip() or None,
        "wyeast_changes": bool((git(root, "status", "--porcelain") or b"").strip()),
    }


def inner_manifest(implementation: str, told: str) -> dict[str, Any]:
    """Return the manifest inside an image, from its text; raises ImageError for any other text."""
    try:
        manifest = json_of(told)
    except ValueError as error:
        raise images.ImageError(
            f"the manifest inside the image {implementation} cannot be read: {error}"
        ) from None
    if not isinstance(manifest, dict):
        raise images.ImageError(
            f"the manifest inside the image {implementation} is not a JSON object"
        )
    return manifest


def describe_images(
    root: Path, implementations: list[str], site: Mapping[str, Any], loaded: bool = True
) -> dict[str, Any]:
    """Return digest, signature, labels and inner manifest of each image, after verifying it.

    Of an installation of the site, what it has of these, and that it runs outside of containers.

    With `loaded`, also which libraries its programs load, which takes about a second, and which
    packages Spack built it of. Raises
    containers.images.ImageError for an image that is missing, not the locked one, or not
    what the site's data allow.
    """
    described = {}
    # Variants have one image.
    answers: dict[Path, dict[str, Any]] = {}
    for implementation in implementations:
        if is_installation(implementation):
            described[implementation] = installations.facts(root, site, implementation)
            continue
        image, signature = trust.admit_by(root, implementation, site)
        shown = (image, "cat", "/opt/wyeast/manifest.json")
        told = said_by(*command("exec", *launch_options(alone=True), *shown))
        described[implementation] = {
            "sha256": images.entry_of(root, implementation)["sha256"],
            "signature": signature,
            "labels": images.labels(image),
            "manifest": inner_manifest(implementation, told) if told else None,
        }
        if loaded:
            if image.path not in answers:
                asked = (image, "sh", "-c", loaded_libraries.QUESTION)
                answer = said_by(*command("exec", *launch_options(alone=True), *asked))
                answers[image.path] = {"libraries": loaded_libraries.read(answer or "")}
                if described[implementation]["labels"].get(f"{labels.PREFIX}builder") == "spack":
                    listed = (image, "cat", installed_packages.LIST)
                    answer = said_by(*command("exec", *launch_options(alone=True), *listed))
                    answers[image.path]["packages"] = installed_packages.read(answer or "")
            described[implementation] |= answers[image.path]
    return described


def changed_files(root: Path, manifest: Manifest) -> list[str]:
    """Return which of the files that decide what is measured have changed since it began."""
    found = []
    before = manifest.inputs
    now = input_digests(root, manifest.site, manifest.design is not None)
    for name in sorted(now.keys() | before.keys()):
        if OF_IMAGES.fullmatch(name) or NO_INPUTS.fullmatch(Path(name).name):
            continue
        if now.get(name) != before.get(name):
            how = "is missing" if name not in now else "is new" if name not in before else "changed"
            found.append(f"{name} {how}")
    return found


def changes(root: Path, manifest: Manifest) -> list[str]:
    """Return what has changed since a campaign began: files, images, installed software.

    An image that is no longer here does not count: its launches are missing until it is back.
    """
    found = changed_files(root, manifest)
    locked = images.load_lock(root)["images"]
    for name, image in manifest.images.items():
        if image.runs == OUTSIDE:
            with suppress(images.ImageError):
                # The site's file, an input itself, has lines that a manifest does not keep.
                here = installations.facts(root, site_data(root, manifest.site), name)
                if here["sha256"] != image.sha256:
                    found.append(f"the installation {name} was replaced")
            continue
        entry = locked.get(split_variant(name)[0])
        if isinstance(entry, Mapping) and entry.get("sha256") != image.sha256:
            found.append(f"the image {name} was replaced")
    installed, known = software(root, manifest.site_data or {}), manifest.software
    # If launches run elsewhere, they do not use the Apptainer of whoever starts them, which may
    # differ when a job drives the campaign: each image's preflight checks the one they use.
    elsewhere = () if runs_here(root, manifest.site) else ("apptainer",)
    for name in INSTALLED:
        if name in elsewhere:
            continue
        # A program that does not answer now, or did not then, is not another version.
        if known.get(name) is not None and installed.get(name) not in (None, known[name]):
            found.append(f"{name} was {known[name]} and is {installed.get(name)}")
    return found


def refuse_changes(root: Path, manifest: Manifest, is_loaded: bool = False) -> None:
    """Raise CampaignError if a campaign would continue with other inputs than it began with.

    Of a process that `is_loaded` and goes on, files alone are looked at: it reads some of them anew
    for each launch.
    """
    if found := (changed_files if is_loaded else changes)(root, manifest):
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        raise CampaignError(
            f"{manifest.campaign} cannot be resumed with anything but what it began with: "
            f"{'; '.join(found[:MOST_NAMED])}{more}; put that back and resume, or measure a new "
            "campaign: what was measured is kept"
        )
