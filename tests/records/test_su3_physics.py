"""What a simulation must find: right ones pass, wrong ones are told with value and source."""

import math
import random
import statistics
import sys
from pathlib import Path
from typing import Any

import pytest

from records.limits.su3 import (
    energy_violation_is_wrong,
    expected_plaquette,
    metropolis_is_wrong,
    plaquette_is_wrong,
)
from records.su3 import Su3Result, binned_error, error_of_mean, mean_exponential

ANCHORS = Path(__file__).resolve().parents[2] / "literature" / "su3_plaquette.csv"


def result(**given: Any) -> Su3Result:
    """Return a simulation with the fields that are given; no other is looked at."""
    fields: dict[str, Any] = {
        "lattice": [4, 4, 4, 4], "beta": 5.0, "accept": True, "step_size": 0.05,
        "plaquette": 0.4, "plaquette_error": 0.0005, "trajectories": 100,
    }  # fmt: skip
    return Su3Result.model_construct(**fields | given)


def test_own_lattice_is_the_anchor() -> None:
    found = expected_plaquette(ANCHORS, result())
    assert (found.plaquette, found.error, found.allowance) == (0.40072, 0.00022, 0.0)
    assert found.source == "literature/su3_plaquette.csv, beta 5, 4x4x4x4"


def test_lattice_without_anchor_has_the_largest_and_what_lattices_differ_by() -> None:
    found = expected_plaquette(ANCHORS, result(lattice=[8, 8, 8, 16], beta=3.0))
    assert found.plaquette == 0.20499 and found.allowance == pytest.approx(0.0002)
    without = expected_plaquette(ANCHORS, result(lattice=[8, 8, 8, 16], beta=3.0, accept=False))
    assert without.allowance == pytest.approx(0.0002 + 0.25 * 0.05**2)


def test_beta_without_anchor() -> None:
    with pytest.raises(LookupError, match="no plaquette at beta"):
        expected_plaquette(ANCHORS, result(beta=4.5))


@pytest.mark.parametrize(("plaquette", "right"), [(0.4, True), (0.405, False), (0.38, False)])
def test_plaquette(plaquette: float, right: bool) -> None:
    simulation = result(plaquette=plaquette)
    sentence = plaquette_is_wrong(simulation, expected_plaquette(ANCHORS, simulation))
    assert (sentence is None) == right


def test_an_error_of_nought_is_not_believed() -> None:
    simulation = result(plaquette=0.4005, plaquette_error=0.0, trajectories=5)
    assert plaquette_is_wrong(simulation, expected_plaquette(ANCHORS, simulation)) is None


@pytest.mark.parametrize("error", [0.05, 0.005, math.inf])
def test_a_large_error_does_not_make_a_wrong_plaquette_right(error: float) -> None:
    """Half the plaquette is within five such errors; 300 trajectories of 4^4 have about 0.0013."""
    simulation = result(plaquette=0.2, plaquette_error=error, trajectories=300)
    sentence = plaquette_is_wrong(simulation, expected_plaquette(ANCHORS, simulation))
    assert sentence and "expected at most 0.00434 for 300 trajectories of 256" in sentence


def noise(width: float, count: int, seed: int = 1) -> list[float]:
    generator = random.Random(seed)
    return [generator.gauss(0, width) for _ in range(count)]


def test_a_run_that_drifts_past_the_right_plaquette_is_refused() -> None:
    """Its mean is right and its single values lie close; neighbours are too much alike."""
    drift = [0.35 + 0.1 * i / 299 + more for i, more in enumerate(noise(0.01, 300))]
    simulation = result(
        plaquette=0.4007, plaquette_error=error_of_mean(drift), trajectories=len(drift)
    )
    sentence = plaquette_is_wrong(simulation, expected_plaquette(ANCHORS, simulation))
    assert sentence and "the field drifts or jumps" in sentence


def correlated(time: float, count: int, seed: int) -> list[float]:
    """Return values of width 1 whose correlation falls by the factor e within `time`."""
    kept, values = math.exp(-1 / time), [0.0]
    for fresh in noise(math.sqrt(1 - kept**2), count, seed):
        values.append(kept * values[-1] + fresh)
    return values[1:]


