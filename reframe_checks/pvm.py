"""PVM's latency and bandwidth by echo (ORNL 1996, Table 2.1; NASA 2003, LBW and PVM Results)."""

import csv
from dataclasses import dataclass, replace

import reframe as rfm
from reframe.core.builtins import parameter, performance_function, run_after
from reframe.core.exceptions import SanityError

from records.limits.plausibility import echo_above_link, one_way_bandwidth
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.image import ROOT
from reframe_checks.mixins.ping_pong import fitting_iterations
from reframe_checks.mixins.recording import Suspect
from reframe_checks.mixins.tiers import TIER, of_tier

#: In tier `quick`, on a slow link, how long it would take to carry all of a message size's
#: iterations, in seconds. PVM's daemons wait for each other, and take ten times as long.
QUICK_SECONDS = 1.0


@dataclass(frozen=True)
class PvmSweep:
    """Message sizes in bytes, and how often each is timed."""

    sizes: tuple[int, ...]
    iterations: int
    warmup: int = 5

    def shortened(self, link_bytes_per_s: float, seconds: float) -> "PvmSweep":
        """Return the sweep with as many iterations of its largest message as fit into a time."""
        moved = 2 * max(self.sizes)
        iterations = fitting_iterations(self.iterations, moved, link_bytes_per_s, seconds)
        if iterations == self.iterations:
            return self
        return replace(self, iterations=iterations, warmup=min(self.warmup, iterations // 5))


def sizes_of_nasa() -> tuple[int, ...]:
    """Return the message sizes of NASA's LBW in bytes."""
    with (ROOT / "literature" / "nas2003/lbw_size.csv").open() as table:
        return tuple(sorted({int(row["message_bytes"]) for row in csv.DictReader(table)}))


# ORNL's echo test has messages of 0 to 1,000,000 bytes, sent 100 to 1000 times. Its report does not
# name those between; short ones tell the latency, so they are closest together.
SIZES_OF_ORNL = (0, 10, 100, 1_000, 10_000, 100_000, 200_000, 500_000, 1_000_000)
SWEEPS = of_tier(
    quick={"few": PvmSweep((0, 1_000, 10_000, 100_000, 1_000_000), iterations=20)},
    paper={
        "ornl1996": PvmSweep(SIZES_OF_ORNL, iterations=100),
        "nas2003": PvmSweep(sizes_of_nasa(), iterations=100),
    },
)


@rfm.simple_test
class PvmEcho(Experiment):
    """Round trips between two tasks of PVM, by one way of sending and one route."""

    descr = "PVM: echo between two tasks"
    interface = "pvm"
    program = "pvm_echo"
    spread = True
    message_sizes = parameter(SWEEPS, loggable=True)
    #: By which calls; benchmarks/FORMAT.md says what they copy.
    method = parameter(
        of_tier(
            quick=["pvm_send", "pvm_psend"], paper=["pvm_send", "pvm_send-in-place", "pvm_psend"]
        ),
        loggable=True,
    )
    #: From task to task, or over PVM's daemons, which is what PVM does unless told otherwise.
    route = parameter(["direct", "daemon"], loggable=True)

    @run_after("init")
    def allow_for_the_paper(self) -> None:
        """Allow the time that messages of 20 MB take over a slow link."""
        if TIER == "paper":
            self.time_limit = "3h"

    def sweep(self) -> PvmSweep:
        """Return message sizes and iterations, fewer in tier `quick` on a slow link."""
        sweep, link = SWEEPS[self.message_sizes], self.site()["link_bytes_per_s"]
        if TIER == "paper" or not link or self.nodes == 1:
            return sweep
        return sweep.shortened(link, QUICK_SECONDS)

    @run_after("setup")
    def describe_sweep(self) -> None:
        """Pass sizes, method and route to the program, and ask for every iteration's time."""
        sweep = self.sweep()
        sizes = [word for size in sweep.sizes for word in ("--sizes", str(size))]
        self.program_arguments = [
            *sizes,
            "--method", self.method,
            "--route", self.route,
            "--iterations", str(sweep.iterations),
            "--warmup", str(sweep.warmup),
            "--raw",
        ]  # fmt: skip

    def cell_parameters(self) -> dict[str, str]:
        """Return what identifies the cell."""
        return {
            "message_sizes": self.message_sizes, "method": self.method, "route": self.route,
        }  # fmt: skip

    def examine(self) -> None:
        """Refuse another PVM, results other than those requested, impossible bandwidths."""
        output = self.read_records()
        version = self.image.labels.version
        if output.header.library != f"PVM {version}":
            raise SanityError(
                f"the image holds PVM {version}, but the library that ran reports: "
                f"{output.header.library}"
            )
        sweep = self.sweep()
        results = output.communications()
        found = [(r.operation, r.method, r.group, r.message_bytes, r.iterations) for r in results]
        asked = [
            ("echo", f"{self.method}/{self.route}", "pair", size, sweep.iterations)
            for size in sweep.sizes
        ]
        if found != asked or len(output.results) != len(asked):
            other = [one for one in asked if one not in found] or found
            raise SanityError(
                f"the {len(output.results)} results in the output are not the {len(asked)} that "
                f"were requested: see {other[0]}"
            )
        if [len(series.time_s) for series in output.iterations] != [sweep.iterations] * len(asked):
            raise SanityError("the output lacks the times of single iterations")
        unverified = [r.message_bytes for r in results if r.verified_bytes != 2 * r.message_bytes]
        if unverified:
            raise SanityError(f"data were not verified both ways for the sizes {unverified}")
        link = self.site()["link_bytes_per_s"] if self.nodes > 1 else None
        for result in results:
            sentence = echo_above_link(result, link) if link else None
            if sentence:
                raise Suspect(sentence)
        self.measured = results

    @performance_function("B/s")
    def bandwidth(self) -> float:
        """Return the bandwidth at the largest message: two messages a round trip."""
        last = self.measured[-1]
        return one_way_bandwidth(last.message_bytes, last.time_s.median)

    @performance_function("s")
    def latency(self) -> float:
        """Return half the median round trip of the smallest message."""
        return float(self.measured[0].time_s.median / 2)
