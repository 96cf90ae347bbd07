"""A sparse exchange between random pairs of ranks: NASA's STS."""

from collections.abc import Iterable

import reframe as rfm
from reframe.core.builtins import variable
from reframe.core.exceptions import SanityError

from records.communication import Communication
from records.limits.links import Message, drawn_messages
from reframe_checks.mixins.communicating import AskedPoint
from reframe_checks.mixins.ranks_chosen import RanksChosen
from reframe_checks.mixins.tiers import of_tier

STYLES = ("asynchronous", "synchronous")
SIDED = ("single", "double")


@rfm.simple_test
class SomeToSome(RanksChosen):
    """Randomly sized messages between random pairs, in both styles, single and double sided."""

    descr = "sparse exchange of randomly sized messages between random pairs"
    program = "some_to_some"

    #: Messages that a rank sends on average; NASA's tables are of 6.
    messages = variable(int, value=6, loggable=True)
    #: The largest message in bytes. NASA's example has 131,037 bytes on average.
    most_bytes = variable(int, value=of_tier(quick=32_768, paper=262_144), loggable=True)
    #: The seed of pairs and sizes, which are the same on every machine.
    seed = variable(int, value=1, loggable=True)
    iterations = variable(int, value=of_tier(quick=5, paper=200))

    def ranks_wanted(self) -> int:
        """Return NASA's largest number of ranks."""
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
        return super().cell_parameters() | {
            "messages": self.messages,
            "most_bytes": self.most_bytes,
            "seed": self.seed,
        }

    def drawn(self, sided: str) -> list[Message]:
        """Return the messages of an exchange, single or double sided, that the seed gives."""
        return drawn_messages(
            self.seed, self.num_tasks, self.messages, self.most_bytes, double=sided == "double"
        )

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points in the program's order; the mean size follows from the seed."""
        group = f"world, {self.messages} messages a rank, seed {self.seed}"
        for sided in SIDED:
            drawn = self.drawn(sided)
            mean = sum(message.size_bytes for message in drawn) // len(drawn)
            for style in STYLES:
                yield AskedPoint("some-to-some", f"{style} {sided}-sided", group, mean)

    def messages_of(self, result: Communication) -> list[Message]:
        """Return the messages of one exchange."""
        return self.drawn(result.method.split()[1].removesuffix("-sided"))

    def examine(self) -> None:
        """Refuse as others do, and also exchanges of messages that the seed does not give."""
        super().examine()
        for result in self.measured:
            drawn = sum(message.size_bytes for message in self.messages_of(result))
            if result.moved_bytes != drawn:
                raise SanityError(
                    f"{result.series}: {result.moved_bytes} bytes moved, but the messages of seed "
                    f"{self.seed} have {drawn}"
                )
