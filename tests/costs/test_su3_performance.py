"""Where su3 stands against what memory and cores allow."""

import os

import pytest

from costs.su3 import SIDES, SITE_UPDATES, Roofs, SpeedRow, alternations, arguments, rank_counts

#: Memory allows a million updates a second by the 2592 bytes of each, DGEMM two million by their
#: 16,272 operations.
ROOFS = Roofs(1, 2592e6, 16_272 * 2e6)


def test_a_rate_is_compared_with_both_roofs() -> None:
    assert ROOFS.of_memory(250e3) == pytest.approx(0.25)
    assert ROOFS.of_peak(250e3) == pytest.approx(0.125)
    rows = [SpeedRow(8, 250e3, 500e3, 50e3, 5.0), SpeedRow(4, 1e6, 2e6, 50e3, 20.0)]
    assert ROOFS.row(rows[0]) == (
        "| 8^4 | 1 | 0.0164 | 2.5e+05 | 5e+05 | 5e+04 | 5.0 | 4.1 | 0.25 | 0.12 |"
    )
    said = ROOFS.sentence(rows)
    assert "triad 2.59 GB/s as STREAM counts, up to 4/3 of it where a store reads" in said
    assert "first, which allows 1e+06 updates/s (16.3 GFLOP/s)" in said
    assert "DGEMM 32.5 GFLOP/s, which allows 2e+06 updates/s" in said
    assert "Memory's roof is the lower." in said
    assert said.endswith("su3 is at 0.25 to 1.00 of memory's and 0.12 to 0.50 of DGEMM's.")


def test_the_lower_roof_may_be_that_of_the_cores() -> None:
    said = Roofs(2, 2592e6 * 4, 16_272 * 2e6).sentence([SpeedRow(8, 1e6, 1e6, None, None)])
    assert "DGEMM's roof is the lower." in said


def test_su3_naive_is_on_one_rank_alone() -> None:
    assert "| – | – |" in Roofs(2, 1e9, 1e9).row(SpeedRow(8, 1e6, 2e6, None, None))


def test_there_are_at_most_as_many_ranks_as_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    assert rank_counts() == [1]
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2})
    assert rank_counts() == [1, 2]


@pytest.mark.parametrize("side", SIDES)
def test_trajectories_of_every_lattice_have_the_same_steps(side: int) -> None:
    """Else small lattices would look quicker: each trajectory also draws momenta, for instance."""
    words = arguments(side)
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert [options[f"--n{name}"] for name in "xyzt"] == [str(side)] * 4
    assert options["--steps"] == "50"
    trajectories = int(options["--trajectories"])
    assert trajectories >= 1 and trajectories * 50 * side**4 >= 0.95 * SITE_UPDATES


def test_large_lattices_have_half_as_many_alternations() -> None:
    assert [alternations(side, 5) for side in SIDES] == [5, 5, 3, 3]
    assert [alternations(side, 1) for side in SIDES] == [1, 1, 1, 1]
