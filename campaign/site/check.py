"""`python -m campaign.site.check`: verify a site: first what needs no job, then every preflight.

Each finding is a sentence with what to fix. The preflight of each image is a launch of an ordinary
campaign, which stays in runs/.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.tables.table import Column, Row, Table
from analysis.tables.terminal import show
from campaign import __main__ as campaigns
from campaign import beginning, measuring
from campaign.obstacles import missing_commands
from campaign.site_lock import only_campaign
from containers import ability, images, installations, selection, trust
from containers import table as containers_table
from containers.apptainer import Admitted, command, launch_options, run_apart
from containers.ending import exit_code
from containers.labels import Labels
from containers.programs import ProvisionError
from containers.table import TableError, load_table
from records import layout
from records.acting_user import act_for
from records.base import CampaignError
from records.campaign import read_campaign
from records.causes import one_line, sentence_in
from records.command_words import CommandWords
from records.communication import Fabric
from records.experiments import proving
from records.files import only_owner_writes
from records.kept import read_records
from records.limits.fabric import carried_by
from records.program_output import ProgramOutput
from records.reframe_reports import cases_in
from site_configs import machine as look
from site_configs.entries import nearest
from site_configs.installation_entries import any_image, is_installation
from site_configs.launchers import HostLauncher, LauncherError, launcher_for
from site_configs.machine import Machine
from site_configs.settings import load_site
from site_configs.site_file import LOCAL, read_site_entries

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
#: PVM is no MPI, so its images have no preflight; a launch of its own check looks at the same.
CHECKS = "|".join(f"^{name}{variants}" for name, variants in proving("site").items())


@dataclass(frozen=True)
class SiteFinding:
    """A sentence about the site; with one that is `bad` no preflight can pass."""

    sentence: str
    bad: bool = True


def site_yaml(site: str) -> str:
    """Return the name of a site's file in messages."""
    return f"site_configs/{site}/site.yaml"


def with_places(root: Path, name: str, site: dict[str, Any]) -> dict[str, Any]:
    """Return a site's data with its name, and with the file and line of each key as `places`."""
    entries = read_site_entries(selection.site_file(root, name), root)
    places = {key: str(entry.place) for key, entry in entries.items()}
    return site | {"name": name, "places": places}


def place_of(site: dict[str, Any], key: str) -> str:
    """Return file and line of a site's key; only the file if the key is not there."""
    return str(site["places"].get(key, site_yaml(site["name"])))


def left_to_do(root: Path, site: str) -> Iterator[SiteFinding]:
    """Yield what new-site left for people to do."""
    for name in ("site.yaml", "references.yaml"):
        path = layout.site_file(root, site, name)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("# to do:"):
                place = f"site_configs/{site}/{name}:{number}"
                yield SiteFinding(f"{place}: still {line.removeprefix('# ')}", bad=False)


def of_apptainer(root: Path, site: dict[str, Any], names: list[str]) -> Iterator[SiteFinding]:
    """Yield why Apptainer cannot run an image on the machine where jobs are submitted.

    It is started with the options of a launch. Nothing is run from an image that the site does not
    admit.
    """
    if names and not any_image(names):
        return
    try:
        if site["scheduler"] == LOCAL:
            ability.refuse_inability()
        all_of_them = (name for name in names if not is_installation(name))
        image = next(
            (one for name in all_of_them if (one := admitted_image(root, site, name))), None
        )
        alone = site["launch"] == "mpiexec"
        options = launch_options(alone, together=not alone)
        words = command("exec", *options, image, "true") if image else command("--version")
    except ProvisionError as error:
        yield SiteFinding(str(error))
        return
    try:
        done = run_apart(words, patience_s=120)
        said = sentence_in(done.stderr) or "it says nothing" if done.returncode else None
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    if said is not None:
        yield SiteFinding(f"{words[0]} cannot start here: {said}")


def admitted_image(root: Path, site: dict[str, Any], name: str) -> Admitted | None:
    """Return an image that a site may run; None if there is none."""
    try:
        return trust.admit(root, name, site)
    except images.ImageError:
        return None


def of_images(root: Path, site: dict[str, Any], names: list[str]) -> Iterator[SiteFinding]:
    """Yield which images are missing, are not the locked ones, or are not admitted by the site."""
    for name in names:
        if is_installation(name):
            continue
        try:
            trust.admit(root, name, site)
        except images.ImageError as error:
            yield SiteFinding(str(error))


def of_installations(root: Path, site: dict[str, Any], names: list[str]) -> Iterator[SiteFinding]:
    """Yield which installations of the site are not there, or lack what their programs load."""
    for name in filter(is_installation, names):
        try:
            installations.refuse_unusable(root, site, name)
        except images.ImageError as error:
            yield SiteFinding(f"{place_of(site, 'installations')}: {error}")


