"""Echo between two ranks without MPI, as the network's and the memory's own row (ORNL 1996)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import reframe as rfm
from reframe.core.builtins import parameter, performance_function, run_after
from reframe.core.exceptions import SanityError

from records.communication import Communication
from records.limits.plausibility import echo_above_link
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.ping_pong import fitting_iterations
from reframe_checks.mixins.recording import Suspect
from reframe_checks.mixins.tiers import TIER, of_tier

if TYPE_CHECKING:
    from inference.latency_bandwidth import LatencyBandwidth


@dataclass(frozen=True)
class Echoes:
    """Message sizes in bytes, and how often each is sent and returned."""

    sizes: list[int]
    iterations: int
    warmup: int

    def shortened(self, link_bytes_per_s: float, seconds: float) -> "Echoes":
        """Return as many iterations as the link carries in some seconds, at all sizes together."""
        both_ways = 2 * sum(self.sizes)
        iterations = fitting_iterations(self.iterations, both_ways, link_bytes_per_s, seconds)
        return Echoes(self.sizes, iterations, min(self.warmup, iterations // 5))


# In tier `quick`, on a slow link, the longest a launch may take to send its messages, in seconds.
QUICK_SECONDS = 5.0

# Section 2.2: "for some number of repetitions (100 to 1000) over various message sizes (0 to
# 1,000,000 bytes)". A datagram has 65,507 bytes at most, and a stream no message of none. 1,472
# bytes is the longest that goes in one frame of Ethernet; beyond it a datagram goes in fragments.
SIZES_OF_1996 = [0, 1, 10, 100, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000]
LARGEST_DATAGRAM = 65_507
ECHOES = of_tier(
    quick={
        "udp": Echoes([0, 8, 100, 1_000, 1_472, 8_192, 32_768], iterations=200, warmup=20),
        "tcp": Echoes([1, 8, 100, 1_000, 10_000, 100_000, 1_000_000], iterations=200, warmup=20),
        "memory": Echoes([0, 8, 1_000, 10_000, 100_000, 1_000_000], iterations=500, warmup=50),
    },
    paper={
        "udp": Echoes(
            [size for size in SIZES_OF_1996 if size <= LARGEST_DATAGRAM], iterations=1000, warmup=10
        ),
        "tcp": Echoes([size for size in SIZES_OF_1996 if size > 0], iterations=1000, warmup=10),
        "memory": Echoes(SIZES_OF_1996, iterations=1000, warmup=10),
    },
)


@rfm.simple_test
class RawNetwork(Experiment):
    """Echoes by one way over a range of message sizes."""

    descr = "echo between two ranks without MPI messages"
    program = "echo"
    spread = True
    via = parameter(ECHOES, loggable=True)

    @run_after("init")
    def allow_for_the_paper(self) -> None:
        """Allow the time that ORNL's own number of repetitions takes on a slow link."""
        if TIER == "paper":
            self.time_limit = "30m"

    def echoes(self) -> Echoes:
        """Return message sizes and iterations, fewer in tier `quick` on a slow link."""
        echoes, link = ECHOES[self.via], self.site()["link_bytes_per_s"]
        if TIER == "paper" or not link or self.nodes == 1:
            return echoes
        return echoes.shortened(link, QUICK_SECONDS)

    @run_after("setup")
    def leave_out_what_cannot_be_measured(self) -> None:
        """Leave out shared memory if the ranks are on different nodes."""
        self.skip_if(
            self.via == "memory" and self.nodes > 1,
            "the ranks are on different nodes, which share no memory",
        )

    @run_after("setup")
    def describe_echoes(self) -> None:
        """Pass the sizes to the program, with every iteration's time in the output."""
        echoes = self.echoes()
        self.program_arguments = [
            "--via", self.via,
            *(word for size in echoes.sizes for word in ("--sizes", str(size))),
            "--iterations", str(echoes.iterations),
            "--warmup", str(echoes.warmup),
            "--raw",
        ]  # fmt: skip

    def cell_parameters(self) -> dict[str, str]:
        """Return what identifies the cell."""
        return {"via": self.via}

    def examine(self) -> None:
        """Refuse results other than those requested, and impossible bandwidths."""
        output = self.read_records()
        echoes = self.echoes()
        results = output.communications()
        found = [
            (r.operation, r.method, r.group, r.message_bytes, r.iterations, r.discarded)
            for r in results
        ]
        asked = [("echo", self.via, "pair", size, echoes.iterations, 0) for size in echoes.sizes]
        if found != asked or len(results) != len(output.results):
            missing = [size for size in echoes.sizes if size not in {f[3] for f in found}]
            raise SanityError(
                f"the output has {len(output.results)} results, not the {len(asked)} requested "
                f"(message sizes missing: {missing or 'none, but other parameters differ'})"
            )
        if [len(series.time_s) for series in output.iterations] != [echoes.iterations] * len(asked):
            raise SanityError("the output lacks the times of single iterations")
        for result in results:
            if result.verified_bytes != 2 * result.message_bytes:
                raise SanityError(
                    f"{self.via}, {result.message_bytes} bytes: {result.verified_bytes} bytes were "
                    "verified, not all that were sent both ways"
                )
            link = self.site()["link_bytes_per_s"] if self.nodes > 1 else None
            sentence = echo_above_link(result, link) if link else None
            if sentence:
                raise Suspect(sentence)
        self.measured = fit_echoes(results)

    @performance_function("B/s")
    def bandwidth(self) -> float:
        """Return the bandwidth at the largest message: its size by half its median round trip."""
        return self.measured.bandwidth

    @performance_function("s")
    def latency(self) -> float:
        """Return half the median round trip of the smallest message."""
        return self.measured.latency_s


def fit_echoes(echoes: Sequence[Communication]) -> "LatencyBandwidth":
    """Return the fit of echoes of one method, by half of each one's median round trip.

    ORNL 1996, section 2.2, takes the minimum for the latency; the median is what all else here is
    summarised by. Raises ValueError where they are not echoes of one method.
    """
    # Here, since whatever starts ReFrame loads all checks, and numpy takes longer than any.
    from inference.latency_bandwidth import fit

    if {(echo.operation, echo.method) for echo in echoes} - {("echo", echoes[0].method)}:
        raise ValueError("the results are not echoes of one method")
    return fit([echo.message_bytes for echo in echoes], [echo.time_s.median / 2 for echo in echoes])
