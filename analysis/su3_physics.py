"""What a simulation of SU(3) must find, whatever its speed.

Anchors are plaquettes of another algorithm (literature/su3_plaquette.csv). Each test returns a
sentence with the value, the expected value and the source where a simulation is wrong, or None.
"""

from __future__ import annotations

import csv
import math
import statistics
from dataclasses import dataclass
from pathlib import Path

from analysis.su3_records import Su3

#: How many joint errors a plaquette may be off: few trajectories know their own error badly.
MOST_ERRORS = 5.0
#: Of a trajectory's plaquette: a run too short for bins has no error of its own.
LEAST_RELATIVE_ERROR = 0.002
#: Without Metropolis' rule a step of this size shifts the plaquette by no more than this times its
#: square; measured at beta 3: 0.0005 at 0.05, 0.0021 at 0.1 (docs/method.md).
STEP_ERROR = 0.25
#: In equilibrium a leapfrog trajectory violates the energy by 2.3 times the squared step times the
#: root of the number of sites in the mean, at beta 3 (docs/method.md); these are far off both ways.
LEAST_VIOLATION, MOST_VIOLATION = 0.2, 20.0
LEAST_ACCEPTANCE = 0.5


@dataclass(frozen=True)
class Expectation:
    """A plaquette with its statistical error, what may come on top, and its source."""

    plaquette: float
    error: float
    allowance: float
    source: str


def expected_plaquette(anchors: Path, result: Su3) -> Expectation:
    """Return what a simulation's plaquette must be; raise LookupError where no anchor says.

    A lattice without an anchor has that of the largest one at its beta, and is allowed what the
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


def plaquette_is_wrong(result: Su3, expected: Expectation) -> str | None:
    """Say so when the plaquette is further from its anchor than chance allows."""
    own = max(
        result.plaquette_error,
        LEAST_RELATIVE_ERROR * abs(expected.plaquette) / math.sqrt(result.trajectories),
    )
    limit = MOST_ERRORS * math.hypot(own, expected.error) + expected.allowance
    if abs(result.plaquette - expected.plaquette) <= limit:
        return None
    return (
        f"the mean plaquette is {result.plaquette:.5f}, expected is {expected.plaquette:.5f} "
        f"within {limit:.5f} ({expected.source}): the physics is wrong"
    )


def metropolis_is_wrong(result: Su3) -> str | None:
    """Say so when exp(-dH) does not average to 1, as detailed balance has it, or little is kept."""
    values = [math.exp(min(-change, 700.0)) for change in result.delta_h]
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    if not abs(result.exp_minus_delta_h - 1) <= MOST_ERRORS * error:
        return (
            f"exp(-dH) is {result.exp_minus_delta_h:.4f} in the mean, expected is 1 within "
            f"{MOST_ERRORS * error:.4f} (Creutz 1988): the dynamics does not keep phase space"
        )
    if result.accepted < LEAST_ACCEPTANCE * result.trajectories:
        return (
            f"{result.accepted} of {result.trajectories} trajectories were accepted, expected is "
            f"at least {LEAST_ACCEPTANCE:.0%}: the energy is not kept"
        )
    return None


def energy_violation_is_wrong(result: Su3) -> str | None:
    """Say so when the energy is violated by another order of magnitude than leapfrog does it."""
    size = statistics.fmean(abs(change) for change in result.delta_h)
    scale = result.step_size**2 * math.sqrt(result.sites)
    if LEAST_VIOLATION * scale <= size <= MOST_VIOLATION * scale:
        return None
    return (
        f"a trajectory violates the energy by {size:.4g} in the mean, expected is "
        f"{LEAST_VIOLATION * scale:.4g} to {MOST_VIOLATION * scale:.4g} for steps of "
        f"{result.step_size:g} (docs/method.md): the momenta or the force are wrong"
    )
