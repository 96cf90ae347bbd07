"""Messages between pairs of ranks: NASA's LBW and its load test, mpptest's bisection, the rate."""

from collections.abc import Iterable
from dataclasses import dataclass

import reframe as rfm
from reframe.core.builtins import parameter

from reframe_checks.mixins.communicating import AskedPoint, Communicating
from reframe_checks.mixins.tiers import of_tier

PARTITIONS = 4


@dataclass(frozen=True)
class PairsSuite:
    """Methods over message sizes in bytes, for one number of pairs after another."""

    methods: tuple[str, ...]
    sizes: tuple[int, ...]
    ranks: int
    iterations: int
    partner: str = "near"
    #: Also fewer pairs than there are, from one on.
    load: bool = False
    window: int = 64
    on_a_node: int | None = None

    def pairs_of(self, ranks: int) -> list[int]:
        """Return the numbers of pairs."""
        return list(range(1, ranks // 2 + 1)) if self.load else [ranks // 2]

    def groups(self, ranks: int) -> list[str]:
        """Return the groups of ranks as the program calls them."""
        if self.partner == "every":
            return [f"ranks 0 and {other}" for other in range(1, ranks)]
        return [
            f"{count} {self.partner} pair{'' if count == 1 else 's'}"
            for count in self.pairs_of(ranks)
        ]

    def method_names(self) -> list[str]:
        """Return the methods as the program calls them in its results."""
        details = {"window": f" of {self.window}", "partitioned": f" in {PARTITIONS}"}
        return [method + details.get(method, "") for method in self.methods]


# NASA 2003, table of LBW bandwidth over message size.
LBW_SIZES = (40, 400, 1_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
             10_000_000, 15_000_000, 20_000_000)  # fmt: skip
# IIT: -size 262144 1048576 32768.
LONG = tuple(range(262_144, 1_048_577, 32_768))
STYLES = ("send-recv", "irecv-send")

SUITES: dict[str, PairsSuite] = of_tier(
    quick={
        "lbw": PairsSuite(STYLES, (40, 10_000, 100_000), 2, 20),
        "load": PairsSuite(("send-recv",), (8, 100_000), 4, 30, load=True),
        # SimpleBench's ping-pong from rank 0 to every rank (NTNU 2008); its sizes are doubles.
        "simplebench-pingpong": PairsSuite(("send-recv",), (0, 800, 8192), 4, 20, "every"),
        "bisection": PairsSuite(("send-recv", "exchange", "window"), (8, 100_000), 4, 30,
                                "bisection", window=4),
        # The Ohio ping of Kearns 2003, section 5.4: one message one way, and an empty answer.
        "ohio-ping": PairsSuite(("window",), (0, 1024, 16_384), 2, 50, window=1),
        "rate": PairsSuite(("window",), (8, 1024), 2, 20),
        "persistent": PairsSuite(("persistent", "partitioned"), (8, 10_000), 2, 50),
    },
    paper={
        "lbw": PairsSuite(STYLES, LBW_SIZES, 2, 100),
        "load": PairsSuite(("send-recv",), (8, 1_000_000), 16, 100, load=True),
        "simplebench-pingpong": PairsSuite(("send-recv",), (0, 800, 8192, 65_536, 8_000_000), 8,
                                           100, "every"),
        # mpptest's -bisect is blocking: send-recv.
        **{
            f"bisection-short-{n}-a-node": PairsSuite( ("send-recv", "exchange", "window"),
                                                      (0, 8, 64, 256, 512, 1024), 32, 1000,
                                                      "bisection", on_a_node=n)
            for n in (1, 2, 4)
        },
        **{
            f"bisection-long-{n}-a-node": PairsSuite( ("send-recv", "exchange"), LONG, 32, 100,
                                                     "bisection", on_a_node=n)
            for n in (1, 2, 4)
        },
        "ohio-ping": PairsSuite(("window",), tuple(range(0, 16_385, 1024)), 2, 1000, window=1),
        "rate": PairsSuite(("window",), (8, 64, 512, 1024, 4096), 16, 1000, load=True),
        "persistent": PairsSuite(("persistent", "partitioned"), LBW_SIZES, 2, 100),
    },
)  # fmt: skip


@rfm.simple_test
class Pairs(Communicating):
    """Messages between pairs of ranks, one pair or many at once."""

    descr = "messages between pairs of ranks, many pairs at once"
    program = "pairs"
    suite = parameter(SUITES, loggable=True)

    def ranks_wanted(self) -> int:
        """Return how many ranks the report used."""
        return SUITES[self.suite].ranks

    def ranks_on_a_node(self) -> int | None:
        """Return how many ranks the suite puts on each node, if it specifies that."""
        return SUITES[self.suite].on_a_node

    def iterations_wanted(self) -> int:
        """Return how often each point is timed."""
        return SUITES[self.suite].iterations

    def arguments(self) -> list[str]:
        """Return the program's arguments for the suite."""
        suite = SUITES[self.suite]
        return [
            *(word for name in suite.methods for word in ("--method", name)),
            *(word for n in suite.pairs_of(self.num_tasks) for word in ("--pairs", str(n))),
            *(word for n in suite.sizes for word in ("--sizes", str(n))),
            "--partner", suite.partner,
            "--window", str(suite.window),
            "--partitions", str(PARTITIONS),
        ]  # fmt: skip

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order."""
        suite = SUITES[self.suite]
        for method in suite.method_names():
            for group in suite.groups(self.num_tasks):
                for size in suite.sizes:
                    yield AskedPoint("pairs", method, group, size)
