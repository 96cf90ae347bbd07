"""`python -m costs.hiding`: what it costs that a launch sees less of the machine.

The same programs start in the same image as launches do, and with no more than any container is
started with, alternately. The verdicts are those of campaigns: each experiment's rows are one
family, by the margins of records/experiments.yaml. docs/performance.md shows a run.
"""

from __future__ import annotations

import argparse
import atexit
import math
import os
import shlex
import shutil
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from analysis.comparison.metrics import margin_of
from analysis.comparison.verdict import Verdict, correct
from analysis.tables.units import within
from containers import images, programs, trust
from containers.apptainer import Admitted, command, exec_options, guard, mount_option
from containers.ending import exit_code
from containers.guarded import BEFORE_DEV, MEMORY
from costs.hpl import RANKS, N, hpl_rate
from costs.inside_and_outside import HELP_OF_IMAGES, SITE, PairsOf, alternate, named_or_default
from costs.places import Place, mpiexec_of, set_in_launches
from costs.su3 import arguments
from inference.intervals import Interval, median_interval, paired_ratio
from records import layout
from records.communication import Communication, PingPong
from records.environment import environment
from records.program_output import read_program_output
from records.su3 import Su3Result
from reframe_checks.mixins.guest import isolation
from reframe_checks.mixins.job_script import into_container
from site_configs.entries import SiteError
from site_configs.settings import load_site

ROOT = Path(__file__).resolve().parent.parent
#: What a launch is compared with.
SEEING_MORE = "seeing more"
#: The experiment that a container's start is a part of.
STARTING = "StartUp"
#: The one whose program reads its problem from a file.
SOLVING = "Linpack"
#: Of lattices, and of all trajectories: about a second on two ranks.
SIDE, SITE_UPDATES = 8, 1_000_000
#: Stands between a series and a message size in the name of a quantity.
AT = " at "


@dataclass(frozen=True)
class HiddenProgram:
    """A program with the arguments of an experiment in tier `quick`, on two ranks."""

    experiment: str
    cell: str
    command: str

    def times(self, place: Place, mpiexec: list[str]) -> dict[str, float]:
        """Return the median times in seconds that it reports, by series and message size."""
        words = [*mpiexec, "-n", "2", *shlex.split(self.command)]
        found = {}
        for result in read_program_output(place.keep(words)).results:
            if isinstance(result, PingPong | Communication):
                series = result.series if isinstance(result, Communication) else ""
                name = f"{self.cell} {series}".strip()
                found[f"{name}{AT}{result.message_bytes}"] = result.time_s.median
            elif isinstance(result, Su3Result):
                found[self.cell] = result.time_s.median
        return found


def sweep(pair: str, sizes: Sequence[int], iterations: int, warmup: int) -> str:
    """Return the command of round trips."""
    asked = " ".join(f"--sizes {size}" for size in sizes)
    return f"pingpong --pair {pair} {asked} --iterations {iterations} --warmup {warmup}"


PROGRAMS = (
    *(
        HiddenProgram("PointToPoint", f"Send/Recv {name}", sweep("Send/Recv", *asked))
        for name, asked in {
            "short": (range(300, 4_801, 1_500), 1000, 100),
            "medium": (range(5_000, 100_001, 19_000), 300, 30),
            "long": (range(200_000, 2_000_001, 600_000), 50, 5),
        }.items()
    ),
    HiddenProgram(
        "EchoTest", "0 to 1 MB",
        sweep("Send/Recv", (0, 8, 100, 1_000, 10_000, 100_000, 1_000_000), 200, 40),
    ),
    HiddenProgram(
        "Collectives", "ohio",
        "collective --operation barrier --operation bcast --operation gather --operation alltoall "
        "--group world --sizes 0 --sizes 1024 --sizes 16384 --scrub-bytes 0 --iterations 50",
    ),
    HiddenProgram(
        "HaloExchange", "12^3",
        "halo --method sendrecv --method isend-irecv --dimensions 3 --extent 12 --iterations 10",
    ),
    HiddenProgram(
        "Su3", f"{SIDE}^4, a trajectory", shlex.join(["su3", *arguments(SIDE, SITE_UPDATES)])
    ),
)  # fmt: skip


def as_launched(
    image: Admitted, folder: Path, alone: bool, variables: Mapping[str, str] | None = None
) -> Place:
    """Return the place where programs start as launches do; `alone` is as of `launch_options`.

    `variables` are set in the container.
    """
    options = [*isolation(ROOT, folder, alone), *_set_inside(variables)]
    own = ("", "")
    if alone:
        tmp = folder / "tmp"
        tmp.mkdir(exist_ok=True)
        # Of root's containers the call mounts another one.
        memory = "" if guard() else tempfile.mkdtemp(dir="/dev/shm")
        atexit.register(shutil.rmtree, memory, ignore_errors=True)
        own = (str(tmp), memory and BEFORE_DEV + memory)
    return _started(image, folder, guard("."), options, own)


def seeing_more(image: Admitted, folder: Path, variables: Mapping[str, str] | None = None) -> Place:
    """Return the place where programs start with what every container is started with.

    Also for root, who could write what is of the machine there. `variables` as of `as_launched`.
    """
    options = [one for one in exec_options() if "source=/proc/" not in one]
    return _started(image, folder, [], [*options, *_set_inside(variables)], ("", ""))


def _set_inside(variables: Mapping[str, str] | None) -> list[str]:
    return [f"--env={name}={value}" for name, value in (variables or {}).items()]


