"""Read what Intel's MPI benchmarks print, of one run or several behind each other."""

from __future__ import annotations

import re
from collections import defaultdict
from statistics import median

from records.base import RecordError
from records.foreign.run import ForeignError, Measured, Run, Value, digest_of, name_of
from records.foreign.times import instant_of
from records.imb import END, STEP_S, imb_results

#: The line of a run's heading that names the program.
BEGINS = re.compile(r"^#\s+Intel ?\(R\) MPI Benchmarks (?P<version>[\w.]+)")
DATE = re.compile(r"^# Date\s+: (?P<date>.+?)\s*$")
DATE_FORM = "%a %b %d %H:%M:%S %Y"


def is_imb(text: str) -> bool:
    """Return whether a text is of these programs."""
    return any(map(BEGINS.match, text.splitlines()))


def read_imb(text: str, where: str) -> list[Run]:
    """Return the runs of a text; raises ForeignError with file and line."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if BEGINS.match(line)]
    # The line above a heading is its frame.
    edges = [max(0, start - 1) for start in starts]
    return [
        _run(lines[start:end], start, f"{where}:{start + 1}" if len(starts) > 1 else where, where)
        for start, end in zip(edges, [*edges[1:], len(lines)], strict=True)
    ]


def _run(lines: list[str], start: int, name: str, where: str) -> Run:
    # What a launcher or a job's epilogue adds is not IMB's.
    ends = [number for number, line in enumerate(lines) if line.strip() == END]
    lines = lines[: ends[0] + 1] if ends else lines
    try:
        results = imb_results(lines, where, start)
    except RecordError as error:
        raise ForeignError(str(error)) from None
    values: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in results:
        title = name_of(f"IMB {one.benchmark} processes={one.processes}")
        values[title][one.message_bytes].append(one.time_s)
    date = next((found["date"] for line in lines if (found := DATE.match(line))), None)
    version = next((found["version"] for line in lines if (found := BEGINS.match(line))), "")
    measured = tuple(
        Measured(title, "s", True, {
            size: Value(median(times), STEP_S) for size, times in sorted(of.items())
        })
        for title, of in values.items()
    )  # fmt: skip
    return Run(
        name, measured, instant_of(date, DATE_FORM), identity=digest_of("\n".join(lines).strip()),
        labels={"version": name_of(version)},
    )  # fmt: skip
