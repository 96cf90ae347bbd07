"""Point-to-point bandwidth of the eight send/receive pairs (Kearns 2003, section 4.3)."""

from dataclasses import dataclass, replace

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from reframe_checks.mixins.ping_pong import PingPongExperiment, Sweep, fitting_iterations
from reframe_checks.mixins.tiers import TIER, of_tier


@dataclass(frozen=True)
class MessageRange:
    """Message sizes in bytes, first to last by step, and how often each is timed."""

    first: int
    last: int
    step: int
    iterations: int
    warmup: int

    def sizes(self) -> list[int]:
        """Return the message sizes in bytes."""
        return list(range(self.first, self.last + 1, self.step))

    def shortened(self, link_bytes_per_s: float, seconds: float) -> "MessageRange":
        """Return the range with as many iterations of its largest message as fit into a time."""
        iterations = fitting_iterations(self.iterations, 2 * self.last, link_bytes_per_s, seconds)
        return replace(self, iterations=iterations, warmup=min(self.warmup, iterations // 5))


# In tier `quick`, on a slow link, the longest a message size may take, in seconds.
QUICK_SECONDS = 0.5

# Section 4.3.1: three ranges, one hundred iterations. Tier `quick` keeps each range's ends and
# takes fewer sizes between them; where a message is short, more iterations cost nothing.
RANGES = of_tier(
    quick={
        "short": MessageRange(300, 4_800, 1_500, iterations=1000, warmup=100),
        "medium": MessageRange(5_000, 100_000, 19_000, iterations=300, warmup=30),
        "long": MessageRange(200_000, 2_000_000, 600_000, iterations=50, warmup=5),
    },
    paper={
        "short": MessageRange(300, 4_800, 300, iterations=100, warmup=10),
        "medium": MessageRange(5_000, 100_000, 5_000, iterations=100, warmup=10),
        "long": MessageRange(200_000, 2_000_000, 100_000, iterations=100, warmup=10),
    },
)
# Table 10.
PAIRS = [f"{send}/{receive}" for send in ("Send", "Isend", "Ssend", "Issend")
         for receive in ("Recv", "Irecv")]  # fmt: skip


@rfm.simple_test
class PointToPoint(PingPongExperiment):
    """Ping-pong of one send/receive pair over one range of message sizes."""

    descr = "ping-pong of one send/receive pair over a range of message sizes"
    pair = parameter(PAIRS, loggable=True)
    message_range = parameter(RANGES, loggable=True)

    #: `modified` waits for the receive before it echoes; `original`, on request
    #: (`-S PointToPoint.order=original`), is the thesis' first program, which overstates.
    order = variable(str, value="modified", loggable=True)

    def sweep(self) -> MessageRange:
        """Return message sizes and iterations, fewer in tier `quick` on a slow link."""
        sweep, link = RANGES[self.message_range], self.site()["link_bytes_per_s"]
        if TIER == "paper" or not link or self.nodes == 1:
            return sweep
        return sweep.shortened(link, QUICK_SECONDS)

    def ping_pong(self) -> Sweep:
        """Return what the program is asked for."""
        sweep = self.sweep()
        return Sweep(self.pair, self.order, tuple(sweep.sizes()), sweep.iterations, sweep.warmup)

    @run_after("init")
    def allow_for_the_paper(self) -> None:
        """Allow the time that the thesis' own number of sizes and iterations takes."""
        if TIER == "paper":
            self.time_limit = "30m"

    def cell_parameters(self) -> dict[str, str]:
        """Return what identifies the cell."""
        parameters = {"pair": self.pair, "message_range": self.message_range}
        return parameters if self.order == "modified" else {**parameters, "order": self.order}
