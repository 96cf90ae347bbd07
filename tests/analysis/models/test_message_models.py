"""Models of messages find the truth they were given, with intervals that cover as they say."""

import csv
import json
import math
import shutil
from pathlib import Path

import numpy
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.models.log_gp import gaps, parameters_of, reduction_per_byte, start_up_sum
from analysis.models.message_tables import model_tables
from analysis.models.messages import (
    HostsOfRanks,
    SizeSweep,
    fitted_in,
    model_of,
    models_of,
    sweeps_of,
)
from inference.means import Mean, mean_of_launches, quotient_of_launches
from records.campaign import read_campaign
from tests.analysis.support.synthetic import TWICE, Synthetic

PROJECT = Path(__file__).resolve().parents[3]
SIZES = [2**k * f // 4 for k in range(3, 20) for f in (4, 6)]
NOISE = {
    "normal": lambda random: random.standard_normal(),
    "heavy tails": lambda random: random.standard_t(3),
    "bursts": lambda random: random.standard_normal() * (10 if random.random() < 0.1 else 1),
}


def sweep(
    alpha: float, beta: float, rounds: int, seed: int, noise: str = "normal", scale: float = 0.03,
    series: str = "", sizes: list[int] = SIZES, ranks: int = 2,
) -> SizeSweep:  # fmt: skip
    """Return a sweep of known alpha (s) and beta (s/B); noise is of launches and of points."""
    random = numpy.random.default_rng(seed)
    times = {}
    for number in range(1, rounds + 1):
        launch = math.exp(scale * NOISE[noise](random))
        times[number] = {
            n: (alpha + beta * n) * launch * math.exp(0.005 * NOISE[noise](random)) for n in sizes
        }
    return SizeSweep("EchoTest ranks=2", series, "alpha-1.0", ranks, True, times, frozenset(),
                     experiment="EchoTest")  # fmt: skip


@pytest.mark.parametrize("noise", NOISE)
def test_intervals_over_launches_cover(noise: str) -> None:
    """Alpha, beta and n1/2 of five launches that differ as a whole: Student's and Fieller's."""
    trials, alpha, beta = 400, 2e-6, 1e-10
    few = [16, 256, 4096, 65536, 1048576]
    hits = {"alpha": 0, "beta": 0, "half": 0}
    for seed in range(trials):
        model = model_of(sweep(alpha, beta, 5, seed, noise, sizes=few))
        assert model is not None
        [segment] = model.segments
        for name, mean, truth in (
            ("alpha", segment.alpha, alpha),
            ("beta", segment.beta, beta),
            ("half", segment.half_bandwidth, alpha / beta),
        ):
            assert mean.interval is not None
            hits[name] += mean.interval.low <= truth <= mean.interval.high
    # Four standard errors of a true 95% are 4.4%; heavier tails may only widen the intervals.
    highest = 0.995 if noise == "normal" else 1.0
    assert all(0.905 <= count / trials <= highest for count in hits.values()), hits


@pytest.mark.parametrize("launches", [3, 5, 10])
def test_means_and_quotients_cover_as_often_as_they_say(launches: int) -> None:
    """Alpha and beta of a launch err together, as where a launch as a whole is slow."""
    random = numpy.random.default_rng(launches)
    trials, hits = 3000, [0, 0]
    for _ in range(trials):
        common = random.standard_normal(launches)
        alphas = 2e-6 * (1 + 0.1 * common + 0.05 * random.standard_normal(launches))
        betas = 1e-10 * (1 + 0.1 * common + 0.02 * random.standard_normal(launches))
        mean = mean_of_launches(alphas.tolist())
        half = quotient_of_launches(alphas.tolist(), betas.tolist())
        assert mean.interval is not None
        hits[0] += mean.interval.low <= 2e-6 <= mean.interval.high
        # Where no interval is given, none is wrong.
        hits[1] += half.interval is None or half.interval.low <= 2e4 <= half.interval.high
    # Of a true 95% four standard errors are 1.6%.
    assert all(0.934 <= count / trials <= 0.966 for count in hits), hits


@pytest.mark.parametrize("seed", range(5))
def test_a_switch_and_the_lines_beside_it_are_found(seed: int) -> None:
    short, long = sweep(2e-6, 1e-10, 6, seed), sweep(20e-6, 0.5e-10, 6, seed + 100)
    rounds = {
        number: {n: (short if n <= 4096 else long).rounds[number][n] for n in SIZES}
        for number in short.rounds
    }
    model = model_of(SizeSweep("c", "", "a", 2, True, rounds, frozenset({4096})))
    assert model is not None
    assert [(one.below_bytes, one.above_bytes) for one in model.switches] == [(4096, 6144)]
    first, second = model.segments
    assert first.alpha.value == pytest.approx(2e-6, rel=0.1)
    assert 1 / second.beta.value == pytest.approx(20e9, rel=0.1)
    assert first.half_bandwidth.value == pytest.approx(20_000, rel=0.15)


def test_a_round_is_fitted_at_the_sizes_that_it_has() -> None:
    """Without one of many it is a value as the others; with two sizes, or near ones, it is none."""
    whole = sweep(2e-6, 1e-10, 5, 1)
    del whole.rounds[2][SIZES[3]]
    whole.rounds[3] = {n: whole.rounds[3][n] for n in SIZES[:2]}
    whole.rounds[4] = {n: 2e-6 + 1e-10 * n for n in (1000, 1100, 1200)}
    model = model_of(whole)
    assert model is not None
    assert (model.segments[0].alpha.launches, model.segments[0].left_out) == (3, 2)


def test_too_few_sizes_have_no_model() -> None:
    assert model_of(sweep(1e-6, 1e-10, 3, 1, sizes=[8, 1024])) is None
    assert model_of(sweep(1e-6, 1e-10, 3, 1, sizes=[1000, 1100, 1200])) is None


@pytest.mark.parametrize(
    ("mpi", "pair", "program", "below"),
    [("LAM", "Send/Recv", "original", 65_000), ("MPICH", "Isend/Irecv", "original", 100_000)],
)
def test_the_thesis_tables_are_segmented_at_its_protocols(
    mpi: str, pair: str, program: str, below: int
) -> None:
    """Appendix tables: alpha, beta and n1/2 on both sides of 64 KB (LAM) and 128 KB (MPICH)."""
    with (PROJECT / "literature/kearns2003/bandwidth.csv").open() as table:
        times = {
            int(row["message_bytes"]): int(row["message_bytes"]) / float(row["avg_mbs"]) / 1e6
            for row in csv.DictReader(table)
            if (row["mpi"], row["pair"], row["program"]) == (mpi, pair, program) and row["avg_mbs"]
        }
    model = model_of(SizeSweep("thesis", "", mpi, 2, True, {1: times}, frozenset()))
    assert model is not None and below in [one.below_bytes for one in model.switches]
    last = model.segments[-1]
    # One table, one value: no interval is made up.
    assert last.beta.interval is None and last.alpha.interval is None
    # The link is of 12.5 MB/s.
    assert 10e6 < 1 / last.beta.value < 25e6
    assert last.half_bandwidth.value == pytest.approx(last.alpha.value / last.beta.value)


@given(st.lists(st.floats(0.5, 2), min_size=2, max_size=20), st.floats(0.1, 10))
def test_quotients_scale_and_hold_their_value(values: list[float], factor: float) -> None:
    others = [1 + 0.01 * (place % 3) for place in range(len(values))]
    one = quotient_of_launches(values, others)
    other = quotient_of_launches([factor * value for value in values], others)
    assert other.value == pytest.approx(factor * one.value)
    assume(one.interval and other.interval)
    assert one.interval and other.interval
    assert one.interval.low <= one.value * (1 + 1e-9)
    assert one.value <= one.interval.high * (1 + 1e-9)
    assert other.interval.high == pytest.approx(factor * one.interval.high, rel=1e-6)


def test_a_denominator_that_may_be_zero_bounds_no_quotient() -> None:
    assert quotient_of_launches([1.0, 1.1, 0.9], [1.0, -1.0, 0.1]).interval is None
    assert quotient_of_launches([1.0], [2.0]).interval is None
    assert mean_of_launches([3.0]).interval is None
    with pytest.raises(ValueError, match="one numerator and one denominator"):
        quotient_of_launches([1.0, 2.0], [1.0])


@pytest.mark.parametrize("count", [2, 5, 200])
def test_launches_that_agree_have_no_interval(count: int) -> None:
    """As on a clock of 1 us: no spread is seen, which is no certainty; nor is rounding a spread."""
    equal = mean_of_launches([1e-6] * count)
    assert equal == Mean(pytest.approx(1e-6), None, count, agree=True)  # type: ignore[arg-type]
    assert equal.untold == "launches agree"
    rounded = mean_of_launches([1e-6 * (1 + 1e-15 * place) for place in range(count)])
    assert rounded.interval is None and rounded.agree
    assert mean_of_launches([0.0] * count).interval is None
    half = quotient_of_launches([1e-6] * count, [1e-9] * count)
    assert half.interval is None and half.agree and half.value == pytest.approx(1000)
    # A launch twice as slow as another as a whole: the quotient is the same.
    slow = [1.0 + place for place in range(count)]
    half = quotient_of_launches([3e-6 * one for one in slow], [7e-9 * one for one in slow])
    assert half.interval is None and half.agree
    told = mean_of_launches([1e-6 + 1e-12 * place for place in range(count)])
    assert told.interval is not None and not told.agree
    assert quotient_of_launches(slow, [1e-9] * count).interval is not None


def test_a_campaign_that_agrees_has_a_word_for_its_intervals(tmp_path: Path) -> None:
    synthetic = Synthetic(tmp_path / "c", TWICE, rounds=1, pairs=["Send/Recv"], facts={"rounds": 2})
    folder = synthetic.write()
    for first in sorted((folder / "launches").iterdir()):
        again = first.with_name(first.name.replace("round001", "round002"))
        shutil.copytree(first, again)
        record = json.loads((again / "launch.json").read_text())
        record |= {"round": 2, "launch": again.name}
        (again / "launch.json").write_text(json.dumps(record))
    campaign = read_campaign(folder)
    assert not campaign.problems
    tables = model_tables(fitted_in(campaign))
    assert [table.name for table in tables][1:] == [
        "lines-between-protocol-switches", "loggp-parameters",
    ]  # fmt: skip
    lines, segments, parameters = ([table.words(row) for row in table.rows] for table in tables)
    # Where an alpha came out below 0 there is no n1/2 at all.
    assert {row[-1] for row in lines if row[-2] != "–"} == {"launches agree"}
    assert all(row[i] == "launches agree" for row in segments for i in (7, 9))
    assert {row[4] for row in parameters if row[3] != "–"} == {"launches agree"}
    assert all("“launches agree”" in table.notes[0] for table in tables)


TWO_OF_TWO = HostsOfRanks(ranks=2, nodes=2, is_near=False)


def windows(
    latency: float,
    gap: float,
    counts: list[int],
    sizes: list[int],
    world: HostsOfRanks = TWO_OF_TWO,
) -> list[SizeSweep]:
    """Return windows of messages of a known gap (s) between them, with latency and an answer."""
    random = numpy.random.default_rng(3)
    return [
        SizeSweep(
            f"Pairs window={count}", f"pairs window of {count} [1 near pair]", "alpha-1.0", 2,
            False,
            {
                r: {n: (2 * latency + (count - 1) * gap) * (1 + 0.01 * random.standard_normal())
                    for n in sizes}
                for r in range(1, 7)
            },
            frozenset(),
            dict.fromkeys(range(1, 7), world),
        )
        for count in counts
    ]  # fmt: skip


def test_the_gap_is_the_difference_of_windows() -> None:
    [gap] = gaps(windows(2e-6, 3e-7, [64, 1], [1024]))
    assert gap.value is not None and gap.value.interval is not None
    assert gap.value.interval.low < 3e-7 < gap.value.interval.high
    assert gap.value.value == pytest.approx(3e-7, rel=0.03) and "1023 G" in gap.name


def test_a_window_alone_gives_an_upper_bound_only() -> None:
    [gap] = gaps(windows(2e-6, 3e-7, [64], [8]))
    assert gap.value is not None and gap.value.value > 3.3e-7 and gap.name.startswith("at most")
    assert gaps(windows(2e-6, 3e-7, [1], [8])) == []


@pytest.mark.parametrize(
    "other",
    [
        HostsOfRanks(ranks=16, nodes=8, is_near=True),
        HostsOfRanks(ranks=4, nodes=2, is_near=False),
        HostsOfRanks(ranks=2, nodes=1, is_near=False),
        HostsOfRanks(ranks=2, nodes=2, is_near=True),
    ],
)
def test_windows_of_other_worlds_are_not_subtracted(other: HostsOfRanks) -> None:
    """A window of 64 in 30 us on one node, of 1 in 60 us between two: no gap of -476 ns."""
    [long] = windows(15e-6, 0.0, [64], [1024], other)
    [short] = windows(30e-6, 0.0, [1], [1024])
    [gap] = gaps([long, short])
    assert gap.name.startswith("at most") and other.words in gap.how
    assert gap.value is not None and gap.value.value == pytest.approx(30e-6 / 64, rel=0.05)
    # Where a pair of suites is of one world, it is taken whatever else there is.
    alike = windows(2e-6, 3e-7, [64, 1], [1024], HostsOfRanks(ranks=8, nodes=4, is_near=False))
    [gap] = gaps([long, short, *alike])
    assert gap.value is not None and gap.value.value == pytest.approx(3e-7, rel=0.03)


def test_a_gap_below_nothing_is_refused() -> None:
    [long] = windows(10e-6, 0.0, [64], [1024])
    [short] = windows(30e-6, 0.0, [1], [1024])
    parameters = {one.name: one for one in parameters_of([long, short], [])}
    found = parameters["max(g, o_s, o_r) + 1023 G"]
    assert found.value is None and "the result is -6.3" in found.how
    assert "g" not in parameters


def test_worlds_are_read_from_the_launches(tmp_path: Path) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, rounds=1, pairs=["Send/Recv"]).write()
    worlds = [sweep.worlds for sweep in sweeps_of(read_campaign(folder))]
    assert worlds == [{1: HostsOfRanks(ranks=2, nodes=1, is_near=True)}] * 2


