"""Launches as older campaigns have them, a folder for each: for tests of whoever reads these."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from records.kept import FOLDERS, FolderLaunch, kept_launches
from records.launch import RECORD, LaunchRecord, finished_launch


def write_launch(campaign: Path, record: LaunchRecord, files: Mapping[str, Path]) -> Path:
    """Add a launch to a campaign; return its folder."""
    folder = campaign / FOLDERS / record.launch
    folder.mkdir(parents=True)
    contents = {
        name: source.read_bytes() if source.is_file() else b"" for name, source in files.items()
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    kept = finished_launch(record, sha256=digests)
    (folder / RECORD).write_text(json.dumps(kept.facts, indent=1) + "\n")
    return folder


def unpacked(campaign: Path, into: Path) -> dict[str, Path]:
    """Return folders with the files of each launch of a campaign, by its name, made in `into`."""
    found = {}
    for launch in kept_launches(campaign):
        found[launch.name] = into / launch.name
        found[launch.name].mkdir(parents=True, exist_ok=True)
        for name in launch.names():
            (found[launch.name] / name).write_bytes(launch.read(name))
    return found


def in_folder(folder: Path) -> FolderLaunch:
    """Return the launch that a folder holds."""
    return FolderLaunch(folder)
