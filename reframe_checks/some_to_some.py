"""A sparse exchange between random pairs of ranks: NASA's STS."""

from collections.abc import Iterable

import reframe as rfm
from reframe.core.builtins import variable

from reframe_checks.mixins.communicating import Communicating, Point
from reframe_checks.mixins.tiers import of_tier

STYLES = ("asynchronous", "synchronous")
SIDED = ("single", "double")


@rfm.simple_test
class SomeToSome(Communicating):
    """Randomly sized messages between random pairs, in both styles, single and double sided."""

    descr = "sparse exchange of randomly sized messages between random pairs"
    program = "some_to_some"

    #: Messages that a rank sends on average; NASA's tables are of 6.
    messages = variable(int, value=6, loggable=True)
    #: The largest message in bytes. NASA's example has 131,037 bytes on average.
    most_bytes = variable(int, value=of_tier(quick=32_768, paper=262_144), loggable=True)
    #: Of the pairs and sizes, which are the same on every machine.
    seed = variable(int, value=1, loggable=True)
    iterations = variable(int, value=of_tier(quick=5, paper=200))

    def ranks_wanted(self) -> int:
        """Return NASA's most ranks."""
        return int(of_tier(quick=4, paper=384))

    def iterations_wanted(self) -> int:
        """Return how often each exchange is timed."""
        return int(self.iterations)

    def arguments(self) -> list[str]:
        """Return the parameters of the exchange, in both styles, single and double sided."""
        return [
            "--style", "all",
            "--sided", "all",
            "--messages", str(self.messages),
            "--most-bytes", str(self.most_bytes),
            "--seed", str(self.seed),
        ]  # fmt: skip

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {
            "ranks": self.num_tasks,
            "messages": self.messages,
            "most_bytes": self.most_bytes,
            "seed": self.seed,
        }

    def asked_points(self) -> Iterable[Point]:
        """Return the points in the program's order; the mean size follows from the seed."""
        group = f"world, {self.messages} messages a rank, seed {self.seed}"
        means = {
            result.method.split(" ")[1]: result.message_bytes
            for result in self.read_records().communications()
        }
        for sided in SIDED:
            for style in STYLES:
                method = f"{style} {sided}-sided"
                yield Point("some-to-some", method, group, means.get(f"{sided}-sided", 0))
