"""What Apptainer draws or reads off the clock when it writes a SIF file, settled by what it holds.

The header has a random identity and times, and each object's descriptor has times and the
builder's user; nothing reads them but `apptainer sif`. With these settled, the same content is the
same file. The layout is that of SIF, version 01: little-endian, packed.
"""

import struct
import uuid
from pathlib import Path

MAGIC = b"SIF_MAGIC\0" + b"01\0"
MAGIC_AT = 32
#: Identity, created, modified; then descriptors free, in all, their offset and their size in bytes.
HEADER = struct.Struct("<16s6q")
HEADER_AT = 48
DESCRIPTOR_BYTES = 585
#: Created, modified, user, group.
STAMPS = struct.Struct("<4q")
STAMPS_AT = 41
USED_AT = 4


class SifError(ValueError):
    """A file is not of the layout that is known here."""


def settle(path: Path, identity: str, epoch: int) -> None:
    """Set a SIF file's identity, by a text, and all its times, in seconds since 1970.

    Raises SifError for another layout; the file is then as it was.
    """
    with path.open("r+b") as file:
        start = file.read(HEADER_AT + HEADER.size)
        if start[MAGIC_AT : MAGIC_AT + len(MAGIC)] != MAGIC:
            raise SifError(f"{path} is not a SIF file of version 01")
        _, _, _, free, total, offset, _ = HEADER.unpack_from(start, HEADER_AT)
        file.seek(offset)
        descriptors = bytearray(file.read(total * DESCRIPTOR_BYTES))
        places = range(0, len(descriptors), DESCRIPTOR_BYTES)
        used = [place for place in places if descriptors[place + USED_AT] == 1]
        if len(descriptors) != total * DESCRIPTOR_BYTES or len(used) != total - free:
            raise SifError(
                f"{path} has descriptors of a size that SIF files of version 01 do not have"
            )
        for place in used:
            STAMPS.pack_into(descriptors, place + STAMPS_AT, epoch, epoch, 0, 0)
        file.seek(offset)
        file.write(descriptors)
        file.seek(HEADER_AT)
        file.write(uuid.uuid5(uuid.NAMESPACE_OID, identity).bytes)
        file.write(struct.pack("<2q", epoch, epoch))
