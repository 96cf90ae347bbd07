"""Whether there is room for a campaign: bytes and files, judging by the last similar one."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

from campaign.estimate import Work, last_round_like
from records import layout
from records.base import CampaignError
from records.counting import how_many
from records.manifest import BEGIN, Manifest, read_manifest

#: The least that a campaign needs, and a folder of stages: one or two launches of many iterations.
LEAST_BYTES, LEAST_FILES = 50_000_000, 1000
#: Rounds differ, and tables and report come on top.
RESERVE = 1.5
#: The parts of a campaign's folder that are made from its launches, and can be made again.
MADE = ("tables",)


@dataclass(frozen=True)
class Room:
    """A number of bytes and files; `files` is infinite if a file system does not count them."""

    bytes: float
    files: float


def taken_by(campaign: Path) -> Room:
    """Return the size of what was measured in a campaign's folder."""
    size = count = 0
    for folder, folders, names in os.walk(campaign):
        folders[:] = [name for name in folders if Path(folder, name).parent != campaign
                      or name not in MADE]  # fmt: skip
        count += 1 + len(names)
        for name in names:
            try:
                size += os.lstat(Path(folder, name)).st_size
            except OSError:
                continue
    return Room(size, count)


def needed(root: Path, manifest: Manifest, rounds: int) -> Room:
    """Return the room that a number of rounds of a campaign will take."""
    found = last_round_like(root, Work.of(manifest), besides=manifest.campaign)
    if not found:
        return Room(LEAST_BYTES, LEAST_FILES)
    path = layout.runs(root) / found[1]
    share = RESERVE * rounds / max(1, len(read_manifest(path).rounds_done))
    taken = taken_by(path)
    return Room(LEAST_BYTES + share * taken.bytes, LEAST_FILES + share * taken.files)


def there_is(place: Path) -> Room:
    """Return the room where a folder is, or will be made."""
    while not place.exists():
        place = place.parent
    found = os.statvfs(place)
    return Room(found.f_bavail * found.f_frsize, found.f_favail if found.f_files else math.inf)


def refuse_least(root: Path, site: str) -> None:
    """Raise CampaignError where there is not even the room that any campaign needs."""
    for place in places(root, site):
        refuse_less(place, Room(LEAST_BYTES, LEAST_FILES), "any campaign takes")


def places(root: Path, site: str) -> tuple[Path, Path]:
    """Return where a campaign is kept, and where its launches have their folders."""
    return layout.runs(root), layout.state(root) / "reframe" / site


def refuse_less(place: Path, wanted: Room, what: str) -> None:
    """Raise CampaignError where a place has less room than what is said to take as much there."""
    room = there_is(place)
    if room.bytes < wanted.bytes or room.files < wanted.files:
        files = "" if room.files == math.inf else f" and {room.files:.0f} files"
        raise CampaignError(
            f"{place} has room for {room.bytes / 1e6:.0f} MB{files}, and {what} about "
            f"{wanted.bytes / 1e6:.0f} MB and {wanted.files:.0f} files there: make room, or "
            "measure less"
        )


def refuse_too_little(root: Path, manifest: Manifest, rounds: int) -> None:
    """Raise CampaignError if there is no room for this many rounds of a campaign."""
    rounds = max(rounds, BEGIN) if manifest.design else rounds
    kept, stages = places(root, manifest.site)
    what = f"{how_many(rounds, 'round')} will take"
    refuse_less(kept, needed(root, manifest, rounds), what)
    refuse_less(stages, Room(LEAST_BYTES, LEAST_FILES), what)
