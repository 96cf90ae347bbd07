"""The grid in which halo arranges its ranks: one rule, whatever the library."""

import math
import subprocess

import pytest

from reframe_checks.halo_exchange import grid_of
from tests.benchmarks.conftest import PROJECT, SANITIZERS

MOST_RANKS = 400


def factorisations(number: int, parts: int, longest: int) -> list[tuple[int, ...]]:
    """Return all ways to write a number as a product of sides that do not ascend."""
    if parts == 1:
        return [(number,)] if number <= longest else []
    return [
        (side, *rest)
        for side in range(1, min(number, longest) + 1)
        if number % side == 0
        for rest in factorisations(number // side, parts - 1, side)
    ]


@pytest.fixture(scope="module")
def grids(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, int], tuple[int, ...]]:
    """Return the program's grids by ranks and dimensions."""
    program = tmp_path_factory.mktemp("grids") / "rank_grids"
    subprocess.run(
        ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", *SANITIZERS.split(), "-o", program,
         PROJECT / "tests/benchmarks/programs/rank_grids.c",
         PROJECT / "benchmarks/halo/rank_grid.c"],
        check=True,
    )  # fmt: skip
    done = subprocess.run(
        [program, str(MOST_RANKS)], capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    return {(ranks, len(sides)): tuple(sides) for ranks, *sides in lines}


def test_sides_sum_up_to_least(grids: dict[tuple[int, int], tuple[int, ...]]) -> None:
    assert len(grids) == 4 * MOST_RANKS
    for (ranks, dimensions), sides in grids.items():
        assert math.prod(sides) == ranks
        assert sides == min(factorisations(ranks, dimensions, ranks), key=lambda s: (sum(s), s))


def test_72_ranks_which_libraries_arrange_differently(
    grids: dict[tuple[int, int], tuple[int, ...]],
) -> None:
    assert grids[72, 3] == (6, 4, 3)
    assert grids[36, 3] == (4, 3, 3)


@pytest.mark.parametrize("ranks", [2**k for k in range(9)])
def test_checks_expect_the_same(grids: dict[tuple[int, int], tuple[int, ...]], ranks: int) -> None:
    for dimensions in range(1, 5):
        assert grids[ranks, dimensions] == tuple(grid_of(ranks, dimensions))
