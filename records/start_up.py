"""The parts of a process start-up (Kearns 2003, section 4.2.2 and Table 9)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from records.base import RecordError
from records.communication import Startup
from records.program_output import ProgramOutput

# Points in time are printed to the microsecond.
ROUNDING_S = 2e-6


@dataclass(frozen=True)
class StartUpTimes:
    """How long the parts of one launch took, in seconds.

    `start_up` is from the launch to the last integer at rank 0, `to_main` from the launch to the
    last rank's entry of main, of the ranks on rank 0's node, and `initialisation` the slowest
    rank's time from there to its return from MPI_Init.
    """

    start_up: float
    to_main: float
    initialisation: float


def result_of(output: ProgramOutput) -> Startup:
    """Return the output's one start-up; raise RecordError if there is not exactly one."""
    found = [result for result in output.results if isinstance(result, Startup)]
    if len(found) != 1:
        raise RecordError(f"the output has {len(found)} start-ups; a launch has one")
    if found[0].ranks != output.header.ranks:
        raise RecordError(
            f"the start-up is of {found[0].ranks} ranks, the world has {output.header.ranks}"
        )
    return found[0]


def on_first_node(output: ProgramOutput) -> list[int]:
    """Return the ranks on rank 0's node: the others' times are of other clocks."""
    hosts = output.header.hosts
    return [rank for rank, host in enumerate(hosts) if host == hosts[0]]


def start_up_times(output: ProgramOutput, launched_s: float) -> StartUpTimes:
    """Return the parts of a launch that began at `launched_s` (seconds since the epoch).

    Raises RecordError unless there is one start-up that ended after it began.
    """
    result = result_of(output)
    if result.last_integer_s <= launched_s:
        raise RecordError("rank 0 received the last integer before the launch began")
    return StartUpTimes(
        start_up=result.last_integer_s - launched_s,
        to_main=max(result.main_s[rank] for rank in on_first_node(output)) - launched_s,
        initialisation=max(
            done - entered
            for entered, done in zip(result.main_s, result.initialised_s, strict=True)
        ),
    )


def points_out_of_order(output: ProgramOutput, launched_s: float, ended_s: float) -> str | None:
    """Say so when the points in time cannot be those of one launch: a clock was set.

    Only points by the same clock are compared: a rank's own, or those of rank 0's node, where the
    launch began and ended.
    """
    result = result_of(output)
    steps = [
        *((launched_s, result.main_s[rank], f"rank {rank} entered main", "the launch began")
          for rank in on_first_node(output)),
        *((entered, done, f"rank {rank} returned from MPI_Init", "it entered main")
          for rank, (entered, done) in enumerate(
              zip(result.main_s, result.initialised_s, strict=True))),
        (result.initialised_s[0], result.last_integer_s, "rank 0 received the last integer",
         "it returned from MPI_Init"),
        (result.last_integer_s, ended_s, "the launch ended", "rank 0 received the last integer"),
    ]  # fmt: skip
    for before, after, what, than in steps:
        if after < before - ROUNDING_S:
            return f"{what} {before - after:.6f} s before {than}: a clock was set in the meantime"
    return None


def of_the_thesis(root: Path) -> dict[int, dict[str, float]]:
    """Return Table 9: by number of processes and MPI, the start-up in seconds."""
    table: dict[int, dict[str, float]] = {}
    with (root / "literature" / "kearns2003/startup.csv").open() as rows:
        for row in csv.DictReader(rows):
            table.setdefault(int(row["procs"]), {})[row["mpi"]] = float(row["startup_s"])
    return table
