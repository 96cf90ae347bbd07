"""Read what the NAS Parallel Benchmarks print, strictly: NPB's own programs and ours alike.

All of them end with NPB's summary lines (`EP Benchmark Completed.`, `Class =`, …), in which each
graph of DT is a benchmark of its own (`DT_BH`). The constants that a summary must agree with are
those of literature/npb_verification.yaml.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from records.base import RecordError, whole_number
from records.yaml_text import from_yaml

LITERATURE = Path(__file__).resolve().parent.parent / "literature" / "npb_verification.yaml"

#: NPB's DT names its class here, too: `DT_BH.S`.
COMPLETED = re.compile(r"^ *([A-Z]{2}(?:_[A-Z]{2})?)(?:\.[A-Z])? Benchmark Completed\.?\s*$")
LINE = re.compile(
    r"^ (Class|Size|Iterations|Time in seconds|Total processes|Active processes|Compiled procs"
    r"|Mop/s total|Mop/s/process|Operation type|Verification|Version) *= *(.*?)\s*$"
)
#: Where our programs repeat what they time: the seconds of each repetition; their median counts.
EACH_TIME = re.compile(r"^ Each time +=((?: \S+)+)$")
HOSTS = re.compile(r"^ Hosts +=((?: \S+)+)$")
NEEDED = ("Class", "Size", "Iterations", "Time in seconds", "Total processes", "Mop/s total",
          "Mop/s/process", "Operation type", "Verification", "Version")  # fmt: skip
#: How our programs say what is wrong, and how NPB's do, whose next lines have the numbers.
WRONG_OF_OURS = re.compile(r"^ .*, expected is .*$")
WRONG_OF_NPB = re.compile(r"fail", re.IGNORECASE)
#: More than this none of our programs takes, nor prints; as in benchmarks/nas/benchmark.h.
MOST_TIMES = 99
#: NPB's C program divides in single precision.
SINGLE = 1e-6


@dataclass(frozen=True)
class NpbRun:
    """A benchmark that ran to its end, right or wrong; time in seconds, rates in op/s.

    `times_s` has each time that the section was timed, of which `time_s` is the median. `hosts` has
    the host of each rank, which only our own programs print.
    """

    benchmark: str
    problem_class: str
    size: tuple[int, ...]
    iterations: int
    time_s: float
    times_s: tuple[float, ...]
    processes: int
    rate_ops: float
    rate_per_process_ops: float
    operation_type: str
    verified: bool
    version: str
    hosts: tuple[str, ...] | None
    wrong: tuple[str, ...]


@cache
def literature() -> dict[str, Any]:
    """Return NPB's problem sizes and constants."""
    data: dict[str, Any] = from_yaml(LITERATURE.read_text())
    return data


def _ep(c: dict[str, Any]) -> float:
    return float(2 ** (c["m"] + 1))


def _is(c: dict[str, Any]) -> float:
    return float(literature()["IS"]["iterations"] * 2 ** c["total_keys_log2"])


def _cg(c: dict[str, Any]) -> float:
    row = c["nonzer"] * (c["nonzer"] + 1)
    steps = literature()["CG"]["cg_inner_iterations"]
    return float(2 * c["niter"] * c["na"] * (3 + row + steps * (5 + row) + 3))


def _mg(c: dict[str, Any]) -> float:
    return float(58 * c["nit"] * math.prod(c["n"]))


def _ft(c: dict[str, Any]) -> float:
    points = math.prod(c["n"])
    log = math.log(points)
    return float(points * (14.8157 + 7.19641 * log + (5.23518 + 7.21113 * log) * c["niter"]))


def _lu(c: dict[str, Any]) -> float:
    mean = sum(c["n"]) / 3
    a_step = 1984.77 * math.prod(c["n"]) - 10923.3 * mean**2 + 27770.9 * mean - 144010
    return float(c["iterations"] * a_step)


def _sp(c: dict[str, Any]) -> float:
    mean = sum(c["n"]) / 3
    a_step = 881.174 * math.prod(c["n"]) - 4683.91 * mean**2 + 11484.5 * mean - 19272.4
    return float(c["iterations"] * a_step)


def _bt(c: dict[str, Any]) -> float:
    mean = sum(c["n"]) / 3
    a_step = 3478.8 * math.prod(c["n"]) - 17655.7 * mean**2 + 28023.7 * mean
    return float(c["iterations"] * a_step)


def _dt(c: dict[str, Any], graph: str) -> float:
    return float(4 * c["samples"] * c["arcs"][graph] * 1e6 / 2**20)


#: The file's `mop_formula` of each benchmark, as operations in all.
OPERATIONS: dict[str, Callable[[dict[str, Any]], float]] = {
    "EP": _ep, "IS": _is, "CG": _cg, "MG": _mg, "FT": _ft, "LU": _lu, "SP": _sp, "BT": _bt,
    **{f"DT_{graph}": partial(_dt, graph=graph) for graph in ("BH", "WH", "SH")},
}  # fmt: skip


