"""High Performance Linpack over process grids and problem sizes (Kearns 2003, section 4.1)."""

import copy
import csv
from contextlib import suppress
from typing import NamedTuple

import reframe as rfm
from reframe.core.builtins import parameter, performance_function, run_after, run_before
from reframe.core.exceptions import SanityError

from records.base import RecordError
from records.hpl import HplRun, read_hpl_output
from records.limits.plausibility import rate_above_peak
from reframe_checks.mixins import hpl_problem, node_memory
from reframe_checks.mixins.cores import ranks_with_processors, site_here
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.image import ROOT
from reframe_checks.mixins.job_script import quoted
from reframe_checks.mixins.recording import Suspect
from reframe_checks.mixins.tiers import TIER, of_tier

#: What xhpl reads in its working folder.
INPUT = "HPL.dat"
HPL_DAT_OF_THE_THESIS = "literature/kearns2003/hpl_dat.csv"


class HplProblem(NamedTuple):
    """A process grid, written as PxQ, with the order of the matrix and the block size."""

    grid: str
    n: int
    nb: int


def problems_in(table: str, nb: int | None = None) -> set[HplProblem]:
    """Return the problems of a table of results in literature/, with NB where it has none."""
    with (ROOT / "literature" / table).open() as file:
        return {
            HplProblem(f"{row['grid_p']}x{row['grid_q']}", int(row["n"]), int(nb or row["nb"]))
            for row in csv.DictReader(file)
        }


def parameter_of_the_thesis(name: str) -> float:
    """Return a number from the HPL.dat in Appendix A, where it appears once."""
    with (ROOT / HPL_DAT_OF_THE_THESIS).open() as table:
        [value] = [row["value"] for row in csv.DictReader(table) if row["parameter"] == name]
    return float(value)


def problems_of_the_reports() -> list[HplProblem]:
    """Return the problems of Kearns 2003, Tables 4 and 5, and of NTNU 2008, Table 5.2.

    The thesis left out what did not fit in its memory, and has NB in Appendix A.
    """
    thesis = problems_in("kearns2003/hpl.csv", int(parameter_of_the_thesis("nb")))
    both = thesis | problems_in("ntnu2008/hpl.csv")
    return sorted(both, key=lambda problem: (places_of(problem.grid), problem.n))


