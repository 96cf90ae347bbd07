"""Speedup, serial part and exponents: by papers' tables, Amdahl's law and synthetic noise."""

import csv
import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.models.linpack import hpl_in, of_the_thesis, rows_of
from analysis.models.scaling import (
    Exchange,
    Scaled,
    ScaledProblem,
    Timed,
    bandwidths_per_rank,
    hpl_scaled,
    power_of,
    powers_in,
    programs_in,
    scaled_of,
    serial_part,
)
from analysis.models.scaling_tables import power_table
from records.campaign import read_campaign
from records.su3 import FLOPS_OF_SITE_UPDATE
from tests.analysis.models.test_guidelines import collective
from tests.analysis.support.synthetic import HPL, TWICE, Synthetic

PROJECT = Path(__file__).resolve().parents[3]


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
            Timed("NAS ep.S", "a", p, r, factor * math.exp(0.02 * random.standard_normal()), "x")
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
        Timed("su3", "LAM", int(row["procs"]), 1, 1 / float(row["wall_s"]), "1/s")
        for row in rows("kearns2003/su3.csv")
        if row["experiment"] == "1" and row["mpi"] == "LAM"
    ]
    found = {row.ranks: row for row in scaled_of(measured)}
    seconds = {one.ranks: 1 / one.rate for one in measured}
    assert set(found) == set(seconds) - {2} and {row.base_ranks for row in found.values()} == {2}
    assert found[16].speedup.value == pytest.approx(seconds[2] / seconds[16])
    assert found[16].efficiency == pytest.approx(seconds[2] / seconds[16] / 8)


def lattice_gauge(
    synthetic: Synthetic, number: int, scaling: str, ranks: int, seconds: float,
    experiment: str = "Su3",
) -> None:  # fmt: skip
    """Add a launch of su3, of 8^4 sites or as many a rank, with a trajectory's known time."""
    times = 8 * ranks if scaling == "weak" else 8
    updates = 8**3 * times * 10
    records: list[dict[str, Any]] = [
        {
            "record": "header", "format": "wyeast-records-1", "program": "su3",
            "program_version": "1.0.0", "library": "alpha", "mpi_standard": "4.1", "ranks": ranks,
            "hosts": ["a"] * ranks, "processors": [[place] for place in range(ranks)],
            "clock": "MPI_Wtime", "clock_tick_s": 1e-9, "clock_resolution_s": 2e-8,
            "started_utc": "2026", "parameters": {},
        },
        {
            "record": "result", "operation": "su3", "lattice": [8, 8, 8, times],
            "grid": [1, 1, 1, ranks], "own_sites": 8**3 * times // ranks, "beta": 3.0,
            "steps": 10, "step_size": 0.05, "integrator": "leapfrog", "exchange": "ssend-irecv",
            "precision": "double", "instructions": "avx2", "trajectories": 1, "warmups": 0,
            "first_trajectory": 0, "start": "hot", "accept": False, "plaquettes": [0.2],
            "plaquette": 0.2, "plaquette_error": 0.0, "delta_h": [0.0], "exp_minus_delta_h": 1.0,
            "accepted": 1, "unitarity_deviation": 1e-15,
            "time_s": dict.fromkeys(
                ("min", "quartile1", "median", "mean", "quartile3", "max"), seconds
            ),
            "wall_s": seconds, "cpu_by_rank_s": [seconds] * ranks,
            "exchange_by_rank_s": [0.0] * ranks, "site_updates": updates,
            "flops": updates * FLOPS_OF_SITE_UPDATE, "moved_bytes": 0, "verified_bytes": 0,
        },
        {"record": "end", "results": 1},
    ]  # fmt: skip
    text = "".join(json.dumps(record) + "\n" for record in records)
    parameters = {"suite": "scaling", "scaling": scaling, "ranks": ranks}
    synthetic.launch(number, "alpha-1.0", experiment, parameters, text, program="su3", ranks=ranks)


def test_weak_scaling_is_by_the_rate_of_a_rank(tmp_path: Path) -> None:
    """Four ranks take 1.25 times as long for four times the sites: efficiency 0.8, not 0.2."""
    synthetic = Synthetic(tmp_path / "c", TWICE, rounds=2, pairs=[])
    folder = synthetic.write()
    for number in (1, 2):
        lattice_gauge(synthetic, number, "strong", 1, 0.1)
        lattice_gauge(synthetic, number, "strong", 4, 0.05)
        lattice_gauge(synthetic, number, "weak", 2, 0.1)
        lattice_gauge(synthetic, number, "weak", 4, 0.125)
    campaign = read_campaign(folder)
    assert campaign.problems == []
    strong, *weak = scaled_of(programs_in(campaign))
    assert (strong.what, strong.ranks, strong.weak) == ("su3 scaling 8x8x8x8", 4, False)
    assert strong.efficiency == pytest.approx(0.5) and strong.serial_part == pytest.approx(1 / 3)
    assert [(row.what, row.ranks, row.base_ranks, row.weak) for row in weak] == [
        ("su3 scaling, weak, 4096 sites a rank", 2, 1, True),
        ("su3 scaling, weak, 4096 sites a rank", 4, 1, True),
    ]
    assert [row.efficiency for row in weak] == pytest.approx([1.0, 0.8])
    assert [row.base for row in weak] == pytest.approx([8**4 * 10 / 0.1] * 2)
    assert all(row.serial_part is None and row.serial_interval is None for row in weak)
    assert strong.problem == ScaledProblem(lattice_x=8, lattice_y=8, lattice_z=8, lattice_t=8)
    assert {row.problem for row in weak} == {ScaledProblem(sites_of_a_rank=4096)}
    done = CliRunner().invoke(app, ["scaling", str(folder)], env={"COLUMNS": "300"})
    assert done.exit_code == 0 and "su3 scaling, weak" in done.output
    assert "the lattice grows with the ranks" in " ".join(done.output.split())


