"""What an image's programs load, by digest: the MPI's libraries, who compiled them, and the others.

A campaign's manifest has it (`libraries` of an image); older ones do not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Any

#: Every program loads them, the MPI's libraries too, and they are no part of the MPI.
OF_C = ("libc.so.6", "libm.so.6")
#: Where the distribution's packages put libraries.
OF_THE_DISTRIBUTION = ("/lib/", "/lib64/", "/usr/")
BUILDER = "org.wyeast.builder"


def _loaded(image: Mapping[str, Any]) -> dict[str, list[str]] | None:
    """Return what each program, and each library of the MPI, loads; None where nobody knows."""
    found = image.get("libraries")
    if not isinstance(found, Mapping):
        return None
    return {name: group["files"] for group in found["loaded"] for name in group["by"]}


def _digests(image: Mapping[str, Any], paths: Collection[str]) -> dict[str, str]:
    return {PurePosixPath(path).name: image["libraries"]["sha256"][path] for path in paths}


def _of_mpi(loaded: Mapping[str, list[str]]) -> list[str]:
    """Return the MPI's own libraries, which are named by their paths; programs have names alone."""
    return sorted(name for name in loaded if name.startswith("/"))


def _with_mpi(loaded: Mapping[str, list[str]]) -> set[str]:
    """Return the paths of the MPI's libraries, and of what these load besides C's."""
    own = _of_mpi(loaded)
    found = {*own, *(path for name in own for path in loaded[name])}
    return {path for path in found if PurePosixPath(path).name not in OF_C}


def mpi(image: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the digests of the MPI's libraries, and of what these load besides C's, by name.

    None where an image's libraries are not known, or none is an MPI's.
    """
    loaded = _loaded(image)
    return _digests(image, _with_mpi(loaded)) or None if loaded is not None else None


def compiled_by(image: Mapping[str, Any]) -> str | None:
    """Return who compiled an image's MPI: the distribution, by where it is, or the image's builder.

    None where the image does not say who that is.
    """
    loaded = _loaded(image)
    own = _of_mpi(loaded) if loaded else []
    if own and all(path.startswith(OF_THE_DISTRIBUTION) for path in own):
        return "the distribution"
    builder = (image.get("labels") or {}).get(BUILDER)
    # It installs what the distribution compiled.
    return "the distribution" if builder == "debian" else builder


def besides_mpi(
    image: Mapping[str, Any], programs: Collection[str] | None = None
) -> dict[str, str] | None:
    """Return the digests of what programs of an image load besides its MPI, by name.

    Without `programs`, of all. None where an image's libraries are not known, or not of these.
    """
    loaded = _loaded(image)
    if loaded is None:
        return None
    own = set(_of_mpi(loaded))
    asked = [name for name in loaded if name not in own and (programs is None or name in programs)]
    if not asked and programs:
        return None
    return _digests(image, {path for name in asked for path in loaded[name]} - _with_mpi(loaded))
