"""Where the platform's own cost is measured: inside an image, and outside it with its content."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from containers import images
from containers.apptainer import Admitted, command, exec_options, mount_option, run_apart
from records.causes import sentence_in
from records.environment import environment
from reframe_checks.mixins.launching import spared

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
        done = run_apart([*self.prefix, *command], env=self.environment, cwd=self.folder)
        took = time.monotonic() - began
        if done.returncode != 0:
            # The cause first: whoever shows this may show its beginning alone.
            why = sentence_in(done.stderr) or f"it ended with {done.returncode} and said nothing"
            raise SystemExit(f"performance: {why}; this failed: {' '.join(command)}")
        return done.stdout, took

    def keep(self, command: list[str]) -> Path:
        """Run a command; return the file with its output, which the next one overwrites."""
        path = self.folder / "kept.out"
        path.write_text(self.run(command)[0])
        return path


def mpiexec_of(image: Admitted) -> list[str]:
    """Return how an image's ranks are started, each bound to a core."""
    labels = images.read_labels(images.labels(image), image.path.name)
    if labels.mpiexec is None or labels.pinned is None:
        raise images.ImageError(f"{image} does not say how its ranks start; build it again")
    return [labels.mpiexec, *labels.pinned]


def set_in_launches(image: Admitted, site: Mapping[str, object]) -> Mapping[str, str]:
    """Return the variables that launches at a site set in an image, by which MPI_Init is quicker.

    Not where start-up is what is measured.
    """
    return dict(spared(images.read_labels(images.labels(image), image.path.name), site))


def inside(image: Admitted, folder: Path) -> Place:
    """Return the place inside an image, with none of the caller's variables."""
    mount = mount_option(str(folder), "/mnt")
    prefix = command("exec", *exec_options(), mount, "--pwd=/mnt", image)
    return Place(prefix, environment(os.environ), folder)


#: What a program outside an image needs of the caller's environment.
OF_THE_CALLER = ("HOME", "LANG", "LOGNAME", "TMPDIR", "USER")


def outside(image: Admitted, folder: Path) -> Place:
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
    # As the container, it gets no setting of a library from the caller: one of OpenBLAS can
    # halve its rate.
    environment = {
        **{name: os.environ[name] for name in OF_THE_CALLER if name in os.environ},
        "PATH": f"{bare}/mpi/bin:{bare}/wyeast/bin:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": f"{bare}/mpi/lib:{bare}/lib",
        "OPENBLAS_NUM_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        **dict.fromkeys(RELOCATION, f"{bare}/mpi"),
    }
    return Place([], environment, folder)
