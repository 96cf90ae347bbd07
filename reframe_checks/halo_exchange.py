"""The exchange of a lattice's borders: NTNU's Cartesian test, and 1 to 4 dimensions."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from reframe_checks.mixins.communicating import AskedPoint
from reframe_checks.mixins.ranks_chosen import RanksChosen
from reframe_checks.mixins.tiers import of_tier

DOUBLE = 8


@dataclass(frozen=True)
class HaloSuite:
    """Methods over dimensions and extents in points; `whole` extents are divided by the ranks."""

    methods: tuple[str, ...]
    dimensions: tuple[int, ...]
    extents: tuple[int, ...]
    ranks: int
    iterations: int
    whole: bool = False

    def own_points(self, ranks: int, dimensions: int, extent: int) -> list[int]:
        """Return the points of one rank in each dimension, without the border."""
        grid = grid_of(ranks, dimensions)
        return [extent // n if self.whole else extent for n in grid]

    def bytes_of_a_rank(self, ranks: int) -> int:
        """Return what the largest lattice takes in each rank, with its border."""
        return DOUBLE * max(
            math.prod(points + 2 for points in self.own_points(ranks, dimensions, extent))
            for dimensions in self.dimensions
            for extent in self.extents
        )


METHODS = ("sendrecv", "isend-irecv", "persistent", "neighbourhood", "put")
# What is made before an exchange: the ranks' grid, once for all extents, and the faces' datatypes.
GRID, DATATYPES = "create", "datatypes"
CARTESIAN = (GRID, DATATYPES, "sendrecv", "isend-irecv")

SUITES: dict[str, HaloSuite] = of_tier(
    quick={
        "cartesian": HaloSuite(CARTESIAN, (2,), (8, 1000), 4, 10, whole=True),
        "halo": HaloSuite(METHODS, (1, 2, 3, 4), (12,), 4, 10),
    },
    paper={
        # SimpleBench's sizes (NTNU 2008, appendix A); the largest is a lattice of 12.8 GB.
        "cartesian": HaloSuite(CARTESIAN, (2,), (8, 10_000, 20_000, 40_000), 8, 100, whole=True),
        "halo": HaloSuite(METHODS, (1, 2, 3, 4), (8, 16, 32), 16, 200),
    },
)


def grid_of(ranks: int, dimensions: int) -> list[int]:
    """Return the program's grid for a power of two of ranks: as even as possible."""
    grid = [1] * dimensions
    place = 0
    while ranks > 1:
        grid[place % dimensions] *= 2
        ranks //= 2
        place += 1
    return grid


@rfm.simple_test
class HaloExchange(RanksChosen):
    """All faces of a lattice, exchanged in every way that MPI offers."""

    descr = "exchange of a lattice's borders"
    program = "halo"
    suite = parameter(SUITES, loggable=True)

    @run_after("init")
    def leave_out_other_numbers(self) -> None:
        """Leave out what cannot be arranged as the program does it."""
        self.skip_if(
            bool(self.num_tasks & (self.num_tasks - 1)),
            f"{self.num_tasks} ranks are not a power of two, and grids are known only for those",
        )

    def ranks_wanted(self) -> int:
        """Return how many ranks the report used."""
        return SUITES[self.suite].ranks

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
            *(word for name in suite.methods for word in ("--method", name)),
            *(word for n in suite.dimensions for word in ("--dimensions", str(n))),
            *(word for n in suite.extents for word in ("--extent", str(n))),
            *(["--whole"] if suite.whole else []),
        ]  # fmt: skip

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order; a message is the largest face."""
        suite = SUITES[self.suite]
        for dimensions in suite.dimensions:
            grid = grid_of(self.num_tasks, dimensions)
            for extent in suite.extents:
                own = suite.own_points(self.num_tasks, dimensions, extent)
                faces = [1] * dimensions
                for across in range(dimensions):
                    for other in range(dimensions):
                        faces[across] *= own[other] if other != across else 1
                for method in suite.methods:
                    made = method in (GRID, DATATYPES)
                    if method == GRID and extent != suite.extents[0]:
                        continue
                    yield AskedPoint(
                        "cartesian" if made else "halo", method, "x".join(map(str, grid)),
                        0 if method == GRID else max(faces) * DOUBLE,
                    )  # fmt: skip
