"""HPL's problems: the rule of tier `site`, the reports' grids, and what does not fit."""

import csv
import math
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reframe_checks.mixins import hpl_problem, node_memory
from tests.reframe_checks.conftest import PROJECT, StandIn


@given(st.integers(1, 1_000_000))
def test_grid_is_the_closest_to_a_square(ranks: int) -> None:
    p, q = hpl_problem.grid_of(ranks)
    assert p * q == ranks and p <= q
    assert not any(ranks % between == 0 for between in range(p + 1, math.isqrt(ranks) + 1))


@pytest.mark.parametrize(("ranks", "grid"), [(1, (1, 1)), (2, (1, 2)), (7, (1, 7)), (24, (4, 6))])
def test_grids_by_hand(ranks: int, grid: tuple[int, int]) -> None:
    assert hpl_problem.grid_of(ranks) == grid


@given(st.integers(1, 2**50), st.floats(0.01, 1.0), st.integers(1, 512))
def test_largest_order_fits_and_one_block_more_does_not(memory: int, share: float, nb: int) -> None:
    n = hpl_problem.largest_order(memory, share, nb)
    assert n % nb == 0 and 8 * n**2 <= memory * share < 8 * (n + nb) ** 2 + 8


@given(st.integers(0, 10_000_000))
def test_block_sizes_are_compared_at_an_order_without_a_ragged_end(order: int) -> None:
    small = hpl_problem.order_of_search(order)
    assert small <= order / 4 and all(small % nb == 0 for nb in hpl_problem.BLOCK_SIZES)
    assert small > order / 4 - math.lcm(*hpl_problem.BLOCK_SIZES) - 1


@given(st.integers(1, 1_000_000), st.integers(1, 1000), st.integers(1, 2**45))
def test_what_is_left_out_needs_more_than_there_is(n: int, nodes: int, memory: int) -> None:
    sentence = hpl_problem.too_large(n, nodes, memory)
    assert bool(sentence) == (8 * n**2 > 0.8 * nodes * memory)


def test_the_thesis_own_case_is_left_out() -> None:
    """Section 4.1.1: N=15000 needs 1.8 GB, and a 2x2 run had two nodes of 512 MB."""
    sentence = hpl_problem.too_large(15_000, 2, 512e6)
    assert sentence and "needs 1.80 GB" in sentence and "2 nodes" in sentence
    assert hpl_problem.too_large(10_000, 2, 512e6) is None, "which the thesis measured"


def listed(stand_in: StandIn, tier: str) -> set[str]:
    """Return the problems of HPL that ReFrame lists in a tier."""
    done = subprocess.run(
        [PROJECT / "reframe_checks/bin/reframe", "-c", PROJECT / "reframe_checks/linpack.py", "-l"],
        env={
            **os.environ, "PATH": f"{stand_in.root}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT), "RFM_CONFIG_PATH": str(PROJECT / "site_configs"),
            "RFM_SYSTEM": "local", "RFM_COLORIZE": "no",
            "RFM_PREFIX": str(stand_in.root / "reframe"), "STAND_IN": str(stand_in.root),
            "WYEAST_ROOT": str(stand_in.root), "WYEAST_IMAGES": "mpich-5.0.2", "WYEAST_TIER": tier,
        },
        cwd=PROJECT, capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    return {
        " ".join(word.lstrip("%") for word in line.split()[2:5])
        for line in done.stdout.splitlines()
        if line.lstrip().startswith("- Linpack ")
    }


def rows_of(table: str) -> list[dict[str, str]]:
    with (PROJECT / "literature" / table).open() as file:
        return list(csv.DictReader(file))


def test_tier_paper_has_every_problem_of_both_reports(stand_in: StandIn) -> None:
    thesis = {
        f"grid={row['grid_p']}x{row['grid_q']} n={row['n']} nb=150"
        for row in rows_of("kearns2003/hpl.csv")
    }
    assert len(thesis) == 51
    assert listed(stand_in, "paper") == thesis | {"grid=4x2 n=44700 nb=256"}


def test_tier_site_follows_from_the_site(stand_in: StandIn) -> None:
    found = listed(stand_in, "site")
    orders = sorted({int(text.split()[1].removeprefix("n=")) for text in found})
    assert len(found) == 5 and len(orders) == 2 and len({text.split()[0] for text in found}) == 1
    assert orders[0] <= orders[1] / 4 and orders[1] % 192 == 0
    assert {text.split()[2] for text in found if f"n={orders[0]} " in text} == {
        "nb=64", "nb=128", "nb=192", "nb=256",
    }  # fmt: skip


def test_what_does_not_fit_is_skipped_and_not_failed(stand_in: StandIn) -> None:
    """A site with less memory than the smallest problem needs leaves it out, with the numbers."""
    settings = stand_in.settings(
        lambda text: text.replace(
            "memory_bytes_per_node: detect", "memory_bytes_per_node: 100000000"
        )
    )
    outcome = stand_in.run("-C", settings, only="^Linpack.*=1x2.*n=4000")
    assert outcome.launches == []
    assert "N=4000 needs 0.13 GB for the matrix, but 80% of the memory" in outcome.text
    assert "FAIL" not in outcome.text and "left out as in the thesis" in outcome.text


@pytest.mark.real
def test_hpl_dat_has_the_same_limit(tmp_path: Path) -> None:
    """What is computed before the run is what the program in the image would refuse."""
    source = PROJECT / "benchmarks"
    parts = ("hpl/hpl_dat", "hpl/node_memory", "common/arguments", "common/written")
    files = [source / f"{part}.c" for part in parts]
    subprocess.run(
        ["gcc", "-std=c11", "-D_DEFAULT_SOURCE", "-o", tmp_path / "hpl_dat", *files], check=True
    )
    memory = 512_000_000
    edge = hpl_problem.largest_order(2 * memory, node_memory.LARGEST_SHARE, 1)
    for n in (edge, edge + 1):
        done = subprocess.run(
            [tmp_path / "hpl_dat", "--p=1", "--q=2", f"--n={n}", "--nb=64", "--nodes=2",
             f"--memory-bytes-per-node={memory}"],
            capture_output=True, check=False,
        )  # fmt: skip
        assert (done.returncode != 0) == bool(hpl_problem.too_large(n, 2, memory))
