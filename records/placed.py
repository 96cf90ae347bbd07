"""What a placement of ranks comes to: how many share what, and whether two of them are alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from records.base import numbers_of
from records.counting import how_many
from records.ending import RankPlaces, by_rank

#: Of each rank: the number of its node, and what it may run on, by numbers that begin anew.
Pattern = tuple[tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], int], ...]


@dataclass(frozen=True)
class Placed:
    """What a placement comes to: the least and the most of each where they differ.

    `crowded` are the ranks of which more are bound to some cores than these are.
    """

    ranks: int
    nodes: int
    of_a_node: tuple[int, int]
    cores_of_a_rank: tuple[int, int]
    sockets_of_a_node: tuple[int, int]
    numa_nodes_of_a_node: tuple[int, int]
    crowded: int

    @property
    def words(self) -> str:
        """Return it in words, without what no kernel told."""
        said = [f"{span(self.of_a_node, 'rank')} on {how_many(self.nodes, 'node')}"]
        if self.cores_of_a_rank[1]:
            said.append(f"each may run on {span(self.cores_of_a_rank, 'core')}")
        if self.sockets_of_a_node[1]:
            said.append(f"{span(self.sockets_of_a_node, 'socket')} of a node")
        if self.numa_nodes_of_a_node[1]:
            said.append(f"{span(self.numa_nodes_of_a_node, 'NUMA node')} of a node")
        if self.crowded:
            said.append(f"sharing a core with another: {how_many(self.crowded, 'rank')}")
        return ", ".join(said)


def span(ends: tuple[int, int], one: str) -> str:
    """Return the least and the most in words with what they count, once where they are the same."""
    least, most = ends
    return how_many(most, one) if least == most else f"{least} to {how_many(most, one)}"


def ends_of(numbers: Iterable[int]) -> tuple[int, int]:
    """Return the least and the most; zeros of nothing."""
    found = sorted(numbers)
    return (found[0], found[-1]) if found else (0, 0)


def crowded_ranks(own: Sequence[frozenset[int]]) -> int:
    """Return how many of a node's ranks are bound to cores of which there are fewer than ranks."""
    alike = Counter(own)
    crowded: set[frozenset[int]] = set()
    for cores in alike:
        within = [other for other in alike if other and other <= cores]
        if sum(alike[other] for other in within) > len(cores):
            crowded.update(within)
    return sum(alike[cores] for cores in crowded)


def placed(placement: RankPlaces) -> Placed:
    """Return what a placement comes to."""
    hosts = [*by_rank(placement.hosts)]
    cores = [*map(numbers_of, by_rank(placement.cores))]
    of_node: dict[str, list[frozenset[int]]] = defaultdict(list)
    for host, own in zip(hosts, cores, strict=True):
        of_node[host].append(own)
    sockets, numa_nodes = (
        union_by(hosts, runs) for runs in (placement.sockets, placement.numa_nodes)
    )
    return Placed(
        ranks=len(hosts), nodes=len(of_node), of_a_node=ends_of(map(len, of_node.values())),
        cores_of_a_rank=ends_of(map(len, cores)), sockets_of_a_node=ends_of(sockets),
        numa_nodes_of_a_node=ends_of(numa_nodes),
        crowded=sum(map(crowded_ranks, of_node.values())),
    )  # fmt: skip


#: Of the placements that were looked at, by their place in memory, which keeping them holds.
_CROWDED: dict[int, tuple[RankPlaces, bool]] = {}


def is_crowded(placement: RankPlaces) -> bool:
    """Return whether ranks share cores of which there are fewer than they are."""
    found = _CROWDED.get(id(placement))
    if found is None:
        found = _CROWDED[id(placement)] = (placement, placed(placement).crowded > 0)
    return found[1]


def union_by(hosts: Sequence[str], runs: Sequence[tuple[str, int]]) -> list[int]:
    """Return of how many of something each node's ranks may use one or more."""
    found: dict[str, set[int]] = defaultdict(set)
    for host, one in zip(hosts, by_rank(runs), strict=True):
        found[host] |= numbers_of(one)
    return [*map(len, found.values())]


def pattern(placement: RankPlaces) -> Pattern:
    """Return what is the same of two placements that differ only in which nodes and cores they got.

    Nodes, and the cores, sockets and NUMA nodes of each, are numbered in the order in which ranks
    come to them; so an order of ranks that puts neighbours elsewhere gives another pattern.
    """
    nodes: dict[str, int] = {}
    known: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)

    def anew(host: str, kind: str, ranges: str) -> tuple[int, ...]:
        of = known[host, kind]
        return tuple(sorted(of.setdefault(one, len(of)) for one in sorted(numbers_of(ranges))))

    return tuple(
        (nodes.setdefault(host, len(nodes)), anew(host, "core", cores),
         anew(host, "socket", sockets), anew(host, "numa", numa), len(numbers_of(processors)))
        for host, cores, sockets, numa, processors in zip(
            *map(by_rank, (placement.hosts, placement.cores, placement.sockets,
                           placement.numa_nodes, placement.processors)), strict=True
        )
    )  # fmt: skip
