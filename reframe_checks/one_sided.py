"""One-sided operations between two ranks: put, get and accumulate."""

from collections.abc import Iterable

import reframe as rfm

from reframe_checks.mixins.communicating import AskedPoint, Communicating
from reframe_checks.mixins.tiers import of_tier

OPERATIONS = ("put", "get", "accumulate")
COMPLETIONS = ("fence", "lock", "post-start")
SIZES = of_tier(quick=(8, 8192), paper=(8, 64, 512, 4096, 32_768, 262_144, 2_097_152))
ITERATIONS = of_tier(quick=20, paper=1000)


@rfm.simple_test
class OneSided(Communicating):
    """Put, get and accumulate, completed in each of MPI's ways."""

    descr = "one-sided operations between two ranks"
    program = "one_sided"

    def iterations_wanted(self) -> int:
        """Return how often each point is timed."""
        return int(ITERATIONS)

    def arguments(self) -> list[str]:
        """Return the message sizes; the program does all operations, completed in every way."""
        return [word for size in SIZES for word in ("--sizes", str(size))]

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order."""
        for completion in COMPLETIONS:
            for operation in OPERATIONS:
                for size in SIZES:
                    yield AskedPoint(operation, completion, "pair", size)