@dataclass(frozen=True)
class NpbProblem:
    """A class of a benchmark: the size as NPB prints it, iterations, and operations."""

    size: tuple[int, ...]
    iterations: int
    operations: float


def problem(benchmark: str, problem_class: str) -> NpbProblem:
    """Return a class of a benchmark; raises KeyError if there is no such class."""
    name, _, graph = benchmark.partition("_")
    constants = literature()[name]["classes"][problem_class]
    operations = OPERATIONS[benchmark](constants)
    match name:
        case "EP":
            # NPB has no iterations here and prints 0.
            return NpbProblem((2 ** (constants["m"] + 1),), 0, operations)
        case "IS":
            keys = 2 ** constants["total_keys_log2"]
            return NpbProblem((keys,), literature()["IS"]["iterations"], operations)
        case "CG":
            return NpbProblem((constants["na"],), constants["niter"], operations)
        case "DT":
            # Where others print their iterations, NPB prints the graph's nodes.
            return NpbProblem((4 * constants["samples"],), constants["nodes"][graph], operations)
        case _:
            names = ("iterations", "nit", "niter")
            iterations = next(constants[name] for name in names if name in constants)
            return NpbProblem(tuple(constants["n"]), iterations, operations)


def _number(text: str, where: str, what: str) -> tuple[float, float]:
    """Return a printed number and by how much its rounding may be off."""
    if not re.fullmatch(r"\d+\.?\d*", text):
        raise RecordError(f"{where}: {what} is {text!r}, which is not a number")
    decimals = len(text.partition(".")[2])
    return float(text), 0.5 * 10.0**-decimals


def _whole(text: str, where: str, what: str) -> int:
    if not re.fullmatch(r"\d+", text):
        raise RecordError(f"{where}: {what} is {text!r}, which is not a whole number")
    try:
        return whole_number(text)
    except ValueError as error:
        raise RecordError(f"{where}: {what}: {error}") from None


