"""Intervals cover, and verdicts are false, as often as they say, under noise as benchmarks have."""

import math
from functools import partial

import numpy
import pytest

from analysis.precision.spread import effective_count
from analysis.simulation import coverage as simulated
from inference.intervals import trim_of

TRIALS = 2000
#: Of three standard errors of a simulated share near 95%.
CHANCE = 3 * math.sqrt(0.95 * 0.05 / TRIALS)
USUAL = ["normal", "lognormal", "drift"]


@pytest.mark.parametrize("rounds", [3, 5, 10, 20])
@pytest.mark.parametrize("noise", USUAL)
def test_paired_ratio_covers(noise: str, rounds: int) -> None:
    assert 0.93 <= simulated.paired_coverage(noise, rounds, TRIALS) <= 0.97


@pytest.mark.parametrize(
    ("noise", "launches", "documented"),
    [("normal", 3, 0.970), ("normal", 5, 0.953), ("normal", 10, 0.952),
     ("lognormal", 3, 0.972), ("lognormal", 5, 0.965), ("lognormal", 10, 0.955)],
)  # fmt: skip
def test_ratio_of_two_campaigns_covers(noise: str, launches: int, documented: float) -> None:
    """Welch's interval of few launches is wider than it says (docs/method/coverage.md)."""
    coverage = simulated.independent_coverage(noise, (launches, launches), TRIALS)
    assert coverage == pytest.approx(documented, abs=CHANCE)


def test_ratio_of_campaigns_of_different_length_covers() -> None:
    assert 0.93 <= simulated.independent_coverage("normal", (4, 12), TRIALS) <= 0.97


@pytest.mark.parametrize(
    ("rounds", "documented"), [(3, 0.966), (5, 0.974), (10, 0.978), (20, 0.973)]
)
def test_paired_ratio_covers_more_often_than_it_says_under_bursts(
    rounds: int, documented: float
) -> None:
    """A tenth of launches ten times as noisy makes Student's interval wide, never too narrow."""
    coverage = simulated.paired_coverage("bursts", rounds, TRIALS)
    assert coverage == pytest.approx(documented, abs=CHANCE)
    assert coverage >= 0.95


@pytest.mark.parametrize("launches", range(1, 21))
@pytest.mark.parametrize("noise", ["normal", "lognormal", "bursts"])
def test_median_covers_as_often_as_stated(noise: str, launches: int) -> None:
    stated = trim_of(launches, 0.95)[1]
    chance = 4 * math.sqrt(max(stated * (1 - stated), 0.002) / TRIALS)
    assert simulated.median_coverage(noise, launches, TRIALS) == pytest.approx(stated, abs=chance)
    assert stated >= 0.95 or launches < 6


@pytest.mark.parametrize("launches", range(6, 21))
def test_median_covers_where_noise_lasts_from_launch_to_launch(launches: int) -> None:
    assert simulated.median_coverage("drift", launches, TRIALS) >= 0.92


def test_interpolation_would_be_near_95_percent_but_for_drift() -> None:
    """Why the median's interval is not interpolated: if this covers, the method is wrong."""
    covered = partial(simulated.median_coverage, interval_of=simulated.interpolated)
    assert 0.93 <= covered("normal", 11, TRIALS) <= 0.97
    assert covered("drift", 11, TRIALS) < 0.93


@pytest.mark.parametrize(("share", "launches"), [(0.1, 10), (0.9, 6), (0.99, 6), (0.99, 10)])
def test_quantile_of_iterations_covers(share: float, launches: int) -> None:
    """Also one of 99% from 200 iterations that lean on each other, of which two lie beyond it."""
    stated = trim_of(launches, 0.95)[1]
    assert stated - 0.02 <= simulated.quantile_coverage(share, launches, 200, 1000) <= stated + 0.02


@pytest.mark.parametrize("shared", [0.0, 0.5])
@pytest.mark.parametrize("rounds", [3, 5, 10])
def test_band_has_the_whole_curve(rounds: int, shared: float) -> None:
    whole, single = simulated.band_coverage("normal", rounds, shared, 600)
    assert 0.93 <= whole <= 0.97 + 2 * math.sqrt(0.95 * 0.05 / 600)
    assert single < 0.85, "single intervals do not hold together, or the test cannot tell"


def test_band_of_sizes_that_vary_together_is_never_too_narrow() -> None:
    assert simulated.band_coverage("drift", 3, 0.9, 600)[0] >= 0.93


@pytest.mark.parametrize("noise", USUAL)
def test_family_has_a_false_verdict_in_one_of_twenty_at_most(noise: str) -> None:
    false = simulated.false_verdicts(noise, 5, 12, 1000)
    assert 0.005 < false <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)


@pytest.mark.parametrize("campaigns", [8, 12, 30, 100])
@pytest.mark.parametrize("noise", ["normal", "lognormal"])
def test_changes_are_false_in_one_of_twenty_at_most(noise: str, campaigns: int) -> None:
    false = simulated.false_changes(noise, campaigns, 1000)
    assert false <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)


@pytest.mark.parametrize(("noise", "least"), [("normal", 0.9), ("lognormal", 0.8)])
def test_step_of_a_tenth_is_found_where_it_is(noise: str, least: float) -> None:
    assert simulated.found_changes(noise, 20, 0.1, 500) >= least
    assert simulated.found_changes(noise, 20, 0.0, 500) < 0.05


def test_iterations_are_no_launches() -> None:
    by_launch, pooled = simulated.pooled_coverage(10, 100, 400)
    assert 0.91 <= by_launch <= 0.98
    assert pooled < 0.5, "iterations that lean on each other must not count one by one"


def test_what_lasts_from_round_to_round_is_not_covered_and_said_so() -> None:
    """The documented limit: if this begins to cover, docs/method/coverage.md is wrong."""
    assert simulated.paired_coverage("lasting", 10, TRIALS) < 0.85


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_effective_count_of_autocorrelated_iterations(correlation: float) -> None:
    data = simulated.autocorrelated(numpy.random.default_rng(9), 200, 2000, correlation)
    found = float(numpy.median([effective_count(row) for row in data])) / 2000
    assert found == pytest.approx((1 - correlation) / (1 + correlation), rel=0.25)


def test_noises_are_standard() -> None:
    for name, draw in simulated.NOISES.items():
        of, base = draw(numpy.random.default_rng(1), 4000, 6)
        assert of.shape == base.shape == (4000, 6), name
        assert abs(float(numpy.median(of))) < 0.05 and abs(float(numpy.median(base))) < 0.05, name
    of, base = simulated.drift(numpy.random.default_rng(2), 20000, 3)
    near = numpy.corrcoef(of[:, 0], base[:, 0])[0, 1]
    far = numpy.corrcoef(of[:, 0], of[:, 2])[0, 1]
    # Mean of 0.95^gap over two random places of 52.
    gaps = numpy.arange(1, 52)
    expected = float((0.95**gaps * (52 - gaps)).sum() / (52 * 51 / 2))
    assert near == pytest.approx(expected, abs=0.03) and abs(far) < 0.05
