"""Speedup, serial part and exponents: by papers' tables, Amdahl's law and synthetic noise."""

import csv
import math
from collections import defaultdict
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.campaign import read_campaign
from analysis.linpack_tables import of_the_thesis, rows_of
from analysis.scaling import (
    Measured,
    Scaled,
    bandwidths_per_rank,
    hpl_scaled,
    power_of,
    powers_in,
    scaled_of,
    serial_part,
)
from tests.analysis.synthetic import TWICE, Synthetic
from tests.analysis.test_guidelines import collective

PROJECT = Path(__file__).resolve().parents[2]


def rows(name: str) -> list[dict[str, str]]:
    with (PROJECT / "literature" / name).open() as table:
        return list(csv.DictReader(table))


@pytest.mark.parametrize("mpi", ["LAM", "MPICH"])
def test_serial_parts_of_figure_8(mpi: str) -> None:
    """Karp and Flatt's part of Kearns 2003, Figure 8 (N=6000), from Tables 4 and 5's seconds."""
    seconds = {
        int(row["procs"]): float(row["seconds"])
        for row in rows("kearns2003/hpl.csv")
        if row["mpi"] == mpi and row["n"] == "6000"
    }
    by_ranks = {
        row.problem.ranks: row
        for row in rows_of(of_the_thesis(PROJECT, by="seconds"))
        if row.implementation == mpi and row.problem.n == 6000 and row.problem.ranks > 1
    }
    for ranks, row in by_ranks.items():
        assert row.speedup is not None and row.base_rate is not None
        scaled = Scaled("HPL", mpi, ranks, 1, row.base_rate, "FLOP/s", row.speedup)
        # Karp and Flatt 1990, equation 2.
        ratio = seconds[ranks] / seconds[1]
        expected = (ratio - 1 / ranks) / (1 - 1 / ranks)
        assert scaled.serial_part == pytest.approx(expected, rel=1e-6)
        assert 0 < expected < 1 and scaled.serial_interval is None
        assert scaled.efficiency == pytest.approx(1 / ratio / ranks)


@given(st.floats(0, 1), st.integers(2, 4096), st.integers(1, 64))
def test_amdahls_law_is_inverted(part: float, ranks: int, base: int) -> None:
    if ranks == base:
        assert serial_part(1.0, ranks, base) is None
        return
    times = {p: part + (1 - part) / p for p in (ranks, base)}
    found = serial_part(times[base] / times[ranks], ranks, base)
    if ranks > base:
        assert found == pytest.approx(part, abs=1e-6)


def test_what_no_serial_part_explains() -> None:
    assert serial_part(0.0, 4) is None
    assert serial_part(1.0, 8, 4) == pytest.approx(1.0)
    # Slower by more ranks than a program that is all serial.
    assert serial_part(0.8, 8, 4) is None
    assert (serial_part(5.0, 4) or 0) < 0


def test_intervals_of_speedup_and_serial_part_cover() -> None:
    truth, ranks, trials = 0.1, 4, 400
    speedup = 1 / (truth + (1 - truth) / ranks)
    random = numpy.random.default_rng(2)
    hits = 0
    for _ in range(trials):
        measured = [
            Measured("NAS ep.S", "a", p, r, factor * math.exp(0.02 * random.standard_normal()), "x")
            for r in range(1, 6)
            for p, factor in ((1, 1.0), (ranks, speedup))
        ]
        [row] = scaled_of(measured)
        interval = row.serial_interval
        assert interval is not None and row.base_ranks == 1
        hits += interval.low <= truth <= interval.high
    assert 0.905 <= hits / trials <= 0.995


def test_the_fewest_ranks_are_the_base() -> None:
    """The thesis' su3 begins with two processes, so its speedups are over two."""
    measured = [
        Measured("su3", "LAM", int(row["procs"]), 1, 1 / float(row["wall_s"]), "1/s")
        for row in rows("kearns2003/su3.csv")
        if row["experiment"] == "1" and row["mpi"] == "LAM"
    ]
    found = {row.ranks: row for row in scaled_of(measured)}
    seconds = {one.ranks: 1 / one.rate for one in measured}
    assert set(found) == set(seconds) - {2} and {row.base_ranks for row in found.values()} == {2}
    assert found[16].speedup.value == pytest.approx(seconds[2] / seconds[16])
    assert found[16].efficiency == pytest.approx(seconds[2] / seconds[16] / 8)


