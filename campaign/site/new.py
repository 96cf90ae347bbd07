"""`python -m campaign.site.new`: inspect this machine and write a site folder.

What was detected is marked `# guess:` with its source, what is unknown `# to do:`. A folder that
begins with an example has `<fill in ...>` where nothing was detected, and is refused until it is
filled in.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import sys
import tempfile
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from containers import images
from containers.table import load_table
from records import layout
from records.acting_user import refuse_unsafe_home
from records.command_words import CommandWords
from records.files import put_in_place
from records.locks import scratch
from site_configs import machine as look
from site_configs import processor
from site_configs.entries import SiteError, nearest
from site_configs.launchers import FAMILIES as FAMILIES_OF_LAUNCHERS
from site_configs.launchers import HostLauncher
from site_configs.machine import Machine, Nodes
from site_configs.references_file import check_references
from site_configs.site_file import FILL_IN, NAME, read_site

ROOT = Path(__file__).resolve().parents[2]
SITES = layout.sites(ROOT)
TEMPLATE = ROOT / "site_configs" / "references.template.yaml"
EXAMPLES = ROOT / "site_configs" / "examples"
FAMILIES = ("slurm", "pbs", "lsf", "sge", "flux", "local")
#: How a job asks for a partition or queue, by ReFrame's name of the scheduler.
ACCESS = {"slurm": "--partition={}", "squeue": "--partition={}", "pbs": "-q {}", "torque": "-q {}",
          "lsf": "-q {}", "sge": "-q {}"}  # fmt: skip
#: How a job has its nodes for itself, each with its share of the ranks.
ALONE = {"pbs": ["-l place=scatter:excl"], "torque": ["-n"], "lsf": ["-x"]}
NAMES = {"slurm": "Slurm", "squeue": "Slurm", "pbs": "PBS", "torque": "Torque", "lsf": "LSF",
         "sge": "Grid Engine", "flux": "Flux"}  # fmt: skip
MARKS = GUESS, TO_DO = "guess: ", "to do: "
WHERE = "the machine where this file was written"
#: Names of a site that something else has already.
TAKEN = ("generic", "__pycache__", "examples", "templates")


@dataclass(frozen=True)
class KeyLine:
    """A key of site.yaml with its value and the comment above it."""

    key: str
    value: Any
    comment: str

    def text(self) -> str:
        """Return the comment and the line; JSON is valid YAML and needs no care with quotes."""
        return f"{commented(self.comment)}{self.key}: {json.dumps(self.value)}\n"


def commented(text: str) -> str:
    """Return a comment of YAML, a paragraph for each line of the text."""
    return "".join(
        f"# {line}\n" for words in text.splitlines() for line in textwrap.wrap(words, 97)
    )


def startable(types: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the default implementations that srun can start with these types, and the others."""
    table = load_table(ROOT)
    names = images.default_implementations(ROOT)
    able = [name for name in names if table.resolve(name).pmi in {*types, "daemons"}]
    return able, [name for name in names if name not in able]


def launch_lines(scheduler: str, machine: Machine) -> list[KeyLine]:
    """Return how ranks start, and which implementations can be started that way."""
    if scheduler == "local":
        return [KeyLine("launch", "mpiexec", "Ranks are started by the image's own launcher.")]
    if scheduler == "flux":
        return [
            KeyLine("launch", "mpiexec",
                 "ReFrame requests one node of Flux, where the image's own launcher starts ranks.")
        ]  # fmt: skip
    if scheduler not in ("slurm", "squeue"):
        return host_lines(machine)
    types = look.pmi_types(machine)
    if not types:
        return [
            KeyLine("launch", "srun",
                 f"{TO_DO}`srun --mpi=list` names no PMI here; Open MPI needs pmix, MPICH and "
                 "Intel MPI need pmi2. Without any, write `launch: mpirun` and "
                 "`launcher: /path/to/mpirun`.")
        ]  # fmt: skip
    able, others = startable(types)
    if not able:
        return [
            KeyLine("launch", "srun",
                 f"{TO_DO}`srun --mpi=list` has {', '.join(types)}, which starts no default "
                 "image; name `implementations` that it does start.")
        ]  # fmt: skip
    lines = [KeyLine("launch", "srun", f"{GUESS}`srun --mpi=list` has {', '.join(types)}.")]
    if others:
        lines.append(
            KeyLine("implementations", able,
                 f"{GUESS}of the images built by default, {', '.join(others)} cannot be "
                 "started by these PMIs.")
        )  # fmt: skip
    return lines


