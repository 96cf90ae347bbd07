"""What tests of the images as built share: their names, and a command inside one of them."""

import json
import os
import shlex
import subprocess
from collections.abc import Sequence
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
        capture_output=True, text=True, timeout=3000,
        env={**os.environ, "OMPI_MCA_pml": "no-such", "MPIR_CVAR_CH4_NETMOD": "no-such",
             "LAM_MPI_SSI_rpi": "no-such", "I_MPI_FABRICS": "no-such", **passed},
    )  # fmt: skip


def inside_one(
    image: Path, folder: Path, commands: Sequence[Sequence[str]], at_once: int = 1
) -> list[subprocess.CompletedProcess[str]]:
    """Run commands in one container, so many at once; what they leave is in a folder."""
    script = (
        "".join(
            f"{{ {shlex.join(command)} >{number}.out 2>{number}.err; echo $? >{number}.code; }} &\n"
            + ("wait\n" if number % at_once == at_once - 1 else "")
            for number, command in enumerate(commands)
        )
        + "wait\n"
    )
    done = inside(image, "sh", "-c", f"cd {shlex.quote(str(folder))}\n{script}")
    assert done.returncode == 0, done.stderr
    left = [[(folder / f"{number}.{kind}").read_text() for kind in ("code", "out", "err")]
            for number in range(len(commands))]  # fmt: skip
    return [
        subprocess.CompletedProcess(list(command), int(code), out, error)
        for command, (code, out, error) in zip(commands, left, strict=True)
    ]


def launch_of(mpi_image: Path, ranks: int, *program: str, is_spared: bool = True) -> list[str]:
    """Return what starts ranks of a program, each on a core of its own where there are as many.

    They are spared what MPI_Init waits for in vain where there is no fabric, or not.
    """
    labels = images.labels(mpi_image)
    start = "pinned" if ranks <= (os.cpu_count() or 1) else "oversubscribed"
    options = labels[f"org.wyeast.mpiexec.{start}"].split()
    spared = images.read_labels(labels, mpi_image.name).init_wait if is_spared else {}
    return ["env", *(f"{name}={value}" for name, value in spared.items()),
            labels["org.wyeast.mpiexec"], *options, "-n", str(ranks), *program]  # fmt: skip


def records(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def started(mpi_image: Path, *program: str, ranks: int = 2) -> subprocess.CompletedProcess[str]:
    """Start ranks of a program, each on a core of its own."""
    return inside(mpi_image, *launch_of(mpi_image, ranks, *program))