def test_weak_scaling_without_a_launch_on_one_rank_is_over_the_fewest(tmp_path: Path) -> None:
    synthetic = Synthetic(tmp_path / "c", TWICE, rounds=1, pairs=[])
    folder = synthetic.write()
    lattice_gauge(synthetic, 1, "weak", 2, 0.1)
    lattice_gauge(synthetic, 1, "weak", 8, 0.2)
    [row] = scaled_of(programs_in(read_campaign(folder)))
    assert (row.ranks, row.base_ranks, row.efficiency) == (8, 2, pytest.approx(0.5))


def test_profiled_launches_are_no_measurement(tmp_path: Path) -> None:
    """They have the ranks and rounds of others, and are slower."""
    synthetic = Synthetic(tmp_path / "c", TWICE, rounds=1, pairs=[])
    folder = synthetic.write()
    lattice_gauge(synthetic, 1, "strong", 1, 0.1)
    lattice_gauge(synthetic, 1, "strong", 2, 0.05)
    lattice_gauge(synthetic, 1, "strong", 2, 0.5, experiment="ProfileSu3")
    plain = hpl_scaled(hpl_in(read_campaign(folder)).rows)
    parameters = {"grid": "1x2", "n": 4000, "nb": 192}
    hpl = HPL.format(n=4000, q=2, time=100.0, gflops=0.4)
    synthetic.launch(1, "alpha-1.0", "ProfileLinpack", parameters, hpl, output_format="hpl")
    campaign = read_campaign(folder)
    assert campaign.problems == []
    [row] = scaled_of(programs_in(campaign))
    assert row.speedup.value == pytest.approx(2) and hpl_scaled(hpl_in(campaign).rows) == plain


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


def test_points_on_a_line_have_no_interval() -> None:
    """To the last digit there is no distance that an interval could be told from."""
    exact = power_of({2: 8.0, 4: 4.0, 8: 2.0})
    assert exact.interval is None and exact.agree and exact.value == pytest.approx(-1)


def test_an_all_to_all_counts_the_own_block_as_nasa_does(tmp_path: Path) -> None:
    synthetic = Synthetic(tmp_path / "c", TWICE, rounds=1, pairs=[])
    folder = synthetic.write()
    for ranks in (2, 4, 8):
        collective(synthetic, 1, "alpha-1.0", {("alltoall", 1000): 1e-6 * ranks**1.5}, ranks=ranks)
    campaign = read_campaign(folder)
    assert campaign.problems == []
    [(key, by_ranks)] = bandwidths_per_rank(campaign).items()
    assert key == (Exchange(1000, "", None), "alpha-1.0")
    assert by_ranks[4] == [pytest.approx(1000 * 4 / (1e-6 * 4**1.5))]
    [power] = powers_in(campaign)
    assert power.exponent is not None and power.exponent.value == pytest.approx(-0.5)
    measured = {one.record.cell for one in campaign.sound() if one.record.program == "collective"}
    assert len(power.cells) == 3 and set(power.cells) == measured
    table = power_table(campaign)
    assert table is not None and table.words(table.rows[0])[2] == "2, 4, 8"
    record = dict(zip(table.heads, table.record(table.rows[0]), strict=True))
    assert (record["ranks_least (1)"], record["ranks_most (1)"]) == (2, 8)


def test_command(tmp_path: Path) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, rounds=4, noise=0.01, pairs=["Send/Recv"]).write()
    scaled = hpl_scaled(hpl_in(read_campaign(folder)).rows)
    assert [(row.ranks, row.implementation) for row in scaled] == [
        (2, "alpha-1.0"), (2, "beta-2.0"),
    ]  # fmt: skip
    assert all(row.speedup.value == pytest.approx(2, rel=0.05) for row in scaled)
    assert scaled[0].problem == ScaledProblem(p=1, q=2, n=4000, nb=192)
    done = CliRunner().invoke(app, ["scaling", str(folder)])
    assert done.exit_code == 0 and "HPL 1x2 N=4000 NB=192" in done.output
