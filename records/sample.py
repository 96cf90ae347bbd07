"""The sample campaign: one archive in version control, unpacked on demand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from records import layout
from records.archive import Member, read_sums, sums_of, unpack
from records.files import put_in_place
from records.locks import exclusive, scratch

NAME = "sample"
ARCHIVE = Path("runs") / f"{NAME}.tar.gz"


def sample_folder(root: Path) -> Path:
    """Return the folder of a checkout's sample; unpack it unless that has been done.

    Each file there has the digest that the archive gives it; a sample of another archive, or one
    that was changed, is replaced. Raises BundleError for an archive that is invalid or damaged, or
    cannot be unpacked, and OSError if runs/ cannot be written.
    """
    archive, folder = root / ARCHIVE, layout.runs(root) / NAME
    _, sums = read_sums(archive)
    if is_of(folder, sums):
        return folder
    # Commands and tests that run at once wait for the first of them.
    with exclusive(layout.state(root) / "locks" / f"{NAME}.lock", str(os.getpid()), wait=True):
        if not is_of(folder, sums):
            folder.parent.mkdir(exist_ok=True)
            with scratch(folder.parent, f".{NAME}-") as aside:
                top, _ = unpack(archive, aside)
                if folder.exists():
                    folder.rename(aside / "earlier")
                put_in_place(aside / top, folder)
    return folder


def is_of(folder: Path, sums: Mapping[str, str]) -> bool:
    """Return whether a folder holds the files of these digests, and no other launch or node."""
    found = {
        path.relative_to(folder).as_posix(): path
        for part in ("launches", "nodes")
        for path in (folder / part).rglob("*")
        if path.is_file()
    }
    if found.keys() - sums.keys():
        return False
    try:
        return sums_of({name: Member(folder / name) for name in sums}) == sums
    except OSError:
        return False
