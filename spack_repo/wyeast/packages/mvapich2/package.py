"""Recipe of MVAPICH2: Spack's own, and a version from the tree of a repository."""

from spack_repo.builtin.packages.mvapich2.package import Mvapich2 as BuiltinMvapich2
from spack_repo.wyeast import inherited

from spack.package import *


class Mvapich2(BuiltinMvapich2):
    __doc__ = BuiltinMvapich2.__doc__

    # The tree of release 2.3.7-1, of a repository that has those of all releases.
    version(
        "2.3.7-1-tree",
        sha256="644959dc29b1477c841cf1ddc649c7e23926ed34564bb74cdb4a3153ff4a37aa",
        url="https://github.com/kumattau/mvapich2/archive/"
        "7b3539c49333409736664ecf03e4ea4a099dcaa0.tar.gz",
        deprecated=True,
    )

    variant("tree", default=False, description="From a tree, in which configure is still to make")
    requires("+tree", when="@=2.3.7-1-tree")

    depends_on("automake", type="build", when="+tree")
    depends_on("libtool", type="build", when="+tree")
    depends_on("m4", type="build", when="+tree")

    @when("@2.3.7")
    def patch(self):
        """Let the network module for TCP compile, in which 2.3.7 brought errors."""
        tcp = join_path("src", "mpid", "ch3", "channels", "nemesis", "netmod", "tcp")
        for file, wrong, right in (
            ("tcp_init.c", "mpierrno != 0", "mpi_errno != 0"),
            ("tcp_init.c", "if (!mpi_errno);", "if (!mpi_errno)"),
            ("tcp_getip.c", "char* ip[", "char ip["),
            ("tcp_getip.c", "inet_ntop(AF_INET, addr,", "inet_ntop(AF_INET, &addr,"),
        ):
            filter_file(wrong, right, join_path(tcp, file), string=True)

    @when("+tree")
    def autoreconf(self, spec, prefix):
        Executable("./autogen.sh")()


# The one is needed to change what a release's archive was made with; the hwloc that is bundled can
# use the others, and does without them.
inherited.dependencies_only_when(
    Mvapich2, "~tree", "automake", "libpciaccess", "libxml2", "zlib-api"
)
