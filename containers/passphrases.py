"""The passphrase of a key to sign with: from a file, or from GnuPG's agent where one has it.

At a terminal Apptainer asks for it. It never stands among a program's arguments, which all users of
a machine can read.
"""

import os
import shutil
import stat
import subprocess
from pathlib import Path
from urllib.parse import unquote_to_bytes

from containers.trusted_keys import PATIENCE_S, TrustError
from records import layout

#: Under which name the agent keeps it, before the key's fingerprint.
CACHED_AS = "wyeast:"


def passphrase_of(fingerprint: str, file: str) -> bytes | None:
    """Return a key's passphrase, by a file if one is named, else by the agent; None if unknown.

    Raises TrustError for a file that cannot be read or that others can read.
    """
    return in_file(layout.meant(file)) if file else from_agent(fingerprint)


def in_file(path: Path) -> bytes:
    """Return the first line of a file that its owner alone can read; raises TrustError."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode) or mode & 0o077:
                raise TrustError(
                    f"{path} must be a file that only you can read: chmod 600 {path.name}"
                )
            return file.readline().rstrip(b"\r\n")
    except OSError as error:
        raise TrustError(f"{path} cannot be read: {error.strerror}") from None


def from_agent(fingerprint: str) -> bytes | None:
    """Return the passphrase that a running agent has for a key; it is not asked to ask."""
    program = shutil.which("gpg-connect-agent")
    if not program:
        return None
    question = f"GET_PASSPHRASE --data --no-ask {CACHED_AS}{fingerprint} X X X"
    try:
        done = subprocess.run(
            [program, "--no-autostart", question, "/bye"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = [line[2:] for line in done.stdout.splitlines() if line.startswith(b"D ")]
    return unquote_to_bytes(b"".join(found)) if found else None
