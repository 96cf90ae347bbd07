"""SIF files that are written here byte by byte: as Apptainer does it, or as nobody should."""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from containers.sif_header import DESCRIPTOR_BYTES, HEADER, HEADER_AT, MAGIC, MAGIC_AT
from containers.sif_objects import DESCRIPTOR, HEADER_END, JSON_OBJECT, NAME_AT, SAID

DESCRIPTORS_AT = 4096


@dataclass(frozen=True)
class Part:
    """An object of a SIF file, which may say that it lies elsewhere or is of another size."""

    kind: int
    content: bytes
    name: str = ""
    offset: int | None = None
    size: int | None = None
    number: int | None = None


def said(labels: object) -> Part:
    """The object in which an image has its labels."""
    text = json.dumps({"data": {"attributes": {"labels": labels}}})
    return Part(JSON_OBJECT, text.encode(), SAID)


def write_sif(
    path: Path, parts: Sequence[Part], *, total: int = 8, at: int = DESCRIPTORS_AT,
    free: int | None = None,
) -> Path:  # fmt: skip
    """Write a SIF file of these objects, whose header may lie about its descriptors."""
    table = bytearray(8 * DESCRIPTOR_BYTES)
    data = bytearray()
    first = DESCRIPTORS_AT + len(table)
    for index, part in enumerate(parts):
        offset = first + len(data) if part.offset is None else part.offset
        size = len(part.content) if part.size is None else part.size
        number = index + 1 if part.number is None else part.number
        place = index * DESCRIPTOR_BYTES
        DESCRIPTOR.pack_into(table, place, part.kind, True, number, 1, 0, offset, size, size)
        table[place + NAME_AT : place + NAME_AT + len(part.name)] = part.name.encode()
        data += part.content
    start = bytearray(DESCRIPTORS_AT)
    start[MAGIC_AT : MAGIC_AT + len(MAGIC)] = MAGIC
    left = total - len(parts) if free is None else free
    HEADER.pack_into(start, HEADER_AT, bytes(16), 0, 0, left, total, at, len(table))
    struct.pack_into("<2q", start, HEADER_END - 16, first, len(data))
    path.write_bytes(bytes(start) + bytes(table) + bytes(data))
    return path
