"""`python -m costs.profiling`: what profiling costs, measured side by side.

The same programs in their image with a profile and without, alternately; ratios are paired and
have intervals (analysis.statistics). docs/performance.md shows a run. A ping-pong without bytes
shows what a call costs; an application (su3, CG, HPL), what that means in use.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from containers import images, programs, trust
from containers.ending import exit_code
from costs.inside_and_outside import HELP_OF_IMAGES, SITE, named_or_default, show
from costs.places import Place, inside, mpiexec_of
from records.communication import Communication, PingPong
from records.hpl import read_hpl_output
from records.npb import read_npb_output
from records.program_output import read_program_output
from records.su3 import Su3Result
from site_configs.entries import SiteError
from site_configs.settings import load_site

ROOT = Path(__file__).resolve().parent.parent
#: The path in the container, which is the launch's folder.
PROFILE = "profile.jsonl"


@dataclass(frozen=True)
class ProfiledProgram:
    """A program with its arguments, what prepares it, and how its time in seconds is read.

    `alternations` is how many it has for each requested one.
    """

    name: str
    command: str
    seconds: Callable[[Path], float]
    prepare: str = ""
    alternations: int = 1


def of_pingpong(path: Path) -> float:
    """Return the median one-way time of the one message size."""
    [result] = read_program_output(path).results
    assert isinstance(result, PingPong)
    return result.time_s.median / 2


def of_exchange(path: Path) -> float:
    """Return the median time of the one exchange of borders."""
    [result] = read_program_output(path).results
    assert isinstance(result, Communication)
    return result.time_s.median


def of_linpack(path: Path) -> float:
    """Return the time to solve, by the rate: the time itself is printed with two decimals."""
    [run] = read_hpl_output(path)
    return (2 / 3 * run.n**3 + 1.5 * run.n**2) / run.rate_flops


def of_lattice(path: Path) -> float:
    """Return the time of all trajectories."""
    [result] = read_program_output(path).results
    assert isinstance(result, Su3Result)
    return result.wall_s


def of_gradients(path: Path) -> float:
    """Return the time that the benchmark prints."""
    return read_npb_output(path).time_s


PROGRAMS = (
    ProfiledProgram(
        "one way, 0 bytes (s)",
        "pingpong --pair Isend/Irecv --sizes 0 --iterations 10000 --warmup 1000",
        of_pingpong,
    ),
    ProfiledProgram(
        "borders of 32x32x32x32 (s)",
        "halo --dimensions 4 --extent 32 --method isend-irecv --iterations 100",
        of_exchange,
    ),
    ProfiledProgram(
        "HPL, N=2000 on 1x2 (s)",
        "xhpl",
        of_linpack,
        "hpl_dat --p=1 --q=2 --n=2000 --nb=192 --output=HPL.dat",
    ),
    # Whether an application loses 2% needs a narrower interval than how much a call costs.
    ProfiledProgram(
        "su3, 12^4, 15 trajectories of 20 steps (s)",
        "su3 --nx 12 --ny 12 --nz 12 --nt 12 --trajectories 15 --steps 20 --step-size 0.01",
        of_lattice,
        alternations=2,
    ),
    ProfiledProgram("CG, class A (s)", "nas_cg --class A", of_gradients, alternations=2),
)


def run(program: ProfiledProgram, place: Place, mpiexec: list[str], profiled: bool) -> float:
    """Return a program's time in seconds; refuse a profiled run that leaves no profile."""
    profile = place.folder / PROFILE
    profile.unlink(missing_ok=True)
    if program.prepare:
        place.run(shlex.split(program.prepare))
    launcher = ["profiled", "--output", PROFILE] if profiled else []
    path = place.keep([*mpiexec, "-n", "2", *launcher, *shlex.split(program.command)])
    if profile.is_file() != profiled:
        raise SystemExit(f"performance: {program.command}: there is no profile, or one too many")
    return program.seconds(path)


def alternate(
    program: ProfiledProgram, place: Place, mpiexec: list[str], rounds: int
) -> list[tuple[float, float]]:
    """Measure with and without a profile alternately; return pairs (with, without)."""
    measure = partial(run, program, place, mpiexec)
    pairs = []
    for number in range(rounds):
        # Who is first changes from round to round.
        if number % 2:
            without = measure(False)
            pairs.append((measure(True), without))
        else:
            pairs.append((measure(True), measure(False)))
    return pairs


def main() -> int:
    """Measure the images; print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m costs.profiling", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=10,
        help="alternations; twice as many of su3 and CG (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--images", help=HELP_OF_IMAGES)
    options = parser.parse_args()
    rounds = max(2, options.rounds)
    print(
        "| image | program | profiled | without | ratio | 95% interval |\n|---|---|---|---|---|---|"
    )
    for implementation in named_or_default(options.images):
        image = trust.admit(ROOT, implementation, load_site(SITE))
        mpiexec = mpiexec_of(image)
        with tempfile.TemporaryDirectory() as folder:
            place = inside(image, Path(folder))
            for program in PROGRAMS:
                pairs = alternate(program, place, mpiexec, program.alternations * rounds)
                show(implementation, {program.name: pairs})
    return 0


if __name__ == "__main__":
    sys.exit(
        exit_code(
            "profile_performance",
            main,
            (images.ImageError, programs.ProvisionError, SiteError),
            "nothing was kept",
        )
    )
