"""mpptest's point-to-point experiments (the IIT report): short, long, out of cache, strided."""

from dataclasses import dataclass

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from reframe_checks.mixins.ping_pong import PingPongExperiment, Sweep
from reframe_checks.mixins.tiers import TIER, of_tier


@dataclass(frozen=True)
class MpptestSuite:
    """Message sizes in bytes and how often each is timed; the rest is the program's default."""

    sizes: tuple[int, ...]
    iterations: int
    pair: str = "Send/Recv"
    refine: float = 0.0
    cache_bytes: int = 0
    stride_bytes: int = 0


# literature/iit/experiments.yaml has the command lines: -size 262144 1048576 32768, -cachesize
# 4194304, -vector -vstride 128 (doubles), and sizes of 0 to 1024 where none are given.
SHORT = tuple(range(0, 1025, 32))
# In tier `quick`, on a slow link, the longest a launch may take to send its messages, in seconds.
QUICK_SECONDS = 2.0
LONG = tuple(range(262_144, 1_048_577, 32_768))
CACHE = 4_194_304
STRIDE = 128 * 8

SUITES: dict[str, MpptestSuite] = of_tier(
    quick={
        # Up to the sizes where implementations change their protocol, so that it is found.
        "short": MpptestSuite((0, 1024, 8192, 32_768, 131_072), 30, refine=0.1),
        "long": MpptestSuite((262_144, 1_048_576), 50),
        "long-nonblocking": MpptestSuite((262_144, 1_048_576), 50, "Isend/Irecv"),
        "out-of-cache": MpptestSuite((8, 256, 1024), 100, cache_bytes=CACHE),
        "strided": MpptestSuite((8, 256, 1024), 100, stride_bytes=STRIDE),
    },
    paper={
        "short": MpptestSuite(SHORT, 1500, refine=0.02),
        "protocols": MpptestSuite((0, 1024, 8192, 32_768, 131_072, 524_288), 200, refine=0.05),
        "long": MpptestSuite(LONG, 100),
        "long-nonblocking": MpptestSuite(LONG, 100, "Isend/Irecv"),
        "out-of-cache": MpptestSuite(SHORT, 1500, cache_bytes=CACHE),
        "strided": MpptestSuite(SHORT, 1500, stride_bytes=STRIDE),
    },
)


@rfm.simple_test
class Mpptest(PingPongExperiment):
    """One of the report's ping-pongs, between two nodes or on one."""

    descr = "mpptest's ping-pongs: short, long, out of cache, strided"
    suite = parameter(SUITES, loggable=True)
    #: Of the two ranks; the report also had 4 a node, where the others are idle.
    ranks_per_node = parameter([1, 2], loggable=True)
    # The reports of this experiment have figures only, so there is no number to refer to.
    require_reference = False

    @run_after("init")
    def place_ranks(self) -> None:
        """Put the two ranks on two nodes, or on one."""
        self.spread = self.ranks_per_node == 1
        if TIER == "paper":
            self.time_limit = "30m"

    @run_after("setup")
    def leave_out_what_the_site_lacks(self) -> None:
        """Leave out two nodes if there is only one, and two ranks per node if it has one core."""
        on_each = self.world().ranks_per_node
        self.skip_if(
            on_each != self.ranks_per_node,
            f"two ranks would be {on_each} per node on this site, not {self.ranks_per_node}",
        )

    def ping_pong(self) -> Sweep:
        """Return what the program is asked for."""
        suite = SUITES[self.suite]
        whole = Sweep(
            suite.pair, "modified", suite.sizes, suite.iterations, min(10, suite.iterations // 5),
            suite.refine, suite.cache_bytes, suite.stride_bytes,
        )  # fmt: skip
        return self.within(QUICK_SECONDS, whole)

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"suite": self.suite, "ranks_per_node": self.ranks_per_node}
