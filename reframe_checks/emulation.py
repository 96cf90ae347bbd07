"""Emulated parallel programs side by side: the idea of the IIT report, section 3.1."""

from dataclasses import dataclass

import reframe as rfm
from reframe.core.builtins import parameter, performance_function, run_after
from reframe.core.exceptions import SanityError

from records.emulation import EmulationResult as EmulatedApplication
from records.limits.plausibility import emulation_above_link, emulation_too_fast
from reframe_checks.mixins.cores import cores_of_site
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.recording import Suspect
from reframe_checks.mixins.tiers import TIER, of_tier

# A ring or a grid of one rank has no edge, and the master is a rank besides.
FEWEST_RANKS = {"ring": 3, "stencil": 3}
SITUATIONS = ("alone", "together", "messages", "computing")


@dataclass(frozen=True)
class EmulationSuite:
    """Applications by their graphs; each has `ranks` ranks, or as many as the site has cores for.

    Messages are in bytes, the mean time that a rank computes in a step in seconds.
    """

    graphs: tuple[str, ...]
    ranks: int
    message_bytes: int
    steps: int
    iterations: int
    compute_mean: float = 0.001
    distribution: str = "exponential"
    placement: str = "consecutive"

    def applications(self, cores: int) -> list[tuple[str, int]]:
        """Return the graphs and their ranks that fit on a number of cores; at least one."""
        found: list[tuple[str, int]] = []
        for graph in self.graphs:
            fewest = FEWEST_RANKS.get(graph, 2)
            ranks = max(fewest, min(self.ranks, cores // len(self.graphs)))
            if not found or sum(taken for _, taken in found) + ranks <= cores:
                found.append((graph, ranks))
        return found


SUITES: dict[str, EmulationSuite] = of_tier(
    quick={"side-by-side": EmulationSuite(("client-server", "pipeline"), 2, 8192, 20, 5)},
    # Each of the graphs beside another of its kind; two of them also with their ranks dealt one by
    # one, so that they share the nodes.
    paper={
        **{
            graph: EmulationSuite((graph, graph), 16, 65_536, 100, 30)
            for graph in ("client-server", "farm", "ring", "pipeline", "stencil")
        },
        "shared-nodes": EmulationSuite(
            ("stencil", "farm"), 16, 65_536, 100, 30, placement="cyclic"
        ),
    },
)


@rfm.simple_test
class Emulation(Experiment):
    """Applications of computing and messages, each alone and then all together."""

    descr = "emulated parallel applications, alone and side by side"
    program = "emulator"
    spread = True
    suite = parameter(SUITES, loggable=True)
    # The report has the idea and no number; what is impossible is refused in `examine`.
    require_reference = False

    def applications(self) -> list[tuple[str, int]]:
        """Return the graphs and the number of ranks of the applications."""
        return SUITES[self.suite].applications(cores_of_site())

    @run_after("init")
    def set_ranks(self) -> None:
        """Start the ranks of all applications."""
        self.num_tasks = sum(ranks for _, ranks in self.applications())
        if TIER == "paper":
            self.time_limit = "1h"

    @run_after("setup")
    def describe_applications(self) -> None:
        """Pass the applications to the program, with every iteration's times in the output."""
        suite = SUITES[self.suite]
        graphs = [f"{graph}:{ranks}" for graph, ranks in self.applications()]
        self.program_arguments = [
            *(word for graph in graphs for word in ("--application", graph)),
            "--placement", suite.placement,
            "--message-bytes", str(suite.message_bytes),
            "--steps", str(suite.steps),
            "--compute-mean", str(suite.compute_mean),
            "--distribution", suite.distribution,
            "--iterations", str(suite.iterations),
            "--raw",
        ]  # fmt: skip

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"suite": self.suite, "ranks": self.num_tasks}

    def examine(self) -> None:
        """Refuse applications other than those requested, lost bytes and impossible times."""
        output = self.read_records()
        results = [r for r in output.results if isinstance(r, EmulatedApplication)]
        if len(results) != len(output.results):
            raise SanityError("the output has results that are not emulations")
        suite = SUITES[self.suite]
        found = [(r.application, r.graph, r.ranks, r.steps, r.iterations) for r in results]
        asked = [
            (number, f"{graph}:{ranks}", ranks, suite.steps, suite.iterations)
            for number, (graph, ranks) in enumerate(self.applications())
        ]
        if found != asked:
            raise SanityError(f"the applications are {found}, not those requested: {asked}")
        if sorted(rank for r in results for rank in r.world_ranks) != list(range(self.num_tasks)):
            raise SanityError("the applications do not have every rank of the world exactly once")
        kept = [(series.application, series.situation) for series in output.iterations]
        if kept != [(r.application, situation) for r in results for situation in SITUATIONS]:
            raise SanityError("the output lacks the times of single iterations")
        for result in results:
            # The reader has refused what was sent and did not arrive; this is what had to be sent.
            if result.step_bytes != result.edges * suite.message_bytes:
                raise SanityError(
                    f"{result.series}: {result.edges} messages of {suite.message_bytes} bytes are "
                    f"sent in a step, but the result says {result.step_bytes} bytes"
                )
        link = self.site()["link_bytes_per_s"] if self.nodes == self.num_tasks else None
        for result in results:
            sentence = emulation_too_fast(result) or (
                emulation_above_link(result, link) if link else None
            )
            if sentence:
                raise Suspect(sentence)
        self.measured = results

    @performance_function("s")
    def time(self) -> float:
        """Return the median time of the slowest application beside the others."""
        return float(max(result.together_s.median for result in self.measured))

    @performance_function("1")
    def slowdown(self) -> float:
        """Return the slowdown of the application that the others slow down most."""
        return float(max(result.slowdown.median for result in self.measured))
