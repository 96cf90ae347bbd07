"""Options of a launcher that every launch sets itself, so that no site's `launch_options` may.

They decide how many ranks there are and where: were they the site's, images that are compared would
be placed by different rules, and a launch would not be what its record says.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

#: What to do in place of each.
RANKS = "each experiment sets its number of ranks"
PLACES = "set `nodes` and `cores_per_node`, by which ranks are spread over nodes"
BINDING = (
    "set `cores_per_node`: if a node has a core for each of its ranks, they are bound to one core "
    "each, by the same rule for every launcher"
)
HOSTS = (
    "set `hostfile: true` if the launcher must be told a job's nodes, and choose nodes in `access`"
)
PROGRAM = "each experiment chooses its program"
PMI = "each image names the PMI that it speaks"


@dataclass(frozen=True)
class OptionsRow:
    """Names of options without their dashes, in which * stands for any letters, and a hint."""

    names: tuple[str, ...]
    instead: str


#: Of the launchers of Open MPI, MPICH and Intel MPI together: few are another's under one name.
OF_MPIRUN = (
    OptionsRow(("n", "np", "c"), RANKS),
    OptionsRow(
        (
            "map-by", "rank-by", "ppn", "perhost", "N", "npernode", "npersocket", "pernode", "ppr",
            "grr", "rr", "bynode", "byslot", "rankfile", "rf", "rmap", "rmap-by", "nolocal",
            "oversubscribe", "nooversubscribe", "cpus-per-proc", "cpus-per-rank",
            "use-hwthread-cpus", "cpu-set", "cpu-list",
        ),
        PLACES,
    ),
    OptionsRow(("bind-to", "bind-to-*", "binding", "membind", "map-by-*"), BINDING),
    OptionsRow(
        ("host", "hosts", "H", "hostfile", "machinefile", "default-hostfile", "machine", "f"), HOSTS
    ),
    OptionsRow(("app", "configfile"), PROGRAM),
)  # fmt: skip
OF_SRUN = (
    OptionsRow(("n", "ntasks"), RANKS),
    OptionsRow(("N", "nodes", "ntasks-per-*"), PLACES),
    OptionsRow(("w", "nodelist", "F", "nodefile"), "choose nodes in `access`"),
    OptionsRow(("multi-prog",), PROGRAM),
    OptionsRow(("mpi",), PMI),
)
#: What an option such as --mca, --prtemca or -genv would set the same by.
PARAMETERS = (
    OptionsRow(("rmaps_*", "orte_rmaps_*", "I_MPI_PERHOST"), PLACES),
    OptionsRow(("hwloc_base_*bind*", "hwloc_default_*bind*", "I_MPI_PIN*", "HYDRA_BIND*"), BINDING),
    OptionsRow(("orte_default_hostfile", "prte_default_hostfile", "HYDRA_HOST_FILE"), HOSTS),
)


def collisions(launch: str, words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each word that sets what every launch sets itself, and what to do in its place."""
    rows = OF_SRUN if launch == "srun" else OF_MPIRUN
    for word in words:
        name = word.partition("=")[0]
        if not word.startswith("-"):
            found = _instead(PARAMETERS, name) if launch != "srun" else None
        elif launch == "srun" and not word.startswith("--"):
            # Slurm's short options may have their value in the same word.
            found = _instead(rows, word[1:2])
        else:
            found = _instead(rows, name.lstrip("-"))
        if found:
            yield word, found


def _instead(rows: Iterable[OptionsRow], name: str) -> str | None:
    return next(
        (row.instead for row in rows if any(fnmatchcase(name, one) for one in row.names)), None
    )
