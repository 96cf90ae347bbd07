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

    def __init__(self, topologies: Sequence[Topology], hosts: Iterable[str]) -> None:
        """Take the topologies, and the hosts of the preflight's ranks.

        A host of it that has no topology of its own is like the one before.
        """
        own = {
            one.host: [(kind.kind, [*map(numbers_of, kind.processors)]) for kind in one.objects]
            for one in topologies
        }
        self._of: dict[str, list[tuple[str, list[frozenset[int]]]]] = {}
        before = None
        for host in dict.fromkeys(hosts):
            before = own.get(host, before)
            if before is not None:
                self._of[host] = before

    def kinds(self) -> list[str]:
        """Return what ranks can have in common, the nearest first."""
        named = [kind for objects in self._of.values() for kind, _ in objects]
        return [*dict.fromkeys(named), HOST, NETWORK]

    def to_the_first(self, header: Header) -> list[str | None]:
        """Return for each rank but rank 0 the smallest thing in which both are wherever they run.

        None where that is unknown, as on a host on which no preflight was.
        """
        processors = processors_of(header)
        first, kinds = header.hosts[0], self._of.get(header.hosts[0])
        return [
            NETWORK if host != first
            else None if kinds is None or not processors[0] or not own
            else next(
                (kind for kind, each in kinds if any(processors[0] | own <= of for of in each)),
                HOST,
            )
            for host, own in zip(header.hosts[1:], processors[1:], strict=True)
        ]  # fmt: skip

    def nearest_and_farthest(self, header: Header) -> tuple[str, str] | None:
        """Return what rank 0 has in common with the rank next to it, and with the farthest."""
        found = self.to_the_first(header)
        if not found or None in found:
            return None
        order = self.kinds()
        sorted_kinds = sorted(_known(found), key=order.index)
        return sorted_kinds[0], sorted_kinds[-1]


def _known(kinds: Iterable[str | None]) -> list[str]:
    return [kind for kind in kinds if kind is not None]
