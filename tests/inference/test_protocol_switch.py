"""Protocol switches are found where they were put, and not where there is noise only."""

import csv
from pathlib import Path

import numpy
import pytest

from inference.protocol_switch import lines_of, protocol_switches

PROJECT = Path(__file__).resolve().parents[2]
SIZES = [2**k * f // 4 for k in range(6, 20) for f in (4, 5, 6, 7)]


def times(sizes: list[int], noise: float, seed: int) -> list[float]:
    """Return one-way times with switches after 4,096 and 65,536 bytes, in seconds."""
    random = numpy.random.default_rng(seed)
    return [
        (
            50e-6 + size / 11e6
            if size <= 4096
            else 150e-6 + size / 11e6
            if size <= 65536
            else 2e-3 + size / 11.5e6
        )
        * float(1 + noise * random.standard_normal())
        for size in sizes
    ]


@pytest.mark.parametrize("seed", range(10))
def test_two_switches_are_found(seed: int) -> None:
    found = protocol_switches(SIZES, times(SIZES, 0.01, seed))
    assert [(one.below_bytes, one.above_bytes) for one in found] == [(4096, 5120), (65536, 81920)]
    assert all(one.jump > 1.1 for one in found)


def test_noise_alone_is_one_line() -> None:
    random = numpy.random.default_rng(1)
    alarms = 0
    for _ in range(50):
        straight = [
            (50e-6 + size / 11e6) * float(1 + 0.03 * random.standard_normal()) for size in SIZES
        ]
        alarms += len(lines_of(SIZES, straight)) > 1
    assert alarms <= 5


@pytest.mark.parametrize(
    ("sizes", "seconds", "sentence"),
    [
        ([1, 2], [1.0, 2.0], "three different sizes"),
        ([1, 2, 2], [1.0, 2.0, 2.0], "three different sizes"),
        ([1, 2, 4], [1.0, 0.0, 2.0], "positive times"),
        ([100, 110, 120], [1.0, 1.1, 1.2], "less than a factor of two"),
    ],
)
def test_what_has_no_lines_is_refused(
    sizes: list[int], seconds: list[float], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        lines_of(sizes, seconds)


@pytest.mark.parametrize(
    ("mpi", "pair", "program", "below", "above"),
    [
        # Section 4.3.3: "LAM switches from a short to long protocol at 65 KB by default".
        ("LAM", "Send/Recv", "original", 65_000, 70_000),
        ("LAM", "Isend/Irecv", "modified", 65_000, 70_000),
        # "We found the crossover size for eager/rendezvous to be 128 KB."
        ("MPICH", "Isend/Irecv", "original", 100_000, 200_000),
    ],
)
def test_switches_of_the_thesis_come_out_of_its_own_tables(
    mpi: str, pair: str, program: str, below: int, above: int
) -> None:
    with (PROJECT / "literature/kearns2003/bandwidth.csv").open() as table:
        one_way = {
            int(row["message_bytes"]): int(row["message_bytes"]) / float(row["avg_mbs"]) / 1e6
            for row in csv.DictReader(table)
            if (row["mpi"], row["pair"], row["program"]) == (mpi, pair, program) and row["avg_mbs"]
        }
    found = protocol_switches(list(one_way), list(one_way.values()))
    [switch] = [one for one in found if one.below_bytes == below]
    assert switch.above_bytes == above and switch.jump > 1
