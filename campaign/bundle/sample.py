"""`python -m campaign.bundle.sample`: make part of a campaign fit for version control.

The launches of a few cells are copied with all that they printed. Names that say whose machine it
was are replaced by neutral ones: the checkout, the homes and the folder of temporary files, the
hosts; measurements are unchanged. A sample that still contains another path is not written. It is
one archive, like a bundle, and the same campaign gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from campaign.bundle import leaks
from campaign.bundle.contents import of_campaign
from campaign.bundle.redaction import in_folders
from containers.ending import exit_code
from records import archive
from records.acting_user import act_for, become, owner_of
from records.archive import BundleError, Member, read_sums, sums_of
from records.base import CampaignError
from records.campaign import IMPORTED, find_campaign
from records.command_words import CommandWords
from records.experiments import experiments
from records.files import json_of, json_text
from records.kept import FOLDERS, kept_launches
from records.launch import (
    RECORD,
    LaunchRecord,
    finished_launch,
    record_in,
    record_of,
    record_text,
)
from records.manifest import FILE, Manifest, manifest_text, read_manifest
from records.nodes import FOLDER as NODES
from records.nodes import of_kernel
from records.sample import ARCHIVE, NAME

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
#: Some of each section of the report.
CELLS = "|".join(f"{name} {cells}" for name, one in experiments().items() for cells in one.sample)
REPLACED = (
    "paths and host names replaced, and the rest of the kernel's command line left out; "
    "everything that was measured is unchanged"
)
#: Where the first part of a path says nothing of a machine: the kernel's, a distribution's, an
#: image's, and those that stand for others here.
NEUTRAL = (
    "proc", "sys", "dev", "bin", "etc", "lib", "lib64", "usr", "var", "opt", "rfm_workdir",
    "checkout", "home-folder", "temporary",
)  # fmt: skip
#: Where a path may begin: not within another one, in `Send/Recv` or in `${folder}/a`, but in
#: `-L/opt` and in `${folder:-/opt}`.
BEGINS = r"(?:(?<![\w./*<+}-])|(?<=\s-[A-Za-z])|(?<=:-))"
PATH = re.compile(rf"{BEGINS}/([\w.-]+)")
#: Where a header lists its hosts.
HOSTS = re.compile(r'"hosts":\s*(?=\[)')


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = CommandWords(
        prog="python -m campaign.bundle.sample",
        description="Pack the launches of some cells, without the names of the machine.",
    )
    parser.add_argument("campaign", help="a campaign's folder, its name in runs/, or `latest`")
    parser.add_argument("--out", default=ROOT / ARCHIVE, type=Path, help="%(default)s")
    parser.add_argument(
        "--cells", default=CELLS, help="a pattern that matches whole names of cells"
    )
    parser.add_argument("--dry-run", action="store_true", help="list what it would contain")
    return parser.parse_args(words)


def chosen(members: Mapping[str, Member], pattern: str) -> tuple[dict[str, str], int, int]:
    """Return the texts of the sample by name, its number of launches, and the campaign's.

    Raises CampaignError for a pattern that is not valid or matches no cell.
    """
    try:
        cells = re.compile(pattern)
    except re.error as error:
        raise CampaignError(f"--cells {pattern!r} is not a valid pattern: {error}") from None
    texts = {name.removeprefix("campaign/"): member for name, member in members.items()}
    launches = {
        name.rpartition("/")[0]: record_at(name, text_of(member))
        for name, member in texts.items()
        if name.endswith(f"/{RECORD}")
    }
    kept = {launch for launch, record in launches.items() if cells.fullmatch(record.cell)}
    if not kept:
        raise CampaignError(f"{pattern!r} matches no cell of a launch; see: analysis table")
    found = {
        name: text_of(member)
        for name, member in sorted(texts.items())
        if name.rpartition("/")[0] in (*kept, NODES)
    }
    return found, len(kept), len(launches)


def record_at(name: str, text: str) -> LaunchRecord:
    """Return the record that a file of a launch has; raises CampaignError for a damaged one."""
    try:
        return record_of(LaunchRecord, json_of(text), name)
    except ValueError as error:
        raise CampaignError(f"{name} cannot be read: {error}") from None


def text_of(member: Member) -> str:
    """Return a file's content, unchanged to the byte."""
    with member.open() as file:
        return file.read().decode(errors="surrogateescape")


def hosts_of(manifest: Manifest, texts: Mapping[str, str]) -> list[str]:
    """Return the names of all hosts that a campaign names, short ones too, in order."""
    names = [manifest.machine.get("hostname")]
    for name, text in texts.items():
        if name.startswith(f"{NODES}/"):
            names.append(json_of(text).get("hostname"))
        for found in HOSTS.finditer(text):
            listed, _ = json.JSONDecoder().raw_decode(text, found.end())
            # Of a large world: each name with how many ranks in a row have it.
            names += [host[0] if isinstance(host, list) else host for host in listed]
    known = {str(name) for name in names if name}
    return sorted(known | {name.partition(".")[0] for name in known})


