"""One-sided operations in which the target has no part, by kinds of windows and of operations."""

from collections.abc import Iterable
from dataclasses import dataclass

import reframe as rfm
from reframe.core.builtins import parameter

from reframe_checks.mixins.communicating import AskedPoint, Communicating
from reframe_checks.mixins.tiers import of_tier

#: Operations on one number, whatever sizes are asked for.
OF_ONE_NUMBER = {"fetch-and-op": 8, "compare-and-swap": 8}
SIZES = of_tier(quick=(8, 8192), paper=(8, 64, 512, 4096, 32_768, 262_144, 2_097_152))
ITERATIONS = of_tier(quick=20, paper=1000)
#: In shared memory an operation may be as short as a step of the clock.
IN_A_ROW = 64


@dataclass(frozen=True)
class PassiveSuite:
    """Operations on memory of some windows, while the target waits in MPI or computes."""

    operations: tuple[str, ...]
    windows: tuple[str, ...] = ("allocate",)
    targets: tuple[str, ...] = ("waiting",)
    in_a_row: int = IN_A_ROW

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order."""
        row = f" {self.in_a_row} in a row" if self.in_a_row > 1 else ""
        for window in self.windows:
            for operation in self.operations:
                for target in self.targets:
                    method = f"{window}{row}" + (" computing" if target == "computing" else "")
                    one = OF_ONE_NUMBER.get(operation)
                    for size in (one,) if one else SIZES:
                        yield AskedPoint(operation, method, "pair", size)

    def arguments(self) -> list[str]:
        """Return what the suite has the program do."""
        return [
            *(word for name in self.operations for word in ("--operation", name)),
            *(word for name in self.windows for word in ("--window", name)),
            *(word for name in self.targets for word in ("--target", name)),
            *(word for size in SIZES for word in ("--sizes", str(size))),
            "--in-a-row", str(self.in_a_row),
        ]  # fmt: skip


COMMON = ("put", "get", "accumulate")
SUITES = {
    "windows": PassiveSuite(COMMON, ("create", "allocate", "shared", "dynamic")),
    "operations": PassiveSuite(("get-accumulate", "rput", "rget", *OF_ONE_NUMBER)),
    # One operation while the target computes for a millisecond: is it there before that is over?
    "progress": PassiveSuite(
        (*COMMON, "fetch-and-op"), ("create", "allocate"), ("waiting", "computing"), 1
    ),
}


@rfm.simple_test
class PassiveTarget(Communicating):
    """One-sided operations within MPI_Win_lock_all, each completed by MPI_Win_flush."""

    descr = "one-sided operations without the target's part"
    program = "passive_target"
    only_when_named = True
    suite = parameter(SUITES, loggable=True)

    def iterations_wanted(self) -> int:
        """Return how often each point is timed."""
        return int(ITERATIONS)

    def bytes_of_a_rank(self) -> int:
        """Return what a window and the origin's three buffers take."""
        return 4 * max(SIZES) * SUITES[self.suite].in_a_row

    def arguments(self) -> list[str]:
        """Return what the suite has the program do."""
        return SUITES[self.suite].arguments()

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order."""
        return SUITES[self.suite].asked_points()
