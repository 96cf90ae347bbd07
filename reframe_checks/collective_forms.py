"""What applications call of collective operations beyond the reports', and how they begin.

They are of no report, so campaigns measure them where they are named.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import reframe as rfm
from reframe.core.builtins import parameter

from records.communication import ALONE, BESIDE, COMPUTING
from reframe_checks.mixins.communicating import AskedPoint
from reframe_checks.mixins.ranks_chosen import RanksChosen
from reframe_checks.mixins.tiers import of_tier

BARRIERS = {"barrier", "dissemination-barrier"}
UNEQUAL = ("gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw")
SCANS = ("reduce-scatter-block-sum", "reduce-scatter-sum", "scan-sum", "exscan-sum")
#: What applications call most.
COMMON = ("bcast", "allgather", "alltoall", "allreduce-sum", *UNEQUAL[2:4])
#: The methods that a form has in the output; the first word is what the program leaves out.
METHODS = {
    "blocking": ("",), "in-place": ("in-place",), "persistent": ("persistent",),
    "non-blocking": (ALONE, BESIDE, COMPUTING),
}  # fmt: skip
SIZES = of_tier(quick=(8, 8192), paper=(8, 512, 8192, 131_072, 1_048_576))
RANKS = of_tier(quick=2, paper=8)
ITERATIONS = of_tier(quick=50, paper=1000)


@dataclass(frozen=True)
class FormSuite:
    """Operations in some forms: the blocking one first, which every MPI has, to hold others to."""

    operations: tuple[str, ...]
    forms: tuple[str, ...] = ("blocking",)

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order; a barrier has one, without a size."""
        for form, operation in product(self.forms, self.operations):
            for size in (0,) if operation in BARRIERS else SIZES:
                for method in METHODS[form]:
                    yield AskedPoint(operation, method, "world", size)

    def arguments(self) -> list[str]:
        """Return what the suite has the program do."""
        return [
            *(word for name in self.operations for word in ("--operation", name)),
            *(word for form in self.forms for word in ("--form", form)),
            *(word for size in SIZES for word in ("--sizes", str(size))),
        ]  # fmt: skip


SUITES = {
    "reductions": FormSuite(SCANS),
    "unequal": FormSuite(UNEQUAL),
    "in-place": FormSuite(
        ("gather", "scatter", *COMMON[1:], "reduce-sum", *SCANS), ("blocking", "in-place")
    ),
    "non-blocking": FormSuite(("barrier", *COMMON, *SCANS[:2]), ("blocking", "non-blocking")),
    "persistent": FormSuite(("barrier", *COMMON, *SCANS[:2]), ("blocking", "persistent")),
}


class NamedCollectives(RanksChosen):
    """A suite of the program `collective` that runs where a campaign names it."""

    program = "collective"
    only_when_named = True

    def ranks_wanted(self) -> int:
        """Return how many ranks there are where the site has cores for them."""
        return int(RANKS)

    def iterations_wanted(self) -> int:
        """Return how often each point is timed."""
        return int(ITERATIONS)

    def bytes_of_a_rank(self) -> int:
        """Return what two buffers with a message for each rank take; unequal ones are no longer."""
        return 2 * self.num_tasks * max(SIZES)


@rfm.simple_test
class CollectiveForms(NamedCollectives):
    """Scans, unequal blocks, in place, non-blocking beside a computation, persistent."""

    descr = "collective operations in the forms that applications call"
    suite = parameter(SUITES, loggable=True)

    def arguments(self) -> list[str]:
        """Return what the suite has the program do."""
        return SUITES[self.suite].arguments()

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order."""
        return SUITES[self.suite].asked_points()


#: Both barriers, and what each lets begin.
BEGUN = FormSuite(("barrier", "dissemination-barrier", "bcast", "allreduce-sum", "alltoall"))


@rfm.simple_test
class Beginnings(NamedCollectives):
    """The same operations begun by the library's barrier, by one of our own, and by windows."""

    descr = "collective operations by how the ranks begin them"
    begun = parameter(("barrier", "dissemination", "window"), loggable=True)

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"begun": self.begun, **super().cell_parameters()}

    def arguments(self) -> list[str]:
        """Return the operations and how they begin."""
        return [*BEGUN.arguments(), "--synchronisation", self.begun]

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order."""
        return BEGUN.asked_points()
