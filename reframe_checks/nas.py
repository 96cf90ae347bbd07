"""The NAS Parallel Benchmarks EP, IS, CG, MG, FT, LU, SP, BT and DT, verified by NPB's constants.

Paper: the Grendel study that Kearns 2003 cites in section 5.1, LAM against MPICH by the rate of
NPB class B on up to 16 nodes of one processor.
"""

import math

import reframe as rfm
from reframe.core.builtins import parameter, performance_function, run_after
from reframe.core.exceptions import SanityError

from records.counting import how_many
from records.limits.plausibility import npb_rate_above_peak, npb_timed_beyond_launch
from records.npb import problem, read_npb_output
from reframe_checks.mixins import node_memory
from reframe_checks.mixins.cores import cores_of_site, ranks_with_processors
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.recording import Suspect
from reframe_checks.mixins.tiers import TIER, of_tier

BENCHMARKS = ("EP", "IS", "CG", "MG", "FT", "LU", "SP", "BT")
#: Those whose number of ranks is a square: tier `quick` has none but 1, which would measure nothing
#: of an MPI.
SQUARE = ("SP", "BT")
#: (class, ranks). Class W at 2 ranks takes under 3 s for each.
QUICK = [("S", 1), ("S", 2), ("W", 2)]
PAPER = [("B", ranks) for ranks in (1, 2, 4, 8, 16)]


def combinations() -> list[tuple[str, int]]:
    """Return the tier's classes and ranks; in tier `paper`, those that the site has cores for."""
    if TIER != "paper":
        return QUICK
    return [(size, ranks) for size, ranks in PAPER if ranks <= max(2, cores_of_site())]


def is_measured(benchmark: str, size: str, ranks: int) -> bool:
    """Return whether the tier measures a benchmark so."""
    is_possible = benchmark not in SQUARE or math.isqrt(ranks) ** 2 == ranks
    return is_possible and (size, ranks) in COMBINATIONS


COMBINATIONS = combinations()

#: Seconds for which a program of ours repeats what it times, as far as once does not take as long:
#: the small classes take milliseconds, and one interruption would be the launch's result.
LEAST_SECONDS = 0.5

#: What all ranks together hold at least, for each point, key or row: FT has four complex arrays,
#: MG three of doubles and an eighth, a 64th, … of two; IS three of integers (and a fourth for the
#: values that keys can have, which are fewer); LU 21 doubles, and SP
#: and BT on more than one rank what their lines keep besides.
BYTES_PER_POINT = {"FT": 64, "MG": 27, "IS": 12, "LU": 168, "SP": 216, "BT": 368}


class NpbExperiment(Experiment):
    """A benchmark of NPB in one class, judged by NPB's values."""

    output_format = "npb"
    #: One rank to a node as far as there are nodes, as on Grendel.
    spread = True
    #: No rate of another machine could serve as a floor.
    require_reference = False

    def ask_for(self, program: str, *arguments: str) -> None:
        """Have a program of ours solve the class, and time it for long enough."""
        self.program = program
        self.program_arguments = [
            "--class", self.size, "--least-seconds", str(LEAST_SECONDS), *arguments
        ]  # fmt: skip
        self.time_limit = str(of_tier(quick="5m", paper="2h"))

    def is_official(self) -> bool:
        """Return whether NPB's own program is measured."""
        return False

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"benchmark": self.benchmark, "size": self.size, "ranks": self.num_tasks}

    def examine(self) -> None:
        """Refuse a wrong answer, another problem or world than asked, and an impossible rate."""
        run = read_npb_output(self.output_path("stdout"))
        found = (run.benchmark, run.problem_class, run.processes)
        asked = (self.benchmark, self.size, self.num_tasks)
        if found != asked:
            raise SanityError(
                f"the benchmark, class and number of processes are {found}, not {asked} as "
                "requested"
            )
        if not run.verified:
            said = " | ".join(run.wrong) or "the program does not say which value is wrong"
            raise SanityError(
                f"{run.benchmark}, class {run.problem_class}: the answer is wrong: {said} "
                "(NPB's values: literature/npb_verification.yaml)"
            )
        self.check_hosts(run.hosts)
        sentence = npb_rate_above_peak(run, self.peak_flops())
        if sentence:
            raise Suspect(sentence)
        began, ended = self.instants()
        wall_s = began.seconds_until(ended) if began and ended else None
        if wall_s is not None and (sentence := npb_timed_beyond_launch(run, wall_s)):
            raise Suspect(sentence)
        self.rate_ops = run.rate_ops

    def check_hosts(self, hosts: tuple[str, ...] | None) -> None:
        """Refuse ranks on other nodes than requested; NPB's own programs do not name hosts."""
        if hosts is None and self.is_official():
            return
        nodes = sorted(set(hosts or ()))
        if len(hosts or ()) != self.num_tasks or len(nodes) != self.nodes:
            raise SanityError(
                f"{len(hosts or ())} ranks are on {how_many(len(nodes), 'node')}, "
                f"{', '.join(nodes) or 'none of which is named'}; {self.num_tasks} on "
                f"{self.nodes} were requested"
            )

    @performance_function("op/s")
    def rate(self) -> float:
        """Return the rate that the benchmark reports, by NPB's count of operations."""
        return float(self.rate_ops)


