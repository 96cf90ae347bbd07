"""Messages of many threads at once, all of which call MPI."""

from collections.abc import Iterable
from itertools import product

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from reframe_checks.mixins.communicating import AskedPoint, Communicating
from reframe_checks.mixins.tiers import of_tier

METHODS = ("communicators", "tags", "partitioned")
SIZES = of_tier(quick=(8, 1024), paper=(8, 64, 512, 1024, 4096, 65_536))
ITERATIONS = of_tier(quick=20, paper=1000)
WINDOW = 64


@rfm.simple_test
class Threads(Communicating):
    """The rate of messages from each thread of a rank to one of the other's."""

    descr = "messages of many threads at once"
    program = "threads"
    only_when_named = True
    #: How many threads each rank has. One shows what MPI_THREAD_MULTIPLE costs by itself.
    threads = parameter(of_tier(quick=(1, 2), paper=(1, 2, 4, 8)), loggable=True)

    @run_after("init")
    def reserve_cores(self) -> None:
        """Give each thread a core."""
        self.cores_of_a_rank = self.threads
        if self.threads > 1:
            self.num_cpus_per_task = self.threads

    @run_after("setup")
    def leave_out_more_threads_than_cores(self) -> None:
        """Leave out threads that would wait for each other's cores."""
        cores, needed = self.site()["cores_per_node"], self.world().ranks_per_node * self.threads
        self.skip_if(
            needed > cores,
            f"its threads need {needed} cores of a node, and this site's nodes have {cores}",
        )

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"threads": self.threads, "ranks": self.num_tasks}

    def iterations_wanted(self) -> int:
        """Return how often each point is timed."""
        return int(ITERATIONS)

    def arguments(self) -> list[str]:
        """Return the threads and the message sizes; the program does every method."""
        return [
            "--threads", str(self.threads), "--window", str(WINDOW),
            *(word for size in SIZES for word in ("--sizes", str(size))),
        ]  # fmt: skip

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order."""
        group = f"pair of {self.threads} thread{'' if self.threads == 1 else 's'}"
        for method, size in product(METHODS, SIZES):
            yield AskedPoint("threads", f"{method} window of {WINDOW}", group, size)
