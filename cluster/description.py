"""The cluster in a box as `cluster.yaml` and the command line describe it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from records.yaml_text import from_yaml

DESCRIPTION = Path(__file__).resolve().parents[1] / "site_configs" / "virtual" / "cluster.yaml"
# The addresses 10.77.0.1 .. are the nodes', and only this cluster's own namespaces see them.
NETWORK = "10.77.0"
CONTROLLER_ADDRESS = f"{NETWORK}.254"
CONTROLLER = "controller"
MOST_NODES = 64
#: The schedulers that it may have, with what people call them; the first is the default.
SCHEDULERS = {"slurm": "Slurm", "sge": "Grid Engine"}
#: What an Ethernet frame takes on the wire besides itself: preamble 8, checksum 4, gap 12 bytes.
FRAME_OVERHEAD_BYTES = 24


class ClusterError(Exception):
    """The cluster cannot do what was requested; the text is a sentence with the next step."""


@dataclass(frozen=True)
class Link:
    """A shaped link: its rate, the bytes that may pass at once, whether the first frame waits."""

    name: str
    rate_bit_per_s: int
    burst_bytes: int
    each_frame: bool


@dataclass(frozen=True)
class Cluster:
    """Nodes, what each has, and the links between them; `link` is None for an unshaped wire."""

    nodes: int
    cores_per_node: int
    memory_bytes_per_node: int
    scratch_bytes_per_node: int
    link: Link | None
    scheduler: str = "slurm"

    def node_names(self) -> list[str]:
        """Return the nodes' names, which are their host names too."""
        return [f"node{number}" for number in range(1, self.nodes + 1)]

    def link_bytes_per_s(self) -> float | None:
        """Return the rate of a link in B/s, or None if it is not limited."""
        return self.link.rate_bit_per_s / 8 if self.link else None


def address_of(number: int) -> str:
    """Return the address of a node; the first is node 1."""
    return f"{NETWORK}.{number}"


def describe(
    nodes: str = "", link: str = "", path: Path = DESCRIPTION, scheduler: str = ""
) -> Cluster:
    """Return the cluster that the file describes, with what else the command line says.

    Raises ClusterError for an invalid description.
    """
    try:
        data: dict[str, Any] = from_yaml(path.read_text())
        links = {name: Link(name, **keys) for name, keys in data["links"].items()}
        sizes = {
            key: int(data[key])
            for key in ("cores_per_node", "memory_bytes_per_node", "scratch_bytes_per_node")
        }
        wanted = link or str(data["link"])
        count = nodes or str(data["nodes"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ClusterError(f"{path.name} is not valid: {error!r}") from None
    if not count.isdigit() or not 1 <= int(count) <= MOST_NODES:
        raise ClusterError(f"NODES={count}: give a number from 1 to {MOST_NODES}")
    if wanted != "none" and wanted not in links:
        raise ClusterError(f"LINK={wanted} is unknown; choose one of: {', '.join(links)}, none")
    if scheduler not in ("", *SCHEDULERS):
        raise ClusterError(
            f"SCHEDULER={scheduler} is unknown; choose one of: {', '.join(SCHEDULERS)}"
        )
    if min(sizes.values()) < 1:
        raise ClusterError(f"{path.name}: cores, memory and scratch must be at least 1")
    chosen = scheduler or next(iter(SCHEDULERS))
    return Cluster(nodes=int(count), link=links.get(wanted), scheduler=chosen, **sizes)