def host_lines(machine: Machine) -> list[KeyLine]:
    """Return how the machine's own launchers start ranks, and which implementations they start."""
    found: dict[str, HostLauncher] = {}
    for one in look.launchers_of(machine):
        found.setdefault(one.family, one)
    if not found:
        return [
            KeyLine("launch", "mpiexec",
                 f"{TO_DO}no MPI's launcher is on PATH here, so the image's own one starts ranks, "
                 "on one node. For several, load your MPI and write this file again, or write "
                 "`launch: mpirun` and `launcher: /path/to/mpirun`.")
        ]  # fmt: skip
    table = load_table(ROOT)
    names = images.default_implementations(ROOT)
    known = {name: table.resolve(name) for name in names}
    startable = {name for family in found for name in FAMILIES_OF_LAUNCHERS[family].starts}
    able = [name for name, one in known.items() if one.family in startable]
    lines = [
        KeyLine("launch", "mpirun", "A launcher of this machine starts a container for each rank."),
        KeyLine("launcher", {family: one.command for family, one in found.items()},
             f"{GUESS}{', '.join(map(str, found.values()))} on PATH.\n"
             f"{TO_DO}add `hostfile: true` if it does not know this scheduler (its ranks are then "
             "all on one node), and `modules` where a module provides it."),
    ]  # fmt: skip
    if others := [name for name in names if name not in able]:
        lines.append(
            KeyLine("implementations", able or names,
                 f"{GUESS}of the images built by default, {', '.join(others)} need another "
                 "launcher: add it to `launcher`, by family.")
        )  # fmt: skip
    return lines


def node_lines(scheduler: str, launch: str, nodes: Nodes | None, machine: Machine) -> list[KeyLine]:
    """Return what a job can use: nodes, cores, memory, the limits of rate and link."""
    if scheduler == "local":
        detect = "Detected on the machine that loads this file, which is the one measured."
        return [
            KeyLine("nodes", 1, ""),
            KeyLine("cores_per_node", "detect", detect),
            KeyLine("memory_bytes_per_node", "detect", ""),
            KeyLine("peak_flops_per_node", "detect", "An upper limit that no HPL rate can pass."),
            KeyLine("link_bytes_per_s", None, "Ranks share memory here."),
        ]
    cores_here, flops_here = processor.detected_processor()
    here = f"{TO_DO}that of a compute node; nothing here reports it, so it is that of {WHERE}."
    cores, memory = (nodes.cores, nodes.memory_bytes) if nodes else (None, None)
    source = f"{GUESS}{nodes.source}." if nodes else ""
    least = source.removesuffix(".") + "; nodes differ, and this is the smallest value."
    per_node = least if nodes and nodes.mixed else source
    one = "the image's own launcher reaches one node only"
    known = nodes.nodes if nodes else None
    if launch == "mpiexec":
        count = KeyLine("nodes", 1, f"Of {known}: {one}." if known else f"Not more: {one}.")
    elif known:
        count = KeyLine("nodes", known, source)
    else:
        count = KeyLine("nodes", 1, f"{TO_DO}how many nodes a job may have; nothing here says it.")
    peak = round(flops_here / cores_here * (cores or cores_here))
    return [
        count,
        KeyLine("cores_per_node", cores or cores_here, per_node if cores else here),
        KeyLine("memory_bytes_per_node", memory or processor.detected_memory(),
             per_node if memory else here),
        KeyLine("peak_flops_per_node", peak,
             "An upper limit that no HPL rate can pass: cores x vector width x clock, generously.\n"
             f"{GUESS}by the processor of {WHERE}; correct it where compute nodes have another."),
        link_line(count.value, machine),
    ]  # fmt: skip


def link_line(nodes: int, machine: Machine) -> KeyLine:
    """Return the one-way rate of the link between nodes."""
    if nodes == 1:
        return KeyLine("link_bytes_per_s", None, "Ranks share memory on a single node.")
    found = look.fastest_link(machine)
    what = "One way; no rate between nodes can be above it."
    if found is None:
        return KeyLine("link_bytes_per_s", None,
                    f"{what}\n{TO_DO}the rate of the link between nodes in B/s (100 Gbit/s are "
                    "12500000000); no device of this machine reports one, and without it "
                    "impossible rates go undetected.")  # fmt: skip
    return KeyLine("link_bytes_per_s", found[0],
                f"{what}\n{GUESS}the fastest link that is up on {WHERE}: {found[1]}.")  # fmt: skip


