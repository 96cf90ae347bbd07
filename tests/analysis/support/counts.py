"""What a command does, by counts that are the same on a busy machine, and how they grow.

Times need a machine that does nothing else (tests/analysis/growth_benchmark.py has them). Counts
are of one process: calls of functions, looks at files and folders, files opened, bytes that system
calls read, rows that data frames were asked to go through, and the most memory that Python had.
"""

import cProfile
import math
import os
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl

from tests.analysis.support.costs import MOST_EXPONENT


@dataclass
class Counts:
    """What a command did; below `least` a count is that of chance, such as what a cache had."""

    calls: int = 0
    looks: int = 0
    opened: int = 0
    read_bytes: int = 0
    rows: int = 0
    memory_bytes: int = 0


#: By so much more a count must grow from one size to the next to be looked at.
LEAST = Counts(calls=20_000, looks=20, opened=20, read_bytes=200_000, rows=2000,
               memory_bytes=1_000_000)  # fmt: skip
#: The counts of what is under way; audit hooks stay for good, so there is one.
_current: list[Counts] = []


def _heed(event: str, arguments: tuple[Any, ...]) -> None:
    if not _current:
        return
    if event == "open":
        _current[-1].opened += 1
    elif event in ("os.listdir", "os.scandir"):
        _current[-1].looks += 1


sys.addaudithook(_heed)


def _read_so_far() -> int:
    """Return the bytes that system calls of this process have read."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


@contextmanager
def counted() -> Iterator[Counts]:
    """Count what is done within; nothing else of this process may go on meanwhile."""
    counts = Counts()

    def looking(function: Callable[..., Any]) -> Callable[..., Any]:
        def look(*arguments: Any, **named: Any) -> Any:
            counts.looks += 1
            return function(*arguments, **named)

        return look

    whole = pl.DataFrame.lazy

    def lazy(frame: pl.DataFrame) -> pl.LazyFrame:
        counts.rows += frame.height
        return whole(frame)

    profile = cProfile.Profile()
    with ExitStack() as stack:
        for name in ("stat", "lstat"):
            stack.enter_context(mock.patch.object(os, name, looking(getattr(os, name))))
        # Whatever a data frame does, it does as a lazy one.
        stack.enter_context(mock.patch.object(pl.DataFrame, "lazy", lazy))
        _current.append(counts)
        stack.callback(_current.pop)
        tracemalloc.start()
        stack.callback(tracemalloc.stop)
        before = _read_so_far()
        profile.enable()
        try:
            yield counts
        finally:
            profile.disable()
            counts.read_bytes = _read_so_far() - before
            counts.memory_bytes = tracemalloc.get_traced_memory()[1]
            counts.calls = sum(entry.callcount for entry in profile.getstats())


def power_of(sizes: Sequence[int], found: Sequence[int], least: int) -> float:
    """Return with which power of the sizes a count grows beyond what it always is.

    There are three sizes, each so many times the one before. Of a + b n^p it is p; 0 of what grows
    by less than `least`.
    """
    first, second, third = sizes
    if second * second != first * third:
        raise ValueError(f"{sizes} are not each so many times the one before")
    less, more = found[1] - found[0], found[2] - found[1]
    if more < least:
        return 0.0
    # What began to grow only then is compared with the least that would have been seen.
    return math.log(more / max(less, least)) / math.log(third / second)


def too_fast(
    sizes: Sequence[int], found: Sequence[Mapping[str, Counts]], most: float = MOST_EXPONENT
) -> list[str]:
    """Return a sentence for each command and count that grows too fast over three sizes."""
    sentences = []
    for command in found[-1]:
        of_sizes = [asdict(one[command]) for one in found]
        for count, least in asdict(LEAST).items():
            counts = [one[count] for one in of_sizes]
            power = power_of(sizes, counts, least)
            if power > most:
                told = ", ".join(f"{number:,}" for number in counts)
                sentences.append(f"{command}: {count} grow by a power of {power:.2f} ({told})")
    return sentences
