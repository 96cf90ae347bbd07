"""The cores and nodes of the site that ReFrame runs for, known before any check is set up."""

from typing import Any

from reframe.core.runtime import runtime


def site_here() -> dict[str, Any] | None:
    """Return the data of the site that ReFrame runs for; None if the host belongs to no site."""
    sites = [partition.extras.get("site") for partition in runtime().system.partitions]
    return next((dict(site) for site in sites if site), None)


def cores_of_a_node() -> int:
    """Return how many ranks of a node have a processor each; 1 if the host belongs to no site.

    Where one machine plays several nodes, there can be fewer processors than cores.
    """
    site = site_here() or {"cores_per_node": 1}
    return int(min(site["cores_per_node"], site.get("processors", site["cores_per_node"])))


def ranks_with_processors() -> int:
    """Return how many ranks of the whole site have a processor each."""
    return int(min(cores_of_site(), (site_here() or {}).get("processors", cores_of_site())))


def nodes_of_site() -> int:
    """Return the nodes of the site that ReFrame runs for; 1 if the host belongs to no site."""
    return int((site_here() or {"nodes": 1})["nodes"])


def cores_of_site() -> int:
    """Return the cores of the site that ReFrame runs for; 1 if the host belongs to no site."""
    site = site_here() or {"cores_per_node": 1, "nodes": 1}
    return int(site["cores_per_node"] * site["nodes"])


def ranks_up_to(most: int) -> int:
    """Return the largest power of two of ranks that the site has cores for, at least 2."""
    ranks = 2
    while ranks * 2 <= min(most, cores_of_site()):
        ranks *= 2
    return ranks
