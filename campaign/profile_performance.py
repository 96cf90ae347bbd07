"""What profiling costs: the same programs in their image with and without it, alternately.

A part of `python -m campaign.performance`; docs/performance.md holds a run. A program that others
are measured by, a ping-pong, shows the cost of a call; an application, the cost that it has in use.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from analysis.communication_records import Communication, PingPong
from analysis.hpl_output import read_hpl_output
from analysis.records import read_program_output
from campaign.places import Place

#: The path in the container, which is the launch's folder.
PROFILE = "profile.jsonl"


@dataclass(frozen=True)
class ProfiledProgram:
    """A program with its arguments, what prepares it, and how its time in seconds is read."""

    name: str
    command: str
    seconds: Callable[[Path], float]
    prepare: str = ""


def of_pingpong(path: Path) -> float:
    """Return the median one-way time of the one message size."""
    [result] = read_program_output(path).results
    assert isinstance(result, PingPong)
    return result.time_s.median / 2


def of_exchange(path: Path) -> float:
    """Return the median time of the one exchange of borders."""
    [result] = read_program_output(path).results
    assert isinstance(result, Communication)
    return result.time_s.median


def of_linpack(path: Path) -> float:
    """Return the time to solve, by the rate: the time itself is printed with two decimals."""
    [run] = read_hpl_output(path)
    return (2 / 3 * run.n**3 + 1.5 * run.n**2) / run.rate_flops


PROGRAMS = (
    ProfiledProgram(
        "one way, 0 bytes (s)",
        "pingpong --pair Isend/Irecv --sizes 0 --iterations 20000 --warmup 1000",
        of_pingpong,
    ),
    ProfiledProgram(
        "borders of 32x32x32x32 (s)",
        "halo --dimensions 4 --extent 32 --method isend-irecv --iterations 100",
        of_exchange,
    ),
    ProfiledProgram(
        "HPL, N=4000 on 1x2 (s)",
        "xhpl",
        of_linpack,
        "hpl_dat --p=1 --q=2 --n=4000 --nb=192 --output=HPL.dat",
    ),
)


def run(program: ProfiledProgram, place: Place, mpiexec: list[str], profiled: bool) -> float:
    """Return a program's time in seconds; refuse a profiled run that leaves no profile."""
    profile = place.folder / PROFILE
    profile.unlink(missing_ok=True)
    if program.prepare:
        place.run(shlex.split(program.prepare))
    launcher = ["profiled", "--output", PROFILE] if profiled else []
    text, _ = place.run([*mpiexec, "-n", "2", *launcher, *shlex.split(program.command)])
    if profile.is_file() != profiled:
        raise SystemExit(f"performance: {program.command}: there is no profile, or one too many")
    path = place.folder / "profiled.out"
    path.write_text(text)
    return program.seconds(path)


def profiling(
    place: Place, mpiexec: list[str], rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """Measure with and without a profile alternately; return pairs (with, without) by program."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds):
        for program in PROGRAMS:
            measure = partial(run, program, place, mpiexec)
            # Who is first changes from round to round.
            first = measure(number % 2 == 0)
            second = measure(number % 2 == 1)
            pair = (first, second) if number % 2 == 0 else (second, first)
            pairs.setdefault(f"profiled: {program.name}", []).append(pair)
    return pairs
