"""Round trips of data that lie apart: by datatypes, packed by MPI, and copied by the program."""

from collections.abc import Iterable
from itertools import product

import reframe as rfm

from reframe_checks.mixins.communicating import AskedPoint, Communicating
from reframe_checks.mixins.tiers import of_tier

LAYOUTS = ("contiguous", "vector", "indexed", "struct", "subarray")
METHODS = ("datatype", "pack", "copy")
SIZES = of_tier(quick=(1024, 65_536), paper=(128, 1024, 8192, 65_536, 524_288, 4_194_304))
ITERATIONS = of_tier(quick=50, paper=1000)


@rfm.simple_test
class Layouts(Communicating):
    """Columns, blocks of an index, particles and the inside of a grid, from memory to memory."""

    descr = "round trips of data that lie apart in memory"
    program = "layouts"
    only_when_named = True

    def iterations_wanted(self) -> int:
        """Return how often each point is timed."""
        return int(ITERATIONS)

    def bytes_of_a_rank(self) -> int:
        """Return what two columns, of which an eighth is sent, and a packed message take."""
        return (2 * 8 + 1) * int(max(SIZES))

    def arguments(self) -> list[str]:
        """Return the message sizes; the program does all layouts, in every way."""
        return [word for size in SIZES for word in ("--sizes", str(size))]

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order."""
        for layout, size, method in product(LAYOUTS, SIZES, METHODS):
            yield AskedPoint(f"layout-{layout}", method, "pair", size)
