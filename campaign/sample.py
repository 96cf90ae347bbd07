"""`python -m campaign.sample`: a part of a campaign that is fit for version control.

The launches of a few cells are copied with all that they printed. Names that say whose machine it
was are replaced by neutral ones: the checkout, the homes and the folder of temporary files, the
hosts; what was measured stays as it is. A sample that still has another path is not written.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from analysis.campaign import IMPORTED, CampaignError, find_campaign, read_manifest
from campaign.bundle import leaks
from campaign.bundle.archive import BundleError, Member
from campaign.bundle.contents import of_campaign
from campaign.node_facts import FOLDER as NODES
from containers.ending import exit_code

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[1]))
#: Some of each section of the report, with two pairs whose message sizes go up to 10 MB.
CELLS = (
    r"PointToPoint pair=Send/Recv .*|PointToPoint pair=Isend/Irecv message_range=(medium|long)"
    r"|EchoTest .*|Collectives suite=ata .*|Nas benchmark=CG size=S .*|Linpack .*"
    r"|SerialLinpack .*|Dgemm .*|Stream .*|StartUp .*|ProfileNas .*"
)
REPLACED = (
    "paths and host names replaced, and what the kernel was told for init left out; "
    "all that was measured is as it was"
)
#: Where the first part of a path says nothing of a machine: the kernel's, a distribution's, an
#: image's, and those that stand for others here.
NEUTRAL = (
    "proc", "sys", "dev", "bin", "etc", "lib", "lib64", "usr", "var", "opt", "rfm_workdir",
    "checkout", "home-folder", "temporary",
)  # fmt: skip
#: Where a path may begin: not within another one or in `Send/Recv`, but in `-L/opt`.
BEGINS = r"(?:(?<![\w./*<+-])|(?<=\s-[A-Za-z]))"
PATH = re.compile(rf"{BEGINS}/([\w.-]+)")
HOSTS = re.compile(r'"hosts":\s*\[([^\]]*)\]')


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog="python -m campaign.sample",
        description="Copy the launches of some cells, without the names of the machine.",
    )
    parser.add_argument("campaign", help="a campaign's folder, its name in runs/, or `latest`")
    parser.add_argument("--out", default=ROOT / "runs" / "sample", type=Path, help="%(default)s")
    parser.add_argument("--cells", default=CELLS, help="a pattern for whole names of cells")
    parser.add_argument("--dry-run", action="store_true", help="list what it would hold")
    return parser.parse_args(words)


def chosen(members: Mapping[str, Member], pattern: str) -> tuple[dict[str, str], int, int]:
    """Return the texts of the sample by name, and how many launches of how many it has.

    Raises CampaignError for a pattern that is none or fits no cell.
    """
    try:
        cells = re.compile(pattern)
    except re.error as error:
        raise CampaignError(f"--cells {pattern!r} is no pattern: {error}") from None
    texts = {name.removeprefix("campaign/"): member for name, member in members.items()}
    launches = [name.rpartition("/")[0] for name in texts if name.endswith("/launch.json")]
    kept = {
        launch
        for launch in launches
        if cells.fullmatch(str(json.loads(text_of(texts[f"{launch}/launch.json"])).get("cell")))
    }
    if not kept:
        raise CampaignError(f"no launch is of a cell that {pattern!r} fits; see: analysis table")
    found = {
        name: text_of(member)
        for name, member in sorted(texts.items())
        if name.rpartition("/")[0] in (*kept, NODES)
    }
    return found, len(kept), len(launches)


def text_of(member: Member) -> str:
    """Return what a file holds, to the byte."""
    with member.open() as file:
        return file.read().decode(errors="surrogateescape")


def hosts_of(manifest: Mapping[str, Any], texts: Mapping[str, str]) -> list[str]:
    """Return the names of all hosts that a campaign names, short ones too, in order."""
    names = [manifest["machine"].get("hostname")]
    for name, text in texts.items():
        if name.startswith(f"{NODES}/"):
            names.append(json.loads(text).get("hostname"))
        names += [host for listed in HOSTS.findall(text) for host in json.loads(f"[{listed}]")]
    known = {str(name) for name in names if name}
    return sorted(known | {name.partition(".")[0] for name in known})


def places(campaign: Path) -> dict[str, str]:
    """Return the folders of the machine, each with what stands for it in a sample."""
    found = {str(campaign.resolve().parent.parent): "/checkout", str(ROOT): "/checkout"}
    for uid in {os.getuid(), campaign.stat().st_uid}:
        try:
            found[pwd.getpwuid(uid).pw_dir.rstrip("/")] = "/home-folder"
        except KeyError:
            continue
    found[str(Path.home())] = "/home-folder"
    found |= {tempfile.gettempdir(): "/temporary", "/tmp": "/temporary"}
    return {path: neutral for path, neutral in found.items() if path.count("/") and len(path) > 1}


def without_names(texts: dict[str, str], paths: Mapping[str, str], hosts: Iterable[str]) -> None:
    """Replace paths and hosts in the texts and their names; the longest goes first."""
    names = {host.partition(".")[0] for host in hosts}
    node = {name: f"node{number}" for number, name in enumerate(sorted(names), 1)}
    rules = [
        (re.compile(rf"(?:{BEGINS}|(?<=//)){re.escape(path)}(?![\w.-])"), paths[path])
        for path in sorted(paths, key=len, reverse=True)
    ] + [
        (re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w.])"), node[host.partition(".")[0]])
        for host in sorted(hosts, key=len, reverse=True)
    ]
    for name, text in list(texts.items()):
        del texts[name]
        # The names of launches are of their cells; those of nodes begin with the host.
        folder, slash, last = name.rpartition("/")
        for pattern, neutral in rules:
            text = pattern.sub(neutral, text)
            last = pattern.sub(neutral, last) if folder == NODES else last
        texts[folder + slash + last] = text


def for_the_kernel(command_line: str | None) -> str | None:
    """Return the kernel's command line without what is for the first process."""
    if command_line is None:
        return None
    words = command_line.partition(" -- ")[0].split()
    return " ".join(word for word in words if not re.match(r"(rd)?init=", word))


