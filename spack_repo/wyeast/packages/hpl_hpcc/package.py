"""Recipe of HPL as the HPC Challenge suite carries it."""

import os
from pathlib import Path

from spack_repo.builtin.build_systems.makefile import MakefilePackage
from spack_repo.wyeast import linkage

from spack.package import *


class HplHpcc(MakefilePackage):
    """HPL 2.0 from the archive of HPC Challenge, through a BLAS' C interface: the program `xhpl`
    that reads HPL.dat, for use where HPL's own archive is not available."""

    homepage = "https://hpcchallenge.org"
    url = "https://hpcchallenge.org/projectsfiles/hpcc/download/hpcc-1.5.0.tar.gz"

    license("BSD-4-Clause-UC")

    version("1.5.0", sha256="0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8")

    depends_on("c", type="build")
    depends_on("mpi")
    depends_on("blas")
    # Its main program and Makefile.
    depends_on("wyeast-benchmarks", type="build")

    def arguments(self):
        blas = self.spec["blas"].libs
        return [
            "-C", os.path.join(self.spec["wyeast-benchmarks"].prefix.share, "wyeast"),
            f"CC={self.spec['mpi'].mpicc}",
            f"HPL_SOURCE={self.stage.source_path}",
            f"BLAS={blas.search_flags} {blas.link_flags}",
            f"BUILD={os.path.join(self.stage.path, 'build-wyeast')}",
            f"PREFIX={self.prefix}",
        ]  # fmt: skip

    def build(self, spec, prefix):
        make(*self.arguments(), "xhpl")

    def install(self, spec, prefix):
        make(*self.arguments(), "install-hpl")

    @run_after("install")
    def linked_to_the_asked_mpi(self):
        linkage.check(sorted(Path(self.prefix.bin).iterdir()), Path(self.spec["mpi"].prefix))
