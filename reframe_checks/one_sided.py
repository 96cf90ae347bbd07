"""One-sided operations between two ranks: put, get and accumulate."""

from collections.abc import Iterable

import reframe as rfm
from reframe.core.builtins import run_after

from reframe_checks.mixins.communicating import Communicating, Point
from reframe_checks.mixins.tiers import of_tier

OPERATIONS = ("put", "get", "accumulate")
COMPLETIONS = ("fence", "lock", "post-start")
SIZES = of_tier(quick=(8, 8192), paper=(8, 64, 512, 4096, 32_768, 262_144, 2_097_152))
ITERATIONS = of_tier(quick=20, paper=1000)


@rfm.simple_test
class OneSided(Communicating):
    """Put, get and accumulate, by each way in which MPI brings them to an end."""

    descr = "one-sided operations between two ranks"
    program = "one_sided"
    spread = True

    @run_after("setup")
    def describe_operations(self) -> None:
        """Pass the sizes to the program, with every iteration's time in the output."""
        self.program_arguments = [
            *(word for n in SIZES for word in ("--sizes", str(n))),
            "--iterations", str(ITERATIONS),
            "--raw",
        ]  # fmt: skip

    def cell_parameters(self) -> dict[str, int]:
        """Return what identifies the cell."""
        return {"ranks": self.num_tasks}

    def asked_points(self) -> Iterable[Point]:
        """Return the points in the program's order."""
        for completion in COMPLETIONS:
            for operation in OPERATIONS:
                for size in SIZES:
                    yield Point(operation, completion, "pair", size)