class _Summary:
    """The summary lines with their places in the file."""

    def __init__(self, path: Path, benchmark: str, found: dict[str, tuple[str, int]]) -> None:
        self.path, self.benchmark, self.found = path, benchmark, found

    def where(self, name: str) -> str:
        return f"{self.path}:{self.found[name][1]}"

    def text(self, name: str) -> str:
        return self.found[name][0]

    def whole(self, name: str) -> int:
        return _whole(self.text(name), self.where(name), name)

    def number(self, name: str) -> tuple[float, float]:
        return _number(self.text(name), self.where(name), name)

    def problem(self) -> NpbProblem:
        """Return the class' problem; raise RecordError if size or iterations do not match it."""
        name = self.text("Class")
        try:
            known = problem(self.benchmark, name)
        except KeyError:
            raise RecordError(
                f"{self.where('Class')}: {self.benchmark} has no class {name!r}"
            ) from None
        parts = self.text("Size").split("x")
        size = tuple(_whole(part.strip(), self.where("Size"), "Size") for part in parts)
        if size != known.size:
            raise RecordError(
                f"{self.where('Size')}: the size is {self.text('Size')}, that of class {name} is "
                f"{'x'.join(map(str, known.size))}"
            )
        if self.whole("Iterations") != known.iterations:
            raise RecordError(
                f"{self.where('Iterations')}: {self.whole('Iterations')} iterations, class {name} "
                f"has {known.iterations}"
            )
        return known

    def times(self, lines: list[str], first: int) -> tuple[float, ...]:
        """Return the seconds of each time; lines of the summary, and where in the file they begin.

        Raises RecordError where the time in the summary is not their median, where there are more
        than MOST_TIMES, and where their sum is no number.
        """
        middle, off = self.number("Time in seconds")
        found = [(number, entry[1]) for number, line in enumerate(lines, first)
                 if (entry := EACH_TIME.match(line))]  # fmt: skip
        if not math.isfinite(middle):
            raise RecordError(f"{self.where('Time in seconds')}: the time is not a finite number")
        if not found:
            return (middle,)
        if len(found) > 1:
            raise RecordError(f"{self.path}:{found[1][0]}: Each time appears a second time")
        [(number, text)] = found
        where = f"{self.path}:{number}"
        times = tuple(_number(word, where, "Each time")[0] for word in text.split())
        if len(times) > MOST_TIMES:
            raise RecordError(f"{where}: Each time has {len(times)} times, more than {MOST_TIMES}")
        if not math.isfinite(sum(times)):
            raise RecordError(f"{where}: the sum of each time is not a finite number")
        if len(times) % 2 == 0 or abs(sorted(times)[len(times) // 2] - middle) > off:
            raise RecordError(f"{where}: {middle} s is not the median of an odd number of times")
        return times

    def check_rates(self, operations: float, processes: set[int]) -> None:
        """Refuse rates that do not follow from the time, allowing for rounding."""
        time, time_off = self.number("Time in seconds")
        rate, rate_off = self.number("Mop/s total")
        each, each_off = self.number("Mop/s/process")
        if rate <= 0:
            raise RecordError(f"{self.where('Mop/s total')}: {rate} Mop/s is not a valid rate")
        least = operations / 1e6 / (time + time_off) * (1 - SINGLE) - rate_off
        shortest = time - time_off
        most = operations / 1e6 / shortest * (1 + SINGLE) + rate_off if shortest > 0 else math.inf
        if not least <= rate <= most:
            raise RecordError(
                f"{self.where('Mop/s total')}: {rate} Mop/s, but {operations / 1e6:.6g} million "
                f"operations in {time} s are from {least:.6g} to {most:.6g}"
            )
        off = each_off + rate_off + rate * SINGLE
        if not any(abs(rate / count - each) <= off for count in processes):
            raise RecordError(
                f"{self.where('Mop/s/process')}: {each} Mop/s in each of {max(processes)} "
                f"processes, of {rate} in all"
            )


def _wrong_values(lines: list[str]) -> tuple[str, ...]:
    """Return what a program prints about wrong values."""
    found = []
    for number, line in enumerate(lines):
        if WRONG_OF_OURS.match(line):
            found.append(line.strip())
        elif WRONG_OF_NPB.search(line):
            said = [text.strip() for text in lines[number : number + 4]]
            found.append("; ".join(text for text in said if text))
    return tuple(found)


def read_npb_output(path: Path) -> NpbRun:
    """Return the benchmark in an output, as `npb_output` does; of no file an empty one."""
    return npb_output(path.read_text(errors="replace") if path.is_file() else "", path)


def npb_output(whole: str, path: Path) -> NpbRun:
    """Return the benchmark in an output; `path` is where that is.

    Raises RecordError with file and line for output that is cut off, has more than one summary
    (ranks that did not form one world), or contradicts itself or the class that it names.
    """
    lines = whole.splitlines()
    last = f"{path}:{max(len(lines), 1)}"
    starts = [number for number, line in enumerate(lines) if COMPLETED.match(line)]
    if not starts:
        raise RecordError(f"{last}: no benchmark completed: the output is truncated or empty")
    if len(starts) > 1:
        raise RecordError(
            f"{path}:{starts[1] + 1}: a second benchmark: the ranks did not form one world"
        )
    match = COMPLETED.match(lines[starts[0]])
    assert match
    found: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(lines[starts[0] :], starts[0] + 1):
        if entry := LINE.match(line):
            if entry[1] in found:
                raise RecordError(f"{path}:{number}: {entry[1]} appears a second time")
            found[entry[1]] = (entry[2], number)
    missing = [name for name in NEEDED if not found.get(name, ("",))[0]]
    # The version comes last: a summary with a whole line of it is whole.
    if missing or not whole.endswith("\n"):
        raise RecordError(
            f"{last}: the summary lacks {', '.join(missing) or 'the end of its last line'}: the "
            "output is truncated"
        )
    summary = _Summary(path, match[1], found)
    if match[1] not in OPERATIONS:
        raise RecordError(f"{path}:{starts[0] + 1}: there is no benchmark {match[1]}")
    known = summary.problem()
    processes = summary.whole("Total processes")
    active = summary.whole("Active processes") if "Active processes" in found else processes
    if not 1 <= active <= processes:
        raise RecordError(
            f"{summary.where('Total processes')}: {active} of {processes} processes are active"
        )
    summary.check_rates(known.operations, {processes, active})
    verification = summary.text("Verification")
    if verification not in ("SUCCESSFUL", "UNSUCCESSFUL"):
        raise RecordError(
            f"{summary.where('Verification')}: the verification is {verification!r}, neither "
            "SUCCESSFUL nor UNSUCCESSFUL"
        )
    hosts = [entry for line in lines[: starts[0]] if (entry := HOSTS.match(line))]
    if len(hosts) > 1:
        raise RecordError(f"{last}: hosts are named {len(hosts)} times: more than one world")
    return NpbRun(
        benchmark=match[1],
        problem_class=summary.text("Class"),
        size=known.size,
        iterations=known.iterations,
        time_s=summary.number("Time in seconds")[0],
        times_s=summary.times(lines[starts[0] :], starts[0] + 1),
        processes=processes,
        rate_ops=summary.number("Mop/s total")[0] * 1e6,
        rate_per_process_ops=summary.number("Mop/s/process")[0] * 1e6,
        operation_type=summary.text("Operation type"),
        verified=verification == "SUCCESSFUL",
        version=summary.text("Version"),
        hosts=tuple(hosts[0][1].split()) if hosts else None,
        wrong=() if verification == "SUCCESSFUL" else _wrong_values(lines[: starts[0]]),
    )
