"""A check that times round trips between two ranks, over message sizes."""

from dataclasses import dataclass, replace

from reframe.core.builtins import performance_function, run_after
from reframe.core.exceptions import SanityError

from records.communication import PingPong
from records.limits.plausibility import bandwidth_above_link, message_faster_than_memory
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.recording import Suspect
from reframe_checks.mixins.tiers import TIER

FEWEST_ITERATIONS = 5


def fitting_iterations(most: int, moved_bytes: int, link_bytes_per_s: float, seconds: float) -> int:
    """Return how many iterations of so many bytes one way a link carries in some seconds.

    The count follows from the link alone, so it is the same for every implementation. A few
    iterations are always left: launches, not iterations, are what the statistics count.
    """
    return min(most, max(FEWEST_ITERATIONS, int(seconds * link_bytes_per_s / moved_bytes)))


@dataclass(frozen=True)
class Sweep:
    """What the program is to measure; sizes in bytes, ascending.

    With `refine`, sizes are added where the time deviates from the line by this fraction.
    """

    pair: str
    order: str
    sizes: tuple[int, ...]
    iterations: int
    warmup: int
    refine: float = 0.0
    cache_bytes: int = 0
    stride_bytes: int = 0

    def shortened(self, link_bytes_per_s: float, seconds: float) -> "Sweep":
        """Return the sweep with as many iterations as take some seconds over all sizes."""
        both_ways = 2 * sum(self.sizes)
        iterations = fitting_iterations(self.iterations, both_ways, link_bytes_per_s, seconds)
        return replace(self, iterations=iterations, warmup=min(self.warmup, iterations // 5))

    def arguments(self) -> list[str]:
        """Return the program's arguments, with every iteration's time in the output."""
        return [
            "--pair", self.pair,
            "--order", self.order,
            *(word for size in self.sizes for word in ("--sizes", str(size))),
            "--iterations", str(self.iterations),
            "--warmup", str(self.warmup),
            "--refine", str(self.refine or 0),
            "--cache-bytes", str(self.cache_bytes),
            "--stride-bytes", str(self.stride_bytes),
            "--raw",
        ]  # fmt: skip


class PingPongExperiment(Experiment):
    """The results are those of the requested sweep, and none is faster than it can be."""

    program = "pingpong"
    spread = True

    def ping_pong(self) -> Sweep:
        """Return what the program is to measure."""
        raise NotImplementedError

    def within(self, seconds: float, sweep: Sweep) -> Sweep:
        """Return a sweep that, in tier `quick`, takes at most some seconds of the site's link.

        Only if the ranks are on different nodes: messages through memory are quick anyway.
        """
        link = self.site()["link_bytes_per_s"]
        if TIER == "paper" or not link or self.nodes == 1:
            return sweep
        return sweep.shortened(link, seconds)

    @run_after("setup")
    def describe_sweep(self) -> None:
        """Pass the sweep to the program."""
        self.program_arguments = self.ping_pong().arguments()

    def examine(self) -> None:
        """Refuse results other than those requested, and impossible bandwidths."""
        output = self.read_records()
        sweep = self.ping_pong()
        results = [result for result in output.results if isinstance(result, PingPong)]
        found = [(r.pair, r.order, r.message_bytes, r.iterations) for r in results]
        asked = [(sweep.pair, sweep.order, size, sweep.iterations) for size in sweep.sizes]
        given, refined = found[: len(asked)], found[len(asked) :]
        if given != asked or not self.are_between(refined):
            missing = [size for _, _, size, _ in asked if size not in {f[2] for f in found}]
            raise SanityError(
                f"the output has {len(found)} results, not the {len(asked)} requested "
                f"(message sizes missing: {missing or 'none, but other parameters differ'})"
            )
        if [len(series.time_s) for series in output.iterations] != [sweep.iterations] * len(found):
            raise SanityError("the output lacks the times of single iterations")
        link = self.site()["link_bytes_per_s"] if self.nodes > 1 else None
        for result in results:
            sentence = (
                bandwidth_above_link(result, link) if link else message_faster_than_memory(result)
            )
            if sentence:
                raise Suspect(sentence)
        self.measured = sorted(results, key=lambda result: result.message_bytes)

    def are_between(self, refined: list[tuple[str, str, int, int]]) -> bool:
        """Return whether results beyond the requested sizes are refinements of them."""
        sweep = self.ping_pong()
        sizes = [size for _, _, size, _ in refined]
        if not sweep.refine:
            return not refined
        return (
            len(set(sizes) | set(sweep.sizes)) == len(sizes) + len(sweep.sizes)
            and all(sweep.sizes[0] < size < sweep.sizes[-1] for size in sizes)
            and {(pair, order, n) for pair, order, _, n in refined}
            <= {(sweep.pair, sweep.order, sweep.iterations)}
        )

    @performance_function("B/s")
    def bandwidth(self) -> float:
        """Return the bandwidth at the largest message: two messages a round trip."""
        last = self.measured[-1]
        return float(2 * last.message_bytes / last.time_s.median)

    @performance_function("s")
    def latency(self) -> float:
        """Return half the median round trip of the smallest message."""
        return float(self.measured[0].time_s.median / 2)
