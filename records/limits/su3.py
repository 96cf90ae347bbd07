"""What a simulation of SU(3) must yield, whatever its speed.

Anchors are plaquettes of another algorithm (literature/su3_plaquette.csv). Each test returns a
sentence with the value, the expected value and the source where a simulation is wrong, or None.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from records.su3 import Su3Result, mean_exponential

#: How many joint errors a plaquette may be off: few trajectories know their own error badly.
MOST_ERRORS = 5.0
#: Of a trajectory's plaquette: a run too short for bins has no error of its own.
LEAST_RELATIVE_ERROR = 0.002
#: Of one site in one trajectory, and falling as the root of both: sound runs at beta 3 and 5 have
#: 0.5 to 1.5 (docs/method/su3.md). One that drifts has more.
MOST_RELATIVE_ERROR = 3.0
#: Without Metropolis' rule a step of this size shifts the plaquette by no more than this times its
#: square; measured at beta 3: 0.0005 at 0.05, 0.0021 at 0.1 (docs/method/su3.md).
STEP_ERROR = 0.25
#: In equilibrium a leapfrog trajectory violates the energy by 2.3 times the squared step times the
#: root of the number of sites in the mean, at beta 3 (docs/method/su3.md); these are far off
#: both ways.
LEAST_VIOLATION, MOST_VIOLATION = 0.2, 20.0
LEAST_ACCEPTANCE = 0.5
#: A mean of exp(-dH) with a larger error says nothing about detailed balance.
MOST_EXPONENTIAL_ERROR = 0.1
#: In the mean: a normal dH that is larger has fewer than half of the trajectories accepted, by
#: erfc(sqrt(mean) / 2) (Gupta et al. 1990).
MOST_MEAN_VIOLATION = 1.0


@dataclass(frozen=True)
class Expectation:
    """A plaquette with its statistical error, an additional allowance, and its source."""

    plaquette: float
    error: float
    allowance: float
    source: str


def expected_plaquette(anchors: Path, result: Su3Result) -> Expectation:
    """Return what a simulation's plaquette must be; raise LookupError if no anchor applies.

    A lattice without an anchor uses that of the largest one at its beta, and is allowed what the
    anchors of different lattices differ by.
    """
    with anchors.open() as table:
        rows = [row for row in csv.DictReader(table) if row["error"]]
    found = {
        row["lattice"]: (float(row["plaquette"]), float(row["error"]))
        for row in rows
        if math.isclose(float(row["beta"]), result.beta)
    }
    if not found:
        raise LookupError(f"{anchors.name} has no plaquette at beta {result.beta:g}")
    allowance = 0.0 if result.accept else STEP_ERROR * result.step_size**2
    lattice = "x".join(map(str, result.lattice))
    if lattice not in found:
        lattice = max(found, key=lambda name: math.prod(map(int, name.split("x"))))
        values = [plaquette for plaquette, _ in found.values()]
        allowance += max(values) - min(values)
    plaquette, error = found[lattice]
    source = f"literature/{anchors.name}, beta {result.beta:g}, {lattice}"
    return Expectation(plaquette, error, allowance, source)


def plaquette_is_wrong(result: Su3Result, expected: Expectation) -> str | None:
    """Say so when the plaquette is further from its anchor than chance allows.

    A run whose own error is larger than such a run has would agree with anything.
    """
    relative = MOST_RELATIVE_ERROR / math.sqrt(result.sites * result.trajectories)
    most = relative * abs(expected.plaquette)
    if not result.plaquette_error <= most:
        return (
            f"the error of the mean plaquette is {result.plaquette_error:.5f}, expected at most "
            f"{most:.5f} for {result.trajectories} trajectories of {result.sites} sites "
            f"(docs/method/su3.md, at the plaquette of {expected.source}): the field drifts or "
            "jumps"
        )
    own = max(
        result.plaquette_error,
        LEAST_RELATIVE_ERROR * abs(expected.plaquette) / math.sqrt(result.trajectories),
    )
    limit = MOST_ERRORS * math.hypot(own, expected.error) + expected.allowance
    if abs(result.plaquette - expected.plaquette) <= limit:
        return None
    return (
        f"the mean plaquette is {result.plaquette:.5f}, expected {expected.plaquette:.5f} "
        f"within {limit:.5f} ({expected.source}): the physics is wrong"
    )


def metropolis_is_wrong(result: Su3Result) -> str | None:
    """Say so when dH is not what detailed balance makes it, or when too few are accepted."""
    if result.accepted < LEAST_ACCEPTANCE * result.trajectories:
        return (
            f"{result.accepted} of {result.trajectories} trajectories were accepted, expected at "
            f"least {LEAST_ACCEPTANCE:.0%}: energy is not conserved"
        )
    return violation_is_large(result.delta_h) or violation_is_unbalanced(result.delta_h)


def violation_is_large(delta_h: Sequence[float]) -> str | None:
    """Say so when dH is large in the mean, or exp(-dH) spreads too far to judge its mean."""
    mean = statistics.fmean(delta_h)
    if not abs(mean) <= MOST_MEAN_VIOLATION:
        return (
            f"the mean of dH is {mean:.4g}, expected at most {MOST_MEAN_VIOLATION:g} either way "
            "(docs/method/su3.md): energy is not conserved"
        )
    error = exponential_error(delta_h)
    if not error <= MOST_EXPONENTIAL_ERROR:
        return (
            f"exp(-dH) is known to {error:.4g} from {len(delta_h)} trajectories, but at most "
            f"{MOST_EXPONENTIAL_ERROR:g} is needed to tell whether it is 1 (docs/method/su3.md): "
            "take "
            "shorter steps or more trajectories"
        )
    return None


def violation_is_unbalanced(delta_h: Sequence[float]) -> str | None:
    """Say so when exp(-dH) does not average to 1, or the mean of dH is not half its variance.

    The first holds always (Creutz 1988); the second where dH is normal, as on all but the smallest
    lattices, and no single large sample hides it.
    """
    exponential, limit = mean_exponential(delta_h), MOST_ERRORS * exponential_error(delta_h)
    if not abs(exponential - 1) <= limit:
        return (
            f"the mean of exp(-dH) is {exponential:.4f}, expected 1 within {limit:.4f} "
            "(Creutz 1988): the dynamics does not preserve phase space"
        )
    mean, variance = statistics.fmean(delta_h), statistics.variance(delta_h)
    # The variances of a normal sample's mean and of half its variance.
    squared = variance / len(delta_h) + variance**2 / (2 * (len(delta_h) - 1))
    limit = MOST_ERRORS * math.sqrt(squared)
    if not abs(mean - variance / 2) <= limit:
        return (
            f"the mean of dH is {mean:.4f}, expected half its variance, {variance / 2:.4f}, "
            f"within {limit:.4f} (Gupta et al. 1990): the dynamics does not preserve phase space"
        )
    return None


def exponential_error(delta_h: Sequence[float]) -> float:
    """Return the standard error of the mean of exp(-dH); infinite where nothing tells it."""
    try:
        values = [math.exp(-change) for change in delta_h]
        return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    except OverflowError:
        return math.inf


def energy_violation_is_wrong(result: Su3Result) -> str | None:
    """Say so when the energy is violated by another order of magnitude than leapfrog does it."""
    size = statistics.fmean(abs(change) for change in result.delta_h)
    scale = result.step_size**2 * math.sqrt(result.sites)
    if LEAST_VIOLATION * scale <= size <= MOST_VIOLATION * scale:
        return None
    return (
        f"a trajectory violates the energy by {size:.4g} on average, expected is "
        f"{LEAST_VIOLATION * scale:.4g} to {MOST_VIOLATION * scale:.4g} for steps of "
        f"{result.step_size:g} (docs/method/su3.md): the momenta or the force are wrong"
    )
