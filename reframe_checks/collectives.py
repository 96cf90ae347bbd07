"""Collective operations: NTNU's SimpleBench, NASA's ATA, Kearns' section 5.4, IIT's goptest."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import reframe as rfm
from reframe.core.builtins import parameter

from reframe_checks.mixins.communicating import AskedPoint
from reframe_checks.mixins.cores import cores_of_site, nodes_of_site
from reframe_checks.mixins.ranks_chosen import RanksChosen
from reframe_checks.mixins.tiers import of_tier

DOUBLE = 8
# The operations of which a rank sends, or receives, a message for each rank.
SENT, RECEIVED = {"scatter", "alltoall"}, {"gather", "allgather", "alltoall"}


@dataclass(frozen=True)
class CollectiveSuite:
    """Operations over groups and message sizes in bytes, with as many ranks as fit on the site.

    With `fills` the ranks follow the site: one on each of its nodes, or one on each core.
    `shared` divides the sizes among the ranks: the reports state a rank's whole buffer.
    """

    operations: tuple[str, ...]
    sizes: tuple[int, ...]
    ranks: int
    iterations: int
    groups: tuple[str, ...] = ("world",)
    shared: bool = False
    scrub_bytes: int = 0
    on_a_node: int | None = None
    fills: Literal["nodes", "cores"] | None = None

    def sizes_for(self, ranks: int) -> list[int]:
        """Return the sizes to ask the program for, in whole doubles if they are divided."""
        if not self.shared:
            return list(self.sizes)
        return [max(1, size // ranks // DOUBLE) * DOUBLE if size else 0 for size in self.sizes]

    def bytes_of_a_rank(self, ranks: int) -> int:
        """Return the most that the program allocates: two buffers, and what it scrubs.

        A buffer holds one message, or one for each rank if the operation needs them, as a root of
        gather and scatter has, which any rank of a node may be.
        """
        messages = sum(ranks if names & {*self.operations} else 1 for names in (SENT, RECEIVED))
        return messages * max(self.sizes_for(ranks)) + self.scrub_bytes

    def groups_for(self, ranks: int) -> list[str]:
        """Return the groups that so many ranks can form: a half has at least two ranks."""
        return [group for group in self.groups if group == "world" or ranks >= 4]


# More than the last level of cache of any node, so that nothing of an iteration is left in it.
SCRUB = 64 << 20
BOTH = ("world", "halves")
REDUCTIONS = ("reduce-min", "allreduce-min", "allreduce-sum")
# NASA 2003, table of ATA bandwidth over buffer size.
ATA_SIZES = (40, 400, 1_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
             10_000_000, 15_000_000, 20_000_000)  # fmt: skip
# NTNU 2008, Tables 5.6 to 5.8: 400x50, 1000x1000 and 8000x8000 doubles; section 3.1.4: reductions.
NTNU_SMALL, NTNU_MEDIUM, NTNU_LARGE = (n * DOUBLE for n in (400 * 50, 1000 * 1000, 8000 * 8000))

# analysis/models/guidelines/guidelines.yaml: all operations in one launch, at sizes that are
# multiples of each other by the ranks (powers of two), so that one can be held against others that
# do the same work.
GUIDED = ("bcast", "scatter", "gather", "allgather", "alltoall", *REDUCTIONS, "reduce-sum")

QUICK = {
    # SimpleBench (NTNU 2008, appendix A); its sizes are doubles over all ranks.
    "simplebench-alltoall": CollectiveSuite(("alltoall",), (64, 65_536), 4, 20, BOTH,
                                            shared=True),
    "simplebench-collective": CollectiveSuite(("barrier", *REDUCTIONS), (64, 65_536), 4, 20,
                                              BOTH, shared=True),
    # The Ohio tests of Kearns 2003, section 5.4: 0 to 16,384 bytes.
    "ohio": CollectiveSuite(("barrier", "bcast", "gather", "alltoall"), (0, 1024, 16_384), 2,
                            50),
    "ata": CollectiveSuite(("alltoall",), (40, 10_000, 100_000), 2, 10),
    "goptest": CollectiveSuite(("bcast", "allreduce-sum"), (0, 256, 512, 768, 1024), 2, 50),
    "ntnu-alltoall": CollectiveSuite(("alltoall",), (NTNU_SMALL,), 2, 10, shared=True,
                                     scrub_bytes=SCRUB),
    "ntnu-reduce": CollectiveSuite(("reduce-sum",), (DOUBLE, 1000 * DOUBLE, 8000 * DOUBLE), 2,
                                   20, scrub_bytes=SCRUB),
    "others": CollectiveSuite(("scatter", "allgather", "reduce-sum"), (8, 8192), 2, 50),
    "guidelines": CollectiveSuite(GUIDED, (1024, 2048, 4096), 2, 50),
}  # fmt: skip
# Up to some hundred thousand ranks: an all-to-all has a block for each, and each rank that checks a
# sum adds up those of all.
FILLING = {
    f"{name}-{what}": CollectiveSuite(operations, sizes, 0, 20, fills=fills)
    for name, fills in (("one-a-node", "nodes"), ("full-nodes", "cores"))
    for what, operations, sizes in (
        ("collective", ("barrier", "bcast", "allreduce-sum"), (8, 65_536)),
        ("alltoall", ("alltoall",), (8, 512)),
    )
}

SUITES: dict[str, CollectiveSuite] = of_tier(
    quick=QUICK,
    site=QUICK | FILLING,
    paper={
        "simplebench-alltoall": CollectiveSuite(("alltoall",), (64, 65_536, 800_000), 8, 100, BOTH,
                                                shared=True),
        "simplebench-collective": CollectiveSuite(("barrier", *REDUCTIONS),
                                                  (0, 64, 65_536, 8_000_000), 8, 100, BOTH,
                                                  shared=True),
        "ohio": CollectiveSuite(("barrier", "bcast", "gather", "alltoall"),
                                tuple(range(0, 16_385, 1024)), 8, 100),
        "ata": CollectiveSuite(("alltoall",), ATA_SIZES, 8, 100),
        # IIT: 1, 2 and 4 ranks a node, up to 32 in all.
        **{
            f"goptest-{n}-a-node": CollectiveSuite(("bcast", "allreduce-sum"),
                                                   tuple(range(0, 1025, 256)), 32, 100, on_a_node=n)
            for n in (1, 2, 4)
        },
        # NTNU: 1000, 5000 and 10,000 iterations of each size, of the large one the first two. The
        # largest count that the time limit has room for, by the report's own times.
        "ntnu-alltoall-small": CollectiveSuite(("alltoall",), (NTNU_SMALL,), 8, 10_000, shared=True,
                                               scrub_bytes=SCRUB),
        "ntnu-alltoall-medium": CollectiveSuite(("alltoall",), (NTNU_MEDIUM,), 8, 10_000,
                                                shared=True, scrub_bytes=SCRUB),
        "ntnu-alltoall-large": CollectiveSuite(("alltoall",), (NTNU_LARGE,), 8, 1000, shared=True,
                                               scrub_bytes=SCRUB),
        "ntnu-reduce": CollectiveSuite(("reduce-sum",), (DOUBLE, 1000 * DOUBLE, 8000 * DOUBLE), 8,
                                       1000, scrub_bytes=SCRUB),
        "others": CollectiveSuite(("scatter", "allgather", "reduce-sum"),
                                  (8, 1024, 65_536, 1_000_000), 8, 100),
        "guidelines": CollectiveSuite(GUIDED, tuple(8 * 2**k for k in range(16)), 8, 100),
    },
)  # fmt: skip


@rfm.simple_test
class Collectives(RanksChosen):
    """One report's collective operations, over its groups and message sizes."""

    descr = "collective operations over message sizes"
    program = "collective"
    suite = parameter(SUITES, loggable=True)

    def fills_site(self) -> bool:
        """Return whether the suite's ranks follow the site."""
        return SUITES[self.suite].fills is not None

    def ranks_wanted(self) -> int:
        """Return how many ranks the report used, or the site has room for."""
        suite = SUITES[self.suite]
        return nodes_of_site() * (self.ranks_on_a_node() or 1) if suite.fills else suite.ranks

    def ranks_on_a_node(self) -> int | None:
        """Return how many ranks the suite puts on each node, if it specifies that."""
        suite = SUITES[self.suite]
        if suite.fills:
            return cores_of_site() // nodes_of_site() if suite.fills == "cores" else 1
        return suite.on_a_node

    def iterations_wanted(self) -> int:
        """Return how often each point is timed."""
        return SUITES[self.suite].iterations

    def bytes_of_a_rank(self) -> int:
        """Return what the program allocates in each rank."""
        return SUITES[self.suite].bytes_of_a_rank(self.num_tasks)

    def arguments(self) -> list[str]:
        """Return the program's arguments for the suite."""
        suite = SUITES[self.suite]
        return [
            *(word for name in suite.operations for word in ("--operation", name)),
            *(word for name in suite.groups_for(self.num_tasks) for word in ("--group", name)),
            *(word for n in suite.sizes_for(self.num_tasks) for word in ("--sizes", str(n))),
            "--scrub-bytes", str(suite.scrub_bytes),
        ]  # fmt: skip

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order; a barrier has one, without a size."""
        suite = SUITES[self.suite]
        for operation in suite.operations:
            for group in suite.groups_for(self.num_tasks):
                sizes = [0] if operation == "barrier" else suite.sizes_for(self.num_tasks)
                for size in sizes:
                    yield AskedPoint(operation, "", group, size)
