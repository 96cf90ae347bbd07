"""Read what the OSU micro-benchmarks print: a run for each heading.

Times are printed in microseconds and given in seconds, rates in 10^6 B/s and given in B/s. Of the
columns that a test prints the first after the size is its result; statistics over ranks and
iterations that may follow it are of the same run. A test that is asked for several datatypes prints
a table for each below one heading: each is a thing of its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median

from records.foreign.run import (
    VALUES_OF_A_COPY,
    ForeignError,
    Measured,
    NoRun,
    Run,
    Value,
    digest_of,
    name_of,
    printed,
)

#: The line that a run begins with; its version may stand behind it.
BEGINS = re.compile(r"^# OSU (?P<name>.+?) Test(?: v(?P<version>\S+))?\s*$")
#: What the result is called, with its unit, the factor to it, and whether less is better.
RESULTS = {
    "Latency(us)": ("s", 1e-6, True),
    "Avg Latency(us)": ("s", 1e-6, True),
    "Bandwidth(MB/s)": ("B/s", 1e6, False),
    "MB/s": ("B/s", 1e6, False),
}
HEAD = re.compile(
    r"^#\s*(?P<size>Size\s+)?(?P<result>(?:Avg )?Latency ?\(us\)|Bandwidth ?\(MB/s\)|MB/s)(?:\s|$)"
)
#: Lines that say how it was measured: with another setting it is another series.
SETTING = re.compile(
    r"^# (\[ pairs: \d+ \] \[ window size: \d+ \]|Send Buffer on .*|[A-Z][A-Za-z ]+: .*?)\.?$"
)
#: What others may print into the same file, as a launcher does, begins with no digit.
RESULT_BEGINS = re.compile(r"[0-9.+-]")
#: A result as it is printed, with so many decimals as all others (FLOAT_PRECISION of
#: osu_util.h): of a file that ends within a line a number with fewer was cut off.
WHOLE_RESULT = re.compile(r"\d+\.\d\d")


def is_osu(text: str) -> bool:
    """Return whether a text is of these programs."""
    return any(map(BEGINS.match, text.splitlines()))


def read_osu(text: str, where: str) -> tuple[list[Run], list[NoRun]]:
    """Return the runs of a text, and those of it that are damaged.

    Raises ForeignError with file and line where no run is left.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if BEGINS.match(line)]
    found: list[Run] = []
    left_out: list[NoRun] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        name = f"{where}:{start + 1}" if len(starts) > 1 else where
        is_cut = end == len(lines) and not text.endswith(("\n", "\r"))
        try:
            found.append(_run(lines[start:end], start, name, where, is_cut))
        except ForeignError as error:
            left_out.append(NoRun(str(error), True, where=name, source=where))
    if not found:
        raise ForeignError(left_out[0].sentence)
    return found, left_out


@dataclass
class _Table:
    """What stands below one heading: with which settings, and the values by message size."""

    told: tuple[str, float, bool] | None = None
    sized: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    values: dict[int | None, list[Value]] = field(default_factory=lambda: defaultdict(list))

    def next(self) -> _Table:
        """Return the table behind it: with its heading and settings, unless others follow."""
        return _Table(self.told, self.sized, dict(self.settings)) if self.values else self


def _tables(lines: list[str], start: int, where: str, is_cut: bool) -> list[_Table]:
    """Return the tables of a run, such as one for each datatype; raises ForeignError."""
    table = _Table()
    found: list[_Table] = []
    for number, line in enumerate(lines[1:], start + 2):
        text = line.strip()
        if head := HEAD.match(text):
            table = table.next()
            table.told = RESULTS[head["result"].replace(" (", "(")]
            table.sized = bool(head["size"])
            found.append(table)
        elif setting := SETTING.match(text):
            table = table.next()
            # One of the same kind is another one in its place.
            table.settings[re.split(r"[:\d]| on ", setting[1])[0]] = setting[1]
        elif RESULT_BEGINS.match(text):
            if not table.told:
                raise ForeignError(
                    f"{where}:{number}: a result without a heading that says that it is a latency "
                    "or a rate"
                )
            try:
                columns = text.split()
                size = _size(columns[0]) if table.sized else None
                result = columns[1 if table.sized else 0]
                if is_cut and number == start + len(lines) and not WHOLE_RESULT.fullmatch(result):
                    raise ValueError(
                        f"the file ends in the middle of a line, behind {name_of(result[:40])}: it "
                        "was cut off"
                    )
                table.values[size].append(printed(result, table.told[1]))
            except IndexError:
                raise ForeignError(f"{where}:{number}: a message size without a result") from None
            except ValueError as error:
                raise ForeignError(f"{where}:{number}: {error}") from None
            if not found or found[-1] is not table:
                found.append(table)
    return found


def _run(lines: list[str], start: int, name: str, where: str, is_cut: bool) -> Run:
    begins = BEGINS.match(lines[0])
    tables = _tables(lines, start, where, is_cut)
    if begins is None or not tables or not all(table.values for table in tables):
        raise ForeignError(f"{name}: a run without a result: it was cut off, or prints no table")
    # Two tables of the same are repetitions within the run.
    values: dict[tuple[str, tuple[str, float, bool]], dict[int | None, list[Value]]] = {}
    for table in tables:
        assert table.told is not None
        title = name_of(" ".join([f"OSU {begins['name']}", *table.settings.values()]))
        own = values.setdefault((title, table.told), defaultdict(list))
        for size, found in table.values.items():
            own[size] += found
    measured = tuple(
        Measured(title, told[0], told[2], {
            size: Value(median(one.value for one in of), max(one.step for one in of))
            for size, of in sorted(by_size.items(), key=lambda item: item[0] or 0)
        })
        for (title, told), by_size in values.items()
    )  # fmt: skip
    points = sum(len(one.values) for one in measured)
    return Run(
        name, measured,
        identity=digest_of("\n".join(lines).strip()) if points >= VALUES_OF_A_COPY else None,
        labels={"version": name_of(begins["version"])} if begins["version"] else {}, source=where,
    )  # fmt: skip


def _size(text: str) -> int:
    """Return a message size in bytes; raise ValueError."""
    if not re.fullmatch("[0-9]{1,15}", text):
        raise ValueError(f"{name_of(text[:40])} is not a message size")
    return int(text)
