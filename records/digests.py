"""Digests of a launch's files, taken when it is stored: later changes are noticed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from records.base import RecordError

BLOCK_BYTES = 2**20


def copied(source: Path, target: Path) -> str:
    """Copy a file, or make an empty one if there is none; return the SHA-256 of what was read.

    Raises OSError.
    """
    if not source.is_file():
        target.touch()
        return hashlib.sha256().hexdigest()
    digest = hashlib.sha256()
    with source.open("rb") as read, target.open("xb") as written:
        while block := read.read(BLOCK_BYTES):
            digest.update(block)
            written.write(block)
    return digest.hexdigest()


def refuse_changed(folder: Path, digests: Mapping[str, str]) -> None:
    """Raise RecordError unless the files of a launch's folder are what the launch left behind."""
    for name, digest in digests.items():
        file = folder / name
        if not file.is_file():
            raise RecordError(f"{file}: was removed after the launch, whose record has its sha256")
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        if found != digest:
            raise RecordError(
                f"{file}: was changed after the launch: its sha256 is {found[:12]}…, and the "
                f"launch's record has {digest[:12]}…"
            )
