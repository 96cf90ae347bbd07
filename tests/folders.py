"""Launches as older campaigns have them, a folder for each, and folders that nobody can walk."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from campaign.bundle.contents import of_campaign
from campaign.bundle.redaction import in_folders
from records.journal import FILE
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


def as_older(campaign: Path) -> None:
    """Have a campaign be as it was before there were packs: its launches are folders."""
    for name, member in in_folders(of_campaign(campaign), campaign).items():
        file = campaign / name.removeprefix("campaign/")
        if file.parent.parent.name == FOLDERS or file.name == FILE:
            file.parent.mkdir(parents=True, exist_ok=True)
            with member.open() as content:
                file.write_bytes(content.read())
    shutil.rmtree(campaign / "packs")


def in_folder(folder: Path) -> FolderLaunch:
    """Return the launch that a folder holds."""
    return FolderLaunch(folder)


#: More than Python descends, and longer than any path may be.
DEEP = "import os\nfor _ in range(3000):\n    os.mkdir('deep')\n    os.chdir('deep')\n"


@contextmanager
def deep(folder: Path, uid: int | None = None) -> Iterator[None]:
    """Have a folder with folders in it as a program may leave them, perhaps of another user."""
    folder.mkdir(parents=True)
    try:
        subprocess.run([sys.executable, "-c", DEEP], cwd=folder, check=True)
        if uid is not None:
            subprocess.run(["chown", "-R", f"{uid}:{uid}", folder], check=True)
        yield
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)
