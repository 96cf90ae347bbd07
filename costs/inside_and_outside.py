"""`python -m costs.inside_and_outside`: what the platform itself costs, measured side by side.

The same binaries run inside their image and outside it, alternately in one go: the image's
/opt is unpacked, with the libraries that its programs need, and started by the same mpiexec.
Ratios are paired and have intervals (analysis.statistics); docs/performance.md shows a run.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from analysis.tables.units import within
from containers import images, programs, trust
from containers.ending import exit_code
from costs import su3
from costs.hpl import FILLED_HEADER, filled, linpack, memory_share
from costs.nas import NasRates
from costs.places import Place, inside, mpiexec_of, outside
from inference.intervals import paired_ratio
from records.communication import PingPong
from records.program_output import read_program_output
from site_configs.entries import SiteError
from site_configs.settings import load_site

ROOT = Path(__file__).resolve().parent.parent
#: Whose images are measured, without a job.
SITE = "local"
#: The kind that is measured inside alone, of the first image, beside what bounds it.
LATTICES = "su3-lattices"
#: One alternation of these takes as long as several of the others.
MOST_OF_LONG = {"nas": 3, LATTICES: 5}
HEADER = "| image | quantity | inside | outside | ratio | 95% interval |\n|---|---|---|---|---|---|"
HELP_OF_IMAGES = "names, separated by commas (those that a plain run measures)"
PINGPONG = ["pingpong", "--sizes", "0", "--sizes", "1024", "--sizes", "1000000",
            "--iterations", "1000", "--warmup", "100"]  # fmt: skip


def round_trips(place: Place, command: list[str]) -> dict[int, float]:
    """Return the median round trips in seconds that a `pingpong` command reports, by size."""
    return {
        result.message_bytes: result.time_s.median
        for result in read_program_output(place.keep(command)).results
        if isinstance(result, PingPong)
    }


def messages(place: Place, mpiexec: list[str]) -> dict[str, float]:
    """Return one-way times in seconds and the bandwidth at 1 MB in B/s."""
    medians = round_trips(place, [*mpiexec, "-n", "2", *PINGPONG])
    return {
        "latency, 0 bytes (s)": medians[0] / 2,
        "latency, 1024 bytes (s)": medians[1024] / 2,
        "bandwidth, 1 MB (B/s)": 2e6 / medians[1_000_000],
    }


def starting(place: Place, mpiexec: list[str]) -> dict[str, float]:
    """Return how long it takes to start something that does nothing, in seconds."""
    return {"start of `true` (s)": place.run(["true"])[1]}


Measurement = Callable[[Place, list[str]], dict[str, float]]
#: What is compared -> pairs (one, other), of each alternation.
PairsOf = dict[str, list[tuple[float, float]]]


def alternate(
    container: Place, bare: Place, mpiexec: list[str], measurement: Measurement, rounds: int
) -> PairsOf:
    """Measure inside and outside alternately; return pairs (inside, outside) by quantity."""
    pairs: PairsOf = {}
    for number in range(rounds):
        order = [container, bare] if number % 2 else [bare, container]
        found = {id(place): measurement(place, mpiexec) for place in order}
        for name, value in found[id(container)].items():
            pairs.setdefault(name, []).append((value, found[id(bare)][name]))
    return pairs


def show(implementation: str, pairs: PairsOf) -> None:
    """Print a row of a Markdown table for each quantity."""
    for name, values in pairs.items():
        ratio = paired_ratio([math.log(one / other) for one, other in values])
        inner, outer = (statistics.median(column) for column in zip(*values, strict=True))
        print(
            f"| {implementation} | {name} | {inner:.4g} | {outer:.4g} | {ratio.value:.3f} "
            f"| {within(ratio.interval)} |",
            flush=True,
        )


def lattice_rates(implementation: str, rounds: int) -> list[str]:
    """Return the lines about su3 in an image."""
    image = trust.admit(ROOT, implementation, load_site(SITE))
    mpiexec = mpiexec_of(image)
    with tempfile.TemporaryDirectory() as folder:
        return su3.table(inside(image, Path(folder)), mpiexec, rounds)


def filled_memory(named: list[str], share: float) -> None:
    """Print a Markdown table of HPLs that fill a share of the memory, once in each image."""
    print(FILLED_HEADER, flush=True)
    site = load_site(SITE)
    for implementation in named:
        image = trust.admit(ROOT, implementation, site)
        with tempfile.TemporaryDirectory() as folder:
            place, mpiexec = inside(image, Path(folder)), mpiexec_of(image)
            memory = site["memory_bytes_per_node"]
            print(filled(implementation, place, mpiexec, memory, share), flush=True)


def named_or_default(names: str | None) -> list[str]:
    """Return the images of the option `--images`, or those that a plain run measures."""
    return names.split(",") if names else images.default_implementations(ROOT)


def main() -> int:
    """Measure every built image against its own content outside; print Markdown."""
    kinds: dict[str, Measurement] = {
        "messages": messages, "linpack": linpack, "su3": su3.rates,
        "starting": starting,
    }  # fmt: skip
    parser = argparse.ArgumentParser(prog="python -m costs.inside_and_outside", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="alternations (%(default)s)")
    parser.add_argument(
        "--only", choices=[*kinds, "nas", LATTICES], help="one kind of quantities (all)"
    )
    parser.add_argument(
        "--nas-classes", default="SWA", help="classes of the NAS Parallel Benchmarks (%(default)s)"
    )
    parser.add_argument("--images", help=HELP_OF_IMAGES)
    parser.add_argument(
        "--hpl-memory-share", type=memory_share, metavar="SHARE",
        help="with --only linpack: instead run one HPL in each image whose matrix takes this share "
        "of the memory, between two DGEMMs; minutes each",
    )  # fmt: skip
    options = parser.parse_args()
    if options.hpl_memory_share and options.only != "linpack":
        parser.error("--hpl-memory-share needs --only linpack; add it")
    rounds = max(2, options.rounds)
    kinds["nas"] = NasRates(options.nas_classes)
    # Those whose whole MPI lies under one folder of the image and can be carried out of it.
    named = named_or_default(options.images)
    if options.hpl_memory_share:
        filled_memory(named, options.hpl_memory_share)
        return 0
    if options.only != LATTICES:
        print(HEADER)
    for implementation in [] if options.only == LATTICES else named:
        image = trust.admit(ROOT, implementation, load_site(SITE))
        mpiexec = mpiexec_of(image)
        with tempfile.TemporaryDirectory() as folder:
            container, bare = inside(image, Path(folder)), outside(image, Path(folder))
            for name, measurement in kinds.items():
                if options.only in (None, name):
                    most = min(rounds, MOST_OF_LONG.get(name, rounds))
                    show(implementation, alternate(container, bare, mpiexec, measurement, most))
    if options.only in (None, LATTICES):
        print("\n".join(["", *lattice_rates(named[0], min(rounds, MOST_OF_LONG[LATTICES]))]))
    return 0


if __name__ == "__main__":
    sys.exit(
        exit_code(
            "performance",
            main,
            (images.ImageError, programs.ProvisionError, SiteError),
            "nothing was kept",
        )
    )
