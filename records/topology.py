"""What ranks have in common where they run: a core, a cache, a NUMA node, a package, a host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from records.base import Header, numbers_of
from records.communication import Topology

#: What two ranks of a host share at least, and two of different hosts.
HOST, NETWORK = "host", "network"


def processors_of(header: Header) -> list[frozenset[int]]:
    """Return the processors that each rank may run on; none of a rank where it is not known."""
    every: list[frozenset[int]] = []
    for entry in header.processors:
        if len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], int):
            every += [numbers_of(entry[0])] * entry[1]
        else:
            every.append(frozenset(int(number) for number in entry))
    return every


class Nearness:
    """What two ranks of a launch have in common, by the topologies that a preflight has found."""

    def __init__(self, topologies: Sequence[Topology]) -> None:
        """Take the topologies in the order of hosts; a host that has none is like the first."""
        self._of = {
            one.host: [(kind.kind, [*map(numbers_of, kind.processors)]) for kind in one.objects]
            for one in topologies
        }
        self._usual = next(iter(self._of.values()), [])

    def kinds(self) -> list[str]:
        """Return what ranks can have in common, the nearest first."""
        named = [kind for objects in self._of.values() for kind, _ in objects]
        return [*dict.fromkeys(named), HOST, NETWORK]

    def between(self, header: Header, one: int, other: int) -> str | None:
        """Return the smallest thing in which both ranks are wherever they run; None if unknown."""
        if header.hosts[one] != header.hosts[other]:
            return NETWORK
        processors = processors_of(header)
        if not processors[one] or not processors[other]:
            return None
        both = processors[one] | processors[other]
        for kind, each in self._of.get(header.hosts[one], self._usual):
            if any(both <= own for own in each):
                return kind
        return HOST

    def nearest_and_farthest(self, header: Header) -> tuple[str, str] | None:
        """Return what rank 0 has in common with the rank next to it, and with the farthest."""
        found = [self.between(header, 0, other) for other in range(1, header.ranks)]
        if not found or None in found:
            return None
        order = self.kinds()
        sorted_kinds = sorted(_known(found), key=order.index)
        return sorted_kinds[0], sorted_kinds[-1]


def _known(kinds: Iterable[str | None]) -> list[str]:
    return [kind for kind in kinds if kind is not None]