@pytest.mark.parametrize(("ranks", "stages"), [(2, 1), (4, 2), (6, 3)])
def test_the_time_to_reduce_a_byte_is_separated(ranks: int, stages: int) -> None:
    sizes = [256, 512, 768, 1024]
    beta, gamma = 1e-9, 4e-10
    both = [
        sweep(1e-6, stages * slope, 6, 5, scale=0.0, series=series, sizes=sizes, ranks=ranks)
        for series, slope in (
            ("bcast [world]", beta), ("allreduce-sum [world]", beta + gamma),
        )
    ]  # fmt: skip
    [found] = reduction_per_byte(both)
    assert found.value is not None and found.value.value == pytest.approx(gamma, rel=0.1)
    assert f"{stages} stage" in found.how
    assert reduction_per_byte(both[:1]) == []


def test_what_is_not_told_names_what_would_tell_it() -> None:
    only = sweep(2e-6, 1e-10, 3, 1)
    parameters = {one.name: one for one in parameters_of([only], models_of([only]))}
    assert parameters["L, o_s, o_r"].value is None and "PRTT" in parameters["L, o_s, o_r"].how
    assert "suite=(rate|ohio-ping)" in parameters["g"].how
    assert "allreduce-sum" in parameters["gamma"].how
    assert parameters["G"].value is not None
    assert parameters["G"].value.value == pytest.approx(1e-10, rel=0.1)
    assert start_up_sum([]) is None


