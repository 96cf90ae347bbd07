"""`python -m costs.init_wait`: whether leaving out a wait in MPI_Init changes what is measured.

Open MPI's component for one-sided messages through libfabric makes MPI_Init wait for a second
where it finds no fabric (docs/method/start-up.md). Sites without one may leave it out, by the
variables of the image's label. The programs of `python -m costs.hiding` start in the same image
with these variables, as launches there do, and without them, alternately.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from containers import images, programs, trust
from containers.ending import exit_code
from costs.hiding import PROGRAMS, LaunchedRow, as_launched, rows, show
from costs.inside_and_outside import SITE, alternate
from costs.places import mpiexec_of
from records import layout
from site_configs.entries import SiteError
from site_configs.settings import load_site

ROOT = Path(__file__).resolve().parent.parent
#: What a launch is compared with.
WAITING = "waiting"


def measure(implementation: str, rounds: int, experiments: Sequence[str]) -> list[LaunchedRow]:
    """Measure an image; return its rows, whose verdicts make no claims yet.

    Raises ImageError where no label says how its MPI is spared a wait.
    """
    image = trust.admit(ROOT, implementation, load_site(SITE))
    variables = images.read_labels(images.labels(image), image.path.name).init_wait
    if not variables:
        raise images.ImageError(f"{implementation} has no wait in MPI_Init that its label names")
    mpiexec = mpiexec_of(image)
    found: list[LaunchedRow] = []
    with tempfile.TemporaryDirectory(dir=layout.state(ROOT), prefix="waiting-") as name:
        waiting = as_launched(image, Path(name), alone=True)
        launched = as_launched(image, Path(name), alone=True, variables=variables)
        for program in PROGRAMS:
            if program.experiment in experiments:
                pairs = alternate(launched, waiting, mpiexec, program.times, rounds)
                found += rows(implementation, program.experiment, pairs, WAITING)
    return found


def main() -> int:
    """Measure an image; print Markdown."""
    known = list(dict.fromkeys(one.experiment for one in PROGRAMS))
    parser = argparse.ArgumentParser(prog="python -m costs.init_wait", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="alternations (%(default)s)")
    parser.add_argument("--only", choices=known, help="one experiment (all)")
    parser.add_argument("--image", default="openmpi-5.0.11", help="its name (%(default)s)")
    options = parser.parse_args()
    experiments = [options.only] if options.only else known
    show(measure(options.image, max(2, options.rounds), experiments), WAITING)
    return 0


if __name__ == "__main__":
    sys.exit(
        exit_code(
            "init_wait",
            main,
            (images.ImageError, programs.ProvisionError, SiteError),
            "nothing was kept",
        )
    )
