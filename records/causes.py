"""Why a launch or a command failed, in one line that can be printed anywhere."""

from __future__ import annotations

import re

#: The most characters of a cause: a program may have written megabytes into one line.
LONGEST = 400
#: What moves a terminal's cursor or colours its text.
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")
#: How shells, launchers and Slurm say signal 7, and the exit code that a shell makes of it.
BUS_ERROR = re.compile(r"\b(?:Bus error|SIGBUS|signal:? 7)\b")
BUS_ERROR_CODE = 128 + 7


def one_line(text: str, longest: int = LONGEST) -> str:
    """Return a text as one line of printable characters, cut at a length."""
    # The input is bounded too, generously compared with what is kept.
    words = " ".join(ESCAPES.sub(" ", text[: 20 * longest]).split())
    line = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in words)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def of_signal(code: int | None, said: str) -> str | None:
    """Return what ended a launch if the kernel did, from its exit code and its messages."""
    if code == BUS_ERROR_CODE or (code != 0 and BUS_ERROR.search(said)):
        return (
            "a bus error (signal 7), which a process gets when its shared memory has no room left: "
            "check for a full /dev/shm on the node (df /dev/shm)"
        )
    return None
