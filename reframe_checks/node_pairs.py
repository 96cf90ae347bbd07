"""All pairs of nodes, many at once: which node, and which link, is slow."""

from collections import defaultdict

import reframe as rfm
from reframe.core.builtins import parameter, performance_function, run_after
from reframe.core.exceptions import SanityError

from records.limits.plausibility import node_pairs_above_link
from records.node_pairs import NodePairsRound
from reframe_checks.mixins.cores import nodes_of_site
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.recording import Suspect
from reframe_checks.mixins.tiers import of_tier

#: Of messages that go one way; so many are under way at once.
LARGEST_BYTES = 2**20
WINDOW = 4
#: The longest that these may take the site's link, in seconds: a slow one has shorter messages.
LONGEST_S = 0.05
SWEEPS = of_tier(quick=8, paper=16)
#: For all sweeps; where pairs take longer, each node meets fewer others.
SECONDS = of_tier(quick=60, paper=600)
MEASURES = ("latency", "bandwidth")
#: The output has so many ways of pairs at most, at about 85 bytes each; beyond it each of the
#: nodes, of which there are more than 250 then, meets fewer others.
MOST_WAYS = 10**6


def bytes_for(link_bytes_per_s: float | None) -> int:
    """Return the bytes of a message: a power of two that the link does not take too long for."""
    most = LARGEST_BYTES
    while link_bytes_per_s and most > 1024 and WINDOW * most > LONGEST_S * link_bytes_per_s:
        most //= 2
    return most


def most_rounds(nodes: int, sweeps: int) -> int:
    """Return how many rounds of all nodes a sweep may have."""
    return max(3, MOST_WAYS // (nodes * sweeps * len(MEASURES)))


@rfm.simple_test
class NodePairs(Experiment):
    """One rank a node; in each round disjoint pairs exchange messages, until all have met."""

    descr = "latency and bandwidth between all pairs of nodes"
    program = "node_pairs"
    spread = True
    time_limit = "30m"
    # Nodes are compared with each other, and values above the link's are refused.
    require_reference = False
    # It compares no implementations.
    only_when_named = True
    #: Whether the pairs of a round share the switches, or have them for themselves.
    pairs = parameter(("together", "alone"), loggable=True)

    @run_after("init")
    def set_ranks(self) -> None:
        """Put a rank on each node."""
        self.num_tasks = max(2, nodes_of_site())

    @run_after("setup")
    def leave_out_a_single_node(self) -> None:
        """Leave out a site of one node, which has no pair of nodes."""
        self.skip_if(
            self.site()["nodes"] == 1,
            "the site has one node; this measures between nodes, and Pairs between its cores",
        )

    @run_after("setup")
    def describe_pairs(self) -> None:
        """Pass sizes, sweeps and time."""
        self.program_arguments = [
            "--bandwidth-bytes", str(bytes_for(self.site()["link_bytes_per_s"])),
            "--window", str(WINDOW),
            "--sweeps", str(SWEEPS),
            "--seconds", str(SECONDS),
            "--most-rounds", str(most_rounds(self.num_tasks, int(SWEEPS))),
            *(["--alone"] if self.pairs == "alone" else []),
        ]  # fmt: skip

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"pairs": self.pairs, "ranks": self.num_tasks}

    def examine(self) -> None:
        """Refuse sweeps that are not alike, rounds without all nodes, and impossible times."""
        output = self.read_records()
        rounds = [one for one in output.results if isinstance(one, NodePairsRound)]
        if len(rounds) != len(output.results):
            raise SanityError("the output has results that are not of pairs of nodes")
        by_sweep: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for one in rounds:
            by_sweep[one.sweep].append((one.round, one.measure))
            ways = 2 * (self.num_tasks // 2)
            if len(one.source) != ways or max(one.source) >= self.num_tasks:
                raise SanityError(
                    f"round {one.round}: {len(one.source)} ways between ranks up to "
                    f"{max(one.source)}, not {ways} between {self.num_tasks} ranks"
                )
        self.refuse_other_sweeps(by_sweep)
        link = self.site()["link_bytes_per_s"]
        for one in rounds:
            if link and (sentence := node_pairs_above_link(one, link)):
                raise Suspect(sentence)
        self.measured = rounds

    def refuse_other_sweeps(self, by_sweep: dict[int, list[tuple[int, str]]]) -> None:
        """Refuse fewer sweeps than asked for, or other rounds in one than in the first."""
        first = by_sweep.get(0, [])
        done = list(dict.fromkeys(number for number, _ in first))
        wanted = [(number, measure) for number in done for measure in MEASURES]
        if [*by_sweep] != [*range(SWEEPS)] or any(one != wanted for one in by_sweep.values()):
            raise SanityError(
                f"the sweeps are not {SWEEPS} with latency and bandwidth of the same rounds each"
            )

    def slowest(self, measure: str) -> float:
        """Return the longest of the pairs' median times in seconds, each the best of its sweeps."""
        best: dict[tuple[int, int], float] = {}
        for one in self.measured:
            if one.measure == measure:
                for source, to, seconds in zip(one.source, one.to, one.median_s, strict=True):
                    best[source, to] = min(seconds, best.get((source, to), seconds))
        return max(best.values())

    @performance_function("s")
    def latency(self) -> float:
        """Return half the round trip of the pair that takes longest."""
        return self.slowest("latency") / 2

    @performance_function("B/s")
    def bandwidth(self) -> float:
        """Return the bandwidth of the pair that takes longest."""
        one = next(one for one in self.measured if one.measure == "bandwidth")
        return one.messages * one.message_bytes / self.slowest("bandwidth")
