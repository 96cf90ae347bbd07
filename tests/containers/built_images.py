"""What tests of the images as built share: their names, and a command inside one of them."""

import json
import os
import subprocess
from pathlib import Path

from containers import images
from containers.apptainer import apptainer_command, exec_options
from containers.table import load_table

PROJECT = Path(__file__).resolve().parents[2]
PVM_ECHO = ["pvm_echo", "--sizes", "0", "--sizes", "100000", "--iterations", "10"]
INTEL, LAM, PVM = "intel-mpi-2021.19", "lam-7.1.4", "pvm-3.4.6"
MPIS = [*load_table(PROJECT).defaults(), INTEL, LAM]
NAMES = [*MPIS, PVM]


def inside(image: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a container; the variables are passed by name, the caller's are not."""
    passed = {f"APPTAINERENV_{name}": value for name, value in variables.items()}
    return subprocess.run(
        [str(apptainer_command()), "exec", *exec_options(), str(image), *command],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "OMPI_MCA_pml": "no-such", "MPIR_CVAR_CH4_NETMOD": "no-such",
             "LAM_MPI_SSI_rpi": "no-such", "I_MPI_FABRICS": "no-such", **passed},
    )  # fmt: skip


def records(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def started(
    mpi_image: Path, *program: str, ranks: int = 2
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Start ranks of a program, each on a core of its own."""
    options = images.labels(mpi_image)
    command = [options["org.wyeast.mpiexec"], *options["org.wyeast.mpiexec.pinned"].split()]
    return inside(mpi_image, *command, "-n", str(ranks), *program)
