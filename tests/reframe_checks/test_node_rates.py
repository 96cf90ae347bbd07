"""DGEMM, STREAM and Linpack that are wrong, missing or impossibly fast are refused."""

import pytest

from tests.reframe_checks.conftest import StandIn
from tests.reframe_checks.rates import CORES, dgemm, linpack, stream


@pytest.mark.parametrize(
    ("only", "text", "cell"),
    [
        ("^Dgemm", dgemm(), f"Dgemm ranks={CORES} n=1500"),
        ("^Stream", stream(), f"Stream ranks={CORES}"),
        ("^SerialLinpack", linpack(), "SerialLinpack ranks=1"),
    ],
)
def test_sound_rates_are_kept(stand_in: StandIn, only: str, text: str, cell: str) -> None:
    stand_in.write(text)
    outcome = stand_in.run(only=only)
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert (launch["outcome"], launch["cell"]) == ("sound", cell)


#: A check, what is played, and the outcome and sentence that it must get.
WRONG_RATES = [
    ("^Dgemm", "", "failed", "empty"),
    ("^Dgemm", dgemm(n=1000), "failed", "not [('dgemm', 1500, 3)] as requested"),
    ("^Dgemm", dgemm(iterations=2), "failed", "not [('dgemm', 1500, 3)] as requested"),
    ("^Dgemm", dgemm(error=1.5), "failed", "off by 1.5 times what rounding allows; 1 is the"),
    ("^Dgemm", dgemm(flop=7), "failed", "7 operations are not the 2 n^3 of order 1500"),
    ("^Dgemm", dgemm(seconds=1e-5), "suspect", "is above the processors' peak of at most"),
    ("^Dgemm", dgemm(ranks=CORES + 1), "failed",
     f"{CORES + 1} ranks formed the world, not the {CORES} requested"),
    ("^Dgemm", dgemm(clock_hz_by_rank=[1e9] * (CORES + 1)), "failed",
     "one entry for each rank"),
    ("^Stream", stream(kernels=("copy", "add")), "failed", "('stream', 'triad', 5)]"),
    ("^Stream", stream(verified_elements=5), "failed", "5 elements were verified, not all"),
    ("^Stream", stream(moved_bytes=48_000_000), "failed", "are not what copy moves"),
    ("^Stream", stream(seconds=1e-5), "suspect", "what the cores' loads and stores can move"),
    ("^Stream", stream(seconds=1e-9), "suspect", "below the clock's resolution"),
    ("^SerialLinpack", linpack(residual=17.5), "failed",
     "the residual of N=100, columns, is 17.5 and must be below 16"),
    ("^SerialLinpack", linpack(systems=(("columns", 100),)), "failed", "('lapack', 1000, 20)]"),
    ("^SerialLinpack", linpack(flop=1.0), "failed", "LINPACK counts"),
    ("^SerialLinpack", linpack(seconds=1e-7), "suspect", "is above the processors' peak"),
]  # fmt: skip


@pytest.mark.parametrize("only", ["^Dgemm", "^Stream", "^SerialLinpack"])
def test_rates_that_are_not_right(stand_in: StandIn, only: str) -> None:
    stand_in.refuse(
        [(play, kind, words) for of, play, kind, words in WRONG_RATES if of == only], only=only
    )
