"""A simulation of other physics, another lattice or impossible speed is refused."""

import math
import os
import random
import statistics
from typing import Any

from records.su3 import FLOPS_OF_SITE_UPDATE, TURNS_OF_STEP, error_of_mean, mean_exponential
from tests.reframe_checks.conftest import StandIn, header, lines, summary

TRAJECTORIES, STEPS, SITES = 15, 10, 8**4
#: A lattice of 8^4 at beta 3 on one rank.
STRONG = "^Su3(?=.*%suite=scaling)(?=.*%scaling=strong)"
ALONE = "(?=.*%ranks=1(%| |$))"
ONLY = f"{STRONG}{ALONE}"
#: A lattice of 4^4 at beta 5 with Metropolis' rule.
ANCHORED = f"^Su3(?=.*%suite=anchored)(?=.*%scaling=strong){ALONE}"


def scattered(value: float, count: int, width: float) -> list[float]:
    """Return values with exactly this mean and standard deviation, the same each time."""
    generator = random.Random(1)
    drawn = [generator.gauss(0, 1) for _ in range(count)]
    mean, deviation = statistics.fmean(drawn), statistics.stdev(drawn)
    return [value + width * (one - mean) / deviation for one in drawn]


def output(result: dict[str, Any], iterations: bool) -> str:
    times = {"record": "iterations", "operation": "su3", "lattice": result["lattice"],
             "time_s": [result["time_s"]["median"]] * result["trajectories"]}  # fmt: skip
    return lines(
        header("su3", 1), result, *([times] if iterations else []),
        {"record": "end", "results": 1},
    )  # fmt: skip


def simulation(
    plaquette: float = 0.205, violation: float = 0.3, iterations: bool = True, **more: object
) -> str:
    updates = SITES * STEPS * TRAJECTORIES
    plaquettes = scattered(plaquette, TRAJECTORIES, 0.001)
    result: dict[str, Any] = {
        "record": "result", "operation": "su3", "lattice": [8, 8, 8, 8], "grid": [1, 1, 1, 1],
        "own_sites": SITES, "beta": 3.0, "steps": STEPS, "step_size": 0.05,
        "integrator": "leapfrog", "exchange": "ssend-irecv", "precision": "double",
        "instructions": "avx2", "trajectories": TRAJECTORIES, "warmups": 10,
        "first_trajectory": 10, "start": "hot", "accept": False,
        "plaquettes": plaquettes, "plaquette": plaquette,
        "plaquette_error": error_of_mean(plaquettes), "delta_h": [violation] * TRAJECTORIES,
        "exp_minus_delta_h": math.exp(-violation), "accepted": TRAJECTORIES,
        "unitarity_deviation": 1e-15, "time_s": summary(0.05), "wall_s": 0.75,
        "cpu_by_rank_s": [0.7], "exchange_by_rank_s": [0.0], "site_updates": updates,
        "flops": updates * FLOPS_OF_SITE_UPDATE, "moved_bytes": 0, "verified_bytes": 0, **more,
    }  # fmt: skip
    return output(result, iterations)


def anchored(
    plaquettes: list[float] | None = None, delta_h: list[float] | None = None, **more: object
) -> str:
    """Return a simulation with Metropolis' rule: sound ones have a dH as this one has."""
    of = plaquettes or scattered(0.4007, 300, 0.02)
    changes = delta_h or scattered(0.05, 300, math.sqrt(0.1))
    updates = 4**4 * 6 * 300 * TURNS_OF_STEP["omelyan"]
    return output({
        "record": "result", "operation": "su3", "lattice": [4, 4, 4, 4], "grid": [1, 1, 1, 1],
        "own_sites": 4**4, "beta": 5.0, "steps": 6, "step_size": 0.166666667,
        "integrator": "omelyan", "exchange": "ssend-irecv", "precision": "double",
        "instructions": "avx2", "trajectories": 300, "warmups": 30, "first_trajectory": 30,
        "start": "cold", "accept": True, "plaquettes": of, "plaquette": statistics.fmean(of),
        "plaquette_error": error_of_mean(of), "delta_h": changes,
        "exp_minus_delta_h": mean_exponential(changes), "accepted": 260,
        "unitarity_deviation": 1e-15, "time_s": summary(0.003), "wall_s": 0.95,
        "cpu_by_rank_s": [0.9], "exchange_by_rank_s": [0.0], "site_updates": updates,
        "flops": updates * FLOPS_OF_SITE_UPDATE, "moved_bytes": 0, "verified_bytes": 0, **more,
    }, iterations=True)  # fmt: skip


