"""Which file the image of a launch was, as the launch's first node sees it.

An image is read whole, for its digest, once a session; whether another file took its place since
is told by what the file system says of it just before and just after the launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from records.base import OneOfMany

#: Prints device, inode, bytes, when the bytes were written last and when anything changed last, of
#: the file that is named after it. Opened first: NFS asks its server then, and else says what it
#: knew before.
COMMAND = "stat -c '%d %i %s %.9Y %.9Z' - <"
Whole = Annotated[int, Field(ge=0, lt=2**64)]
Time = Annotated[float, Field(ge=0, le=1e11)]


class ImageFile(OneOfMany, BaseModel):
    """A file by its place on its file system, its size, and when it was changed last (UTC, s).

    Its bytes were written last when it was modified, which older campaigns have not noted.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    device: Whole
    inode: Whole
    bytes: Whole
    changed_utc_s: Time
    modified_utc_s: Time | None = None

    def is_another(self, later: ImageFile) -> bool:
        """Return whether another file is in the place of this one, or it was written.

        The same file may have been given another mode or name, which changes no byte of it.
        """
        own, its = ((one.device, one.inode, one.bytes, one.modified_utc_s) for one in (self, later))
        return own != its


def image_file(lines: Sequence[str]) -> ImageFile | None:
    """Return the file that COMMAND told of; None if it told of none."""
    try:
        device, inode, size, modified, changed = lines[0].split()
        return ImageFile(
            device=int(device), inode=int(inode), bytes=int(size),
            modified_utc_s=float(modified), changed_utc_s=float(changed),
        )  # fmt: skip
    except (IndexError, ValueError, ValidationError):
        return None
