"""Durable writing of a campaign folder: a kill at any moment loses at most the launch in flight.

Everything is written aside, flushed to the disk and then renamed, so that what has its final name
is whole. A launch is a folder of `launches/` with `launch.json`, `stdout`, `stderr` and `job.sh`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LAUNCH_SCHEMA = "wyeast-launch-1"
MANIFEST_SCHEMA = "wyeast-campaign-1"
#: A name that becomes part of a path: without slashes, and neither hidden nor an option.
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class CampaignError(Exception):
    """A campaign cannot be started, written or resumed; the text is a sentence."""


def only_owner_writes() -> None:
    """Have what this process and those that it starts write be changed by its owner alone."""
    os.umask(os.umask(0o077) | 0o022)


def belongs_to_us(path: Path) -> bool:
    """Return whether a campaign is of the user that runs this."""
    return path.stat().st_uid == os.geteuid()


def utc_now() -> str:
    """Return the time in UTC as the records have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc_of(seconds: float) -> str:
    """Return a time in seconds since the epoch as the records have it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def flush_to_disk(path: Path) -> None:
    """Make a file's content or a folder's entries survive a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Replace a JSON file in one step."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(data, indent=1) + "\n")
    flush_to_disk(aside)
    aside.rename(path)
    flush_to_disk(path.parent)


def round_prefix(round_number: int) -> str:
    """Return how the names of a round's launches begin."""
    return f"round{round_number:03d}_"


def launch_name(round_number: int, cell: str, implementation: str) -> str:
    """Return the folder name of a launch: the same cell, image and round give the same name."""
    readable = re.sub(r"[^A-Za-z0-9.=_-]+", "_", f"{cell} {implementation}")
    return round_prefix(round_number) + readable


def write_launch(campaign: Path, record: Mapping[str, Any], files: Mapping[str, Path]) -> Path:
    """Add a finished launch; return its folder.

    `files` maps the names in the folder to what the launch left behind; a file that the launch
    never wrote becomes an empty one. Raises CampaignError when the disk is full or the launch is
    already there (nothing that was measured is overwritten).
    """
    target = campaign / "launches" / str(record["launch"])
    aside = campaign / "launches" / f".{record['launch']}.{os.getpid()}"
    try:
        aside.mkdir(parents=True)
        for name, source in files.items():
            if source.is_file():
                shutil.copyfile(source, aside / name)
            else:
                (aside / name).touch()
            flush_to_disk(aside / name)
        write_json(aside / "launch.json", {"schema": LAUNCH_SCHEMA, **record})
        if target.exists():
            raise CampaignError(f"{target} exists already; a launch is never overwritten")
        aside.rename(target)
        flush_to_disk(target.parent)
    except OSError as error:
        raise CampaignError(
            f"the launch {record['launch']} could not be kept in {campaign}: {error.strerror}; "
            f"make room and go on with: make run RESUME={campaign.name}"
        ) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return target


def finished_launches(campaign: Path) -> set[str]:
    """Return the names of the launches that are whole in a campaign folder."""
    return {path.parent.name for path in (campaign / "launches").glob("round*/launch.json")}
