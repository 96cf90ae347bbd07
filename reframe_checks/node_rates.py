"""What a node's cores and memory achieve by themselves: the yardstick for everything else."""

import reframe as rfm
from reframe.core.builtins import parameter, performance_function, run_after, variable
from reframe.core.exceptions import SanityError

from records import node_rates as records
from records.limits.plausibility import computing_above_peak, memory_above_core
from reframe_checks.mixins.cores import cores_of_a_node, nodes_of_site
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.recording import Suspect
from reframe_checks.mixins.tiers import of_tier

#: Of DGEMM's matrices.
ORDER = of_tier(quick=1500, paper=3000, site=3000)


class OnOneNode(Experiment):
    """A rank on each core of one node, all busy at once."""

    #: How often everything is timed.
    iterations = variable(int)
    # Another machine's rates are no reference for this one; impossible values are refused.
    require_reference = False

    @run_after("init")
    def set_ranks(self) -> None:
        """Fill the cores of a node."""
        self.num_tasks = cores_of_a_node()

    def arguments(self) -> list[str]:
        """Return the program's own arguments."""
        raise NotImplementedError

    @run_after("setup")
    def describe_computing(self) -> None:
        """Pass the problem and the number of iterations."""
        self.program_arguments = [*self.arguments(), "--iterations", str(self.iterations)]

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"ranks": self.num_tasks}

    def measured(self, asked: list[tuple[object, ...]], *keys: str) -> list[records.Rate]:
        """Return the launch's results; refuse others than those requested, by some of their keys.

        What is wrong in a result itself, such as its residual, is refused by the reader.
        """
        output = self.read_records()
        results = [result for result in output.results if isinstance(result, records.Rate)]
        found = [tuple(getattr(r, key, None) for key in (*keys, "iterations")) for r in results]
        wanted = [(*values, self.iterations) for values in asked]
        if found != wanted or len(results) != len(output.results):
            raise SanityError(
                f"the results have ({', '.join(keys)}, iterations) = {found} among "
                f"{len(output.results)}, not {wanted} as requested"
            )
        return results

    def judged_product(self, n: int) -> records.DgemmResult:
        """Return DGEMM's result; refuse a wrong product and a rate above the peak."""
        [product] = self.measured([("dgemm", n)], "operation", "n")
        assert isinstance(product, records.DgemmResult)
        if sentence := computing_above_peak(product, self.peak_flops()):
            raise Suspect(sentence)
        return product

    def judged_loops(self) -> list[records.StreamResult]:
        """Return STREAM's loops; refuse missing ones, and rates that no memory can reach."""
        asked: list[tuple[object, ...]] = [("stream", kernel) for kernel in records.STREAM_BYTES]
        results = self.measured(asked, "operation", "kernel")
        loops = [loop for loop in results if isinstance(loop, records.StreamResult)]
        of_a_node = self.site().get("memory_bytes_per_s_per_node")
        for loop in loops:
            memory = of_a_node and self.nodes * of_a_node
            if sentence := memory_above_core(loop, memory, self.peak_flops()):
                raise Suspect(sentence)
        return loops


@rfm.simple_test
class Dgemm(OnOneNode):
    """Matrix products by the BLAS that HPL uses: the rate that HPL comes close to."""

    descr = "DGEMM on all cores of a node at once"
    program = "dgemm"
    n = variable(int, value=ORDER, loggable=True)
    iterations = of_tier(quick=3, paper=20, site=20)

    def arguments(self) -> list[str]:
        """Return the order of the matrices."""
        return ["--n", str(self.n)]

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"ranks": self.num_tasks, "n": self.n}

    def examine(self) -> None:
        """Refuse a product other than the one asked for, a wrong one, and a rate above the peak."""
        self.product = self.judged_product(self.n)

    @performance_function("FLOP/s")
    def rate(self) -> float:
        """Return the rate of all ranks together."""
        return self.product.rate_flops


@rfm.simple_test
class Stream(OnOneNode):
    """McCalpin's STREAM: how fast the cores of a node together read and write memory."""

    descr = "STREAM on all cores of a node at once"
    program = "stream"
    iterations = of_tier(quick=5, paper=20)

    def arguments(self) -> list[str]:
        """Ask for all loops, over arrays larger than the node's caches."""
        return ["--kernel", "all"]

    def examine(self) -> None:
        """Refuse missing loops, unverified results and rates that no memory can reach."""
        self.loops = self.judged_loops()

    @performance_function("B/s")
    def triad(self) -> float:
        """Return the bandwidth of triad, by the best iteration."""
        return self.loops[-1].best_bandwidth


@rfm.simple_test
class NodeRates(OnOneNode):
    """DGEMM or STREAM on all nodes at once: which node's cores, memory or clock are slower."""

    descr = "what all nodes do by themselves, side by side"
    #: The program.
    rate = parameter(("dgemm", "stream"), loggable=True)
    iterations = of_tier(quick=5, paper=20)
    # Dgemm and Stream are of a node.
    only_when_named = True

    @run_after("init")
    def set_ranks(self) -> None:
        """Fill the cores of all nodes."""
        self.program = self.rate
        self.num_tasks = nodes_of_site() * cores_of_a_node()

    @run_after("setup")
    def leave_out_a_single_node(self) -> None:
        """Leave out a site of one node."""
        self.skip_if(
            self.site()["nodes"] == 1,
            "the site has one node, and none to compare it with: measure Dgemm and Stream",
        )

    def arguments(self) -> list[str]:
        """Return the program's own arguments, as of one node."""
        return ["--n", str(ORDER)] if self.rate == "dgemm" else ["--kernel", "all"]

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"rate": self.rate, "ranks": self.num_tasks}

    def examine(self) -> None:
        """Refuse what is refused of one node."""
        if self.rate == "dgemm":
            self.judged_product(ORDER)
        else:
            self.judged_loops()


@rfm.simple_test
class SerialLinpack(OnOneNode):
    """Linpack 100 and 1000 on one core, as in ORNL 1996, Table 3.1."""

    descr = "systems of order 100 by columns and 1000 by LAPACK, on one core"
    program = "linpack"
    iterations = of_tier(quick=20, paper=200)

    @run_after("init")
    def set_ranks(self) -> None:
        """Start one rank: the table is of a single processor."""
        self.num_tasks = 1

    def arguments(self) -> list[str]:
        """Ask for both systems, of the orders in the table."""
        return ["--method", "all"]

    def examine(self) -> None:
        """Refuse missing systems, wrong answers and rates above the peak."""
        asked: list[tuple[object, ...]] = [("columns", 100), ("lapack", 1000)]
        results = self.measured(asked, "method", "n")
        self.systems = [system for system in results if isinstance(system, records.LinpackSolve)]
        for system in self.systems:
            sentence = computing_above_peak(system, self.peak_flops())
            if sentence:
                raise Suspect(sentence)

    @performance_function("FLOP/s")
    def rate_100(self) -> float:
        """Return the rate of the system of order 100."""
        return self.systems[0].rate_flops

    @performance_function("FLOP/s")
    def rate_1000(self) -> float:
        """Return the rate of the system of order 1000."""
        return self.systems[1].rate_flops
