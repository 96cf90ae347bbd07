"""Process start-up: from the launch to the last integer at rank 0 (Kearns 2003, Table 9)."""

import copy
import sys
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_after, run_before
from reframe.core.exceptions import SanityError

from records.start_up import of_the_thesis, points_out_of_order, start_up_times
from reframe_checks.mixins import page_cache
from reframe_checks.mixins.cores import cores_of_site
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.image import ROOT
from reframe_checks.mixins.job_script import quoted
from reframe_checks.mixins.recording import Suspect
from reframe_checks.mixins.tiers import of_tier

# What the job script, and a launcher that boots daemons, leave in the launch's folder.
LAUNCH_HOST = "launch_host"
CONTAINER_STARTED = "container_started"
CONTAINER_ENDED = "container_ended"
DAEMONS_BOOTED = "lam_booted"


def two_and_most() -> list[int]:
    """Return 2 and the largest count of Table 9 that the site has cores for, at least 4."""
    counts = of_the_thesis(ROOT)
    return [2, max(count for count in counts if count <= max(4, cores_of_site()))]


@rfm.simple_test
class StartUp(Experiment):
    """One launch of ranks that do nothing but report to rank 0."""

    descr = "process start-up, from the launch to the last rank's integer at rank 0"
    program = "startup"
    # This measures what MPI_Init waits for.
    measures_start = True
    # And how long a container takes, from an image in the page cache or not.
    in_containers_only = True
    ranks = parameter(
        of_tier(quick=two_and_most, paper=lambda: sorted(of_the_thesis(ROOT)))(), loggable=True
    )
    #: Whether the image's pages are in the page cache when the launch begins.
    cache = parameter(page_cache.STATES, loggable=True)

    @run_after("init")
    def set_ranks(self) -> None:
        """Start the cell's ranks, even if there are fewer cores, unlike in 2003."""
        self.num_tasks = self.ranks

    @run_after("setup")
    def leave_out_what_cannot_be_cold(self) -> None:
        """Leave out cold launches where the kernel does not drop the image from its cache."""
        if self.cache == "cold":
            sentence = page_cache.put("cold", Path(self.image.path))
            self.skip_if(bool(sentence), str(sentence))

    @run_before("run")
    def set_cache_and_time_container(self) -> None:
        """Before the launch, start /bin/true in the same way, each from the same cache state."""
        # Heeded by a launcher that boots daemons, and by nothing else.
        self.container_platform.options += [f"--env=LAM_RANKS_BOOTED={DAEMONS_BOOTED}"]
        platform = copy.copy(self.container_platform)
        platform.command = "/bin/true"
        script = [sys.executable, page_cache.__file__, self.cache, str(platform.image)]
        set_cache = f"{self.on_every_node(quoted(*script))} || exit $?"
        self.prerun_cmds = [
            f"uname -n >{LAUNCH_HOST}",
            set_cache,
            f"date +%s.%N >{CONTAINER_STARTED}",
            f"{platform.launch_command(self.stagedir)} || exit $?",
            f"date +%s.%N >{CONTAINER_ENDED}",
            set_cache,
            *self.prerun_cmds,
        ]

    def outputs(self) -> list[str]:
        """Return the names of files that programs leave: when a launcher's daemons were up."""
        return [DAEMONS_BOOTED]

    def on_every_node(self, command: str) -> str:
        """Return a command that runs another once on every node of the job.

        Where one machine plays all nodes they share one page cache, so the first node suffices.
        """
        if self.nodes == 1 or self.site().get("shared_page_cache"):
            return command
        scheduler = self.current_partition.scheduler.registered_name
        if scheduler not in ("slurm", "squeue"):
            raise SanityError(
                f"the image's cache state on {self.nodes} nodes can be set through Slurm only, but "
                f"the site's scheduler is {scheduler}"
            )
        nodes = f"--nodes={self.nodes} --ntasks={self.nodes} --ntasks-per-node=1"
        return f"srun --mpi=none {nodes} {command}"

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell."""
        return {"ranks": self.ranks, "cache": self.cache}

    def point_in(self, name: str) -> float | None:
        """Return the time in a file of the launch's folder, in seconds since the epoch, if any."""
        try:
            return float((Path(self.stagedir) / name).read_text())
        except (OSError, ValueError):
            return None

    def other_times(self) -> dict[str, float]:
        """Return what was timed outside the program, in seconds.

        `container` is one start of /bin/true in the image; `daemons`, only where the launcher boots
        them, is the time from the launch until they were up.
        """
        times = {}
        started, ended = self.point_in(CONTAINER_STARTED), self.point_in(CONTAINER_ENDED)
        if started is not None and ended is not None:
            times["container"] = ended - started
        span, booted = self.launch_seconds(), self.point_in(DAEMONS_BOOTED)
        if span and booted is not None:
            times["daemons"] = booted - span[0]
        return times

    def examine(self) -> None:
        """Refuse a launch from a host other than rank 0's, and impossible times."""
        output = self.read_records()
        span = self.launch_seconds()
        self.others = self.other_times()
        if span is None or "container" not in self.others:
            raise SanityError("the job script did not record when launch or container began")
        here = (Path(self.stagedir) / LAUNCH_HOST).read_text().strip()
        if output.header.hosts[0] != here:
            raise SanityError(
                f"the launch began on {here}, but rank 0 ran on {output.header.hosts[0]}: "
                "a duration cannot be measured between two clocks"
            )
        sentence = points_out_of_order(output, *span)
        if sentence:
            raise Suspect(sentence)
        self.times = start_up_times(output, span[0])
        for name, seconds in self.others.items():
            if seconds <= 0:
                raise Suspect(f"{name} took {seconds:.6f} s: a clock was set in the meantime")
        if self.others.get("daemons", 0.0) > self.times.start_up:
            raise Suspect(
                f"the daemons were up after {self.others['daemons']:.6f} s, but rank 0 had every "
                f"integer earlier, after {self.times.start_up:.6f} s"
            )

    @run_before("performance")
    def tell_daemons_apart(self) -> None:
        """Report how long the daemons took to boot, where the launch booted any."""
        if "daemons" in self.others:
            self.perf_variables["daemons"] = sn.make_performance_function(
                sn.defer(self.others["daemons"]), "s"
            )

    @performance_function("s")
    def start_up(self) -> float:
        """Return the time from the launch to the last integer at rank 0."""
        return self.times.start_up

    @performance_function("s")
    def to_main(self) -> float:
        """Return the time from the launch to the last entry of main on rank 0's node."""
        return self.times.to_main

    @performance_function("s")
    def initialisation(self) -> float:
        """Return the slowest rank's time from its entry of main to its return from MPI_Init."""
        return self.times.initialisation

    @performance_function("s")
    def container(self) -> float:
        """Return how long one start of /bin/true in the image took, just before the launch."""
        return self.others["container"]


@rfm.simple_test
class SessionStart(StartUp):
    """The same of ranks that begin with MPI_Session_init and have no MPI_COMM_WORLD."""

    descr = "process start-up by Sessions, from the launch to the last rank's integer at rank 0"
    program_arguments = ["--sessions"]
    only_when_named = True
    require_reference = False
