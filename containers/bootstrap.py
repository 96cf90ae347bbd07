"""Where the Debian base of images comes from: the machine's mirror, or a pinned container image."""

import os
import re
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Literal, get_args

Bootstrap = Literal["mmdebstrap", "docker"]
BOOTSTRAPS: tuple[Bootstrap, ...] = get_args(Bootstrap)
OS_RELEASE = Path("/etc/os-release")
#: Mount flags of a temporary folder in which mmdebstrap makes no system, by their names.
CLOSED = {"noexec": os.ST_NOEXEC, "nodev": os.ST_NODEV}


def why_not_mmdebstrap() -> str | None:
    """Return why Debian's own bootstrap is not to be had here, to follow `since`; else None."""
    try:
        is_debian = re.search(r"^ID=[\"']?debian\b", OS_RELEASE.read_text(), re.M)
    except OSError:
        is_debian = None
    if not is_debian:
        return "this machine is not Debian"
    lacking = [name for name in ("apt-get", "dpkg") if shutil.which(name) is None]
    if lacking:
        return f"this machine has no {lacking[0]}"
    place = Path(tempfile.gettempdir()).resolve()
    for name, flag in CLOSED.items():
        if os.statvfs(place).f_flag & flag:
            return f"{place} is mounted {name}; set TMPDIR to a folder that is not"
    # The users of its namespace are others than the one who starts it.
    closed = [path for path in (place, *place.parents) if not path.stat().st_mode & stat.S_IXOTH]
    if closed and os.geteuid() != 0:
        return (
            f"others may not enter {closed[-1]}, where temporary files are; set TMPDIR to a folder "
            "that they may"
        )
    return None


def chosen(word: str | None) -> tuple[Bootstrap, str | None]:
    """Return the bootstrap that a person named, one of BOOTSTRAPS, else the one for this machine.

    With that comes why Debian's own cannot be used, where it cannot.
    """
    for known in BOOTSTRAPS:
        if word == known:
            return known, None
    why = why_not_mmdebstrap()
    return ("docker" if why else "mmdebstrap"), why
