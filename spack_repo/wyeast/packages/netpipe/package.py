"""Recipe of NetPIPE 3."""

import os
from pathlib import Path

from spack_repo.builtin.build_systems.makefile import MakefilePackage
from spack_repo.wyeast import linkage

from spack.package import *


class Netpipe(MakefilePackage):
    """NetPIPE 3: a ping-pong over message sizes, of MPI (`NPmpi`) and of TCP alone (`NPtcp`)."""

    homepage = "https://netpipe.cs.ksu.edu"
    # The archive is the one that containers/sources.lock pins, and comes from the source mirror.
    url = "https://netpipe.cs.ksu.edu/download/NetPIPE-3.7.2.tar.gz"

    license("GPL-2.0-or-later")

    version("3.7.2", sha256="13dac884ff52951636f651c421f5ff4a853218a95aa28a4a852402ee385a2ab8")

    depends_on("c", type="build")
    depends_on("mpi")
    # Its Makefile knows no prefix; ours does.
    depends_on("wyeast-benchmarks", type="build")

    def arguments(self):
        return [
            "-C", os.path.join(self.spec["wyeast-benchmarks"].prefix.share, "wyeast"),
            f"CC={self.spec['mpi'].mpicc}",
            f"PLAIN_CC={spack_cc}",
            f"NETPIPE_SOURCE={self.stage.source_path}",
            f"BUILD={os.path.join(self.stage.path, 'build-wyeast')}",
            f"PREFIX={self.prefix}",
        ]  # fmt: skip

    def build(self, spec, prefix):
        make(*self.arguments(), "netpipe")

    def install(self, spec, prefix):
        make(*self.arguments(), "install-netpipe")

    @run_after("install")
    def linked_to_the_asked_mpi(self):
        linkage.check(sorted(Path(self.prefix.bin).iterdir()), Path(self.spec["mpi"].prefix))
