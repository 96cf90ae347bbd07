"""What a launch or a command failed of, in one line that can be printed wherever it is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

#: The most characters of a cause: a program may have written megabytes into one line.
LONGEST = 400
#: What moves a terminal's cursor or colours its text.
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")
#: What changes how the text around it is shown, or is no character: controls but tab and newline,
#: C1's too, what turns the direction of letters, what has no width, and halves of characters.
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
REPLACED = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Known:
    """A cause that is known by what was said, or by the exit code, and what to say of it."""

    said: re.Pattern[str]
    sentence: str
    #: The exit code that a shell makes of it, whatever was said.
    code: int | None = None


#: Each cause that is looked for in what others print.
BUS_ERROR = Known(
    # How shells, launchers and Slurm say signal 7.
    re.compile(r"\b(?:Bus error|SIGBUS|signal:? 7)\b"),
    "a bus error (signal 7), as a process gets it where memory that it shares has no room: "
    "look for a full /dev/shm on the node (df /dev/shm)",
    128 + 7,
)
FULL_DISK = Known(
    re.compile(r"(?i)no space left on device|disk quota exceeded"),
    "the disk is full; free some space and run it again",
)


def one_line(text: str, longest: int = LONGEST) -> str:
    """Return a text in one line of printable characters, cut where it is longer than that."""
    # What is looked at is bounded too, generously for what is taken out of it.
    words = " ".join(ESCAPES.sub(" ", text[: 20 * longest]).split())
    line = "".join(one if one.isprintable() else REPLACED for one in words)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def harmless(text: str) -> str:
    """Return a text of others without what changes how it is shown; its lines and tabs stay."""
    return CONTROLS.sub(REPLACED, ESCAPES.sub(" ", text))


def harmless_strings(data: Any) -> Any:
    """Return what a text of JSON holds with every string in it, keys too, harmless on one line."""
    if isinstance(data, str):
        # Its own lines would look like ours.
        return harmless(re.sub(r"[\n\t]", " ", data))
    if isinstance(data, dict):
        return {harmless_strings(key): harmless_strings(value) for key, value in data.items()}
    return list(map(harmless_strings, data)) if isinstance(data, list) else data


def may_harm(text: str) -> bool:
    """Tell quickly whether strings of a text of JSON may need `harmless_strings`."""
    return "\\" in text or "\x7f" in text or not text.isascii()


def of_signal(code: int | None, said: str) -> str | None:
    """Return what ended a launch where the kernel did, by its exit code and what was said of it."""
    known = code == BUS_ERROR.code or (code != 0 and BUS_ERROR.said.search(said))
    return BUS_ERROR.sentence if known else None
