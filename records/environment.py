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
from typing import Any


class Fate(StrEnum):
    """What becomes of a variable that comes from outside."""

    #: It stays outside of containers, where it has its use.
    STAYS = "stays"
    #: It is removed, unless the site names it.
    GOES = "goes"


#: What becomes on the node of a variable that the rank is told by what starts it.
PASSES = "passes"


@dataclass(frozen=True)
class VariablesRow:
    """What becomes of the variables of some names, in which * at the end stands for any letters."""

    names: tuple[str, ...]
    fate: Fate
    #: Whether the values decide what is measured, so that they are recorded and not only the names.
    measures: bool = False
    #: By which `launch` of a site a rank is told them: its container gets them then.
    told_by: tuple[str, ...] = ()


def _twins(*names: str) -> tuple[str, ...]:
    """Return names of Apptainer's variables, and what they were called before."""
    return tuple(f"{prefix}_{name}" for name in names for prefix in ("APPTAINER", "SINGULARITY"))


#: By which the processes of a launch are known, on each node, when it is over.
OF_LAUNCH = "WYEAST_LAUNCH"
TABLE = (
    VariablesRow((OF_LAUNCH,), Fate.STAYS, told_by=("srun", "mpirun")),
    # Caches, the temporary folder, configuration, keys, registries, and how much is said.
    VariablesRow(
        _twins(
            "CACHEDIR", "DISABLE_CACHE", "TMPDIR", "CONFIG*", "KEYSDIR", "PULLFOLDER", "PULLDIR",
            "AUTHFILE", "AUTH_FILE", "NOHTTPS", "NO_HTTPS", "DOCKER_*", "LOGIN_*",
            "DEBUG", "VERBOSE", "QUIET", "SILENT", "MESSAGELEVEL", "NOCOLOR",
        ),
        Fate.STAYS,
    ),
    # The inside of a container: what is set there, bound, shown, hidden, and by which rights.
    VariablesRow(
        ("APPTAINERENV_*", "SINGULARITYENV_*", "APPTAINER_*", "SINGULARITY_*"), Fate.GOES
    ),
    # What a launcher of the machine tells its daemons, and programs of its own: where it is, and
    # what a rank's MPI asks PMI.
    VariablesRow(
        (
            "PMIX_PREFIX", "PMIX_INSTALL_PREFIX", "PRTE_LAUNCHED", "PRTE_SHARED_FS",
            "OMPI_COMM_WORLD_*", "OMPI_WORLD_*", "OMPI_APP_CTX_NUM_PROCS", "OMPI_ARGV",
            "OMPI_COMMAND", "OMPI_FILE_LOCATION", "OMPI_FIRST_RANKS", "OMPI_LIBDIR_LOC",
            "OMPI_NUM_APP_CTX", "OMPI_TOOL_NAME", "OMPI_UNIVERSE_SIZE", "OMPI_VERSION",
            "OMPI_MCA_PREFIXES", "OMPI_MCA_cpu_type", "OMPI_MCA_initial_wdir",
            "OMPI_MCA_num_procs", "OPAL_USER_PARAMS_GIVEN", "HFI_NO_BACKTRACE",
            "IPATH_NO_BACKTRACE", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
        ),
        Fate.STAYS, measures=True,
    ),
    # That of Open MPI 4 tells its ranks by these who they are, beside PMIx, and whether they share
    # cores.
    VariablesRow(
        (
            "OMPI_MCA_orte_app_num", "OMPI_MCA_orte_bound_at_launch", "OMPI_MCA_orte_ess_*",
            "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_orte_jobfam_session_dir", "OMPI_MCA_orte_launch",
            "OMPI_MCA_orte_local_daemon_uri", "OMPI_MCA_orte_num_nodes",
            "OMPI_MCA_orte_precondition_transports", "OMPI_MCA_orte_top_session_dir",
            "OMPI_MCA_mpi_oversubscribe",
        ),
        Fate.STAYS, measures=True, told_by=("mpirun",),
    ),
    # A parameter of PMIx is set by a user; its other variables tell a rank who it is.
    VariablesRow(("PMIX_MCA_*",), Fate.GOES, measures=True),
    VariablesRow(
        ("PMI_*", "PMI2_*", "PMIX_*"), Fate.STAYS, measures=True, told_by=("srun", "mpirun")
    ),
    # How Intel MPI's library binds the rank: its launcher is told by these, and hands them on.
    VariablesRow(
        ("I_MPI_PIN", "I_MPI_PIN_PROCESSOR_LIST"), Fate.GOES, measures=True, told_by=("mpirun",)
    ),
    # A token with which anybody could act as its user: no rank needs it.
    VariablesRow(("SLURM_JWT",), Fate.STAYS),
    # Those of a launcher's ranks are its daemon's: a library would take them for the rank's own.
    VariablesRow(("SLURM_*",), Fate.STAYS, told_by=("srun",)),
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
#: The prefix that tells Apptainer what a variable should be inside a container.
SET_INSIDE = re.compile("^(?:APPTAINER|SINGULARITY)ENV_")
#: What Apptainer sets in every container, where an image may add to it.
OF_APPTAINER = ("LD_LIBRARY_PATH",)
#: What a Slurm job is told about itself, and options to submit one: not for a job submitted within.
OF_OWN_JOB = ("SLURM_*", "SBATCH_*", "SRUN_*")
#: By which ReFrame takes its options where its command line does not have them.
OF_REFRAME = "RFM_"
#: What bash does of its own accord in every script that it is started with, a job's too: commands,
#: options, and functions instead of programs. The command `module` may be one of these.
OF_SHELLS = ("BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_FUNC_*")
#: Where Slurm is, which is no job's.
SLURM_CONF = "SLURM_CONF"
#: What a variable may be called, here and in a shell.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def has_name(name: str, names: Iterable[str]) -> bool:
    """Return whether a variable is called as one of some names, in which * may be at the end.

    Whatever begins here asks it of each of its variables, so nothing is compiled for it.
    """
    return any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in names)


