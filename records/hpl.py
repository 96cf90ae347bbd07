"""Read what HPL prints, strictly: results, residuals and the closing count must agree."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from records.base import RecordError, whole_number

RESULT = re.compile(r"^W[RC]\S+\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)\s*$")
RESIDUAL = re.compile(r"^\|\|Ax-b\|\|_oo.*=\s*(\S+)\s+\.+\s+(PASSED|FAILED)\s*$")
COUNT = re.compile(r"^\s*(\d+) tests completed and (passed|failed) residual checks,\s*$")


@dataclass(frozen=True)
class HplRun:
    """One solved system: time in seconds, rate in FLOP/s as HPL defines it."""

    n: int
    nb: int
    p: int
    q: int
    time_s: float
    rate_flops: float
    residual: float
    passed: bool


def number(text: str, where: str) -> float:
    """Return a finite, non-negative number; raise RecordError otherwise."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise RecordError(f"{where}: {text!r} is not a time, rate or residual")
    return value


def whole(text: str, where: str) -> int:
    """Return a whole number; raise RecordError for one that no system of equations has."""
    try:
        return whole_number(text)
    except ValueError as error:
        raise RecordError(f"{where}: {error}") from None


def read_hpl_output(path: Path) -> list[HplRun]:
    """Return the systems that HPL solved, as `hpl_output` does; raises OSError, too."""
    return hpl_output(path.read_text(errors="replace"), path)


def hpl_output(text: str, path: Path) -> list[HplRun]:
    """Return the systems that HPL solved by what it printed; `path` is where that is.

    The rate is printed in GFLOPS with four digits; the time with two decimals, so that a short
    run's time is coarser than its rate. Raises RecordError with file and line for output that is
    cut off, has no result, or whose residuals do not match its results.
    """
    lines = text.splitlines()
    runs: list[HplRun] = []
    counted: dict[str, int] = {}
    pending: tuple[str, ...] | None = None
    ended = False
    for line_number, line in enumerate(lines, 1):
        where = f"{path}:{line_number}"
        if match := RESULT.match(line):
            if pending:
                raise RecordError(f"{where}: the result before this one has no residual")
            pending = match.groups()
            if number(pending[5], where) == 0:
                raise RecordError(f"{where}: {pending[5]} GFLOPS is not a valid rate")
        elif match := RESIDUAL.match(line):
            if not pending:
                raise RecordError(f"{where}: a residual without a result")
            n, nb, p, q = (whole(text, where) for text in pending[:4])
            time, rate = number(pending[4], where), number(pending[5], where) * 1e9
            residual, passed = number(match[1], where), match[2] == "PASSED"
            runs.append(HplRun(n, nb, p, q, time, rate, residual, passed))
            pending = None
        elif match := COUNT.match(line):
            counted[match[2]] = whole(match[1], where)
        elif line.startswith("End of Tests"):
            ended = True
    last = f"{path}:{max(len(lines), 1)}"
    if pending:
        raise RecordError(f"{last}: the last result has no residual: the output is truncated")
    if not ended:
        raise RecordError(f"{last}: HPL did not finish: the output is truncated or empty")
    passes = sum(run.passed for run in runs)
    if not runs or counted != {"passed": passes, "failed": len(runs) - passes}:
        raise RecordError(
            f"{last}: HPL counts {counted}, but {passes} of {len(runs)} results passed"
        )
    return runs