def seen(machine: Machine) -> str:
    """Return a paragraph on what else was found that decides nothing in the file."""
    apptainer, spack = (look.version_of(machine, name) for name in ("apptainer", "spack"))
    mpis = ", ".join(look.mpis(machine))
    return "\n".join((
        f"Apptainer here: {apptainer or 'none on PATH; make setup provides it'}.",
        f"Spack here: {spack or 'none on PATH; make spack provides it'}.",
        f"MPI on PATH: {mpis or 'none'}; docs/how-to/bring-your-own-mpi.md says how to measure it.",
    ))  # fmt: skip


def site_lines(machine: Machine, family: str | None, host: str) -> list[KeyLine]:
    """Return the keys of an inspected machine; `family` is the scheduler's, if known."""
    scheduler, why = look.scheduler(machine, family)
    find = look.NODES.get(scheduler)
    nodes = find(machine, None) if find else None
    what = NAMES.get(scheduler)
    partition = nodes.partition if nodes else "default"
    # Without its number, a login node's name fits its neighbours, too.
    pattern = "^" + re.sub(r"\d+", r"\\d+", re.escape(host)) + r"(\.|$)"
    lines = [
        KeyLine("description", f"{what} cluster" if what else "one machine, no scheduler",
             "" if not what else f"{TO_DO}a short description for people."),
        KeyLine("hostnames", [pattern],
             f"Where ReFrame runs and jobs are submitted.\n{GUESS}the name of {WHERE}, "
             "with any number."),
        KeyLine("scheduler", scheduler,
             f"As ReFrame names them.\n{GUESS}{why}." if family is None or what == "Slurm"
             else "As ReFrame names them."),
        # ReFrame takes fewer characters in a name than schedulers do.
        KeyLine("partition", re.sub(r"^(?![a-zA-Z_])|[^a-zA-Z0-9_-]", "_", partition),
             "ReFrame's name for the partition; `access` requests it from the scheduler."
             if what else ""),
    ]  # fmt: skip
    # ReFrame hands no options to Flux.
    if scheduler in ACCESS and nodes:
        others = f" There are also: {', '.join(nodes.others)}." if nodes.others else ""
        lines.append(
            KeyLine("access",
                 [ACCESS[scheduler].format(nodes.partition), *whole_nodes(scheduler, machine)],
                 f"{GUESS}the default one.{others}\n{TO_DO}add the account, where jobs need one.")
        )  # fmt: skip
    elif scheduler in ACCESS:
        example = ACCESS[scheduler].format("NAME")
        lines.append(
            KeyLine("access", whole_nodes(scheduler, machine),
                 f"{TO_DO}the partition or queue, and the account where jobs need one, as in "
                 f'["{example}"]; nothing here could say.')
        )  # fmt: skip
    launch = launch_lines(scheduler, machine)
    return lines + launch + node_lines(scheduler, launch[0].value, nodes, machine)


def site_text(name: str, machine: Machine, family: str | None, host: str) -> str:
    """Return site.yaml for an inspected machine; `family` is the scheduler's, if known."""
    lines = site_lines(machine, family, host)
    head = (
        f"Site `{name}`, written by `make new-site`; docs/how-to/add-a-site.md says what the keys "
        f"mean. Read every `{GUESS.strip()}`, do every `{TO_DO.strip()}` and remove the mark, "
        f"then: make check-site SITE={name}\n{seen(machine)}"
    )
    return commented(head) + "".join(line.text() for line in lines)


def whole_nodes(scheduler: str, machine: Machine) -> list[str]:
    """Return the options by which a job has its nodes for itself, as far as they are the same."""
    if scheduler == "sge":
        names = look.parallel_environments(machine) or ["mpi"]
        return [f"-pe {names[0]} {{slots}}"]
    return ALONE.get(scheduler, [])


def examples() -> list[str]:
    """Return the names of the examples that a site can begin with."""
    return sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