def row_of(name: str) -> VariablesRow | None:
    """Return the row of the table that a variable is in; one in none stays outside."""
    return next((row for row in TABLE if has_name(name, row.names)), None)


def measures(name: str) -> bool:
    """Return whether a variable's value decides what is measured, and so is recorded.

    What sets a variable inside of containers has the value of that one.
    """
    row = row_of(SET_INSIDE.sub("", name))
    return row is not None and row.measures


def values(variables: Mapping[str, str]) -> dict[str, str | None]:
    """Return the names of variables, each with its value if that decides what is measured."""
    return {
        name: value if measures(name) else None for name, value in sorted(variables.items())
    }  # fmt: skip


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


def for_reframe(
    variables: Mapping[str, str], site: Mapping[str, Any], **own: str
) -> dict[str, str]:  # fmt: skip
    """Return the variables of a ReFrame that a campaign on a site starts, with its own.

    None of the caller's sets an option of ReFrame, and none is a habit of shells that its jobs
    would have, unless the site names it or has commands for jobs, which may need it: a campaign is
    measured as it is declared.
    """
    kept = named(site)
    installed = site.get("installations", {}).values()
    has_commands = bool(
        site.get("modules") or site.get("prepare") or any(one.get("prepare") for one in installed)
    )
    found = {
        name: value for name, value in variables.items()
        if not name.startswith(OF_REFRAME)
        and (has_commands or name in kept or not has_name(name, OF_SHELLS))
    }  # fmt: skip
    return {**found, **own}


def from_elsewhere(inside: Mapping[str, str], explained: Collection[str], launch: str) -> list[str]:
    """Return what decides what is measured in a container and was not named by anybody here.

    It is from the machine's apptainer.conf or a script of the image. `explained` are the variables
    that are set there for a reason, and `launch` is how ranks start, who are told some by that.
    """
    known = {*OF_APPTAINER, *(SET_INSIDE.sub("", name) for name in explained)}
    found = []
    for name in sorted(inside):
        row = row_of(name)
        if row is None or not row.measures or name in known:
            continue
        if launch not in row.told_by:
            found.append(name)
    return found


def of_own_job(names: Iterable[str]) -> list[str]:
    """Return which variables are of the job of Slurm's that this process runs in."""
    return [name for name in names if name != SLURM_CONF and has_name(name, OF_OWN_JOB)]


def for_shell(launch: str, outside: bool = False) -> str:
    """Return the table for a shell: words `fate:names`, with the names as a pattern of `case`.

    The first word that fits decides. `launch` is how ranks start: what they are told by it passes.
    What a container would not be given, since ranks are told it by another launcher alone, is
    removed `outside` of one, too: an MPI would believe it. By OF_LAUNCH it is ended there.
    """

    def fate_of(row: VariablesRow) -> str:
        if launch in row.told_by:
            return PASSES
        is_of_another = bool(row.told_by) and OF_LAUNCH not in row.names
        return Fate.GOES if outside and is_of_another else row.fate

    return " ".join(f"{fate_of(row)}:{'|'.join(row.names)}" for row in TABLE)