def of_scheduler(site: dict[str, Any], machine: Machine) -> Iterator[SiteFinding]:
    """Yield what the site's file claims and the scheduler does not have."""
    name, place = site["scheduler"], place_of(site, "scheduler")
    if missing := missing_commands(site, machine):
        yield SiteFinding(
            f"{place}: `scheduler: {name}` needs {', '.join(missing)}, not found on PATH; run "
            "this where jobs are submitted, or set `scheduler` to the one this machine has"
        )
        return
    find = look.NODES.get(name)
    if find is None:
        return
    if name == "slurm" and not look.has_accounting(machine):
        yield SiteFinding(
            f"{place}: `scheduler: slurm` needs Slurm's accounting, which is off: write `squeue`"
        )
    # Slurm's -q is the quality of service; the others' is the queue.
    option = r"(?:--partition[= ]|-p ?)" if name in ("slurm", "squeue") else "-q ?"
    asked = re.search(rf"(?:^|\s){option}([^\s,]+)", " ".join(site.get("access", [])))
    found = find(machine, asked[1] if asked else None)
    if found is None:
        there = find(machine, None)
        known = (there.partition, *there.others) if there else ()
        yield SiteFinding(
            f"{place_of(site, 'access')}: the scheduler has no partition or queue `{asked[1]}`, "
            f"which `access` asks for; available: {', '.join(known) or 'none that is up'}"
            f"{nearest(asked[1], known)}" if asked
            else "the scheduler lists no partition or queue with nodes: is it up?"
        )  # fmt: skip
        return
    for key, most in (
        ("nodes", found.nodes), ("cores_per_node", found.cores),
        ("memory_bytes_per_node", found.memory_bytes),
    ):  # fmt: skip
        # Slurm counts memory in whole MiB, of which a node may have a part more.
        if most and site[key] > most + (look.MIB if key == "memory_bytes_per_node" else 0):
            # Jobs for more nodes or cores than there are wait for ever. Where nodes differ,
            # `access` may choose those that have more.
            largest = found.most_cores if key == "cores_per_node" else None
            bad = key == "nodes" or (largest is not None and site[key] > largest)
            and_up = f" to {largest}" if largest and largest > most else ""
            yield SiteFinding(
                f"{place_of(site, key)}: `{key}` is {site[key]}, but it is {most}{and_up} "
                f"according to {found.source}",
                bad=bad,
            )


def of_pmi(
    root: Path, site: dict[str, Any], names: list[str], machine: Machine
) -> Iterator[SiteFinding]:
    """Yield which images srun cannot start, by the PMI that each speaks."""
    if site["launch"] != "srun" or not machine.has("srun"):
        return
    types = look.pmi_types(machine)
    for name in names:
        pmi = pmi_of(root, site, name)
        if pmi not in (None, "daemons", *types):
            yield SiteFinding(
                f"{name} starts by `srun --mpi={pmi}`, and `srun --mpi=list` has "
                f"{', '.join(types) or 'none'}: have Slurm's plugin mpi/{pmi} installed, or leave "
                f"the image out of `implementations` of {site_yaml(site['name'])}"
            )


def of_launchers(root: Path, site: dict[str, Any], names: list[str]) -> Iterator[SiteFinding]:
    """Yield which images no launcher of the machine starts, where the site starts them by one."""
    if site["launch"] != "mpirun":
        return
    for name in names:
        try:
            host_launcher(root, site, name)
        except LauncherError as error:
            yield SiteFinding(f"{name}: {error}")


def host_launcher(root: Path, site: dict[str, Any], name: str) -> HostLauncher:
    """Return the launcher of the machine by which a site starts an image; raises LauncherError."""
    label = labels_of(root, site, name)
    if label is None or label.family is None:
        raise LauncherError("it is unknown which MPI is in it: rebuild it")
    return launcher_for(site, label.family, label.version, label.pmi)


def labels_of(root: Path, site: dict[str, Any], name: str) -> Labels | None:
    """Return an image's labels: those it has, or those that the table would give it.

    Those of an installation are what the site's file says; None where it is not there.
    """
    if is_installation(name):
        with suppress(images.ImageError):
            return installations.of_site(root, site, name).labels
        return None
    implementation, _ = containers_table.split_variant(name)
    entry = images.load_lock(root)["images"].get(implementation)
    if entry:
        return images.read_labels(entry.get("labels"), f"{implementation} in {images.LOCK}")
    try:
        return Labels.of(load_table(root).resolve(implementation).labels(), implementation)
    except TableError:
        return None


def pmi_of(root: Path, site: dict[str, Any], name: str) -> str | None:
    """Return the PMI that an image speaks, by its label, or by the table if it is not built."""
    found = labels_of(root, site, name)
    return found.pmi if found else None


def of_this_machine(site: dict[str, Any]) -> Iterator[SiteFinding]:
    """Yield what a site without a scheduler claims and this machine does not have."""
    cores = len(os.sched_getaffinity(0))
    if site["scheduler"] == "local" and site["launch"] != "srun" and site["cores_per_node"] > cores:
        place, said = place_of(site, "cores_per_node"), site["cores_per_node"]
        yield SiteFinding(f"{place}: `cores_per_node` is {said}, but this machine has {cores}")


