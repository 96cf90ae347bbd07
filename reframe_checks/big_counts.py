"""Messages that may have more elements than an int counts."""

from collections.abc import Iterable
from itertools import product

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from reframe_checks.mixins.communicating import AskedPoint, Communicating
from reframe_checks.mixins.tiers import of_tier

METHODS = ("count", "type", "pieces")
OPERATIONS = ("round-trip", "bcast", "allreduce-bxor")
#: Of what the large counts cost where an int would do, and of what is beyond it.
SIZES = {
    "within-int": of_tier(quick=(1024, 1_048_576), paper=(1024, 65_536, 1_048_576, 67_108_864)),
    "beyond-int": (2**31 + 8,),
}
ITERATIONS = {"within-int": of_tier(quick=20, paper=100), "beyond-int": of_tier(quick=2, paper=10)}


@rfm.simple_test
class BigCounts(Communicating):
    """A round trip, a broadcast and a reduction: by large counts, by a type, in pieces."""

    descr = "messages of more elements than an int counts"
    program = "big_counts"
    only_when_named = True
    length = parameter(SIZES, loggable=True)

    @run_after("init")
    def allow_time(self) -> None:
        """Allow for gigabytes that are filled and compared byte by byte."""
        if self.length == "beyond-int":
            self.time_limit = "1h"

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"length": self.length, "ranks": self.num_tasks}

    def iterations_wanted(self) -> int:
        """Return how often each point is timed."""
        return int(ITERATIONS[self.length])

    def bytes_of_a_rank(self) -> int:
        """Return what two messages and what a library keeps of one on its way take."""
        return 3 * int(max(SIZES[self.length]))

    def arguments(self) -> list[str]:
        """Return the message sizes; messages that take seconds have no long warm-up."""
        warmup = ("--warmup", "1") if self.length == "beyond-int" else ()
        return [*(word for size in SIZES[self.length] for word in ("--sizes", str(size))), *warmup]

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order; MPI reduces no type of a program's own."""
        for method, operation, size in product(METHODS, OPERATIONS, SIZES[self.length]):
            if (method, operation) != ("type", "allreduce-bxor"):
                yield AskedPoint(f"long-{operation}", method, "pair", size)
