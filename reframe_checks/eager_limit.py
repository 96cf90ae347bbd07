"""Each implementation's own eager limit, swept: the future work of Kearns 2003, chapter 6."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before
from reframe.core.exceptions import SanityError

from reframe_checks.mixins.ping_pong import PingPongExperiment, Sweep
from reframe_checks.mixins.tiers import TIER, of_tier

LIMITS = of_tier(quick=(1024, 65_536), paper=(1024, 4096, 16_384, 65_536, 131_072, 262_144))
# On both sides of every limit.
SIZES = of_tier(
    quick=(512, 4096, 32_768, 100_000),
    paper=tuple(size for limit in range(9, 20) for size in (2**limit, 3 * 2 ** (limit - 1))),
)
ITERATIONS = of_tier(quick=20, paper=500)


@rfm.simple_test
class EagerLimit(PingPongExperiment):
    """Ping-pong with messages up to a limit sent without asking the receiver."""

    descr = "ping-pong over message sizes with another eager limit"
    #: In bytes; how an implementation is told is a label of its image.
    limit = parameter(LIMITS, loggable=True)
    # No report measured it.
    require_reference = False

    @run_after("init")
    def allow_for_the_paper(self) -> None:
        """Allow the time that the whole sweep takes."""
        if TIER == "paper":
            self.time_limit = "30m"

    @run_before("run", always_last=True)
    def set_limit(self) -> None:
        """Set the variables that the image's label names."""
        variables = self.image.labels.eager_limit
        if not variables:
            raise SanityError(
                f"{self.implementation()} has no label 'org.wyeast.eager_limit', so its limit "
                "cannot be set; see eager_limit in docs/reference/images.md"
            )
        self.container_platform.options += [f"--env={name}={self.limit}" for name in variables]

    def ping_pong(self) -> Sweep:
        """Return what the program is asked for."""
        return Sweep("Send/Recv", "modified", SIZES, ITERATIONS, ITERATIONS // 5)

    def cell_parameters(self) -> dict[str, int]:
        """Return what identifies the cell."""
        return {"limit": self.limit}
