"""High Performance Linpack over process grids and problem sizes (Kearns 2003, section 4.1)."""

import csv

import reframe as rfm
from reframe.core.builtins import parameter, performance_function, run_after, run_before, variable
from reframe.core.exceptions import SanityError

from analysis.hpl_output import read_hpl_output
from analysis.plausibility import rate_above_peak
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.image import ROOT, options_of_exec
from reframe_checks.mixins.recording import Suspect
from reframe_checks.mixins.tiers import TIER, of_tier


def combinations_of_the_thesis() -> list[tuple[str, int]]:
    """Return the (grid, N) of Tables 4 and 5, which left out what did not fit in memory."""
    with (ROOT / "literature" / "kearns2003_hpl.csv").open() as table:
        rows = {
            (f"{row['grid_p']}x{row['grid_q']}", int(row["n"])) for row in csv.DictReader(table)
        }
    return sorted(rows, key=lambda row: (places_of(row[0]), row[1]))


def places_of(grid: str) -> tuple[int, int]:
    """Return P and Q of a grid written as PxQ."""
    rows, columns = grid.split("x")
    return int(rows), int(columns)


def block_size_of_the_thesis() -> int:
    """Return NB of Appendix A."""
    with (ROOT / "literature" / "kearns2003_hpl_dat.csv").open() as table:
        return next(int(row["value"]) for row in csv.DictReader(table) if row["parameter"] == "nb")


COMBINATIONS = (
    combinations_of_the_thesis()
    if TIER == "paper"
    else [(grid, n) for grid in ("1x1", "1x2") for n in (2000, 4000)]
)


@rfm.simple_test
class Linpack(Experiment):
    """HPL on one process grid with one problem size."""

    descr = "High Performance Linpack on a process grid"
    program = "xhpl"
    output_format = "hpl"
    grid = parameter(dict.fromkeys(grid for grid, _ in COMBINATIONS), loggable=True)
    n = parameter(dict.fromkeys(n for _, n in COMBINATIONS), loggable=True)

    #: Block size. 192 suits the matrix kernels of today's vector units; Appendix A has 150.
    nb = variable(int, value=of_tier(quick=lambda: 192, paper=block_size_of_the_thesis)())

    @run_after("init")
    def set_ranks(self) -> None:
        """Start one rank for each place in the grid; leave out what the thesis left out."""
        self.num_tasks = places_of(self.grid)[0] * places_of(self.grid)[1]
        self.skip_if(
            (self.grid, self.n) not in COMBINATIONS,
            f"N={self.n} on a {self.grid} grid is not in the thesis' tables",
        )
        if TIER == "paper":
            self.time_limit = "2h"

    @run_after("setup")
    def leave_out_oversubscription(self) -> None:
        """Leave out grids with more ranks than cores: busy-waiting ranks measure each other."""
        cores = self.site()["cores_per_node"] * self.site()["nodes"]
        self.skip_if(
            self.num_tasks > cores,
            f"a {self.grid} grid has {self.num_tasks} ranks, the site has {cores} cores",
        )

    @run_before("run")
    def write_input(self) -> None:
        """Have the image's generator write HPL.dat; it refuses an N that does not fit."""
        rows, columns = places_of(self.grid)
        generator = (
            f"hpl_dat --p {rows} --q {columns} --n {self.n} --nb {self.nb} --nodes {self.nodes} "
            f"--memory-bytes-per-node {self.site()['memory_bytes_per_node']} --output HPL.dat"
        )
        platform = self.container_platform
        options = " ".join([f'-B"{self.stagedir}:{platform.workdir}"', *options_of_exec()])
        self.prerun_cmds = [
            f"apptainer exec {options} --pwd {platform.workdir} {platform.image} {generator}"
            " || exit $?",
            *self.prerun_cmds,
        ]

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"grid": self.grid, "n": self.n, "nb": self.nb}

    def examine(self) -> None:
        """Refuse a failed residual, other parameters than asked, and a rate above the peak."""
        runs = read_hpl_output(self.output_path("stdout"))
        found = [(run.p, run.q, run.n, run.nb) for run in runs]
        asked = [(*places_of(self.grid), self.n, self.nb)]
        if found != asked:
            raise SanityError(f"HPL solved (P, Q, N, NB) = {found}, asked was {asked}")
        self.run_of_hpl = runs[0]
        if not self.run_of_hpl.passed:
            raise SanityError(
                f"HPL's residual is {self.run_of_hpl.residual}, the limit is 16: "
                "the answer is wrong"
            )
        site = self.site()
        peak = site["peak_flops_per_node"] * min(1.0, self.num_tasks / site["cores_per_node"])
        sentence = rate_above_peak(self.run_of_hpl, peak * self.nodes)
        if sentence:
            raise Suspect(sentence)

    @performance_function("FLOP/s")
    def rate(self) -> float:
        """Return the rate that HPL reports."""
        return float(self.run_of_hpl.rate_flops)
