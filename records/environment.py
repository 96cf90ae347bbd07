"""Which variables from outside reach ReFrame, the jobs of launches, and what runs in a container.

One table says what becomes of a variable; its first row that fits decides. ReFrame goes by it
before it starts anything, so its jobs do, and `reframe_checks/launchers/into_container` goes by it
again on the node, right before a container starts: a login shell, a scheduler, a prolog or a module
may have added something there. No container gets any variable of the caller's in its own right
(`apptainer exec --cleanenv`); what the site names is handed to it. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any


class Fate(StrEnum):
    """What becomes of a variable that comes from outside."""

    #: It stays outside of containers, where it has its use.
    STAYS = "stays"
    #: It is removed, unless the site names it.
    GOES = "goes"
    #: As a scheduler has set it for a rank, it is handed to the rank.
    PASSES = "passes"


@dataclass(frozen=True)
class VariablesRow:
    """What becomes of the variables of some names, in which * stands for any letters."""

    names: tuple[str, ...]
    fate: Fate
    #: Whether the values decide what is measured, so that they are recorded and not only the names.
    measures: bool = False


def _twins(*names: str) -> tuple[str, ...]:
    """Return names of Apptainer's variables, and what they were called before."""
    return tuple(f"{prefix}_{name}" for name in names for prefix in ("APPTAINER", "SINGULARITY"))


TABLE = (
    # Caches, the temporary folder, configuration, keys, registries, and how much is said.
    VariablesRow(
        _twins(
            "CACHEDIR", "DISABLE_CACHE", "TMPDIR", "CONFIG*", "KEYSDIR", "PULLFOLDER", "DOCKER_*",
            "LOGIN_*", "DEBUG", "VERBOSE", "QUIET", "SILENT", "MESSAGELEVEL", "NOCOLOR",
        ),
        Fate.STAYS,
    ),
    # The inside of a container: what is set there, bound, shown, hidden, and by which rights.
    VariablesRow(("APPTAINERENV_*", "SINGULARITYENV_*"), Fate.GOES, measures=True),
    VariablesRow(("APPTAINER_*", "SINGULARITY_*"), Fate.GOES),
    # A parameter of PMIx is a user's; all else of it says to a rank who it is.
    VariablesRow(("PMIX_MCA_*",), Fate.GOES, measures=True),
    VariablesRow(("PMI_*", "PMI2_*", "PMIX_*"), Fate.PASSES, measures=True),
    VariablesRow(("SLURM_*",), Fate.PASSES),
    # MPI, its launchers and PVM; fabrics; OpenMP and BLAS.
    VariablesRow(
        (
            "OMPI_*", "OPAL_*", "ORTE_*", "PRTE_*", "MPICH_*", "MPIR_*", "HYDRA_*", "MPIEXEC_*",
            "I_MPI_*", "MV2_*", "MVP_*", "LAM_*", "PVM_*",
            "UCX_*", "FI_*", "PSM_*", "PSM2_*", "PSM3_*", "HFI_*", "IPATH_*", "MLX4_*", "MLX5_*",
            "RDMAV_*", "IBV_*", "NCCL_*",
            "OMP_*", "GOMP_*", "KMP_*", "OPENBLAS_*", "GOTO_*", "MKL_*", "BLIS_*",
        ),
        Fate.GOES, measures=True,
    ),
    # The loader's: a centre's programs may need them to start at all.
    VariablesRow(("LD_*", "MALLOC_*", "GLIBC_TUNABLES"), Fate.STAYS, measures=True),
)  # fmt: skip
#: What a variable may be called, here and in a shell.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def row_of(name: str) -> VariablesRow | None:
    """Return the row of the table that a variable is in; one in none stays outside."""
    return next((row for row in TABLE if any(fnmatchcase(name, one) for one in row.names)), None)


def measures(name: str) -> bool:
    """Return whether a variable's value decides what is measured, and so is recorded."""
    row = row_of(name)
    return row is not None and row.measures


def named(site: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the variables from outside that a site names in `variables`."""
    return tuple(site.get("variables", ()))


def removed(names: Iterable[str], by_site: Collection[str] = ()) -> list[str]:
    """Return which variables are removed, sorted."""
    rows = {name: row_of(name) for name in names if name not in by_site}
    return sorted(name for name, row in rows.items() if row and row.fate == Fate.GOES)


def environment(
    variables: Mapping[str, str], by_site: Collection[str] = ()
) -> dict[str, str]:  # fmt: skip
    """Return what is left of the variables of the caller for ReFrame, its jobs and Apptainer."""
    gone = set(removed(variables, by_site))
    return {name: value for name, value in variables.items() if name not in gone}


def for_shell(fate: Fate) -> str:
    """Return the names of a fate as a pattern of `case` in a shell.

    Whoever uses several looks at STAYS first, then at GOES, then at PASSES.
    """
    return "|".join(name for row in TABLE if row.fate == fate for name in row.names)
