"""ORNL's echo test (1996): latency, bandwidth and n1/2 of messages between two nodes."""

import reframe as rfm
from reframe.core.builtins import performance_function, run_after

from reframe_checks.mixins.ping_pong import PingPongExperiment, Sweep
from reframe_checks.mixins.tiers import TIER, of_tier

# Section 2.2: "for some number of repetitions (100 to 1000) over various message sizes (0 to
# 1,000,000 bytes)". As many iterations for all sizes of a launch; on a slow link tier `quick` has
# fewer.
SIZES = of_tier(
    quick=(0, 8, 100, 1_000, 10_000, 100_000, 1_000_000),
    paper=(0, 1, 10, 100, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000),
)
ITERATIONS = of_tier(quick=200, paper=1000)
# In tier `quick`, on a slow link, the longest a launch may take to send its messages, in seconds.
QUICK_SECONDS = 5.0


@rfm.simple_test
class EchoTest(PingPongExperiment):
    """Round trips of 0 to 1,000,000 bytes, and the line through their times."""

    descr = "echo test: latency, bandwidth and n1/2"
    # The machines of the report are thirty years older; RawNetwork is what to hold this against.
    require_reference = False

    @run_after("init")
    def allow_for_the_paper(self) -> None:
        """Allow the time that the report's own number of repetitions takes on a slow link."""
        if TIER == "paper":
            self.time_limit = "30m"

    def ping_pong(self) -> Sweep:
        """Return what the program is asked for."""
        whole = Sweep("Send/Recv", "modified", SIZES, ITERATIONS, ITERATIONS // 5)
        return self.within(QUICK_SECONDS, whole)

    def cell_parameters(self) -> dict[str, int]:
        """Return what identifies the cell."""
        return {"ranks": self.num_tasks}

    @performance_function("B")
    def half_bandwidth_size(self) -> float:
        """Return n1/2, the size at which half of the asymptotic bandwidth is reached; 0: none."""
        # Here, since whatever starts ReFrame loads all checks, and numpy takes longer than any.
        from inference.latency_bandwidth import fit

        line = fit(
            [result.message_bytes for result in self.measured],
            [result.time_s.median / 2 for result in self.measured],
        )
        return float(line.half_bandwidth_bytes or 0.0)
