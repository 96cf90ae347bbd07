"""Exchanges along the edges of graphs: neighbourhood collectives, and messages in their place."""

from collections.abc import Iterable
from itertools import product

import reframe as rfm

from reframe_checks.mixins.communicating import AskedPoint
from reframe_checks.mixins.ranks_chosen import RanksChosen
from reframe_checks.mixins.tiers import of_tier

#: By what the program asks for, and as it calls the group.
GRAPHS = {"ring": "ring", "complete": "complete", "drawn": "drawn 4 by seed 1"}
METHODS = (
    "isend-irecv", "neighbourhood", "neighbourhood-non-blocking", "neighbourhood-persistent",
)  # fmt: skip
OPERATIONS = ("neighbour-allgather", "neighbour-alltoall")
SIZES = of_tier(quick=(8, 8192), paper=(8, 512, 8192, 131_072, 1_048_576))
RANKS = of_tier(quick=2, paper=8)
ITERATIONS = of_tier(quick=50, paper=1000)


@rfm.simple_test
class Neighbours(RanksChosen):
    """Every rank sends to its neighbours in a graph, one block for all or one for each."""

    descr = "exchanges with the neighbours of a graph"
    program = "neighbours"
    only_when_named = True

    def ranks_wanted(self) -> int:
        """Return how many ranks there are where the site has cores for them."""
        return int(RANKS)

    def iterations_wanted(self) -> int:
        """Return how often each point is timed."""
        return int(ITERATIONS)

    def bytes_of_a_rank(self) -> int:
        """Return what a block for each other rank takes in both buffers."""
        return 2 * self.num_tasks * max(SIZES)

    def arguments(self) -> list[str]:
        """Return the graphs and sizes; the program does both operations, by every method."""
        return [
            *(word for graph in GRAPHS for word in ("--graph", graph)),
            *(word for size in SIZES for word in ("--sizes", str(size))),
        ]

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order."""
        for group, method, operation, size in product(GRAPHS.values(), METHODS, OPERATIONS, SIZES):
            yield AskedPoint(operation, method, group, size)
