"""Recipe of MPICH: Spack's own, and a version from the distribution's archive."""

from spack_repo.builtin.packages.mpich.package import Mpich as BuiltinMpich
from spack_repo.wyeast import inherited

from spack.package import *


class Mpich(BuiltinMpich):
    __doc__ = BuiltinMpich.__doc__

    # As upstream released it, packed anew by Debian.
    version(
        "4.0.2-debian",
        sha256="b27039f964afeb6b8a3e009c56b441cbe368c26d6d6476ad3bb7190996875860",
        url="file:///usr/src/mpich_4.0.2.orig.tar.xz",
    )

    variant("patched", default=True, description="Apply what upstream mended after a release")


inherited.patches_only_when(Mpich, "+patched")
