"""Why a launch or a command failed, in one line that can be printed anywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from records.ailments.known import Known
from records.ailments.table import KNOWN

#: The most characters of a cause: a program may have written megabytes into one line.
LONGEST = 400
#: What moves a terminal's cursor or colours its text.
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")


@dataclass(frozen=True)
class Signal:
    """What ended a process: its number, what to call it, how launchers and Slurm say it."""

    number: int
    cause: str
    said: re.Pattern[str]


def _by(number: int, cause: str, *words: str) -> Signal:
    """Return a signal by the words of shells, launchers and Slurm, and by what names its number."""
    spoken = "|".join([*(rf"\b{word}\b" for word in words), rf"\bsignal:? {number}\b"])
    return Signal(number, f"{cause} (signal {number})", re.compile(spoken))


#: What a rank ends itself with, and by which others may crash when they miss it.
CRASHES = (
    _by(7, "a bus error", "Bus error", "SIGBUS"),
    _by(11, "a segmentation fault", "[Ss]egmentation fault", "SIGSEGV"),
    _by(4, "an illegal instruction", "Illegal instruction", "SIGILL"),
    _by(8, "an arithmetic error", "Floating point exception", "SIGFPE"),
    _by(6, "an abort", "Aborted", "SIGABRT"),
)
#: With those, too, by which launchers end the other ranks once one has failed: what is said of
#: these names no cause.
SIGNALS = (*CRASHES, _by(9, "being killed"), _by(15, "being asked to end"))
#: The usual cause of each, if it has one.
USUAL = {
    7: ", as happens when shared memory has no room: look for a full /dev/shm on the node "
    "(df /dev/shm)",
    4: ": the image may have been built for another processor",
    9: ", as the kernel does when memory runs out: look for it in the node's log (dmesg)",
    15: ", as happens when a job is cancelled",
}
#: How Slurm says that memory ran out, and that it or somebody else ended a job.
OUT_OF_MEMORY = re.compile(
    r"\boom[_-]kill|\bOOM Killed|^srun: error: .*: Out Of Memory$", re.MULTILINE
)
ENDED_FOR = re.compile(r"CANCELLED AT \S+ DUE TO (.{1,200}?) \*\*\*", re.IGNORECASE)
CANCELLED = re.compile(r"\*\*\* JOB \S+ ON \S+ CANCELLED AT \S+ \*\*\*")
BY_SOMEBODY = "somebody cancelled it"
#: What changes how the text around it is shown, or is no character: controls but tab and newline,
#: C1's too, what turns the direction of letters, what has no width, and halves of characters.
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
REPLACED = "\N{REPLACEMENT CHARACTER}"


#: What separates messages from each other: at least three characters, none of a word.
RULER = re.compile(r"[^\w\s]{3,}")
WORD = re.compile(r"\w")
#: What is no reason by itself: remarks, and what launchers say once a rank has ended badly.
REMARK = re.compile(r"(?:INFO|VERBOSE|DEBUG)\s*:")
BANNER = re.compile(
    r"BAD TERMINATION OF ONE OF YOUR APPLICATION|^YOUR APPLICATION TERMINATED WITH"
    r"|^This typically refers to a problem with your application"
    r"|^Please see the FAQ page for debugging"
    r"|^Primary job +terminated normally, but"
    r"|detected that one or more processes exited with non-zero"
    r"|noticed that process rank|^MPI_ABORT was invoked on rank",
    re.MULTILINE,
)
#: How a line begins that calls itself an error, in a file perhaps; and what of it is no sentence.
CALLED_ERROR = re.compile(r"(?:[\w./:-]+: )?(?:fatal|error|E)\s*: *", re.IGNORECASE)
MARK = re.compile(r"(?:[\w./-]+: )?(?:fatal|error|E)\s*: *", re.IGNORECASE)


def known_in(said: str) -> Known | None:
    """Return the known cause that something was said of, if there is one; remarks are none."""
    said = "\n".join(_without_remarks(said))
    return next((one for one in KNOWN if one.said.search(said)), None)


def sentence_in(said: str) -> str:
    """Return the sentence of what a program printed that says why it failed; empty for none.

    It is the line with a known cause, followed by what can be done about it; else the first that
    calls itself an error; else the last line outside of the messages that launchers put between
    rulers; else the first of these messages. What only moves the cursor or colours, rulers,
    remarks and banners are passed over.
    """
    if known := known_in(said):
        lines = _without_remarks(said)
        line = next((one for one in lines if known.said.search(one)), " ".join(lines))
        return f"{_without_mark(one_line(line, LONGEST // 2))}; {known.sentence}"
    blocks: list[list[str]] = [[]]
    for line in map(one_line, said.splitlines()):
        if RULER.fullmatch(line):
            blocks.append([])
        else:
            says_something = WORD.search(line) and not REMARK.match(line)
            blocks[-1].append(line if says_something else "")
    outside = [line for block in blocks[::2] for line in block if line]
    messages = [text for block in blocks[1::2] if (text := "\n".join(block).strip())]
    told = [line for line in outside if not BANNER.search(line)]
    told_between = [text for text in messages if not BANNER.search(text)]
    for line in (*told, *"\n".join(told_between).splitlines()):
        if CALLED_ERROR.match(line) and _without_mark(line):
            return _without_mark(line)
    if told:
        return told[-1]
    # Where all is a banner, it is better than nothing.
    message = next(iter([*told_between, *messages, *outside]), "")
    return one_line(message.partition("\n\n")[0])


def _without_remarks(said: str) -> list[str]:
    return [line for line in said.splitlines() if not REMARK.match(line)]


def _without_mark(line: str) -> str:
    found = MARK.match(line)
    return line[found.end() :] if found else line


def one_line(text: str, longest: int = LONGEST) -> str:
    """Return a text as one line of printable characters, cut at a length."""
    if len(text) <= longest and text.isprintable() and text == " ".join(text.split()):
        return text
    # The input is bounded too, generously compared with what is kept.
    words = " ".join(ESCAPES.sub(" ", text[: 20 * longest]).split())
    line = "".join(one if one.isprintable() else REPLACED for one in words)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def harmless(text: str) -> str:
    """Return a text of others without what changes how it is shown; its lines and tabs stay."""
    return CONTROLS.sub(REPLACED, ESCAPES.sub(" ", text))


def harmless_strings(data: Any) -> Any:
    """Return what a text of JSON holds with every string in it, keys too, harmless on one line."""
    if isinstance(data, str):
        # As most are: nothing is in it that is looked for.
        if data.isascii() and data.isprintable():
            return data
        # Its own lines would look like ours.
        return harmless(re.sub(r"[\n\t]", " ", data))
    if isinstance(data, dict):
        return {harmless_strings(key): harmless_strings(value) for key, value in data.items()}
    return list(map(harmless_strings, data)) if isinstance(data, list) else data


def may_harm(text: str) -> bool:
    """Tell quickly whether strings of a text of JSON may need `harmless_strings`."""
    return "\\" in text or "\x7f" in text or not text.isascii()


def of_signal(code: int | None, said: str) -> str | None:
    """Return what ended a launch if the kernel did, from its exit code and its messages."""
    if code == 0:
        return None
    mentions = [(found.start(), one) for one in CRASHES if (found := one.said.search(said))]
    first = min(mentions, key=lambda mention: mention[0])[1] if mentions else None
    ended = next((one for one in SIGNALS if code == 128 + one.number), None)
    # Of what is said of several ranks the first is the cause: when its peer has gone, a library
    # may crash in another way, and it is this one's code that the launcher may end with.
    crashed = ended in CRASHES and ended not in [one for _, one in mentions]
    cause = ended if first is None or crashed else first
    return f"{cause.cause}{USUAL.get(cause.number, '')}" if cause else None


def of_scheduler(said: str) -> str | None:
    """Return why Slurm says in a job's standard error that it ended the job, if it did.

    BY_SOMEBODY means that somebody cancelled it: only Slurm's accounting knows who.
    """
    if reasons := ENDED_FOR.findall(said):
        return one_line(reasons[-1].lower())
    if OUT_OF_MEMORY.search(said):
        return "memory ran out on the node, and the kernel killed one of its processes"
    return BY_SOMEBODY if CANCELLED.search(said) else None


def of_command(said: str, stderr: str) -> str:
    """Return why a scheduler's command failed: what it was, and all that it said about it."""
    first = said.strip().partition("\n")[0].rstrip(":")
    return one_line(f"{one_line(first, LONGEST // 2)}: {stderr}" if stderr.strip() else first)