@rfm.simple_test
class Nas(NpbExperiment):
    """One of the NAS Parallel Benchmarks, in one class, on some ranks."""

    descr = "NAS Parallel Benchmarks"

    benchmark = parameter(
        BENCHMARKS if TIER == "paper" else [one for one in BENCHMARKS if one not in SQUARE],
        loggable=True,
    )
    #: NPB's class of the problem.
    size = parameter(dict.fromkeys(size for size, _ in COMBINATIONS), loggable=True)
    ranks = parameter(dict.fromkeys(ranks for _, ranks in COMBINATIONS), loggable=True)

    @run_after("init")
    def set_ranks(self) -> None:
        """Start so many ranks; leave out what is not asked for in this tier."""
        self.num_tasks = self.ranks
        self.ask_for(f"nas_{self.benchmark.lower()}")
        self.skip_if(
            not is_measured(self.benchmark, self.size, self.ranks),
            f"{self.benchmark} of class {self.size} on {how_many(self.ranks, 'rank')} is not in "
            f"tier {TIER}",
        )

    @run_after("setup")
    def leave_out_what_does_not_fit(self) -> None:
        """Leave out problems that the nodes have no memory for."""
        points = math.prod(problem(self.benchmark, self.size).size)
        needed = BYTES_PER_POINT.get(self.benchmark, 0) * points
        sentence = node_memory.too_large(
            self.benchmark, f"class {self.size}", needed, self.nodes,
            self.site()["memory_bytes_per_node"],
        )  # fmt: skip
        self.skip_if(bool(sentence), str(sentence))

    @run_after("setup")
    def choose_program(self) -> None:
        """Use NPB's own program if the image has it; it is built for one class."""
        if self.is_official():
            self.program = f"{self.benchmark.lower()}.{self.size}.x"
            self.program_arguments = []

    def is_official(self) -> bool:
        """Return whether the image's label says that it has NPB's own programs of it.

        No builder makes those of SP and BT, whose images have ours.
        """
        return self.benchmark not in SQUARE and bool(self.image.labels.nas == "official")


@rfm.simple_test
class NasTraffic(NpbExperiment):
    """DT of the NAS Parallel Benchmarks: streams along a graph, of which each node is a rank."""

    descr = "NAS Parallel Benchmarks, data traffic"

    benchmark = parameter([f"DT_{graph}" for graph in ("BH", "WH", "SH")], loggable=True)
    #: NPB's class of the problem, which decides how many nodes the graph has.
    size = parameter(of_tier(quick=["S"], paper=["S", "W", "A", "B"]), loggable=True)

    @run_after("init")
    def set_ranks(self) -> None:
        """Start a rank for each node of the graph."""
        # NPB prints the nodes where others print their iterations.
        self.num_tasks = problem(self.benchmark, self.size).iterations
        self.ask_for("nas_dt", "--graph", self.benchmark.removeprefix("DT_"))

    @run_after("setup")
    def leave_out_oversubscription(self) -> None:
        """Leave out more ranks than processors: waiting ranks would measure each other."""
        processors = ranks_with_processors()
        self.skip_if(
            self.num_tasks > processors,
            f"{self.benchmark} of class {self.size} needs a rank for each of {self.num_tasks} "
            f"nodes, and the site has {how_many(processors, 'processor')}; it is left out",
        )