def look_around(
    root: Path, site: dict[str, Any], names: list[str], machine: Machine, with_images: bool
) -> list[SiteFinding]:
    """Return all that can be found without a job."""
    return [
        *left_to_do(root, site["name"]),
        *of_this_machine(site),
        *of_scheduler(site, machine),
        *of_pmi(root, site, names, machine),
        *of_launchers(root, site, names),
        *of_installations(root, site, names),
        *(of_images(root, site, names) if with_images else ()),
        *of_apptainer(root, site, names),
    ]


def launcher_of(root: Path, site: dict[str, Any], name: str) -> str:
    """Return how an image's ranks start on a site, in words."""
    if site["launch"] == "mpiexec":
        return f"the {'installation' if is_installation(name) else 'image'}'s mpiexec"
    if site["launch"] == "mpirun":
        return str(host_launcher(root, site, name))
    pmi = pmi_of(root, site, name)
    return "srun, and its own launcher" if pmi == "daemons" else f"srun --mpi={pmi}"


def outcomes(campaign: Path, names: list[str]) -> dict[str, str]:
    """Return `ok`, or what failed, for each image of a campaign of preflights."""
    found: dict[str, str] = {}
    for case in cases_in(campaign):
        name = re.search(r"implementation=(\S+)", case.get("display_name") or "")
        if name and case["result"] in ("fail", "abort"):
            reason = one_line(case.get("fail_reason") or "it was ended")
            found.setdefault(name[1], reason)
    for record in read_records(campaign):
        good = record.outcome == "sound"
        found[record.implementation] = "ok" if good else str(record.sentence)
    return {name: found.get(name, f"it did not run; see {campaign / 'reframe'}") for name in names}


def carriers(campaign: Path) -> dict[str, str]:
    """Return what carried the messages of each image's preflight, where that was counted."""
    found: dict[str, str] = {}
    for launch in read_campaign(campaign).launches:
        output = launch.output
        if isinstance(output, ProgramOutput):
            hosts = [one for one in output.results if isinstance(one, Fabric)]
            found[launch.record.implementation] = carried_by(hosts)
    return found


def preflight(site: str, names: list[str]) -> tuple[Path, dict[str, str]]:
    """Measure a round of preflights; return the campaign and what became of each image."""
    words = ["--site", site, "--rounds", "1", "--checks", CHECKS, "--name", "check-site"]
    options = campaigns.arguments([*words, "--images", ",".join(names)])
    with only_campaign(beginning.ROOT, site):
        campaign, manifest = beginning.new_campaign(options)
        try:
            measuring.measure(campaign, manifest)
        except CampaignError as error:
            # Where every image fails before a launch, the sentences are in ReFrame's report.
            print(f"check-site: {error}", file=sys.stderr)
    return campaign, outcomes(campaign, names)


def table(
    root: Path, site: dict[str, Any], became: dict[str, str], carried: dict[str, str]
) -> Table:
    """Return the table of images, how they start, what became of them and carried messages."""
    columns = (
        Column("image", "image"),
        Column("launcher", "started by"),
        Column("messages", "messages by"),
        Column("outcome", "outcome"),
    )
    rows = [
        Row((name, launcher_of(root, site, name), carried.get(name, ""), said))
        for name, said in became.items()
    ]
    return Table("preflight", f"preflight on site {site['name']}", columns, rows)


def main() -> int:
    """Check the site, run the preflights, print the table; return the exit code."""
    parser = CommandWords(
        prog="python -m campaign.site.check",
        description="Check a site: look at everything that needs no job, then run every "
        "image's preflight in the way the site starts ranks; say what to fix.",
    )
    parser.add_argument(
        "--site", default="local", help="a folder of site_configs/ (default: %(default)s)"
    )
    parser.add_argument(
        "--images", default="", help="implementations, separated by commas (default: the site's)"
    )
    parser.add_argument(
        "--look", action="store_true", help="look at everything but the images; start no job"
    )
    options = parser.parse_args()
    act_for(ROOT)
    only_owner_writes()
    return exit_code("check-site", lambda: work(options), beginning.ERRORS, "it can be repeated")


def work(options: argparse.Namespace) -> int:
    """Check the site and run the preflights; return the exit code.

    Raises what campaign.__main__.ERRORS names, and OSError.
    """
    selection.site_file(ROOT, options.site)
    site = with_places(ROOT, options.site, load_site(options.site))
    names = selection.implementations(ROOT, options.site, options.images)
    findings = look_around(ROOT, site, names, Machine(), with_images=not options.look)
    # What is left to do was reported before the images were built.
    said = [finding for finding in findings if finding.bad or options.look]
    for finding in said:
        print(f"{'fix' if finding.bad else 'note'}: {finding.sentence}")
    if any(finding.bad for finding in findings):
        print("check-site: no job was started; fix the above and try again", file=sys.stderr)
        return 1
    if options.look:
        print(f"site {options.site}: no obstacle found without starting a job")
        return 0
    campaign, became = preflight(options.site, names)
    show(table(ROOT, site, became, carriers(campaign)))
    print(f"launches: {campaign}")
    return 0 if all(said == "ok" for said in became.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