def problems_of_the_site() -> list[HplProblem]:
    """Return the problem that fills the site, and smaller ones that compare block sizes."""
    site = site_here()
    if not site:
        return []
    ranks = ranks_with_processors()
    grid = "{}x{}".format(*hpl_problem.grid_of(ranks))
    memory = site["memory_bytes_per_node"] * -(-ranks // site["cores_per_node"])
    share = site.get("hpl_memory_share", node_memory.LARGEST_SHARE)
    nb = site.get("hpl_block_size", hpl_problem.USUAL_BLOCK_SIZE)
    order = hpl_problem.largest_order(memory, share, nb)
    small = hpl_problem.order_of_search(order)
    search = [HplProblem(grid, small, tried) for tried in hpl_problem.BLOCK_SIZES]
    return [problem for problem in [*search, HplProblem(grid, order, nb)] if problem.n > 0]


def refuse_residual(run: HplRun) -> None:
    """Raise SanityError with the residual, its limit and the limit's source, unless it passed."""
    if not run.passed:
        raise SanityError(
            f"HPL's residual is {run.residual}, the limit is "
            f"{parameter_of_the_thesis('threshold'):g} (HPL's usual threshold: Appendix A of "
            f"the thesis, {HPL_DAT_OF_THE_THESIS}): the answer is wrong"
        )


def places_of(grid: str) -> tuple[int, int]:
    """Return P and Q of a grid written as PxQ."""
    rows, columns = grid.split("x")
    return int(rows), int(columns)


# 192 suits the matrix kernels of today's vector units; Appendix A of the thesis has 150.
PROBLEMS: list[HplProblem] = of_tier(
    quick=lambda: [HplProblem(grid, n, 192) for grid in ("1x1", "1x2") for n in (2000, 4000)],
    paper=problems_of_the_reports,
    site=problems_of_the_site,
)()
TIME_LIMITS = {"paper": "2h", "site": "12h"}


@rfm.simple_test
class Linpack(Experiment):
    """HPL on one process grid with one problem size."""

    descr = "High Performance Linpack on a process grid"
    program = "xhpl"
    output_format = "hpl"
    grid = parameter(dict.fromkeys(problem.grid for problem in PROBLEMS), loggable=True)
    n = parameter(dict.fromkeys(problem.n for problem in PROBLEMS), loggable=True)
    nb = parameter(dict.fromkeys(problem.nb for problem in PROBLEMS), loggable=True)
    # Only the grids of tier `quick` have references everywhere.
    require_reference = TIER == "quick"

    @run_after("init")
    def set_ranks(self) -> None:
        """Start one rank for each place in the grid; leave out what no report measured."""
        self.num_tasks = places_of(self.grid)[0] * places_of(self.grid)[1]
        self.skip_if(
            (self.grid, self.n, self.nb) not in PROBLEMS,
            f"N={self.n} with NB={self.nb} on a {self.grid} grid is not in tier {TIER}; the "
            "reports lack what did not fit into memory",
        )
        self.time_limit = TIME_LIMITS.get(TIER, self.time_limit)

    @run_after("setup")
    def leave_out_oversubscription(self) -> None:
        """Leave out grids with more ranks than cores: waiting ranks would measure each other."""
        cores = self.site()["cores_per_node"] * self.site()["nodes"]
        self.skip_if(
            self.num_tasks > cores,
            f"a {self.grid} grid has {self.num_tasks} ranks, the site has {cores} cores",
        )

    @run_after("setup")
    def leave_out_what_does_not_fit(self) -> None:
        """Leave out a matrix that does not fit into the memory of its nodes."""
        sentence = hpl_problem.too_large(self.n, self.nodes, self.site()["memory_bytes_per_node"])
        self.skip_if(bool(sentence), f"{self.grid}: {sentence}")

    @run_before("run")
    def write_input(self) -> None:
        """Have the image's generator write HPL.dat; it refuses an N that does not fit."""
        rows, columns = places_of(self.grid)
        memory = self.site()["memory_bytes_per_node"]
        platform = copy.copy(self.container_platform)
        # It does not use MPI.
        platform.options, platform.launch = [], "mpiexec"
        platform.command = quoted(
            "hpl_dat", "--p", rows, "--q", columns, "--n", self.n, "--nb", self.nb,
            "--nodes", self.nodes, "--memory-bytes-per-node", memory,
        )  # fmt: skip
        generate = platform.launch_command(self.stagedir)
        self.prerun_cmds = [f"{generate} >{INPUT} || exit $?", *self.prerun_cmds]
        self.container_platform.inputs = (INPUT,)

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"grid": self.grid, "n": self.n, "nb": self.nb}

    def examine(self) -> None:
        """Refuse a failed residual, other parameters than asked, and a rate above the peak."""
        runs = read_hpl_output(self.output_path("stdout"))
        found = [(run.p, run.q, run.n, run.nb) for run in runs]
        asked = [(*places_of(self.grid), self.n, self.nb)]
        if found != asked:
            raise SanityError(f"HPL solved (P, Q, N, NB) = {found}, not {asked} as requested")
        self.run_of_hpl = runs[0]
        refuse_residual(self.run_of_hpl)
        sentence = rate_above_peak(self.run_of_hpl, self.peak_flops())
        if sentence:
            raise Suspect(sentence)

    def explain_failure(self) -> None:
        """Say which residual failed: xhpl ends with 1, and only its output has the number.

        If the output is incomplete, what xhpl wrote to standard error is the reason.
        """
        with suppress(RecordError, OSError):
            for run in read_hpl_output(self.output_path("stdout")):
                refuse_residual(run)

    @performance_function("FLOP/s")
    def rate(self) -> float:
        """Return the rate that HPL reports."""
        return float(self.run_of_hpl.rate_flops)
