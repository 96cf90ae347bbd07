"""How many cores the site has that ReFrame runs for, known before any check is set up."""

from reframe.core.runtime import runtime


def cores_of_site() -> int:
    """Return the cores of the site that ReFrame runs for; 1 where the host is of no site."""
    sites = [partition.extras.get("site") for partition in runtime().system.partitions]
    return max((site["cores_per_node"] * site["nodes"] for site in sites if site), default=1)


def ranks_up_to(most: int) -> int:
    """Return the largest power of two of ranks that the site has cores for, at least 2."""
    ranks = 2
    while ranks * 2 <= min(most, cores_of_site()):
        ranks *= 2
    return ranks
