"""Recipe of BLIS: Spack's own, and what the distribution installs above it."""

from spack_repo.builtin.packages.blis.package import Blis as BuiltinBlis

from spack.package import *


class Blis(BuiltinBlis):
    __doc__ = BuiltinBlis.__doc__

    variant("lapack", default=False, description="With the reference LAPACK, in the same prefix")
    provides("lapack", when="+lapack")

    @property
    def libs(self):
        # What calls both finds those of BLIS first, and so does LAPACK.
        found = super().libs
        if self.spec.satisfies("+lapack"):
            found += find_libraries("liblapack", root=self.prefix, recursive=True)
        return found

    @run_before("edit")
    def only_external(self):
        if self.spec.satisfies("+lapack"):
            raise InstallError("LAPACK is not built with BLIS: install both, and name the prefix")
