"""What tests do to the packs of a campaign, by the tar that everybody has."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from records.kept import kept_launches
from records.launch import RECORD
from records.packs import FOLDER, pack_name, segments_of


def pack_of(campaign: Path, launch: str) -> Path:
    """Return the pack that has a launch."""
    return campaign / FOLDER / pack_name(int(launch[5:].split("_")[0]))


def take_out(campaign: Path, launch: str) -> None:
    """Take a launch out of its pack, as a user does; what stands behind it moves."""
    subprocess.run(["tar", "--delete", "-f", pack_of(campaign, launch), launch], check=True)


def records_in(campaign: Path) -> dict[str, dict[str, Any]]:
    """Return the records of a campaign's launches by name, as JSON has them."""
    return {one.name: json.loads(one.read(RECORD)) for one in kept_launches(campaign)}


def bytes_of_records(campaign: Path) -> dict[str, bytes]:
    """Return the records of a campaign's launches by name, to the byte."""
    return {one.name: one.read(RECORD) for one in kept_launches(campaign)}


def text_of(campaign: Path, launch: str, file: str = "stdout") -> str:
    """Return the text of a file of a launch."""
    [found] = [one for one in kept_launches(campaign) if one.name == launch]
    return found.read(file).decode()


def all_in(pack: Path) -> list[str]:
    """Return the launches of a pack in order, also those that no longer count."""
    with pack.open("rb") as file:
        return [segment.launch for segment in segments_of(file)]


def change(campaign: Path, launch: str, file: str, old: bytes, new: bytes) -> None:
    """Change bytes of a file of a launch that is not compressed."""
    assert len(old) == len(new)
    pack = pack_of(campaign, launch)
    data = pack.read_bytes()
    begin = data.index(old, data.index(f"{launch}/{file}".encode()))
    pack.write_bytes(data[:begin] + new + data[begin + len(new) :])
