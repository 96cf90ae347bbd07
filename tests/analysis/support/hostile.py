"""A campaign whose strings attack whoever reads it: what its readers accept, they are given."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from records.base import CampaignError, RecordError
from records.launch import LaunchRecord, record_of
from records.manifest import manifest_of

#: A title set, a screen cleared, letters turned round, C1's way to say ESC [, a line overwritten
#: and a line that looks like one of ours; the last part would run in a shell.
EVIL = "\x1b]0;owned\x07\x1b[2J\u202egnp\u2066\x9b31m\r\x7f\u200f\nmake x; touch owned #"
#: Of a program's output, what is not a key that results are found by.
OF_HEADERS = ("program_version", "library", "mpi_standard", "clock", "started_utc")


def hostile(folder: Path, sample: Path, own: str) -> Path:
    """Write a sample of a campaign into a folder, every string hostile that may be.

    Its strings end with `own`, so that those of two campaigns differ.
    """
    shutil.copytree(sample, folder)
    (folder / "imported.json").unlink()
    manifest = json.loads((folder / "manifest.json").read_text()) | {"campaign": folder.name}
    manifest |= {"checks": "Dgemm", "time_limit": "1h", "commands": ["make run"]}
    spoil(manifest, lambda: manifest_of(manifest, "manifest.json"), CampaignError, own)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for file in (folder / "nodes").iterdir():
        facts = json.loads(file.read_text())
        spoil(facts, lambda: None, CampaignError, own)
        file.write_text(json.dumps(facts))
    for file in (folder / "launches").glob("*/launch.json"):
        facts = json.loads(file.read_text())
        if file.parent.name.startswith("round002_Dgemm"):
            facts |= {"outcome": "failed", "sentence": f"x{EVIL}"}
        of_output(file.parent / "stdout")
        if "sha256" in facts:
            facts["sha256"] = {
                name: hashlib.sha256((file.parent / name).read_bytes()).hexdigest()
                for name in facts["sha256"]
            }
        spoil(
            facts,
            lambda facts=facts: record_of(LaunchRecord, facts, "x"),
            RecordError,
            own,
        )
        file.write_text(json.dumps(facts))
    return folder


def of_output(file: Path) -> None:
    """Have what a program's header says be hostile."""
    lines = file.read_text().splitlines(keepends=True)
    if not lines or '"header"' not in lines[0]:
        return
    header = json.loads(lines[0])
    header |= {name: header[name] + EVIL for name in OF_HEADERS if name in header}
    header["hosts"] = [host + EVIL for host in header["hosts"]]
    file.write_text(json.dumps(header) + "\n" + "".join(lines[1:]))


def spoil(data: dict[str, Any], read: Any, refused: type[Exception], own: str) -> None:
    """Append to every string of an object what its reader lets through; keys, too."""
    for holder, key in list(strings(data)):
        was = holder[key]
        holder[key] = was + EVIL + own
        try:
            read()
        except refused:
            holder[key] = was
    for of in ("machine", "software"):
        if isinstance(data.get(of), dict):
            data[of][f"key{EVIL}"] = EVIL + own


def strings(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where each string of an object is: its holder and its key there."""
    for key, value in list(data.items() if isinstance(data, dict) else enumerate(data)):
        # What decides which launches belong together would only end the walk early.
        if key in ("cell", "name", "hash", "speed_mbit_per_s", "packages", "debian_packages"):
            continue
        if isinstance(value, str):
            yield data, key
        elif isinstance(value, dict | list):
            yield from strings(value)
