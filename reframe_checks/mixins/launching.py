"""The one place that decides how an image's ranks start on a site."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from containers import images

INTO_CONTAINER = Path(__file__).resolve().parents[1] / "launchers" / "into_container"


class CannotStart(Exception):
    """The ranks cannot be started as asked; the text is a sentence."""


@dataclass(frozen=True)
class World:
    """Ranks and the nodes that they are spread over, as evenly as they go."""

    ranks: int
    nodes: int

    @property
    def ranks_per_node(self) -> int:
        """Return the number of ranks on a full node."""
        return -(-self.ranks // self.nodes)


@dataclass(frozen=True)
class Start:
    """How a launch starts.

    `launcher` is how the scheduler starts containers (empty without one), `container` are options
    of `apptainer exec`, and `command` is what runs inside each container.
    """

    launcher: list[str]
    container: list[str]
    command: str


def start_ranks(
    labels: dict[str, str],
    site: dict[str, Any],
    world: World,
    program: Sequence[str],
    variant: str | None = None,
) -> Start:
    """Return how the ranks of a program start, from the image's labels and the site's data.

    - `launch: mpiexec`: one container, in which the image's own launcher starts the ranks. They
      are bound to one core each where the cores suffice, for every implementation alike; where
      they do not, the launch is told so instead of being left to find out.
    - `launch: srun`: Slurm starts a container for each rank and wires them up by the PMI that the
      image speaks; binding is Slurm's (`launch_options` of the site). An implementation that boots
      daemons of its own gets one container a node, in which its launcher does that.

    Raises CannotStart with a sentence.
    """
    container = _variables_of(labels, variant)
    if site["launch"] == "mpiexec":
        placement = "pinned" if world.ranks <= site["cores_per_node"] else "oversubscribed"
        return Start([], container, _by_own_launcher(labels, placement, world, program))
    if site["launch"] != "srun":
        raise CannotStart(
            f"site {site['name']}: launch: {site['launch']} is unknown; use `mpiexec` or `srun`"
        )
    # One rank that ends badly ends the launch; Slurm's default is to wait for the others.
    options = ["--kill-on-bad-exit=1", *site.get("launch_options", [])]
    pmi = _label(labels, "pmi")
    if pmi == "daemons":
        placement = "pinned" if world.ranks_per_node <= site["cores_per_node"] else "oversubscribed"
        options += [f"--ntasks={world.nodes}", "--ntasks-per-node=1", "--mpi=none"]
        command = _by_own_launcher(labels, placement, world, program)
    else:
        options += [f"--mpi={pmi}"]
        command = shlex.join(program)
    return Start([*options, str(INTO_CONTAINER)], container, command)


def _label(labels: dict[str, str], name: str) -> str:
    try:
        return labels[f"org.wyeast.{name}"]
    except KeyError:
        raise CannotStart(
            f"the image has no label 'org.wyeast.{name}', so it is unknown how its ranks start; "
            "rebuild it"
        ) from None


def _by_own_launcher(
    labels: dict[str, str], placement: str, world: World, program: Sequence[str]
) -> str:
    mpiexec, options = _label(labels, "mpiexec"), _label(labels, f"mpiexec.{placement}")
    words = [mpiexec, *shlex.split(options), "-n", str(world.ranks), *program]
    return shlex.join(words)


def _variables_of(labels: dict[str, str], variant: str | None) -> list[str]:
    """Return the options of `apptainer exec` that choose a variant."""
    if variant is None:
        return []
    known = images.variants_of(labels)
    if variant not in known:
        implementation = _label(labels, "implementation")
        raise CannotStart(images.unknown_variant(implementation, variant, known))
    return images.options_of(labels, variant)
