"""The programs built by hand, with the wheels' MPIs installed outside any image."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.bare_mpi import install

PROJECT = Path(__file__).resolve().parents[2]


@dataclass
class Built:
    """The programs built with one MPI."""

    implementation: str
    prefix: Path
    build: Path

    def make(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run make in benchmarks/ with this MPI's compiler."""
        command = ["make", "-C", str(PROJECT / "benchmarks"), f"CC={self.prefix}/bin/mpicc",
                   f"BUILD={self.build}", *words]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)

    def run(
        self, program: str, *arguments: str, ranks: int = 2, folder: Path | None = None,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Start ranks of a program; more ranks than cores yield instead of spinning."""
        command = [str(self.build / "bin" / program), *arguments]
        return self.run_command(command, ranks, folder, **environment)

    def run_command(
        self, command: list[str], ranks: int = 2, folder: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Start ranks of a command."""
        many = ranks > len(os.sched_getaffinity(0))
        options = ["--oversubscribe"] if many and "openmpi" in self.implementation else []
        return subprocess.run(
            [self.prefix / "bin" / "mpiexec", *options, "-n", str(ranks), *command],
            capture_output=True, text=True, timeout=120, check=False, cwd=folder,
            env={
                **os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_mpi_yield_when_idle": "1" if many else "0",
                "OPENBLAS_NUM_THREADS": "1", **environment,
            },
        )  # fmt: skip


@pytest.fixture(scope="session", params=["openmpi-5.0.11", "mpich-5.0.2"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return the programs built with an MPI."""
    prefix = install(PROJECT, request.param)
    programs = Built(request.param, prefix, tmp_path_factory.mktemp(request.param))
    done = programs.make("all", "blas")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return programs