def text_from(example: str, name: str, machine: Machine, host: str) -> str:
    """Return site.yaml of an example, with what this machine tells where it has to be filled in.

    Raises SiteError for an unknown example.
    """
    if example not in examples():
        raise SiteError(
            f"FROM={example}: there is no such example; there are {', '.join(examples())}"
            f"{nearest(example, examples())}"
        )
    text = (EXAMPLES / f"{example}.yaml").read_text()
    [scheduler] = re.findall(r"(?m)^scheduler: (\w+)", text)
    told = {
        line.key: line for line in site_lines(machine, scheduler, host) if GUESS in line.comment
    }
    lines = [
        commented(
            f"Site `{name}`, begun with the example {example}; docs/how-to/add-a-site.md says what "
            f"the keys mean. Read every `{GUESS.strip()}`, fill in what is left, then: make "
            f"check-site SITE={name}"
        ),
        "#\n",
    ]
    for line in text.splitlines(keepends=True):
        key = line.partition(":")[0]
        if FILL_IN.search(line) and key in told:
            # What the key means, the example has said.
            marked = [one for one in told[key].comment.splitlines() if one.startswith(MARKS)]
            line = replace(told[key], comment="\n".join(marked)).text()
        lines.append(line)
    return "".join(lines)


def files_of(
    name: str, machine: Machine, family: str | None, host: str, example: str | None = None
) -> dict[str, str]:
    """Return the text of a new site's files; raise SiteError if the site's schema refuses them.

    Of an example, what has to be filled in by a person is refused later, where the site is used.
    """
    files = {
        "references.yaml": TEMPLATE.read_text().replace("SITE", name),
        "site.yaml": text_from(example, name, machine, host)
        if example
        else site_text(name, machine, family, host),
    }
    if FILL_IN.search(files["site.yaml"]):
        return files
    with tempfile.TemporaryDirectory() as folder:
        for file, text in files.items():
            (Path(folder) / file).write_text(text)
        site = read_site(Path(folder) / "site.yaml", Path(folder))
        check_references(Path(folder) / "references.yaml", Path(folder), name, site["partition"])
    return files


def refuse_name(name: str, sites: Path) -> None:
    """Raise SiteError for a name that no new site can have."""
    if not NAME.fullmatch(name) or name in TAKEN:
        raise SiteError(
            f"NAME={name} is not a valid site name; use letters, digits, - and _, beginning with "
            "a letter: make "
            "new-site NAME=my-cluster"
        )
    if layout.seen(sites / name).exists():
        raise SiteError(
            f"site_configs/{name} already exists and is left unchanged; choose another NAME, or "
            f"check that one: make check-site SITE={name}"
        )


def write(folder: Path, files: dict[str, str]) -> None:
    """Write a new folder, all of it or nothing; raises SiteError."""
    try:
        # A user's home has none before the first.
        if folder.parent == SITES:
            folder.parent.mkdir(exist_ok=True)
        with scratch(folder.parent, f".{folder.name}-") as aside:
            made = aside / folder.name
            made.mkdir()
            for file, text in files.items():
                (made / file).write_text(text)
            put_in_place(made, folder)
    except OSError as error:
        raise SiteError(f"{folder} cannot be written: {error.strerror}") from None


def main() -> int:
    """Write the folder, or print what it would have; return the exit code."""
    parser = CommandWords(
        prog="python -m campaign.site.new",
        description="Inspect this machine and write a site folder of data, in which every "
        "guess and everything left to do is marked. An existing folder is never "
        "overwritten.",
    )
    parser.add_argument("name", help="the site's name: a new folder of site_configs/")
    parser.add_argument(
        "--scheduler", choices=FAMILIES, help="assume this one, whatever is found here"
    )
    parser.add_argument("--from", dest="example", help=f"begin with one of {', '.join(examples())}")
    parser.add_argument("--dry-run", action="store_true", help="print the files, write nothing")
    parser.add_argument("--sites", type=Path, default=SITES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    refuse_unsafe_home(layout.CODE)
    try:
        refuse_name(options.name, options.sites)
        host = socket.gethostname().partition(".")[0]
        if options.example and options.scheduler:
            raise SiteError("an example of FROM has its scheduler already: leave out SCHEDULER")
        files = files_of(options.name, Machine(), options.scheduler, host, options.example)
        if not options.dry_run:
            write(options.sites / options.name, files)
    except (SiteError, images.ImageError) as error:
        print(f"new-site: {error}", file=sys.stderr)
        return 1
    if options.dry_run:
        for file, text in reversed(files.items()):
            print(f"--- site_configs/{options.name}/{file} (not written)\n{text}")
        return 0
    marks = files["site.yaml"]
    guesses = marks.count(f"# {GUESS}")
    left = marks.count(f"# {TO_DO}") + len(FILL_IN.findall(marks))
    print(
        f"site_configs/{options.name} is written, with {guesses} "
        f"{'guess' if guesses == 1 else 'guesses'} and {left} "
        f"{'thing' if left == 1 else 'things'} to do; read site.yaml, then: "
        f"make check-site SITE={options.name}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
