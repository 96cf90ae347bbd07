"""The images' store: each image is in it under its digest, read-only and never replaced.

Locks (`containers/images.lock`, and that of a bundle's images) map names to digests. What runs an
image so has the same file from its beginning to its end, whatever is built or signed meanwhile.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from containers.sources import sha256_of
from records.files import aside_of, put_in_place

STORE = "sha256"


def folder(root: Path) -> Path:
    """Return the folder of the images."""
    return root / ".wyeast" / "images"


def by_digest(root: Path) -> Path:
    """Return the folder that has each image under its digest, read-only and never replaced."""
    return folder(root) / STORE


def place_of(root: Path, sha256: str) -> Path:
    """Return where the store has the image of a digest, or would have it."""
    return by_digest(root) / f"{sha256}.sif"


def path_of(root: Path, entry: Mapping[str, Any]) -> Path:
    """Return the path of an entry's image: in the store, by its digest.

    One that was built before there was a store is still under its name, until `take_over`.
    """
    place = place_of(root, str(entry["sha256"]))
    named = folder(root) / str(entry["file"])
    return named if named.exists() and not place.exists() else place


def keep(root: Path, aside: Path, sha256: str) -> Path:
    """Move a complete file of a digest into the store, read-only; return its path there.

    A campaign may be running what is there, so it stays as it is, unless it was damaged.
    """
    place = place_of(root, sha256)
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_file() and sha256_of(place) == sha256:
        aside.unlink()
        return place
    # As executable as Apptainer makes them.
    aside.chmod(0o555)
    put_in_place(aside, place)
    return place


def name_in_folder(root: Path, entry: Mapping[str, Any]) -> None:
    """Have people find an image under its name, by a link; nothing here uses it."""
    link = folder(root) / str(entry["file"])
    aside = aside_of(link)
    aside.unlink(missing_ok=True)
    aside.symlink_to(place_of(root, str(entry["sha256"])).relative_to(folder(root)))
    aside.rename(link)