def test_the_error_is_that_of_the_mean() -> None:
    """Of means of many series with known correlations: their spread is what each says of itself."""
    for time, count in ((0.1, 300), (2.0, 300), (10.0, 3000)):
        series = [correlated(time, count, seed) for seed in range(60)]
        spread = statistics.stdev(map(statistics.fmean, series))
        said = statistics.fmean(map(error_of_mean, series))
        # A spread of 60 means is known to 9%.
        assert 0.75 < said / spread < 1.25, (time, said, spread)
        if time < 1:
            # The largest of several errors, which it replaces, is too large.
            assert statistics.fmean(map(binned_error, series)) > 1.08 * said


def test_the_error_is_never_less_than_that_of_independent_values() -> None:
    assert error_of_mean([0.0, 1.0] * 4) == pytest.approx(math.sqrt(0.25 / 7))
    assert error_of_mean(noise(1.0, 7)) == 0.0
    assert error_of_mean([0.4] * 100) == pytest.approx(0.0, abs=1e-12)


def metropolis(delta_h: list[float], accepted: float = 0.85) -> str | None:
    """Judge energy violations of so many trajectories, of which a part was accepted."""
    count = len(delta_h)
    return metropolis_is_wrong(
        result(delta_h=delta_h, accepted=int(accepted * count), trajectories=count)
    )


def changes(mean: float, width: float, count: int = 400) -> list[float]:
    """Return values with exactly this mean and standard deviation."""
    drawn = noise(1, count)
    middle, deviation = statistics.fmean(drawn), statistics.stdev(drawn)
    return [mean + width * (one - middle) / deviation for one in drawn]


@pytest.mark.parametrize(
    ("mean", "width", "sentence"),
    [
        # A normal dH has exp(-dH) = 1 where its mean is half its variance.
        (0.125, 0.5, None),
        (0.05, 0.316, None),
        (0.6, 0.5, "exp(-dH) is 0.6"),
        (-0.3, 0.5, "exp(-dH) is 1.5"),
        (0.3, 0.05, "exp(-dH) is 0.7"),
        (-0.1, 0.4, "exp(-dH) is 1.1"),
        # What the largest sample's own error would excuse.
        (-72, 10, "the mean of dH is -72"),
        (-20, 5, "the mean of dH is -20,"),
        (-5, 3, "the mean of dH is -5,"),
        (0, 30, "at most 0.1 is needed to tell"),
        (-800, 1, "dH is -800"),
        (0, 3, "at most 0.1 is needed to tell"),
    ],
)
def test_metropolis(mean: float, width: float, sentence: str | None) -> None:
    said = metropolis(changes(mean, width, 300))
    assert (said is None) if sentence is None else sentence in str(said), said


@pytest.mark.parametrize("seed", range(20))
def test_sound_violations_pass_and_those_without_their_mean_do_not(seed: int) -> None:
    width = 0.8
    assert metropolis([width**2 / 2 + one for one in noise(width, 300, seed)]) is None
    assert metropolis([one - 0.1 for one in noise(width, 300, seed)]) is not None


def test_a_mean_that_is_not_half_the_variance_is_refused_where_one_sample_hides_it() -> None:
    """Four large samples of 300 bring exp(-dH)'s mean closer to 1 as they widen its error."""
    hidden = [*changes(0.35, 0.1, 296), *[-2.4] * 4]
    assert abs(mean_exponential(hidden) - 1) < 0.2
    said = metropolis(hidden)
    assert said and "expected half its variance" in said


@pytest.mark.parametrize("delta_h", [[0.0], [0.05], [-900.0]])
def test_one_trajectory_tells_nothing(delta_h: list[float]) -> None:
    said = metropolis(delta_h, accepted=1)
    assert said and ("at most 0.1 is needed to tell" in said or "dH is -900" in said)


def test_few_accepted() -> None:
    said = metropolis(changes(0.125, 0.5), accepted=0.25)
    assert "100 of 400 trajectories were accepted" in str(said)


def test_mean_exponential_without_one_is_the_largest_number() -> None:
    assert mean_exponential([0.0, math.log(3)]) == pytest.approx(2 / 3)
    assert mean_exponential([-1000.0]) == sys.float_info.max
    assert mean_exponential([-709.7] * 9) == pytest.approx(math.exp(709.7))


@pytest.mark.parametrize(("size", "right"), [(0.1, True), (0.0, False), (5.0, False)])
def test_energy_violation(size: float, right: bool) -> None:
    simulation = result(delta_h=[size, -size])
    assert (energy_violation_is_wrong(simulation) is None) == right
