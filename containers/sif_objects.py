"""The objects of a SIF file, read without Apptainer: nothing of the file runs to say what it is.

For a file without its JSON object `apptainer inspect` starts the image's own shell instead. What is
read here may be anybody's: every number is held against the file before it is used.
"""

import json
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from containers.sif_header import DESCRIPTOR_BYTES, HEADER, HEADER_AT, MAGIC, MAGIC_AT, SifError

#: Types of objects, as Apptainer numbers them.
JSON_OBJECT, BILL = 0x4006, 0x4009
#: The name of the object in which Apptainer keeps what an image says of itself.
SAID = "inspect-metadata.json"
#: Type, in use, number, group, link, offset, size, size with padding; name and the rest follow.
DESCRIPTOR = struct.Struct("<i?3I3q")
NAME_AT, NAME_BYTES = 73, 128
#: Where a file's header ends. Apptainer makes 48 descriptors.
HEADER_END, MOST_DESCRIPTORS = 128, 4096
#: Labels are some kilobytes; the bill of an image of many packages is some hundreds of them.
MOST_LABELS_BYTES, MOST_BILL_BYTES = 2**20, 2**26


@dataclass(frozen=True)
class SifObject:
    """An object of a SIF file: what it is and where it lies."""

    number: int
    kind: int
    offset: int
    size: int
    name: str


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that is one: neither a link is followed, nor does a pipe make us wait."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SifError("it is not a regular file")
        yield file


def objects(path: Path) -> list[SifObject]:
    """Return the objects of a SIF file; raises SifError for one that is not laid out as it must be.

    None lies outside of the file, in its header or over another one. Raises OSError as well.
    """
    with _opened(path) as file:
        return _objects(file)


def _objects(file: IO[bytes]) -> list[SifObject]:
    length = os.fstat(file.fileno()).st_size
    start = file.read(HEADER_END)
    if len(start) < HEADER_END or start[MAGIC_AT : MAGIC_AT + len(MAGIC)] != MAGIC:
        raise SifError("it is not a SIF file of version 01")
    _, _, _, free, total, offset, _ = HEADER.unpack_from(start, HEADER_AT)
    if not 0 < total <= MOST_DESCRIPTORS or not 0 <= free <= total:
        raise SifError(f"it says that it has {total} descriptors, {free} of them free")
    end = offset + total * DESCRIPTOR_BYTES
    if not HEADER_END <= offset <= end <= length:
        raise SifError("its descriptors are outside the file")
    file.seek(offset)
    table = file.read(total * DESCRIPTOR_BYTES)
    found = []
    for place in range(0, len(table) - DESCRIPTOR_BYTES + 1, DESCRIPTOR_BYTES):
        kind, used, number, _, _, at, size, _ = DESCRIPTOR.unpack_from(table, place)
        if used:
            name = table[place + NAME_AT : place + NAME_AT + NAME_BYTES].partition(b"\0")[0]
            found.append(SifObject(number, kind, at, size, name.decode(errors="replace")))
    if len(found) != total - free or len({one.number for one in found}) != len(found):
        raise SifError(
            "the number of its descriptors is not the one it states, or two of them "
            "have the same number"
        )
    taken = end
    for one in sorted(found, key=lambda one: (one.offset, one.size)):
        if one.size < 0 or one.offset < taken or one.offset + one.size > length:
            raise SifError(f"its object {one.number} overlaps another one or lies outside the file")
        taken = one.offset + one.size
    return found


def content(path: Path, kind: int, name: str | None, most: int) -> bytes:
    """Return what the one object of a type, and of a name, has; at most so many bytes.

    Raises SifError for a file with none or several, or with a larger one; raises OSError as well.
    """
    what = f"object {name}" if name else "object of the type"
    with _opened(path) as file:
        fitting = [one for one in _objects(file) if one.kind == kind and name in (None, one.name)]
        if len(fitting) != 1:
            raise SifError(f"it has {len(fitting) or 'no'} {what} where exactly one is needed")
        [one] = fitting
        if one.size > most:
            raise SifError(f"its {what} has {one.size} bytes, which is more than {most}")
        file.seek(one.offset)
        return file.read(one.size)


def read_json(text: bytes) -> Any:
    """Return what a text of JSON says; raises SifError if it is not JSON, or has a name twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise SifError("its JSON has a duplicate key")
        return found

    try:
        return json.loads(text.decode(), object_pairs_hook=once)
    except SifError:
        raise
    except RecursionError:
        raise SifError("its JSON is nested too deeply") from None
    except ValueError as error:
        raise SifError(f"its JSON cannot be read: {error}") from None


def labels(path: Path) -> dict[str, str]:
    """Return the labels of an image; raises SifError where it has none, and OSError."""
    data = read_json(content(path, JSON_OBJECT, SAID, MOST_LABELS_BYTES))
    try:
        found = data["data"]["attributes"]["labels"]
    except (KeyError, TypeError):
        raise SifError(f"its object {SAID} has no labels") from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise SifError(f"its object {SAID} has labels that are not text")
    return found


def bill(path: Path) -> str:
    """Return the bill of materials of an image; raises SifError where it has none, and OSError."""
    text = content(path, BILL, None, MOST_BILL_BYTES)
    found = read_json(text)
    if not isinstance(found, dict) or found.get("bomFormat") != "CycloneDX":
        raise SifError("its bill of materials is not in the CycloneDX format")
    return text.decode()
