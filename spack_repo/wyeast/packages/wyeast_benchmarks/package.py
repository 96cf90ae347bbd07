"""Recipe of the project's own programs."""

import os
from pathlib import Path

from spack_repo.builtin.build_systems.makefile import MakefilePackage
from spack_repo.wyeast import linkage

from spack.package import *


class WyeastBenchmarks(MakefilePackage):
    """Programs that measure an MPI implementation: ping-pong, collectives, halo exchange, start-up,
    emulated applications, and everything else in Wyeast's benchmarks/."""

    homepage = "https://reframe-hpc.readthedocs.io"
    # A release is benchmarks/ at one commit (releases.json); `make spack-mirror` makes its archive.
    url = Path(__file__).resolve().parents[4].as_uri() + (
        "/.wyeast/spack/releases/wyeast-benchmarks-0.1.1.tar.gz"
    )

    license("Apache-2.0")

    # The checkout, through the environment's `develop:`.
    version("develop")
    version("0.1.1", sha256="b234c5de5d7f98c89a2596864d78cce72851021dd0eca7335554db3b53ddaecf")

    variant("blas", default=True, description="Also what measures a node by its BLAS and LAPACK")

    depends_on("c", type="build")
    depends_on("mpi")
    depends_on("blas", when="+blas")

    #: The programs that `+blas` adds.
    with_blas = ("dgemm", "linpack")

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        # So that tests can start two ranks where Spack runs as root (as in an image's build), on
        # one core, or without a remote shell: otherwise Open MPI's launchers refuse each of these.
        env.set("OMPI_ALLOW_RUN_AS_ROOT", "1")
        env.set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        env.set("OMPI_MCA_rmaps_base_oversubscribe", "1")
        env.set("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
        env.set("OMPI_MCA_plm_rsh_agent", "false")

    @property
    def build_directory(self):
        """Return the Makefile's folder: of the checkout, or of a release's archive."""
        source = self.stage.source_path
        return source if self.spec.is_develop else os.path.join(source, "benchmarks")

    def build_folder(self):
        """Return a folder of this build alone: installations of one checkout must not mix."""
        return os.path.join(self.stage.path, f"build-{self.spec.dag_hash()}")

    def arguments(self):
        found = [
            f"CC={self.spec['mpi'].mpicc}",
            f"BUILD={self.build_folder()}",
            f"PREFIX={self.prefix}",
        ]
        if self.spec.satisfies("+blas"):
            blas = self.spec["blas"].libs
            found.append(f"BLAS={blas.search_flags} {blas.link_flags}")
        return found

    def build(self, spec, prefix):
        targets = ["all", *(["blas"] if spec.satisfies("+blas") else [])]
        with working_dir(self.build_directory):
            make(*self.arguments(), *targets)

    def install(self, spec, prefix):
        targets = ["install", "install-sources"]
        targets += ["install-blas"] if spec.satisfies("+blas") else []
        with working_dir(self.build_directory):
            make(*self.arguments(), *targets)

    def check(self):
        with working_dir(self.build_directory):
            make(*self.arguments(), "check", f"LAUNCH={self.launch()}")
        self.check_blas(os.path.join(self.build_folder(), "bin"))

    def installcheck(self):
        with working_dir(self.build_directory):
            make(*self.arguments(), "installcheck", f"LAUNCH={self.launch()}")
        self.check_blas(self.prefix.bin)

    def check_blas(self, folder):
        """Let each program of `+blas` say what it is for, as the Makefile lets the others."""
        for name in self.with_blas if self.spec.satisfies("+blas") else ():
            Executable(os.path.join(folder, name))("--help", output=os.devnull)

    def launch(self):
        """Return the command that starts two ranks, or nothing where the MPI brings none."""
        mpiexec = os.path.join(self.spec["mpi"].prefix.bin, "mpiexec")
        return f"{mpiexec} -n 2" if os.access(mpiexec, os.X_OK) else ""

    @run_after("install")
    def linked_to_the_asked_mpi(self):
        linkage.check(sorted(Path(self.prefix.bin).iterdir()), Path(self.spec["mpi"].prefix))
