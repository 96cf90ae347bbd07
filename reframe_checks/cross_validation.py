"""Agreement with programs that nobody here wrote: NetPIPE and Intel MPI Benchmarks.

In one job, on the same nodes, the programs take turns; docs/method/cross-validation.md says
what is compared.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_after, run_before
from reframe.core.exceptions import SanityError

from records.communication import Communication, PingPong
from records.counting import how_many
from records.ending import told_in
from records.imb import read_imb_output
from records.netpipe import read_netpipe_hosts, read_netpipe_output
from reframe_checks.mixins.agreement import (
    Agreement,
    Circumstances,
    ReasonsError,
    compare,
    disagreement,
    read_reasons,
    times_by_size,
)
from reframe_checks.mixins.compared_sweeps import FEWEST_ITERATIONS, SWEEPS, ComparedSweep
from reframe_checks.mixins.cores import ranks_with_processors
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.launching import CannotStart

REASONS = Path(__file__).with_name("cross_validation.yaml")
NETPIPE, IMB = "NPmpi", "IMB-MPI1"
# IMB reads its sizes from this file: the option that takes a list came with 2021.9 only, and older
# ones measure sizes of their own and end well.
IMB_SIZES = "imb_sizes"
#: What is compared, with IMB's name for it.
OPERATIONS = {
    "pingpong": "PingPong",
    "barrier": "Barrier",
    "bcast": "Bcast",
    "alltoall": "Alltoall",
    "reduce-sum": "Reduce",
    "allreduce-sum": "Allreduce",
}
# NetPIPE times each size in so many trials and reports the best; the others do each size as often.
TRIALS_OF_NETPIPE = 3
# In shared memory a collective operation may take twice as long through a whole trial, or not: of
# so many trials one is almost surely of the quick kind, with either program. They share the
# iterations of a ping-pong.
TRIALS_OF_COLLECTIVE = 9
TABLE = "agreement.json"
# Where long buffers of malloc or MPI_Alloc_mem begin, in bytes behind a page's beginning; IMB has
# such buffers.
PAGE_OFFSET = 16
# A tree over two ranks is no tree; more ranks than this reveal nothing new about the timing.
MOST_RANKS = 8


@dataclass(frozen=True)
class Foreign:
    """A third-party program: its arguments, and where its result and messages go."""

    name: str
    arguments: Callable[[int], list[str]]
    #: Return the times of one turn's launch.
    read: Callable[[int], dict[int, list[float]]]
    #: How many times it reports for each size.
    times: int


@rfm.simple_test
class CrossValidation(Experiment):
    """One operation, timed by our program and by others in turns."""

    descr = "agreement of our programs' times with those of NetPIPE and IMB"
    # Images have the programs of others.
    in_containers_only = True
    spread = True
    operation = parameter(OPERATIONS, loggable=True)
    message_range = parameter(SWEEPS, loggable=True)
    # The agreement itself is what is judged; a time of these programs is no reference.
    require_reference = False
    time_limit = "20m"
    # It is slow and compares no implementations.
    only_when_named = True

    @run_after("init")
    def choose_program(self) -> None:
        """Choose the program that measures the operation."""
        self.program = "pingpong" if self.operation == "pingpong" else "collective"
        if self.operation != "pingpong":
            self.num_tasks = max(2, min(MOST_RANKS, ranks_with_processors()))
        self.skip_if(
            self.operation == "barrier" and self.message_range != "short",
            "a barrier has no message, so it is measured once",
        )

    @run_after("setup")
    def find_other_programs(self) -> None:
        """Leave out collective operations in images where no other program can measure them."""
        self.foreign = [self.imb()] if IMB in self.programs_of_others() else []
        if self.operation == "pingpong":
            self.foreign = [self.netpipe(), *self.foreign]
        self.skip_if(
            not self.foreign,
            f"{IMB} does not have the binary interface of {self.implementation()}, so no other "
            "program measures its collective operations; its ping-pong is compared with "
            "NetPIPE's",
        )

    def programs_of_others(self) -> tuple[str, ...]:
        """Return the programs for its binary interface that the image's label lists."""
        return tuple(self.image.labels.foreign_programs)

    @run_after("setup")
    def describe_sweep(self) -> None:
        """Pass sizes and iterations to our program."""
        sizes = [word for size in self.sizes() * self.trials() for word in ("--sizes", str(size))]
        iterations = str(self.iterations())
        arguments = ["--iterations", iterations, "--warmup", str(self.warmup())]
        if self.operation == "barrier":
            # The program measures a barrier once, whatever the sizes; so each trial is named.
            operations = ["--operation", "barrier"] * self.trials()
            arguments += [*operations, "--synchronisation", "none"]
        elif self.operation == "pingpong":
            arguments += ["--pair", "Send/Recv", *sizes]
        else:
            arguments += ["--operation", self.operation, "--synchronisation", "barrier",
                          "--page-offset", str(PAGE_OFFSET), *sizes]  # fmt: skip
        self.program_arguments = arguments

    def trials(self) -> int:
        """Return how often each size is timed; the best counts."""
        few = self.operation == "pingpong" or self.link()
        return TRIALS_OF_NETPIPE if few else TRIALS_OF_COLLECTIVE

    def link(self) -> float | None:
        """Return the rate in B/s of the link between the ranks, or None without one."""
        return self.site()["link_bytes_per_s"] if self.nodes > 1 else None

    def sweep(self) -> ComparedSweep:
        """Return the message sizes and iterations, with fewer iterations on a slow link."""
        sweep, link = SWEEPS[self.message_range], self.link()
        few = max(FEWEST_ITERATIONS, sweep.iterations * TRIALS_OF_NETPIPE // self.trials())
        sweep = replace(sweep, iterations=few)
        return sweep.over_link(link) if link else sweep

    def iterations(self) -> int:
        """Return the iterations of one trial."""
        return self.sweep().iterations

    def turns(self) -> range:
        """Return the numbers of the turns that the programs take."""
        return range(1, SWEEPS[self.message_range].turns + 1)

    def warmup(self) -> int:
        """Return the untimed iterations before each trial of ours: as many as IMB has."""
        return max(1, self.iterations() // 10)

    def sizes(self) -> list[int]:
        """Return the message sizes in bytes."""
        if self.operation == "barrier":
            return [0]
        sweep = self.sweep()
        return sweep.powers_and_between() if self.operation == "pingpong" else sweep.doubles()

    def netpipe(self) -> Foreign:
        """Return NetPIPE with the sizes and iterations of ours, without its perturbations."""
        sizes = self.sizes()

        def arguments(turn: int) -> list[str]:
            # Without an offset it receives into the buffer that it sends from
            # (docs/method/cross-validation.md).
            first = self.sweep().led_into()
            return ["-l", str(first), "-u", str(sizes[-1]), "-p", "0", "-O", f"0,{sizes[-1]}",
                    "-n", str(self.iterations()), "-o", f"{NETPIPE}.{turn}.out"]  # fmt: skip

        def read(turn: int) -> dict[int, list[float]]:
            hosts = read_netpipe_hosts(self.stage(f"{NETPIPE}.{turn}.stdout"))
            if (len(hosts), len(set(hosts))) != (self.num_tasks, self.nodes):
                raise SanityError(
                    f"{NETPIPE}'s ranks were on {', '.join(hosts)}; {self.num_tasks} on "
                    f"{how_many(self.nodes, 'node')} were requested"
                )
            points = read_netpipe_output(self.stage(f"{NETPIPE}.{turn}.out"))
            return times_by_size(
                (point.message_bytes, point.one_way_s)
                for point in points
                if point.message_bytes >= sizes[0]
            )

        return Foreign(NETPIPE, arguments, read, times=1)

    def imb(self) -> Foreign:
        """Return IMB with the sizes, iterations and element type of ours."""

        def arguments(_: int) -> list[str]:
            # It measures a size as often as it is named, and so it does a barrier.
            many = self.trials() if self.operation == "barrier" else 1
            names = [OPERATIONS[self.operation]] * many
            return [*names, "-npmin", str(self.num_tasks), "-iter", str(self.iterations()),
                    "-iter_policy", "off", "-zero_size", "off", "-sync", "on",
                    "-root_shift", "off", "-red_data_type", "double",
                    *(["-msglen", IMB_SIZES] if self.operation != "barrier" else [])]  # fmt: skip

        def read(turn: int) -> dict[int, list[float]]:
            results = read_imb_output(self.stage(f"{IMB}.{turn}.stdout"))
            found = {(one.benchmark, one.processes, one.repetitions) for one in results}
            asked = (OPERATIONS[self.operation], self.num_tasks, self.iterations())
            if found != {asked}:
                raise SanityError(
                    f"{IMB} measured (benchmark, processes, repetitions) = {sorted(found)}, "
                    f"not {asked} as requested"
                )
            # The slowest rank's time, which is what our program reports.
            return times_by_size((one.message_bytes, one.most_s) for one in results)

        return Foreign(IMB, arguments, read, times=self.trials())

    def stage(self, name: str) -> Path:
        """Return the path of a file of the launch."""
        return Path(self.stagedir) / name

    @run_before("run")
    def take_turns(self) -> None:
        """Have the other programs and ours started in turns; ours is the last, and is recorded."""
        if self.operation != "barrier" and IMB in [other.name for other in self.foreign]:
            lines = (f"{size}\n" for size in self.sizes() * self.trials())
            self.stage(IMB_SIZES).write_text("".join(lines))
            self.container_platform.inputs = (IMB_SIZES,)
        turns = []
        for turn in self.turns():
            for other in self.foreign:
                words = [other.name, *other.arguments(turn)]
                turns.append(self.one_turn(words, f"{other.name}.{turn}"))
            if turn != self.turns()[-1]:
                words = [self.program, *self.program_arguments]
                turns.append(self.one_turn(words, f"{self.program}.{turn}"))
        self.prerun_cmds = [*turns, *self.prerun_cmds]

    def one_turn(self, words: list[str], name: str) -> str:
        """Return a command that starts ranks as the job itself does, and keeps their output."""
        try:
            start = self.start_of(words)
        except CannotStart as error:
            raise SanityError(str(error)) from None
        platform = copy.copy(self.container_platform)
        platform.command = start.command
        launcher = self.job.launcher.run_command(self.job)
        failed = f'echo "{name} ended with exit code $code; its messages are in {name}.stderr" >&2'
        return (
            f"{launcher} {platform.launch_command(self.stagedir)} >{name}.stdout 2>{name}.stderr"
            f" || {{ code=$?; {failed}; exit $code; }}"
        ).strip()

    def outputs(self) -> list[str]:
        """Return the names of files that programs leave: those with NetPIPE's times."""
        named = any(other.name == NETPIPE for other in self.foreign)
        return [f"{NETPIPE}.{turn}.out" for turn in self.turns()] if named else []

    def other_stops(self) -> list[int | None]:
        """Return what our program counted in earlier turns; the others do not count."""
        earlier = [self.stage(f"{self.program}.{turn}.stdout") for turn in self.turns()[:-1]]
        return [None, *(told_in(path).stopped for path in earlier)]

    def other_files(self) -> dict[str, Path]:
        """Return what the other launches of the job left, and the table of the agreement."""
        names = [TABLE, *self.outputs()]
        for turn in self.turns():
            streams = [f"{other.name}.{turn}" for other in self.foreign]
            streams += [f"{self.program}.{turn}"] if turn != self.turns()[-1] else []
            names += [f"{name}.{stream}" for name in streams for stream in ("stdout", "stderr")]
        return {name: self.stage(name) for name in names}

    def cell_parameters(self) -> dict[str, str]:
        """Return what identifies the cell."""
        return {"operation": self.operation, "message_range": self.message_range}

    def times_of_ours(self, turn: int) -> dict[int, list[float]]:
        """Return the times of one of our launches, each an average over a trial, in seconds."""
        path = self.stage(f"{self.program}.{turn}.stdout") if turn != self.turns()[-1] else None
        results = self.read_records(path).results
        found: list[tuple[int, float]] = []
        for result in results:
            if isinstance(result, PingPong):
                found.append((result.message_bytes, result.time_s.mean / 2))
            elif isinstance(result, Communication) and result.operation == self.operation:
                found.append((result.message_bytes, result.time_s.mean))
            else:
                raise SanityError(f"{self.program} also measured {result.operation}")
            if result.iterations != self.iterations():
                raise SanityError(
                    f"{self.program} took {result.iterations} iterations of "
                    f"{result.message_bytes} bytes, not {self.iterations()} as requested"
                )
        return times_by_size(found)

    def examine(self) -> None:
        """Refuse launches that lack a size, and sizes that disagree without a documented reason."""
        try:
            reasons = read_reasons(REASONS)
        except ReasonsError as error:
            raise SanityError(str(error)) from None
        turns = self.turns()
        ours = [self.times_of_ours(turn) for turn in turns]
        self.check_sizes(self.program, ours, self.trials())
        self.agreements: dict[str, list[Agreement]] = {}
        sentences = []
        for other in self.foreign:
            theirs = [other.read(turn) for turn in turns]
            self.check_sizes(other.name, theirs, other.times)
            where = Circumstances(
                self.operation, other.name, self.site()["launch"],
                str(self.image.labels.family), str(self.site()["name"]),
            )  # fmt: skip
            found = compare(ours, theirs, reasons, where)
            self.agreements[other.name] = found
            sentences += [sentence] if (sentence := disagreement(found, where)) else []
        table = {name: [asdict(one) for one in found] for name, found in self.agreements.items()}
        self.stage(TABLE).write_text(json.dumps(table, indent=1) + "\n")
        if sentences:
            raise SanityError("; ".join(sentences))

    def check_sizes(self, name: str, launches: list[dict[int, list[float]]], times: int) -> None:
        """Refuse launches that lack a size or a trial of it."""
        asked = {size: times for size in self.sizes()}
        for turn, launch in enumerate(launches, 1):
            found = {size: len(values) for size, values in launch.items()}
            if found != asked:
                missing = sorted(size for size in asked if found.get(size) != asked[size])
                raise SanityError(
                    f"{name}, turn {turn}: {len(found)} message sizes were measured, not the "
                    f"{len(asked)} requested, each {how_many(times, 'time')} (missing or "
                    f"incomplete: {missing or 'none, but there are others'})"
                )

    @run_before("performance")
    def report_each_program(self) -> None:
        """Report the ratio of ours to each program's that is farthest from 1."""
        for name, found in self.agreements.items():
            worst = max(found, key=lambda one: max(one.ratio, 1 / one.ratio))
            self.perf_variables[f"farthest_ratio_{name}"] = sn.make_performance_function(
                sn.defer(worst.ratio), "1"
            )

    @performance_function("1")
    def within_tolerance(self) -> float:
        """Return the share of sizes whose interval shows agreement without a documented reason."""
        every = [one for found in self.agreements.values() for one in found]
        return sum(one.shown and one.reason is None for one in every) / len(every)
