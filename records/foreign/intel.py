"""Read what Intel's MPI benchmarks print, of one run or several behind each other."""

from __future__ import annotations

import re
from collections import defaultdict
from statistics import median

from records.base import RecordError
from records.foreign.run import (
    ForeignError,
    Measured,
    NoRun,
    Run,
    Value,
    digest_of,
    name_of,
)
from records.foreign.times import instant_of
from records.imb import END, STEP_S, VERSION, imb_results

DATE = re.compile(r"^# Date\s+: (?P<date>.+?)\s*$")
DATE_FORM = "%a %b %d %H:%M:%S %Y"
#: Lines of the heading that say where and how it ran.
FACT = re.compile(r"^# (?P<name>Machine|Release|MPI Version)\s*: (?P<value>.+?)\s*$")


def is_imb(text: str) -> bool:
    """Return whether a text is of these programs."""
    return any(map(VERSION.match, text.splitlines()))


def read_imb(text: str, where: str) -> tuple[list[Run], list[NoRun]]:
    """Return the runs of a text, and those of it that are damaged.

    Raises ForeignError with file and line where no run is left.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if VERSION.match(line)]
    # The line above a heading is its frame.
    edges = [max(0, start - 1) for start in starts]
    found: list[Run] = []
    left_out: list[NoRun] = []
    for start, end in zip(edges, [*edges[1:], len(lines)], strict=True):
        name = f"{where}:{start + 1}" if len(starts) > 1 else where
        try:
            found.append(_run(lines[start:end], start, name, where))
        except ForeignError as error:
            began = _began(lines[start:end])
            left_out.append(
                NoRun(str(error), True, where=name, began_utc=began, source=where)
            )  # fmt: skip
    if not found:
        raise ForeignError(left_out[0].sentence)
    return found, left_out


def _began(lines: list[str]) -> float | None:
    date = next((found["date"] for line in lines if (found := DATE.match(line))), None)
    return instant_of(date, DATE_FORM)


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
    measured = tuple(
        # A barrier has no message.
        Measured(title, "s", True, {
            None if of.keys() == {0} else size: Value(median(times), STEP_S)
            for size, times in sorted(of.items())
        })
        for title, of in values.items()
    )  # fmt: skip
    labels = {"version": next(found[1] for line in lines if (found := VERSION.match(line)))}
    for line in lines:
        if fact := FACT.match(line):
            labels[fact["name"].lower().replace(" ", "_")] = fact["value"]
    return Run(
        name, measured, _began(lines), identity=digest_of("\n".join(lines).strip()),
        labels={key: name_of(value) for key, value in labels.items()}, source=where,
    )  # fmt: skip
