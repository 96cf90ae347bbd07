"""Recipe of the project's own programs."""

import os
from pathlib import Path

from spack_repo.builtin.build_systems.makefile import MakefilePackage
from spack_repo.wyeast import linkage

from spack.package import *


class WyeastBenchmarks(MakefilePackage):
    """Programs that measure an MPI implementation: ping-pong, collectives, halo exchange, start-up,
    emulated applications, and what else benchmarks/ of Wyeast has."""

    homepage = "https://reframe-hpc.readthedocs.io"
    # A release is an archive of benchmarks/ at one commit, which `make spack-mirror` makes.
    url = "file://" + os.path.abspath(
        os.path.join(
            os.path.dirname(__file__), *[os.pardir] * 4,
            ".wyeast/spack/releases/wyeast-benchmarks-0.1.0.tar.gz",
        )
    )  # fmt: skip

    license("Apache-2.0")

    # The checkout, by `develop:` of the environment.
    version("develop")

    depends_on("c", type="build")
    depends_on("mpi")

    #: What needs no MPI.
    without_mpi = ("hpl_dat",)

    def build_folder(self):
        """Return a folder of this build alone: installations of one checkout must not mix."""
        return os.path.join(self.stage.path, f"build-{self.spec.dag_hash()}")

    def arguments(self):
        return [
            f"CC={self.spec['mpi'].mpicc}",
            f"BUILD={self.build_folder()}",
            f"PREFIX={self.prefix}",
        ]

    def build(self, spec, prefix):
        with working_dir(self.build_directory):
            make(*self.arguments())

    def install(self, spec, prefix):
        with working_dir(self.build_directory):
            make(*self.arguments(), "install", "install-sources")

    def check(self):
        with working_dir(self.build_directory):
            make(*self.arguments(), "check", f"LAUNCH={self.launch()}")

    def installcheck(self):
        with working_dir(self.build_directory):
            make(*self.arguments(), "installcheck", f"LAUNCH={self.launch()}")

    def launch(self):
        """Return the command that starts two ranks, or nothing where the MPI brings none."""
        mpiexec = os.path.join(self.spec["mpi"].prefix.bin, "mpiexec")
        return f"{mpiexec} -n 2" if os.access(mpiexec, os.X_OK) else ""

    @run_after("install")
    def linked_to_the_asked_mpi(self):
        linkage.check(
            sorted(Path(self.prefix.bin).iterdir()),
            Path(self.spec["mpi"].prefix),
            self.without_mpi,
        )