def _started(
    image: Admitted, folder: Path, guarded: Sequence[str], options: Sequence[str],
    own: tuple[str, str],
) -> Place:  # fmt: skip
    work = folder / "work"
    work.mkdir(exist_ok=True)
    words = command("exec", *options, mount_option(str(work), "/mnt"), "--pwd=/mnt", image)
    # The script has `apptainer exec` itself, and looks for it in PATH.
    at = words.index("exec")
    rest = [word for word in words[at + 1 :] if guarded or f"{MEMORY}," not in word]
    script = into_container("mpiexec")[len(guard(".")) :]
    prefix = [*guarded, *script, *own, *rest]
    path = {"PATH": f"{Path(words[at - 1]).parent}:{os.environ['PATH']}"}
    return Place(prefix, environment(os.environ) | path, folder)


def solve(place: Place, mpiexec: list[str]) -> dict[str, float]:
    """Return how long HPL takes for an operation, in seconds."""
    return {f"N={N} on 1x{RANKS}, an operation": 1 / hpl_rate(place, mpiexec, N)}


def start(name: str, place: Place, _: list[str]) -> dict[str, float]:
    """Return how long a container takes that does nothing, in seconds."""
    return {name: place.run(["true"])[1]}


@dataclass(frozen=True)
class LaunchedRow:
    """A series in an image: medians of the time in seconds, over sizes by the geometric mean."""

    experiment: str
    measured: str
    launched_s: float
    otherwise_s: float
    verdict: Verdict
    #: Around the median of the rounds' ratios, which few launches that take twice as long as all
    #: others do not widen.
    typical: Interval

    def line(self) -> str:
        """Return its row of a Markdown table."""
        told = self.verdict
        return (
            f"| {told.implementation} | {self.experiment} | {self.measured} "
            f"| {self.launched_s:.4g} | {self.otherwise_s:.4g} | {told.ratio.value:.3f} "
            f"| {within(told.interval)} | {told.words} | {within(self.typical)} |"
        )


def rows(
    image: str, experiment: str, pairs: PairsOf, other: str = SEEING_MORE
) -> Iterator[LaunchedRow]:
    """Yield a row for each series of the pairs (as launched, `other`) of an image.

    As in a campaign, a round's ratio is the mean over sizes of its logarithms, and above 1 where
    what is launched so is faster.
    """
    series: dict[str, list[list[tuple[float, float]]]] = defaultdict(list)
    for name, values in pairs.items():
        series[name.partition(AT)[0]].append(values)
    for name, by_size in series.items():
        logs = [
            [statistics.fmean(math.log(pair[side]) for pair in of_round) for side in (0, 1)]
            for of_round in zip(*by_size, strict=True)
        ]
        margin = margin_of(experiment)
        ratios = [second - first for first, second in logs]
        ratio = paired_ratio(ratios, margin=margin)
        of_median = median_interval(ratios)
        typical = Interval(math.exp(of_median.low), math.exp(of_median.high), of_median.coverage)
        launched_s, otherwise_s = (
            math.exp(statistics.median(of_round[side] for of_round in logs)) for side in (0, 1)
        )
        verdict = Verdict(image, other, ratio, margin)
        yield LaunchedRow(experiment, name, launched_s, otherwise_s, verdict, typical)


def show(found: Sequence[LaunchedRow], other: str = SEEING_MORE) -> None:
    """Correct the verdicts, each experiment's rows as one family, and print Markdown."""
    for experiment in dict.fromkeys(row.experiment for row in found):
        correct([row.verdict for row in found if row.experiment == experiment])
    print(
        f"| image | experiment | measured | as launched (s) | {other} (s) | ratio | interval "
        "| verdict | median round |\n|---|---|---|---|---|---|---|---|---|"
    )
    for row in found:
        print(row.line())


def measure(implementation: str, rounds: int, experiments: Sequence[str]) -> list[LaunchedRow]:
    """Measure an image; return its rows, whose verdicts make no claims yet."""
    site = load_site(SITE)
    image = trust.admit(ROOT, implementation, site)
    mpiexec, variables = mpiexec_of(image), set_in_launches(image, site)
    found: list[LaunchedRow] = []
    # Where stage folders are, which the same cover hides.
    with tempfile.TemporaryDirectory(dir=layout.state(ROOT), prefix="hiding-") as name:
        folder = Path(name)
        hidden = as_launched(image, folder, alone=True, variables=variables)
        shown = seeing_more(image, folder, variables)
        for program in PROGRAMS:
            if program.experiment in experiments:
                pairs = alternate(hidden, shown, mpiexec, program.times, rounds)
                found += rows(implementation, program.experiment, pairs)
        if SOLVING in experiments:
            pairs = alternate(hidden, shown, mpiexec, solve, rounds)
            found += rows(implementation, SOLVING, pairs)
        if STARTING in experiments:
            for what, place in {
                "`true`, one container for all ranks": hidden,
                "`true`, containers that share a node": as_launched(image, folder, alone=False),
            }.items():
                pairs = alternate(place, shown, mpiexec, partial(start, what), 2 * rounds)
                found += rows(implementation, STARTING, pairs)
    return found


def main() -> int:
    """Measure the images; print Markdown."""
    known = list(dict.fromkeys([*(one.experiment for one in PROGRAMS), SOLVING, STARTING]))
    parser = argparse.ArgumentParser(prog="python -m costs.hiding", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=40,
        help="alternations; twice as many of starts (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--only", choices=known, help="one experiment (all)")
    parser.add_argument("--images", help=HELP_OF_IMAGES)
    options = parser.parse_args()
    experiments = [options.only] if options.only else known
    found = [
        row
        for implementation in named_or_default(options.images)
        for row in measure(implementation, max(2, options.rounds), experiments)
    ]
    show(found)
    return 0


if __name__ == "__main__":
    sys.exit(
        exit_code(
            "hiding",
            main,
            (images.ImageError, programs.ProvisionError, SiteError),
            "nothing was kept",
        )
    )
