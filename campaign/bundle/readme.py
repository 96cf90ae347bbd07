"""The README of a bundle, which somebody who knows nothing of Wyeast can follow alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from analysis.tables.markdown import markdown_cell
from analysis.tables.units import about
from records.manifest import Manifest
from records.program import Program

#: What a checkout needs besides images, in bytes: Python's packages, Apptainer, what builds images.
SET_UP_BYTES = 1.5e9
#: An image, and what building it needs beside it, in bytes, where no image is in the bundle.
IMAGE_BYTES = 1e9


def readme(
    manifest: Manifest,
    program: Program,
    sizes: Mapping[str, int],
    expected: Sequence[str],
    from_commit: bool,
) -> str:
    """Return README.md of a bundle.

    `sizes` are the files' in bytes, by name; `expected` says in sentences what was found;
    `from_commit` is whether `definitions/` has the program as it was committed.
    """
    images = [name for name in sizes if name.startswith("images/") and name.endswith(".sif")]
    archive = f"{manifest.campaign}.tar.gz"
    bundle = sum(sizes.values())
    disk = 2 * bundle + SET_UP_BYTES + (0 if images else IMAGE_BYTES * len(manifest.images))
    return "\n".join([
        f"# {manifest.campaign}",
        "",
        f"Measurements of {', '.join(map(markdown_cell, manifest.images))}, made with "
        f"{program.name}: what was measured, with what, and how to measure it again.",
        "",
        "| here | is |",
        "|---|---|",
        "| `campaign/` | the campaign: its manifest, the raw output of every launch, tables, and "
        "`report.html`, which you can open now |",
        "| `definitions/` | what it was measured with" + (
            ": the program as it was committed, without its tests and documents |" if from_commit
            else ": those files of it whose digests the manifest has |"),
        *(["| `images/` | the images that ran, with their digests |"] if images else []),
        "| `SHA256SUMS` | the digest of every file: `sha256sum --check SHA256SUMS` |",
        "| `ro-crate-metadata.json` | all of this for machines: an RO-Crate 1.1 and Process Run "
        "Crate 0.5 |",
        "| `CITATION.cff`, `.zenodo.json` | how to cite it |",
        "",
        "## What you need",
        "",
        *(f"- {one}" for one in prerequisites(manifest, bool(images))),
        f"- {disk / 1e9:.1f} GB of disk: this bundle twice, what is installed, and the images.",
        "",
        "## How long it takes",
        "",
        *duration(manifest, bool(images)),
        "",
        "## Get the program",
        "",
        *where(program, from_commit),
        "",
        "## Measure it again, and compare",
        "",
        f"In the program's folder, with the path of this bundle's archive, `{archive}`:",
        "",
        "```",
        f"make rerun BUNDLE=/path/to/{archive} SITE=local DRY_RUN=1",
        f"make rerun BUNDLE=/path/to/{archive} SITE=local",
        "```",
        "",
        "The first command verifies every file and says what would be done and what is different "
        "here. The second one measures the same in the same order, and ends with a comparison of "
        "both. `local` is the machine where you type it; a cluster is described first: "
        "`make new-site NAME=mycluster`."
        + (" The images of this bundle run only if you trust who signed them, or say "
           "`ALLOW_UNSIGNED=1`." if images else ""),
        "",
        "## What to expect",
        "",
        *(f"- {markdown_cell(sentence)}" for sentence in expected),
        "",
        "A difference that is shown here is expected to be shown again with the same sign on the "
        "machine that it was measured on, with an interval that overlaps this one. On another "
        "machine a ratio may be any other. What is not shown here may be shown by more rounds.",
        "",
    ])  # fmt: skip


def prerequisites(manifest: Manifest, with_images: bool) -> list[str]:
    """Return what a machine must have."""
    machine = manifest.machine
    memory = machine.get("memory_bytes")
    processor = markdown_cell(machine.get("cpu_model") or "a processor not recorded")
    site = manifest.site_data or {}
    nodes = site.get("nodes", 1)
    build = "" if with_images else (
        ", and to build the images subordinate ids of the user (`/etc/subuid`) and a network"
    )  # fmt: skip
    return [
        f"Linux on {machine.get('architecture') or 'x86_64'}, Python 3.11 or newer with its venv "
        f"module, make, git, and Apptainer{build}. As root on Debian the commands install what is "
        "missing.",
        f"It was measured on: {processor}, {machine.get('cores') or 'an unknown number of'} cores"
        + (f", {memory / 2**30:.0f} GiB of memory" if isinstance(memory, int) else "")
        + (f"; {nodes} nodes by `{site.get('scheduler')}`." if nodes != 1 else "."),
    ]  # fmt: skip


def duration(manifest: Manifest, with_images: bool) -> list[str]:
    """Return how long a rerun takes, in sentences."""
    measured = math.fsum(done.wall_s for done in manifest.rounds_done)
    rounds = len(manifest.rounds_done)
    said = [f"The {rounds} rounds took {about(measured)} on that machine; a rerun takes about as "
            "long." if rounds else "How long its rounds took was not recorded."]  # fmt: skip
    more = "installing takes some minutes" if with_images else (
        "installing takes some minutes, and building the images some minutes for each"
    )  # fmt: skip
    return [*said, f"Before that, {more}."]


def where(program: Program, from_commit: bool) -> list[str]:
    """Return where the program is to be had."""
    if program.repository and program.commit:
        lines = ["```", f"git clone {program.repository} wyeast", "cd wyeast",
                 f"git checkout {program.commit}", "```"]  # fmt: skip
        if from_commit:
            lines += ["", "Or copy `definitions/`: it has all of the program that measures."]
        return lines
    if from_commit:
        return ["Copy `definitions/`: it has all of the program that measures.", "", "```",
                "cp -r definitions wyeast && cd wyeast", "```"]  # fmt: skip
    return ["Its address was not known when this bundle was made: ask whoever made it for "
            f"{program.name}."]  # fmt: skip