def test_sound_simulation_is_kept(stand_in: StandIn) -> None:
    stand_in.write(simulation())
    outcome = stand_in.run(only=ONLY)
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert launch["outcome"] == "sound"
    assert launch["cell"] == "Su3 suite=scaling scaling=strong ranks=1"


def test_sound_hybrid_monte_carlo_is_kept(stand_in: StandIn) -> None:
    stand_in.write(anchored())
    outcome = stand_in.run(only=ANCHORED)
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert launch["outcome"] == "sound"
    assert launch["cell"] == "Su3 suite=anchored scaling=strong ranks=1"


#: Outputs, and what the check says of each.
WRONG_HYBRID_MONTE_CARLO = [
    (anchored(delta_h=scattered(-0.2, 300, 0.3)), "the dynamics does not preserve phase space"),
    (anchored(delta_h=scattered(-72, 300, 10)), "the mean of dH is -72"),
    (anchored(delta_h=scattered(0, 300, 30)), "at most 0.1 is needed to tell"),
    (anchored(exp_minus_delta_h=1.0), "exp_minus_delta_h is 1.0, the mean of delta_h gives"),
    (anchored(accepted=140), "140 of 300 trajectories were accepted"),
    (anchored(scattered(0.42, 300, 0.02)), "expected 0.40072 within"),
    (anchored([0.4 + 0.0004 * (i - 149.5) for i in range(300)]), "the field drifts or jumps"),
    (anchored(scattered(0.2, 300, 0.02), plaquette_error=0.05), "plaquette_error is 0.05, tha"),
    (anchored(plaquette_error=0.0), "plaquette_error is 0.0, that of the plaquettes 0.00"),
]  # fmt: skip


def test_hybrid_monte_carlo_that_is_not_right(stand_in: StandIn) -> None:
    wrong = [(stdout, "failed", sentence) for stdout, sentence in WRONG_HYBRID_MONTE_CARLO]
    stand_in.refuse(wrong, only=ANCHORED)


WRONG_SIMULATIONS = [
    ("", "failed", "empty"),
    (simulation(plaquette=0.2114), "failed",
     "the mean plaquette is 0.21140, expected 0.20499 within 0.00"),
    (simulation(plaquette=0.19), "failed", "(literature/su3_plaquette.csv, beta 3, 8x8x8x8)"),
    (simulation(plaquette=0.0), "failed", "the physics is wrong"),
    (simulation(violation=0.0), "failed", "violates the energy by 0 on average"),
    (simulation(violation=30.0), "failed", "the momenta or the force are wrong"),
    (simulation(unitarity_deviation=1e-6), "failed", "links deviate from SU(3) by 1e-06"),
    (simulation(lattice=[8, 8, 4, 16]), "failed", "lattice is [8, 8, 4, 16], not "),
    (simulation(beta=6.0), "failed", "beta is 6.0, not 3.0 as requested"),
    (simulation(first_trajectory=11), "failed", "first_trajectory is 11, not 10 as requested"),
    (simulation(exchange="persistent"), "failed", "exchange is persistent"),
    (simulation(grid=[1, 1, 1, 3]), "failed", "does not divide"),
    (simulation(verified_bytes=8), "failed", "an exchange moves 0 bytes, and 8 were verified"),
    (simulation(flops=1), "failed", "site_updates and flops are not those"),
    (simulation(plaquettes=[0.3] * TRAJECTORIES), "failed", "the mean of its list 0.3"),
    (simulation(delta_h=[0.3]), "failed", "one entry for each trajectory"),
    (simulation(iterations=False), "failed", "lacks the times of single trajectories"),
    (simulation(wall_s=1e-4), "suspect", "is above the processors' peak"),
    (simulation(exchange_by_rank_s=[0.8]), "suspect", "a rank spent 0.8 s in exchanges"),
]  # fmt: skip


def test_simulation_that_is_not_right(stand_in: StandIn) -> None:
    stand_in.refuse(WRONG_SIMULATIONS, only=ONLY)


def test_ranks_without_cores_are_left_out(stand_in: StandIn) -> None:
    """A machine of one core measures one rank only, and says why."""
    stand_in.write(simulation())
    outcome = stand_in.run(only=STRONG)
    ranks = {launch["ranks"] for launch in outcome.launches}
    assert ranks == ({1, 2} if len(os.sched_getaffinity(0)) > 1 else {1})
