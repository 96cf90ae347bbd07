"""SU(3) lattice gauge theory over lattices and ranks (Kearns 2003, section 4.2)."""

import csv
from dataclasses import dataclass
from itertools import groupby

import reframe as rfm
from reframe.core.builtins import parameter, performance_function, run_after, variable
from reframe.core.exceptions import SanityError

from records.counting import how_many
from records.limits.plausibility import su3_too_fast
from records.limits.su3 import (
    Expectation,
    energy_violation_is_wrong,
    expected_plaquette,
    metropolis_is_wrong,
    plaquette_is_wrong,
)
from records.su3 import Su3Result as Simulation
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.image import ROOT
from reframe_checks.mixins.recording import Suspect
from reframe_checks.mixins.tiers import TIER, of_tier

#: How far rounding may take a link off SU(3) in a trajectory.
MOST_DEVIATION = 1e-10


@dataclass(frozen=True)
class LatticeSuite:
    """A lattice in x, y, z and t, and its trajectories.

    The thesis says nothing of beta, steps, step size, start and warm-ups; they are our choice
    (docs/experiments.md). `weak` lattices also grow in t with the ranks.
    """

    lattice: tuple[int, int, int, int]
    trajectories: int
    ranks: tuple[int, ...]
    weak: bool = False
    beta: float = 3.0
    steps: int = 10
    step_size: float = 0.05
    warmups: int = 20
    start: str = "hot"
    integrator: str = "leapfrog"
    accept: bool = False

    def lattice_of(self, scaling: str, ranks: int) -> list[int]:
        """Return the sides of the lattice for a number of ranks."""
        *sides, nt = self.lattice
        return [*sides, nt * ranks if scaling == "weak" else nt]


def experiments_of_the_thesis() -> dict[str, LatticeSuite]:
    """Return experiments 1 to 5 of Table 6, with the ranks of Table 7."""
    with (ROOT / "literature" / "kearns2003/su3.csv").open() as table:
        rows = list(csv.DictReader(table))
    found = {}
    for number, group in groupby(rows, key=lambda row: row["experiment"]):
        same = list(group)
        nx, ny, nz, nt = (int(same[0][name]) for name in ("nx", "ny", "nz", "nt"))
        # Where Table 7 has a slip of the pen, `procs_read` is what Table 6 and Table 8 say.
        ranks = tuple(dict.fromkeys(int(row["procs_read"]) for row in same))
        found[f"experiment-{number}"] = LatticeSuite(
            (nx, ny, nz, nt), int(same[0]["trajectories"]), ranks
        )
    return found


SUITES: dict[str, LatticeSuite] = of_tier(
    quick=lambda: {
        "anchored": LatticeSuite( (4, 4, 4, 4), 300, (1, 2), beta=5.0, warmups=30, steps=6,
                                 step_size=1 / 6, start="cold", integrator="omelyan", accept=True,
                                 ),
        "scaling": LatticeSuite((8, 8, 8, 8), 15, (1, 2), weak=True, warmups=10),
    },
    paper=lambda: {
        **experiments_of_the_thesis(),
        "scaling": LatticeSuite((8, 8, 8, 16), 100, (1, 2, 4, 8, 16), weak=True),
    },
)()  # fmt: skip


