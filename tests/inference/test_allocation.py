"""Time goes where a decision is near, and nowhere where none is to be had."""

from dataclasses import replace

import numpy
import pytest
from scipy import stats

from inference.allocation import OpenSeries, chance_of_decision, moderated, next_wave, scores
from inference.looks import Looks

LOOKS = Looks()
NEAR = OpenSeries("near", "PointToPoint", 3, 0.3, 0.01, 0.02, 0.04, 0.01)
FAR = replace(NEAR, check="far", mean=0.02)
SECONDS = {"near": 2.0, "far": 2.0, "dear": 20.0, "sure": 2.0}


def test_a_larger_effect_goes_first_and_a_dearer_check_later() -> None:
    ranked = scores([FAR, replace(NEAR, check="dear"), NEAR], SECONDS, LOOKS, 1000)
    assert [one.check for one in ranked] == ["near", "dear", "far"]
    assert ranked[0].blocks == 2 and ranked[0].seconds == 4


def test_a_check_counts_all_of_its_open_series() -> None:
    both = scores([NEAR, NEAR], SECONDS, LOOKS, 1000)[0]
    assert both.rate == pytest.approx(2 * scores([NEAR], SECONDS, LOOKS, 1000)[0].rate)


def test_a_later_look_is_worth_waiting_for() -> None:
    """Where the next look is all but hopeless, as four blocks are at a small share."""
    looks = Looks((3, 4, 21), (0.5, 0.001, 0.499))
    [score] = scores([replace(NEAR, mean=0.12)], SECONDS, looks, 1000)
    assert score.blocks == 1
    assert chance_of_decision(replace(NEAR, mean=0.12), 0.01, 4, 0.001) < 0.01
    assert score.rate * 18 * 2 > 0.8


@pytest.mark.parametrize("left", [0, 3.9])
def test_what_does_not_fit_is_not_begun(left: float) -> None:
    assert scores([NEAR], SECONDS, LOOKS, left) == []


def test_after_the_last_look_a_series_is_not_measured_again() -> None:
    assert scores([replace(NEAR, blocks=34)], SECONDS, LOOKS, 1000) == []


def test_a_check_that_a_lost_launch_cut_short_goes_by_its_shortest_series() -> None:
    [score] = scores([replace(NEAR, blocks=8), NEAR], SECONDS, LOOKS, 1000)
    assert score.blocks == 2


def test_a_wave_takes_the_best_that_fit() -> None:
    ranked = scores([NEAR, FAR, replace(NEAR, check="dear")], SECONDS, LOOKS, 1000)
    assert [one.check for one in next_wave(ranked, 1000, 8)] == ["near", "far"]
    # The best of all is measured, however long it takes.
    assert [one.check for one in next_wave(ranked, 1000, 1)] == ["near"]
    assert next_wave(ranked, 3, 60) == []


def test_the_order_does_not_depend_on_that_of_the_series() -> None:
    series = [replace(NEAR, check=name) for name in ("sure", "near", "far")]
    assert scores(series, SECONDS, LOOKS, 100) == scores(series[::-1], SECONDS, LOOKS, 100)


def test_few_blocks_borrow_from_their_experiment_alone() -> None:
    quiet, loud = replace(NEAR, variance=0.0), replace(NEAR, variance=0.04)
    other = replace(NEAR, experiment="Nas", variance=9.0)
    drawn = moderated([quiet, loud, other])
    assert 0 < drawn[0] < drawn[1] < 0.04 and drawn[2] == pytest.approx(9.0)
    many = moderated([replace(quiet, blocks=300), loud])
    assert many[0] < 0.001


def test_chance_of_a_decision_is_what_simulation_finds() -> None:
    random = numpy.random.default_rng(4)
    one, blocks, share = replace(NEAR, mean=0.18, difference_level=0.04 / 12), 8, 0.15
    draws, deviation = 20_000, 0.1
    # The true mean as three blocks leave it unknown, and the blocks to come.
    true = one.mean + deviation / numpy.sqrt(3) * random.standard_normal(draws)
    new = true + deviation / numpy.sqrt(5) * random.standard_normal(draws)
    seen = (3 * one.mean + 5 * new) / 8
    limit = stats.t.ppf(1 - share * one.difference_level / 2, 7) * deviation / numpy.sqrt(8)
    found = float(numpy.mean(abs(seen) > limit))
    assert 0.1 < found < 0.9
    assert chance_of_decision(one, deviation**2, blocks, share) == pytest.approx(found, abs=0.015)