def exponents(name: str, **chosen: str) -> dict[str, tuple[float, int]]:
    """Return NASA's exponent of bandwidth per process by system, and of how many points."""
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for row in rows(name):
        if all(row[key] == value for key, value in chosen.items()):
            values[row["system"]][int(row["procs"])] = float(row["bandwidth_mbs"]) * 1e6
    return {
        system: (power_of(points).value, len(points))
        for system, points in values.items()
        if len(points) > 2
    }


def test_exponents_of_nasas_exchanges() -> None:
    """NASA 2003, tables of ATA and STS: what a least-squares line through the logarithms has."""
    found = exponents("nas2003/ata.csv", interconnect="")
    for system in ("Lomax", "Altix", "Chapman"):
        points = {
            int(row["procs"]): float(row["bandwidth_mbs"])
            for row in rows("nas2003/ata.csv")
            if row["system"] == system
        }
        slope = numpy.polyfit(numpy.log(list(points)), numpy.log(list(points.values())), 1)[0]
        assert found[system][0] == pytest.approx(slope) and found[system][1] == len(points)
        # Bandwidth per process falls with the processes, by less than if all shared one link.
        assert -1 < slope < 0
    single = exponents("nas2003/sts.csv", interconnect="", sided="single")
    assert -1 < single["Lomax"][0] < 0


def test_intervals_of_exponents_cover() -> None:
    random = numpy.random.default_rng(7)
    trials, hits = 1000, 0
    for _ in range(trials):
        values = {p: p**-0.4 * math.exp(0.1 * random.standard_normal()) for p in (2, 4, 8, 16, 32)}
        interval = power_of(values).interval
        assert interval is not None
        hits += interval.low <= -0.4 <= interval.high
    # Four standard errors of 95% of a thousand are 2.8%.
    assert 0.92 <= hits / trials <= 0.98


def test_two_numbers_of_ranks_give_no_interval_and_one_no_exponent() -> None:
    assert power_of({2: 8.0, 4: 4.0}).value == pytest.approx(-1)
    assert power_of({2: 8.0, 4: 4.0}).interval is None
    with pytest.raises(ValueError, match="two numbers of ranks"):
        power_of({2: 8.0})


def test_an_all_to_all_counts_the_own_block_as_nasa_does(tmp_path: Path) -> None:
    synthetic = Synthetic(tmp_path / "c", TWICE, rounds=1, pairs=[])
    folder = synthetic.write()
    for ranks in (2, 4, 8):
        collective(synthetic, 1, "alpha-1.0", {("alltoall", 1000): 1e-6 * ranks**1.5}, ranks=ranks)
    campaign = read_campaign(folder)
    assert campaign.problems == []
    [(key, by_ranks)] = bandwidths_per_rank(campaign).items()
    assert key == ("ATA, 1000 bytes to each", "alpha-1.0")
    assert by_ranks[4] == [pytest.approx(1000 * 4 / (1e-6 * 4**1.5))]
    [power] = powers_in(campaign)
    assert power.exponent is not None and power.exponent.value == pytest.approx(-0.5)


def test_command(tmp_path: Path) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, rounds=4, noise=0.01, pairs=["Send/Recv"]).write()
    scaled = hpl_scaled(read_campaign(folder))
    assert [(row.ranks, row.implementation) for row in scaled] == [
        (2, "alpha-1.0"), (2, "beta-2.0"),
    ]  # fmt: skip
    assert all(row.speedup.value == pytest.approx(2, rel=0.05) for row in scaled)
    done = CliRunner().invoke(app, ["scaling", str(folder)])
    assert done.exit_code == 0 and "HPL 1x2 N=4000 NB=192" in done.output