def foreign_paths(texts: Mapping[str, str]) -> list[str]:
    """Return a sentence for each absolute path that may say something of a machine."""
    where: dict[str, str] = {}
    for name, text in texts.items():
        for found in PATH.finditer(text):
            if found[1] not in NEUTRAL:
                line = text.count("\n", 0, found.start()) + 1
                where.setdefault(f"/{found[1]}", f"{name}:{line}")
    return [f"the path {path} is in {place}" for path, place in sorted(where.items())]


def gather(source: Path, cells: str) -> dict[str, str]:
    """Return the files of a sample by name; raises CampaignError where it cannot be published."""
    manifest = read_manifest(source)
    if "sample" in manifest:
        raise CampaignError(f"{source} is a sample itself; take the campaign that it is of")
    texts, kept, all_of_them = chosen(of_campaign(source), cells)
    hosts = hosts_of(manifest, texts)
    if isinstance(site := manifest.get("site_data"), dict):
        # Patterns of the site's hosts.
        site["hostnames"] = [".*"]
    manifest["sample"] = f"{kept} of {all_of_them} launches; {REPLACED}"
    nodes = {name: json.loads(texts[name]) for name in texts if name.startswith(f"{NODES}/")}
    for name, facts in {"manifest.json": manifest, **nodes}.items():
        machine = facts["machine"] if name == "manifest.json" else facts
        machine["kernel_command_line"] = for_the_kernel(machine.get("kernel_command_line"))
        texts[name] = json.dumps(facts, indent=1) + "\n"
    mark = {"schema": "wyeast-imported-1", "sample_of": manifest["campaign"]}
    texts[IMPORTED] = json.dumps(mark, indent=1) + "\n"
    without_names(texts, places(source), hosts)
    members = {name: Member(text.encode(errors="surrogateescape")) for name, text in texts.items()}
    secrets, hints = leaks.scan(members, source)
    if said := secrets + hints + foreign_paths(texts):
        raise CampaignError(f"{'; '.join(said)}: not fit for version control; leave its cell out")
    return texts


def write(target: Path, texts: Mapping[str, str]) -> None:
    """Put a sample in the place of an earlier one; raises CampaignError for anything else."""
    if target.exists() and "sample" not in read_manifest(target):
        raise CampaignError(f"{target} is no sample, and no campaign is overwritten")
    aside, earlier = (target.with_name(f".{target.name}.{word}") for word in ("new", "earlier"))
    for path in (aside, earlier):
        shutil.rmtree(path, ignore_errors=True)
    for name, text in texts.items():
        (aside / name).parent.mkdir(parents=True, exist_ok=True)
        (aside / name).write_bytes(text.encode(errors="surrogateescape"))
    if target.exists():
        target.rename(earlier)
    aside.rename(target)
    shutil.rmtree(earlier, ignore_errors=True)


def main(words: list[str] | None = None) -> int:
    """Make a sample; return the exit code."""
    options = arguments(words)
    errors = (BundleError, CampaignError, ValueError)
    return exit_code("sample", lambda: make(options), errors, "run it again")


def make(options: argparse.Namespace) -> int:
    """Do what the command line says; raises BundleError, CampaignError and ValueError."""
    source = find_campaign(ROOT, options.campaign)
    texts = gather(source, options.cells)
    size = sum(len(text.encode(errors="surrogateescape")) for text in texts.values())
    if options.dry_run:
        print("\n".join(sorted(texts)))
    else:
        write(options.out, texts)
    verb = "would write" if options.dry_run else "sample:"
    print(f"{verb} {options.out} ({len(texts)} files, {size} bytes, of {source.name})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
