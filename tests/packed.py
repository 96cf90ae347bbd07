"""What tests do to the packs of a campaign, by the tar that everybody has."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from records import schedule
from records.events import PlannedLaunch
from records.kept import kept_launches
from records.launch import RECORD, record_in
from records.packs import FOLDER, pack_name, segments_of


def in_packs(source: Path, target: Path) -> Path:
    """Make a campaign of the launches of another, as a session of today keeps them; return it."""
    target.mkdir()
    for file in ("manifest.json", "imported.json"):
        if (source / file).exists():
            shutil.copy(source / file, target)
    if (source / "nodes").is_dir():
        shutil.copytree(source / "nodes", target / "nodes")
    manifest = json.loads((target / "manifest.json").read_text())
    (target / "manifest.json").write_text(json.dumps({**manifest, "campaign": target.name}))
    schedule.begin(target)
    found = {one.name: (record_in(one), one) for one in kept_launches(source)}
    with schedule.held(target) as book:
        for number in sorted({record.round for record, _ in found.values()}):
            of = [record for record, _ in found.values() if record.round == number]
            book.plan(number, [
                PlannedLaunch(launch=record.launch, cell=record.cell,
                              implementation=record.implementation)
                for record in of
            ])  # fmt: skip
            for record in of:
                kept = found[record.launch][1]
                book.intend(record.launch)
                book.keep(
                    record, {name: kept.read(name) for name in kept.names() if name != RECORD}
                )
    return target


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
