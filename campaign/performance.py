"""`python -m campaign.performance`: what the platform itself costs, measured side by side.

The same binaries run inside their image and outside it, alternately in one go: the image's
/opt is unpacked, with the libraries that its programs need, and started by the same mpiexec.
Ratios are paired and have intervals (analysis.statistics); docs/performance.md holds a run.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from analysis.communication_records import PingPong
from analysis.hpl_output import read_hpl_output
from analysis.records import read_program_output
from analysis.statistics import paired_ratio
from campaign import su3_performance
from containers import images
from containers.apptainer import apptainer_command, exec_options

ROOT = Path(__file__).resolve().parent.parent
PINGPONG = ["pingpong", "--sizes", "0", "--sizes", "1024", "--sizes", "1000000",
            "--iterations", "1000", "--warmup", "100"]  # fmt: skip
# Variables that tell a relocated Open MPI where it is; other implementations ignore them.
RELOCATION = ("OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX")


@dataclass
class Place:
    """Inside the image or outside it: how a command starts there."""

    prefix: list[str]
    environment: dict[str, str]
    folder: Path

    def run(self, command: list[str]) -> tuple[str, float]:
        """Return what a command prints and how long it took, in seconds."""
        began = time.monotonic()
        done = subprocess.run(
            [*self.prefix, *command],
            env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        took = time.monotonic() - began
        if done.returncode != 0:
            raise SystemExit(f"performance: {' '.join(command)} failed: {done.stderr.strip()}")
        return done.stdout, took


def inside(image: Path, folder: Path) -> Place:
    """Return the place inside an image, as the checks use it."""
    prefix = [str(apptainer_command()), "exec", *exec_options(), f"--bind={folder}:/mnt",
              "--pwd=/mnt", str(image)]  # fmt: skip
    return Place(prefix, dict(os.environ), folder)


def outside(image: Path, folder: Path) -> Place:
    """Unpack an image's programs with their libraries; return the place outside of it."""
    container = inside(image, folder)
    bare = folder / "bare"
    (bare / "lib").mkdir(parents=True)
    # The C library stays the machine's own: it belongs to the machine's loader.
    listing, _ = container.run(
        ["sh", "-c", "ldd /opt/wyeast/bin/* 2>/dev/null | awk '$3 ~ /^\\// { print $3 }' | sort -u"]
    )
    wanted = [
        path for path in listing.split()
        if not path.startswith("/opt/") and not Path(path).name.startswith(
            ("libc.", "libm.", "libdl.", "libpthread.", "librt.", "libresolv."))
    ]  # fmt: skip
    container.run(["cp", "-rL", "/opt/mpi", "/opt/wyeast", "/mnt/bare"])
    container.run(["cp", "-L", *wanted, "/mnt/bare/lib"])
    environment = {
        **os.environ,
        "PATH": f"{bare}/mpi/bin:{bare}/wyeast/bin:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": f"{bare}/mpi/lib:{bare}/lib",
        "OPENBLAS_NUM_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        **dict.fromkeys(RELOCATION, f"{bare}/mpi"),
    }
    return Place([], environment, folder)


def round_trips(place: Place, command: list[str]) -> dict[int, float]:
    """Return the median round trips in seconds that a `pingpong` command reports, by size."""
    text, _ = place.run(command)
    path = place.folder / "pingpong.out"
    path.write_text(text)
    return {
        result.message_bytes: result.time_s.median
        for result in read_program_output(path).results
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


def linpack(place: Place, mpiexec: list[str]) -> dict[str, float]:
    """Return HPL's rate on 1x2 at N=4000, in FLOP/s."""
    place.run(["hpl_dat", "--p=1", "--q=2", "--n=4000", "--nb=192", "--output=HPL.dat"])
    text, _ = place.run([*mpiexec, "-n", "2", "xhpl"])
    path = place.folder / "hpl.out"
    path.write_text(text)
    return {"HPL rate, N=4000 on 1x2 (FLOP/s)": read_hpl_output(path)[0].rate_flops}


def starting(place: Place, mpiexec: list[str]) -> dict[str, float]:
    """Return how long it takes to start something that does nothing, in seconds."""
    return {"start of `true` (s)": place.run(["true"])[1]}


Measurement = Callable[[Place, list[str]], dict[str, float]]


def alternate(
    container: Place, bare: Place, mpiexec: list[str], measurement: Measurement, rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """Measure inside and outside alternately; return pairs (inside, outside) by quantity."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds):
        order = [container, bare] if number % 2 else [bare, container]
        found = {id(place): measurement(place, mpiexec) for place in order}
        for name, value in found[id(container)].items():
            pairs.setdefault(name, []).append((value, found[id(bare)][name]))
    return pairs


def show(implementation: str, pairs: dict[str, list[tuple[float, float]]]) -> None:
    """Print a row of a Markdown table for each quantity."""
    for name, values in pairs.items():
        ratio = paired_ratio([math.log(one / other) for one, other in values])
        assert ratio.interval is not None
        inner, outer = (statistics.median(column) for column in zip(*values, strict=True))
        print(
            f"| {implementation} | {name} | {inner:.4g} | {outer:.4g} | {ratio.value:.3f} "
            f"| {ratio.interval.low:.3f} – {ratio.interval.high:.3f} |",
            flush=True,
        )


def lattice_rates(rounds: int) -> list[str]:
    """Return the lines about su3, in the first of the images."""
    image = images.verify(ROOT, images.default_implementations(ROOT)[0])
    labels = images.labels(image)
    mpiexec = [labels["org.wyeast.mpiexec"], *labels["org.wyeast.mpiexec.pinned"].split()]
    with tempfile.TemporaryDirectory() as folder:
        place = inside(image, Path(folder))
        return su3_performance.table(
            lambda command: place.run([*mpiexec, "-n", "1", *command])[0], rounds
        )


def main() -> int:
    """Measure every built image against its own content outside; print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m campaign.performance", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="alternations (%(default)s)")
    rounds = max(2, parser.parse_args().rounds)
    print(
        "| image | quantity | inside | outside | ratio | 95% interval |\n|---|---|---|---|---|---|"
    )
    # Those whose whole MPI lies under one folder of the image and can be carried out of it.
    for implementation in images.default_implementations(ROOT):
        image = images.verify(ROOT, implementation)
        labels = images.labels(image)
        mpiexec = [labels["org.wyeast.mpiexec"], *labels["org.wyeast.mpiexec.pinned"].split()]
        with tempfile.TemporaryDirectory() as folder:
            container, bare = inside(image, Path(folder)), outside(image, Path(folder))
            for measurement in (messages, linpack, starting):
                show(
                    implementation,
                    alternate(container, bare, mpiexec, measurement, rounds),
                )
    print("\n".join(["", *lattice_rates(rounds)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
