"""Read the file that NetPIPE writes (`NPmpi -o`, `NPtcp -o`), strictly.

A line is a message size in bytes, a rate in "Mbps" (of 2^20 bits a second), and the one-way time in
seconds: half a round trip, averaged over a trial, of the trial in which that was least. The time
has eight decimals, too coarse for shared memory; the rate has six and is more precise.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from records.base import RecordError, whole_number

HOST = re.compile(r"^(\d+): (\S+)$")
POINT = re.compile(r"^ *(\d+) (\d+\.\d{6}) +(\d+\.\d{8})$")
BITS_PER_MEGABIT = 1024 * 1024
# The time is printed to so many seconds, the rate to so many megabits a second.
TIME_STEP_S = 1e-8
RATE_STEP = 1e-6
# What two conversions to decimals may add to the half steps.
ROUNDING = 1e-9


@dataclass(frozen=True)
class NetpipePoint:
    """The best trial of one message size; `one_way_s` in seconds."""

    message_bytes: int
    one_way_s: float


def point_of(line: str) -> NetpipePoint:
    """Return the point in a line; raise ValueError with what is wrong."""
    match = POINT.match(line)
    if not match:
        raise ValueError(f"not a size, a rate and a time: {line.strip()[:60]!r}")
    size, rate, printed = whole_number(match[1]), float(match[2]), float(match[3])
    if size < 1 or rate <= 0:
        raise ValueError(f"{size} bytes at {rate:g} Mbps are not a measurement")
    bits = 8 * size / BITS_PER_MEGABIT
    time = bits / rate
    if not math.isfinite(time) or time <= 0:
        raise ValueError(f"a rate of {rate:g} Mbps gives no time")
    slack = TIME_STEP_S / 2 + time * (RATE_STEP / 2 / rate) + ROUNDING
    if abs(time - printed) > slack:
        raise ValueError(
            f"{size} bytes at {rate:g} Mbps take {time:.3e} s, but {printed:.3e} s is printed"
        )
    return NetpipePoint(size, time)


def read_netpipe_output(path: Path) -> list[NetpipePoint]:
    """Return NetPIPE's points, in ascending order of size.

    NetPIPE marks no end, so only complete lines are required here; whether every size
    that was wanted is there, the caller has to compare. Raises RecordError with file and line for a
    line that is not NetPIPE's, is cut off, or whose size is not above the one before.
    """
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        raise RecordError(f"{path}:1: NetPIPE left no output ({error.strerror})") from None
    lines = text.splitlines()
    if not lines:
        raise RecordError(f"{path}:1: the output is empty")
    if not text.endswith("\n"):
        raise RecordError(f"{path}:{len(lines)}: the last line is cut off")
    points: list[NetpipePoint] = []
    for number, line in enumerate(lines, 1):
        try:
            point = point_of(line)
        except ValueError as error:
            raise RecordError(f"{path}:{number}: {error}") from None
        if points and point.message_bytes <= points[-1].message_bytes:
            raise RecordError(
                f"{path}:{number}: {point.message_bytes} bytes after "
                f"{points[-1].message_bytes}: two outputs in one file"
            )
        points.append(point)
    return points


def read_netpipe_hosts(path: Path) -> list[str]:
    """Return the host of each rank, by rank, from what `NPmpi` prints on standard output.

    Raises RecordError with file and line unless ranks 0, 1, ... are there once each.
    """
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError as error:
        raise RecordError(f"{path}:1: NetPIPE printed nothing ({error.strerror})") from None
    found: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        match = HOST.match(line)
        if not match:
            continue
        try:
            rank = whole_number(match[1])
        except ValueError as error:
            raise RecordError(f"{path}:{number}: {error}") from None
        if rank in found:
            raise RecordError(f"{path}:{number}: rank {rank} appears twice: two worlds")
        found[rank] = match[2]
    if not found or sorted(found) != list(range(len(found))):
        raise RecordError(
            f"{path}:{max(len(lines), 1)}: there are hosts of ranks {sorted(found)}, which are not "
            "those of one world"
        )
    return [found[rank] for rank in sorted(found)]
