"""What a simulation must find: right ones pass, wrong ones are told with value and source."""

import math
import random
from pathlib import Path
from typing import Any

import pytest

from analysis.su3_physics import (
    energy_violation_is_wrong,
    expected_plaquette,
    metropolis_is_wrong,
    plaquette_is_wrong,
)
from analysis.su3_records import Su3

ANCHORS = Path(__file__).resolve().parents[2] / "literature" / "su3_plaquette.csv"


def result(**given: Any) -> Su3:
    """Return a simulation with the fields that are given; no other is looked at."""
    fields = {"lattice": [4, 4, 4, 4], "beta": 5.0, "accept": True, "step_size": 0.05,
              "plaquette": 0.4, "plaquette_error": 0.0005, "trajectories": 100}  # fmt: skip
    return Su3.model_construct(**fields | given)


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


def changes(mean: float, width: float, count: int = 400) -> list[float]:
    generator = random.Random(1)
    return [generator.gauss(mean, width) for _ in range(count)]


@pytest.mark.parametrize(
    ("mean", "right"), [(0.125, True), (0.6, False), (-0.3, False)],
)  # fmt: skip
def test_metropolis(mean: float, right: bool) -> None:
    # A normal dH of width w has exp(-dH) = 1 where its mean is w^2 / 2.
    given = changes(mean, 0.5)
    average = sum(math.exp(-change) for change in given) / len(given)
    simulation = result(
        delta_h=given, exp_minus_delta_h=average, accepted=350, trajectories=len(given)
    )
    assert (metropolis_is_wrong(simulation) is None) == right


def test_few_accepted() -> None:
    given = changes(0.125, 0.5)
    average = sum(math.exp(-change) for change in given) / len(given)
    simulation = result(
        delta_h=given, exp_minus_delta_h=average, accepted=100, trajectories=len(given)
    )
    assert "100 of 400 trajectories were accepted" in str(metropolis_is_wrong(simulation))


@pytest.mark.parametrize(("size", "right"), [(0.1, True), (0.0, False), (5.0, False)])
def test_energy_violation(size: float, right: bool) -> None:
    simulation = result(delta_h=[size, -size])
    assert (energy_violation_is_wrong(simulation) is None) == right