def places(campaign: Path) -> dict[str, str]:
    """Return the folders of the machine, each with its replacement in a sample."""
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
        # Launches are named after their cells; node files begin with the host.
        folder, slash, last = name.rpartition("/")
        for pattern, neutral in rules:
            text = pattern.sub(neutral, text)
            last = pattern.sub(neutral, last) if folder == NODES else last
        texts[folder + slash + last] = text


def refuse_what_was_changed(source: Path, texts: Mapping[str, str]) -> None:
    """Raise RecordError if a file is not what its launch left behind."""
    for launch in kept_launches(source):
        if f"{FOLDERS}/{launch.name}/{RECORD}" in texts:
            launch.refuse_changed(record_in(launch).sha256)


def with_digests(texts: dict[str, str]) -> None:
    """Update the digests in the records of launches to those of these texts."""
    for name in [name for name in texts if name.endswith(f"/{RECORD}")]:
        record = record_at(name, texts[name])
        folder = name.rpartition("/")[0]
        digests = {
            file: Member(texts[f"{folder}/{file}"].encode(errors="surrogateescape")).digest()
            for file in record.sha256
        }
        # Of campaigns from before they were taken there are none.
        if digests:
            texts[name] = record_text(finished_launch(record, sha256=digests))


def of_machine(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a machine, of an older version too, as one of today has them."""
    return {**machine, "kernel_command_line": of_kernel(machine.get("kernel_command_line"))}


def foreign_paths(texts: Mapping[str, str], images: Iterable[str]) -> list[str]:
    """Return a sentence for each absolute path that may reveal something about a machine.

    That of a source that is called like an image is whoever's who has built the MPI.
    """
    neutral = {*NEUTRAL, *images}
    where: dict[str, str] = {}
    for name, text in texts.items():
        for found in PATH.finditer(text):
            if found[1] not in neutral:
                line = text.count("\n", 0, found.start()) + 1
                where.setdefault(f"/{found[1]}", f"{name}:{line}")
    return [f"the path {path} is in {place}" for path, place in sorted(where.items())]


def gather(source: Path, cells: str) -> dict[str, str]:
    """Return the files of a sample by name; raises CampaignError if it cannot be published."""
    manifest = read_manifest(source)
    if manifest.sample is not None:
        raise CampaignError(f"{source} is itself a sample; name the campaign it was taken from")
    texts, kept, all_of_them = chosen(in_folders(of_campaign(source), source), cells)
    hosts = hosts_of(manifest, texts)
    refuse_what_was_changed(source, texts)
    # Of a site's data also patterns of its hosts.
    site = manifest.site_data
    manifest = manifest.changed(
        **({} if site is None else {"site_data": {**site, "hostnames": [".*"]}}),
        sample=f"{kept} of {all_of_them} launches; {REPLACED}",
        machine=of_machine(manifest.machine),
    )
    texts[FILE] = manifest_text(manifest.writable())
    for name in [name for name in texts if name.startswith(f"{NODES}/")]:
        texts[name] = json_text(of_machine(json_of(texts[name])))
    mark = {"schema": "wyeast-imported-1", "sample_of": manifest.campaign}
    texts[IMPORTED] = json_text(mark)
    without_names(texts, places(source), hosts)
    with_digests(texts)
    members = {name: Member(text.encode(errors="surrogateescape")) for name, text in texts.items()}
    found = [one.sentence for one in leaks.scan(members, source)]
    if said := found + foreign_paths(texts, manifest.images):
        raise CampaignError(f"{'; '.join(said)}: not fit for version control; leave its cell out")
    return texts


def write(target: Path, texts: Mapping[str, str], created_utc: str) -> None:
    """Write a sample's archive, replacing an earlier one.

    Raises BundleError if something else is there.
    """
    if target.exists() and read_sums(target)[0] != NAME:
        raise BundleError(f"{target} is not a sample, and nothing else is overwritten")
    members = {name: Member(text.encode(errors="surrogateescape")) for name, text in texts.items()}
    made = int(datetime.fromisoformat(created_utc).timestamp())
    archive.write(target, NAME, members, sums_of(members), made)


def main(words: list[str] | None = None) -> int:
    """Make a sample; return the exit code."""
    options = arguments(words)
    act_for(ROOT)
    errors = (BundleError, CampaignError, ValueError)
    return exit_code("sample", lambda: make(options), errors, "run it again")


def make(options: argparse.Namespace) -> int:
    """Do what the command line says; raises BundleError, CampaignError and ValueError."""
    source = find_campaign(ROOT, options.campaign)
    become(owner_of(source), ROOT)
    texts = gather(source, options.cells)
    size = sum(len(text.encode(errors="surrogateescape")) for text in texts.values())
    if options.dry_run:
        print("\n".join(sorted(texts)))
    else:
        write(options.out, texts, read_manifest(source)["created_utc"])
    verb = "would write" if options.dry_run else "sample:"
    print(f"{verb} {options.out} ({len(texts)} files, {size} bytes, of {source.name})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
