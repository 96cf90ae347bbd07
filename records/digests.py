"""Digests of a launch's files, taken when it is stored: later changes are noticed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from records.base import RecordError


class LaunchFiles(Protocol):
    """What a campaign keeps of a launch, wherever it is."""

    #: Its name, and where it is, as if that were a folder.
    name: str
    where: Path

    def read(self, name: str) -> bytes:
        """Return what a file of it holds; raises OSError and RecordError."""

    def refuse_changed(self, digests: Mapping[str, str]) -> None:
        """Raise RecordError unless its files are what the launch left behind."""


def refuse_changed(launch: LaunchFiles, digests: Mapping[str, str]) -> None:
    """Raise RecordError unless the files of a launch have these digests; raises OSError, too."""
    for name, digest in digests.items():
        file = launch.where / name
        try:
            found = hashlib.sha256(launch.read(name)).hexdigest()
        except (FileNotFoundError, IsADirectoryError):
            raise RecordError(
                f"{file}: was removed after the launch, whose record has its sha256"
            ) from None
        if found != digest:
            raise RecordError(
                f"{file}: was changed after the launch: its sha256 is {found[:12]}…, and the "
                f"launch's record has {digest[:12]}…"
            )
