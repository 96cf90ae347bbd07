"""The lattice gauge code's plaquettes: against another algorithm, volume by volume, and theory."""

import csv
import math
import statistics

import numpy
import pytest

from records.limits.su3 import metropolis_is_wrong
from records.su3 import Su3Result
from tests.benchmarks.conftest import PROJECT, Built
from tests.benchmarks.test_su3 import lattice, su3

pytestmark = pytest.mark.real
ANCHORS = PROJECT / "literature" / "su3_plaquette.csv"


def anchor(beta: float, sites: int) -> tuple[float, float]:
    name = "x".join([str(sites)] * 4)
    with ANCHORS.open() as table:
        [row] = [
            row for row in csv.DictReader(table)
            if float(row["beta"]) == beta and row["lattice"] == name
        ]  # fmt: skip
    return float(row["plaquette"]), float(row["error"])


def sampled(
    built: Built, beta: float, sites: int, trajectories: int, start: str = "hot",
    warmups: int = 20, steps: tuple[str, str] = ("6", "0.15"),
) -> Su3Result:  # fmt: skip
    """Run hybrid Monte Carlo on a lattice of equal sides; fail where it is not sound in itself."""
    result = su3(
        built, *lattice(*[sites] * 4), "--beta", str(beta), "--start", start,
        "--warm-ups", str(warmups), "--trajectories", str(trajectories), "--accept",
        "--integrator", "omelyan", "--steps", steps[0], "--step-size", steps[1],
    )  # fmt: skip
    assert metropolis_is_wrong(result) is None
    values = [math.exp(-change) for change in result.delta_h]
    error = statistics.stdev(values) / math.sqrt(len(values))
    assert abs(result.exp_minus_delta_h - 1) < 4 * error < 0.5
    assert 0.6 * trajectories < result.accepted < trajectories
    assert result.unitarity_deviation < 1e-13
    return result


@pytest.mark.parametrize(
    ("beta", "sites", "trajectories"),
    [(1.0, 4, 300), (2.0, 4, 300), (3.0, 4, 300), (5.0, 4, 500)],
)
def test_plaquette_is_that_of_another_algorithm(
    one: Built, beta: float, sites: int, trajectories: int
) -> None:
    """Those of 8^4 are held against it with what strong coupling says of them."""
    assert_that_of_another_algorithm(sampled(one, beta, sites, trajectories), beta, sites)


def assert_that_of_another_algorithm(result: Su3Result, beta: float, sites: int) -> None:
    """Fail unless a plaquette agrees with the other algorithm's within four of their errors."""
    expected, error = anchor(beta, sites)
    joint = math.hypot(result.plaquette_error, error)
    assert abs(result.plaquette - expected) < 4 * joint, (result.plaquette, expected, joint)
    # An error so large that anything agrees is no test.
    assert joint < 0.004


@pytest.mark.parametrize("share", [0.5, pytest.param(1, marks=pytest.mark.long)])
def test_lattices_differ_as_another_algorithm_s_do(one: Built, share: float) -> None:
    """At beta 5.6 the plaquette of 4^4 is 0.0136 above that of 8^4, from either start.

    From a cold start the plaquette comes down from 1, from a hot one up from 0, so that where both
    agree the field has settled.
    """
    found = {}
    for sites, warmups, trajectories, steps in (
        (4, 100, 2000, ("6", "0.15")),
        (8, 80, 200, ("10", "0.1")),
    ):
        both = [
            sampled(one, 5.6, sites, round(share * trajectories), start, warmups, steps)
            for start in ("hot", "cold")
        ]
        hot, cold = (result.plaquette for result in both)
        error = math.hypot(*(result.plaquette_error for result in both))
        assert abs(hot - cold) < 4 * error, (sites, hot, cold, error)
        expected, of_anchor = anchor(5.6, sites)
        # That of the mean of both.
        joint = math.hypot(error / 2, of_anchor)
        assert abs((hot + cold) / 2 - expected) < 4 * joint, (sites, hot, cold, expected, joint)
        found[sites] = ((hot + cold) / 2, error / 2)
    difference = found[4][0] - found[8][0]
    assert difference > 4 * math.hypot(found[4][1], found[8][1]), found


def strong_coupling(beta: float, points: int = 64) -> float:
    """Return the plaquette of strong coupling: u + 72 u^5 u' (docs/method/su3.md).

    u is the integral over one plaquette, by eigenvalues with Weyl's measure, and u' its derivative.
    """
    angles = 2 * math.pi * numpy.arange(points) / points
    first, second = numpy.meshgrid(angles, angles)
    third = -first - second
    measure = 1.0
    for one, other in ((first, second), (second, third), (third, first)):
        measure = measure * numpy.abs(numpy.exp(1j * one) - numpy.exp(1j * other)) ** 2
    trace = (numpy.cos(first) + numpy.cos(second) + numpy.cos(third)) / 3
    weights = measure * numpy.exp(beta * trace)
    weights = weights / weights.sum()
    u = float((weights * trace).sum())
    derivative = float((weights * trace**2).sum()) - u**2
    return u + 72 * u**5 * derivative


@pytest.mark.parametrize(("beta", "expected"), [(1.0, 0.060130), (2.0, 0.128810), (3.0, 0.204970)])
def test_plaquette_is_that_of_strong_coupling(one: Built, beta: float, expected: float) -> None:
    """What the theory itself says where beta is small, and the other algorithm on that lattice."""
    value = strong_coupling(beta)
    assert value == pytest.approx(expected, abs=5e-7)
    other, error = anchor(beta, 8)
    assert abs(other - value) < 3 * error
    result = sampled(one, beta, 8, 60)
    assert_that_of_another_algorithm(result, beta, 8)
    assert abs(result.plaquette - value) < 4 * result.plaquette_error, (result.plaquette, value)
    assert result.plaquette_error < 0.001