def test_ranges_of_one_sweep_belong_together(tmp_path: Path) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, rounds=4, noise=0.01, pairs=["Send/Recv"]).write()
    sweeps = sweeps_of(read_campaign(folder))
    assert [(one.cell, one.implementation) for one in sweeps] == [
        ("PointToPoint pair=Send/Recv", "alpha-1.0"), ("PointToPoint pair=Send/Recv", "beta-2.0"),
    ]  # fmt: skip
    assert sweeps[0].borders == {4800, 100000, 2000000}
    for one, alpha, beta in zip(sweeps, (1e-6, 5e-7), (1 / 4e9, 1 / 8e9), strict=True):
        model = model_of(one)
        assert model is not None
        assert model.segments[0].alpha.value == pytest.approx(alpha, rel=0.15)
        assert model.segments[-1].beta.value == pytest.approx(beta, rel=0.15)


def test_command(tmp_path: Path) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, pairs=["Send/Recv", "Isend/Irecv"]).write()
    done = CliRunner().invoke(app, ["models", str(folder), "--cell", "pair=Send"])
    assert done.exit_code == 0 and "Lines between protocol switches" in done.output
    assert "PointToPoint" in done.output and "Isend" not in done.output
    nothing = CliRunner().invoke(app, ["models", str(folder), "--cell", "no such"])
    assert nothing.exit_code == 1 and "make run CHECKS='EchoTest|Mpptest|Pairs'" in nothing.output
