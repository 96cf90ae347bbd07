"""What a launch or a command failed of, in one line that can be printed wherever it is shown."""

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
    """Return a text in one line of printable characters, cut where it is longer than that."""
    # What is looked at is bounded too, generously for what is taken out of it.
    words = " ".join(ESCAPES.sub(" ", text[: 20 * longest]).split())
    line = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in words)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def of_signal(code: int | None, said: str) -> str | None:
    """Return what ended a launch where the kernel did, by its exit code and what was said of it."""
    if code == BUS_ERROR_CODE or (code != 0 and BUS_ERROR.search(said)):
        return (
            "a bus error (signal 7), as a process gets it where memory that it shares has no room: "
            "look for a full /dev/shm on the node (df /dev/shm)"
        )
    return None
