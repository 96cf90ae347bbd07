"""Read what IMB-MPI1 (Intel MPI Benchmarks) prints, strictly.

Times are printed in microseconds with two decimals and given in seconds here. For a ping-pong the
rate is printed as well; it is used for short messages, where it gives the time more precisely.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from records.base import RecordError, whole_number

WHOLE = r"(\d+)"
DECIMAL = r"(\d+\.\d\d)"
LISTED = re.compile(r"^# ([A-Z]\w*)\s*$")
BENCHMARK = re.compile(r"^# Benchmarking (\w+)\s*$")
PROCESSES = re.compile(r"^# #processes = (\d+)\s*$")
PING_PONG = "#bytes #repetitions t[usec] Mbytes/sec"
#: What each table's heading promises for every line below it.
TABLES = {
    PING_PONG: re.compile(
        rf"^ +{WHOLE} +{WHOLE} +{DECIMAL} +{DECIMAL}$"
    ),
    "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec] Mbytes/sec": re.compile(
        rf"^ +{WHOLE} +{WHOLE} +{DECIMAL} +{DECIMAL} +{DECIMAL} +{DECIMAL}$"
    ),
    "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]": re.compile(
        rf"^ +{WHOLE} +{WHOLE} +{DECIMAL} +{DECIMAL} +{DECIMAL}$"
    ),
    "#repetitions t_min[usec] t_max[usec] t_avg[usec]": re.compile(
        rf"^ +{WHOLE} +{DECIMAL} +{DECIMAL} +{DECIMAL}$"
    ),
}  # fmt: skip
LIST_BEGINS = "# List of Benchmarks to run:"
END = "# All processes entering MPI_Finalize"
STEP_S = 1e-8
#: The line of the heading that names the program; before 4.1 it was a suite of version V3.2.
VERSION = re.compile(r"^#\s+Intel ?\(R\) MPI Benchmark(?:s| Suite) V?([\w.]+)")
#: What a megabyte of the rates is, in bytes. MEGA of IMB_output.c is 1/1e6 in the releases 2018
#: and later, and 1/1048576 in those before (3.x and 4.x, whose user guide defines the rate as
#: X / 1.048576 / T).
MEGABYTE, OLD_MEGABYTE = 1e6, 2.0**20
DECIMAL_SINCE = 2018
RATE_STEP = 0.01


@dataclass(frozen=True)
class ImbResult:
    """One line of a table: times in seconds, averaged over the repetitions.

    Of a ping-pong `time_s` is the one-way time, and the least and the most are the same; of a
    collective operation it is the average over the ranks, and the least and the most are theirs.
    """

    benchmark: str
    processes: int
    message_bytes: int
    repetitions: int
    time_s: float
    least_s: float
    most_s: float


def read_imb_output(path: Path) -> list[ImbResult]:
    """Return IMB's results in order, a message size as often as it was measured.

    Raises RecordError as `imb_results` does, and for a file that cannot be read.
    """
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError as error:
        raise RecordError(f"{path}:1: IMB left no output ({error.strerror})") from None
    return imb_results(lines, str(path))


def imb_results(lines: Sequence[str], path: str, before: int = 0) -> list[ImbResult]:
    """Return the results in the lines of one run, with so many lines of the file `before` them.

    Raises RecordError with file and line for a line that is neither a comment nor of the table
    above it, for numbers that contradict each other, for a benchmark that is listed and has no
    result, and for an output without IMB's last line.
    """
    reader = _OutputReader()
    for number, line in enumerate(lines, before + 1):
        try:
            reader.take(line)
        except ValueError as error:
            raise RecordError(f"{path}:{number}: {error}") from None
    last = f"{path}:{before + max(len(lines), 1)}"
    if not reader.ended:
        raise RecordError(f"{last}: IMB did not finish: the output is truncated or empty")
    # Of more processes than before it is the same benchmark, and listed once.
    ran = [
        name
        for (before_it, fewer, _), (name, processes, _) in pairwise([("", 0, 0), *reader.sections])
        if name != before_it or processes <= fewer
    ]
    if not reader.results or ran != reader.listed:
        raise RecordError(
            f"{last}: IMB was to run {', '.join(reader.listed) or 'nothing'} but ran "
            f"{', '.join(ran) or 'nothing'}"
        )
    for name, _, count in reader.sections:
        if count == 0:
            raise RecordError(f"{last}: there is no result of {name}")
    return reader.results


class _OutputReader:
    """The state after the lines so far."""

    def __init__(self) -> None:
        self.results: list[ImbResult] = []
        self.listed: list[str] = []
        #: The benchmarks that were run, with the processes and the number of results of each.
        self.sections: list[tuple[str, int, int]] = []
        self.in_list = self.ended = False
        self.benchmark = ""
        self.processes = 0
        self.table: str | None = None
        self.megabyte = MEGABYTE

    def take(self, line: str) -> None:
        """Take one more line; raise ValueError with what is wrong with it."""
        text = line.strip()
        if self.ended and text:
            raise ValueError(f"there is more output after IMB's last line: {text[:60]!r}")
        heading = " ".join(text.split())
        if heading in TABLES:
            if not self.processes:
                raise ValueError("a table without a benchmark or its number of processes")
            self.table = heading
        elif match := BENCHMARK.match(line):
            self.in_list, self.table, self.processes = False, None, 0
            self.benchmark = match[1]
            self.sections.append((self.benchmark, 0, 0))
        elif (match := PROCESSES.match(line)) and self.benchmark:
            self.processes = whole_number(match[1])
            self.sections[-1] = (self.benchmark, self.processes, 0)
        elif text == LIST_BEGINS:
            self.in_list = True
        elif self.in_list and (match := LISTED.match(line)):
            self.listed.append(match[1])
        elif text == END:
            self.ended = True
        elif version := VERSION.match(line):
            self.megabyte = megabyte_of(version[1])
        elif text and not text.startswith("#"):
            self.results.append(self.result(line))
            name, processes, count = self.sections[-1]
            self.sections[-1] = (name, processes, count + 1)

    def result(self, line: str) -> ImbResult:
        """Return the result in a line of the table at hand; raise ValueError."""
        match = TABLES[self.table].match(line) if self.table else None
        if not self.table or not match:
            raise ValueError(f"neither a comment nor a line of a table: {line.strip()[:60]!r}")
        numbers: Iterator[str] = iter(match.groups())
        size = whole_number(next(numbers)) if self.table.startswith("#bytes") else 0
        repetitions = whole_number(next(numbers))
        if repetitions < 1:
            raise ValueError("a result of zero repetitions")
        if self.table == PING_PONG:
            printed, rate = (float(text) for text in numbers)
            time = one_way_time(size, printed * 1e-6, rate, self.megabyte)
            least = most = time
        else:
            least, most, time = (float(next(numbers)) * 1e-6 for _ in range(3))
            if not 0 <= least <= time <= most or time == 0:
                raise ValueError("t_min, t_avg and t_max are not in order")
        return ImbResult(self.benchmark, self.processes, size, repetitions, time, least, most)


def megabyte_of(version: str) -> float:
    """Return what a megabyte is in the rates of a version of IMB, in bytes."""
    release = re.match(r"\d+", version)
    return OLD_MEGABYTE if release and int(release[0]) < DECIMAL_SINCE else MEGABYTE


def one_way_time(size: int, time: float, rate: float, megabyte: float = MEGABYTE) -> float:
    """Return the time of a message in seconds, from the more precise of time and rate.

    The rate is in megabytes a second, of so many bytes. Raises ValueError if the two contradict
    each other.
    """
    if size == 0 or rate < RATE_STEP:
        if time <= 0:
            raise ValueError("a message that took no time")
        return time
    megabytes = size / megabyte
    by_rate = megabytes / rate
    # Both are rounded; of a low rate the longest time is farther off than the least.
    least, most = megabytes / (rate + RATE_STEP / 2), megabytes / (rate - RATE_STEP / 2)
    slack = 1.01 * STEP_S / 2
    if not least - slack <= time <= most + slack:
        raise ValueError(
            f"{size} bytes at {rate:.2f} Mbytes/sec take {by_rate * 1e6:.2f} usec, but "
            f"{time * 1e6:.2f} usec is printed"
        )
    return by_rate if most - least < STEP_S else time
