"""The one place that decides how an image's ranks start on a site."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from containers import images, table
from containers.labels import Labels
from reframe_checks.mixins import host_launching
from reframe_checks.mixins.job_script import quoted
from site_configs.launchers import HostLauncher, LauncherError, launcher_for

AnyValue = TypeVar("AnyValue")


class CannotStart(Exception):
    """The ranks cannot be started as asked; the text is a sentence."""


@dataclass(frozen=True)
class Placement:
    """Ranks and the nodes that they are spread over, as evenly as they go; the cores of each."""

    ranks: int
    nodes: int
    cores_of_a_rank: int = 1

    @property
    def ranks_per_node(self) -> int:
        """Return the number of ranks on a full node."""
        return -(-self.ranks // self.nodes)

    def placement(self, on_a_node: int, cores_per_node: int) -> str:
        """Return how a launcher places so many ranks: each on one core, or wherever there is one.

        Ranks with threads are bound to no core, since they would have that one alone.
        """
        has_core = self.cores_of_a_rank == 1 and on_a_node <= cores_per_node
        return "pinned" if has_core else "oversubscribed"


@dataclass(frozen=True)
class Start:
    """How a launch starts.

    `launcher` is how the scheduler or the machine's launcher starts containers (empty without one),
    `container` are options of `apptainer exec`, both as words that nobody has quoted yet, and
    `command` is what runs inside each container, quoted. `before` are commands of the job that the
    launcher needs, and `handed_on` variables of it that ranks on other nodes lack. `together` says
    whether several containers are on a node, each with a rank.
    """

    launcher: list[str]
    container: list[str]
    command: str
    before: tuple[str, ...] = ()
    handed_on: tuple[str, ...] = ()
    together: bool = False


def start_ranks(
    labels: Labels,
    site: dict[str, Any],
    world: Placement,
    program: Sequence[str],
    variant: str | None = None,
    init_wait: bool = False,
) -> Start:
    """Return how the ranks of a program start, from the image's labels and the site's data.

    - `launch: mpiexec`: one container, in which the image's own launcher starts the ranks. They
      are bound to one core each where the cores suffice, for every implementation alike; where
      they do not, the launcher is told so instead of having to find out.
    - `launch: srun`: Slurm starts a container for each rank and wires them up by the PMI that the
      image speaks; binding is Slurm's (`launch_options` of the site). An implementation that boots
      daemons of its own gets one container a node, in which its launcher does that.
    - `launch: mpirun`: a launcher of the machine does as Slurm does, and binds as `mpiexec` does.
      It must be of the image's own family of MPIs: others share no PMI with it.

    On a site with `spare_init_wait: true`, ranks are spared the needless wait in MPI_Init that the
    image's label names; not with `init_wait`, where start-up itself is measured.

    Raises CannotStart with a sentence.
    """
    container = _variables_of(labels, variant)
    if not init_wait:
        container = [*(f"--env={key}={value}" for key, value in spared(labels, site)), *container]
    if site["launch"] == "mpiexec":
        placement = world.placement(world.ranks, site["cores_per_node"])
        return Start([], container, _by_own_launcher(labels, placement, world, program))
    if site["launch"] == "mpirun":
        return _by_host_launcher(labels, site, world, container, program)
    if site["launch"] != "srun":
        raise CannotStart(
            f"site {site['name']}: launch: {site['launch']} is unknown; use `mpiexec`, `srun` or "
            "`mpirun`"
        )
    # One rank that ends badly ends the launch; Slurm's default is to wait for the others.
    options = ["--kill-on-bad-exit=1", *site.get("launch_options", [])]
    if world.cores_of_a_rank > 1:
        options += [f"--cpus-per-task={world.cores_of_a_rank}"]
    pmi = _known(labels.pmi, "pmi")
    if pmi == "daemons":
        placement = world.placement(world.ranks_per_node, site["cores_per_node"])
        options += [f"--ntasks={world.nodes}", "--ntasks-per-node=1", "--mpi=none"]
        command = _by_own_launcher(labels, placement, world, program)
    else:
        options += [f"--mpi={pmi}"]
        command = quoted(*program)
    together = pmi != "daemons" and world.ranks_per_node > 1
    return Start(options, container, command, together=together)


def spared(labels: Labels, site: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Return the variables that spare ranks a wait in MPI_Init, where the site asks for that."""
    return labels.init_wait.items() if site.get("spare_init_wait") else ()


def started_by(labels: Labels, site: dict[str, Any], what: str = "image") -> str:
    """Return what starts an image's ranks on a site, or an installation's, in words.

    Raises CannotStart with a sentence if that is not known.
    """
    if site["launch"] == "mpiexec":
        return f"the {what}'s {_known(labels.mpiexec, 'mpiexec')}"
    if site["launch"] == "mpirun":
        return str(_host_launcher(labels, site))
    return f"srun --mpi={_known(labels.pmi, 'pmi')}"


def _known(value: AnyValue | None, name: str) -> AnyValue:
    if value is None:
        raise CannotStart(
            f"the image has no label 'org.wyeast.{name}', so it is unknown how its ranks start; "
            "rebuild it"
        )
    return value


def _by_own_launcher(
    labels: Labels, placement: str, world: Placement, program: Sequence[str]
) -> str:
    mpiexec = _known(labels.mpiexec, "mpiexec")
    found = labels.pinned if placement == "pinned" else labels.oversubscribed
    options = _known(found, f"mpiexec.{placement}")
    return quoted(mpiexec, *options, "-n", world.ranks, *program)


def _by_host_launcher(
    labels: Labels,
    site: dict[str, Any],
    world: Placement,
    container: list[str],
    program: Sequence[str],
) -> Start:
    launcher = _host_launcher(labels, site)
    on_a_node = world.ranks_per_node
    family = _known(labels.family, "family")
    placement = world.placement(on_a_node, site["cores_per_node"])
    words = host_launching.words_of(launcher, site, family, world.ranks, on_a_node, placement)
    before = host_launching.look_at_hosts(launcher, site, world.nodes, on_a_node)
    handed_on = host_launching.handed_on(launcher, site)
    return Start(words, container, quoted(*program), before, handed_on, on_a_node > 1)


def _host_launcher(labels: Labels, site: dict[str, Any]) -> HostLauncher:
    try:
        family = _known(labels.family, "family")
        return launcher_for(site, family, labels.version, labels.pmi)
    except LauncherError as error:
        raise CannotStart(str(error)) from None


def _variables_of(labels: Labels, variant: str | None) -> list[str]:
    """Return the options of `apptainer exec` that choose a variant."""
    if variant is None:
        return []
    if variant not in labels.variants:
        implementation = _known(labels.implementation, "implementation")
        raise CannotStart(table.unknown_variant(implementation, variant, labels.variants))
    return images.options_of(labels, variant)
