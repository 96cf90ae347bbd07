"""One run of a program that is not ours, and what it measured.

A run is what was started once: one process, or one job of ranks. Whatever it repeats inside is one
value here, since iterations of a process are not independent of each other.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from records.causes import one_line
from records.files import finite

#: What a file of text may have, in bytes, and a set in runs and in values: more is no measurement
#: that somebody made, but a mistake or an attack.
MOST_BYTES = 64 * 2**20
MOST_RUNS = 200_000
MOST_VALUES = 5_000_000
#: Between these is what anybody measures, in any unit; beyond, ratios or their squares have no
#: floating-point number.
LEAST, MOST = 1e-75, 1e75
#: How long a name may be, in characters.
LONGEST_NAME = 200
#: Two runs that print so many values alike are one and its copy; a few may agree by chance.
VALUES_OF_A_COPY = 8
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?")


class ForeignError(ValueError):
    """A file that cannot be read as results; the text is a sentence."""


@dataclass(frozen=True)
class Value:
    """A positive value, and by how much it may be rounded: the step of its last digit."""

    value: float
    step: float


@dataclass(frozen=True)
class Measured:
    """A run's values of one thing, by message size in bytes; of size None where there are none.

    `lower_is_better` is None where nothing says.
    """

    name: str
    unit: str
    lower_is_better: bool | None
    values: Mapping[int | None, Value]


@dataclass(frozen=True)
class Run:
    """What one run measured; `where` names it for people, `source` is its file.

    `began_utc` is in seconds since the epoch. Runs of one `session` were started together. Of two
    runs with the same `identity` one is a copy. `labels` are the facts that runs can be chosen by.
    """

    where: str
    measured: tuple[Measured, ...]
    began_utc: float | None = None
    session: str | None = None
    identity: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True)
class NoRun:
    """What is not among the runs, in a sentence.

    It `is_loss` if something was started and left no value: a copy, a retry or another file is
    none. `of` is what it would have measured, or what the names of all of that begin with; empty
    where that is unknown. The rest is as of a run, as far as it is known.
    """

    sentence: str
    is_loss: bool = False
    of: str = ""
    where: str = ""
    began_utc: float | None = None
    session: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    source: str = ""

    def may_be_of(self, name: str) -> bool:
        """Return whether it may be a value of that name which is lost."""
        return not self.of or name == self.of or name.startswith(f"{self.of} ")


def name_of(text: object) -> str:
    """Return a name of others as one line of printable characters."""
    return one_line(str(text), LONGEST_NAME)


def step_of(text: str) -> float:
    """Return the step of the last digit of a printed number: 0.01 of 1.25, 1e-7 of 1.25e-5."""
    match = NUMBER.fullmatch(text)
    if not match:
        raise ValueError(f"{one_line(text, 40)} is not a number")
    mantissa = re.split("[eE]", text)[0]
    places = len(mantissa.partition(".")[2])
    # Zeros at the end of a whole number may be digits, or not; it is no finer than 1.
    return math.pow(10.0, max(-300, min(300, int(match[1] or 0) - places)))


def printed(text: str, scale: float = 1.0) -> Value:
    """Return a number as it was printed, times a scale.

    Raises ValueError for what is not a positive number.
    """
    step = step_of(text)
    value = positive(finite(text)) * scale
    if not LEAST <= value <= MOST:
        raise ValueError(f"{one_line(text, 40)} is nothing that can be measured")
    return Value(value, step * scale)


def of_number(number: object, scale: float = 1.0) -> Value:
    """Return a number of JSON, whose shortest text has its digits, times a scale.

    Raises ValueError for what is not a positive number.
    """
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError(f"{one_line(repr(number), 40)} is not a number")
    return printed(repr(number), scale)


def positive(number: float) -> float:
    """Return a number, of which ratios can be formed; raise ValueError for others."""
    if number <= 0:
        raise ValueError(f"{number:g} is not above 0, and has no ratio to others")
    return number


def refuse_more(number: int, where: str) -> None:
    """Raise ForeignError for more entries than a set may have runs, whether they are any or not.

    Of each that is left out there is a sentence.
    """
    if number > MOST_RUNS:
        raise ForeignError(f"{where} has {number:,} entries, and at most {MOST_RUNS:,} are read")


def digest_of(text: str) -> str:
    """Return what tells a text from others."""
    return hashlib.sha256(text.encode()).hexdigest()
