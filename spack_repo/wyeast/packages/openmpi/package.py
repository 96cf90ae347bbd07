"""Recipe of Open MPI: Spack's own, and a version from the distribution's archive."""

from spack_repo.builtin.packages.openmpi.package import Openmpi as BuiltinOpenmpi
from spack_repo.wyeast import inherited

from spack.package import *


class Openmpi(BuiltinOpenmpi):
    __doc__ = BuiltinOpenmpi.__doc__

    # As upstream released it, packed anew by Debian.
    version(
        "4.1.4-debian",
        sha256="ddaee7dbdb01eb4fab1fda5b5e03e8bbff026711806c095c1f39bb410f99f263",
        url="file:///usr/src/openmpi_4.1.4.orig.tar.xz",
    )

    variant("patched", default=True, description="Apply what upstream mended after a release")


inherited.patches_only_when(Openmpi, "+patched")
# Its own hwloc and PMIx use neither.
inherited.dependencies_only_when(Openmpi, "~internal-hwloc", "numactl")
inherited.dependencies_only_when(Openmpi, "~internal-pmix", "zlib-api")
