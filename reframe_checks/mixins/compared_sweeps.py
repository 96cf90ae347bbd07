"""The message sizes and iterations at which our programs and others are compared."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reframe_checks.mixins.tiers import of_tier

# On a link, the longest that one trial of the largest message may take, in seconds.
LONGEST_TRIAL_S = 0.5
FEWEST_ITERATIONS = 3
MOST_OVER_LINK = 200
DOUBLE = 8
# NetPIPE's sizes before the first that is compared, as powers of two.
LEADING = 2


@dataclass(frozen=True)
class ComparedSweep:
    """Message sizes in bytes, powers of two; iterations of one trial, and turns of a program."""

    first: int
    last: int
    iterations: int
    turns: int

    def powers(self) -> list[int]:
        """Return the powers of two from the first to the last."""
        return [1 << n for n in range(self.first.bit_length() - 1, self.last.bit_length())]

    def powers_and_between(self) -> list[int]:
        """Return NetPIPE's own sizes: the powers of two and the middle between any two."""
        between = [size + size // 2 for size in self.powers()[:-1]]
        return sorted({*self.powers(), *between})

    def led_into(self) -> int:
        """Return where NetPIPE begins: its first sizes are the warm-up that others do not time."""
        return max(1, self.first >> LEADING)

    def doubles(self) -> list[int]:
        """Return the powers of two that hold whole doubles, which is what is reduced."""
        return [size for size in self.powers() if size >= DOUBLE]

    def over_link(self, link_bytes_per_s: float) -> ComparedSweep:
        """Return the sweep with fewer iterations: on a slow link caches hardly matter."""
        fitting = int(LONGEST_TRIAL_S * link_bytes_per_s / (2 * self.last))
        most = max(FEWEST_ITERATIONS, min(fitting, MOST_OVER_LINK))
        return replace(self, iterations=min(self.iterations, most))


# A trial takes ten milliseconds in shared memory, so that many are over before something else wants
# the core: the averages that the others report cannot tell such a pause. Fewer iterations would not
# do: the first of a trial find caches and page tables of another size, some of them ten times as
# slow, and in an average of forty that is more than the tolerance.
SWEEPS = {
    "short": ComparedSweep(1, 8192, iterations=1000, turns=of_tier(quick=9, paper=25)),
    "medium": ComparedSweep(16384, 131072, iterations=1000, turns=of_tier(quick=9, paper=25)),
    "long": ComparedSweep(
        262144,
        of_tier(quick=1 << 20, paper=1 << 22),
        iterations=400,
        turns=of_tier(quick=9, paper=25),
    ),
}