@rfm.simple_test
class Su3(Experiment):
    """Molecular dynamics of a gauge field on a lattice that the ranks divide."""

    descr = "SU(3) lattice gauge theory"
    program = "su3"
    suite = parameter(SUITES, loggable=True)
    scaling = parameter(["strong", "weak"], loggable=True)
    ranks = parameter(sorted({n for suite in SUITES.values() for n in suite.ranks}), loggable=True)
    # The thesis has times of its own machine only; what is impossible is refused in `examine`.
    require_reference = False

    #: By which calls borders are exchanged: the thesis found MILC's to be these.
    exchange = variable(str, value="ssend-irecv")

    @run_after("init")
    def set_ranks(self) -> None:
        """Start the ranks; leave out what the suite does not have."""
        suite = SUITES[self.suite]
        self.num_tasks = self.ranks
        self.skip_if(
            self.ranks not in suite.ranks, f"{self.suite} does not run on {self.ranks} ranks"
        )
        self.skip_if(
            self.scaling == "weak" and (not suite.weak or self.ranks == 1),
            f"{self.suite} on {how_many(self.ranks, 'rank')} does not scale weakly, or repeats a "
            "strong one",
        )
        if TIER == "paper":
            self.time_limit = "2h"

    @run_after("setup")
    def leave_out_oversubscription(self) -> None:
        """Leave out more ranks than cores: waiting ranks would measure each other."""
        self.skip_if(
            self.num_tasks > self.most_ranks(),
            f"{self.num_tasks} ranks are requested, the site has {self.most_ranks()} cores",
        )

    @run_after("setup")
    def describe_simulation(self) -> None:
        """Pass the suite to the program, with every trajectory's time in the output."""
        suite = SUITES[self.suite]
        sides = zip("xyzt", suite.lattice_of(self.scaling, self.ranks), strict=True)
        self.program_arguments = [
            *(word for name, side in sides for word in (f"--n{name}", str(side))),
            "--beta", str(suite.beta),
            "--trajectories", str(suite.trajectories),
            "--warm-ups", str(suite.warmups),
            "--steps", str(suite.steps),
            "--step-size", f"{suite.step_size:.9g}",
            "--start", suite.start,
            "--integrator", suite.integrator,
            "--exchange", self.exchange,
            *(["--accept"] if suite.accept else []),
            "--raw",
        ]  # fmt: skip

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"suite": self.suite, "scaling": self.scaling, "ranks": self.ranks}

    def examine(self) -> None:
        """Refuse a simulation other than the one asked for, wrong physics and impossible times."""
        output = self.read_records()
        if [type(result) for result in output.results] != [Simulation]:
            raise SanityError(f"the output has {len(output.results)} results, not one of su3")
        [result] = output.results
        suite = SUITES[self.suite]
        asked = {
            "lattice": suite.lattice_of(self.scaling, self.ranks), "ranks": self.ranks,
            "beta": suite.beta, "trajectories": suite.trajectories, "warmups": suite.warmups,
            "first_trajectory": suite.warmups, "steps": suite.steps,
            "step_size": float(f"{suite.step_size:.9g}"), "start": suite.start,
            "integrator": suite.integrator, "accept": suite.accept, "exchange": self.exchange,
            "precision": "double",
        }  # fmt: skip
        for name, value in asked.items():
            if getattr(result, name) != value:
                raise SanityError(f"{name} is {getattr(result, name)}, not {value} as requested")
        if len(output.iterations) != 1:
            raise SanityError("the output lacks the times of single trajectories")
        if result.unitarity_deviation > MOST_DEVIATION:
            raise SanityError(
                f"links deviate from SU(3) by {result.unitarity_deviation:.3g}, but rounding "
                f"explains at most {MOST_DEVIATION:.3g}"
            )
        expectation = self.expectation(result)
        for sentence in (
            plaquette_is_wrong(result, expectation),
            metropolis_is_wrong(result) if suite.accept else energy_violation_is_wrong(result),
        ):
            if sentence:
                raise SanityError(sentence)
        sentence = su3_too_fast(result, self.peak_flops())
        if sentence:
            raise Suspect(sentence)
        self.result = result

    def expectation(self, result: Simulation) -> Expectation:
        """Return what the plaquette must be; raise if there is no anchor for it."""
        try:
            return expected_plaquette(ROOT / "literature" / "su3_plaquette.csv", result)
        except LookupError as error:
            raise SanityError(str(error)) from None

    @performance_function("s")
    def time(self) -> float:
        """Return the median trajectory of the slowest rank."""
        return float(self.result.time_s.median)

    @performance_function("s")
    def wall(self) -> float:
        """Return the time of all trajectories: Table 7, without start-up and warm-ups."""
        return float(self.result.wall_s)

    @performance_function("s")
    def cpu(self) -> float:
        """Return the processor time of a rank, their mean: Table 7."""
        return float(sum(self.result.cpu_by_rank_s) / self.ranks)

    @performance_function("1")
    def exchange_share(self) -> float:
        """Return which share of the wall time a rank spends in the exchange's MPI calls."""
        return float(sum(self.result.exchange_by_rank_s) / self.ranks / self.result.wall_s)

    @performance_function("1/s")
    def updates(self) -> float:
        """Return the site updates per second of all ranks."""
        return float(self.result.site_updates / self.result.wall_s)

    @performance_function("FLOP/s")
    def rate(self) -> float:
        """Return the rate by the usual count of operations."""
        return float(self.result.flops / self.result.wall_s)
