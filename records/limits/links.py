"""The least time that a communication takes over the links between the nodes of its ranks.

A node has one link, which carries its rate each way at once. Nothing passes it before a rank begins
an iteration, and an iteration lasts as long as its slowest rank's own time. Ranks begin one after
the other, so a rank that begins late may find its data there already. Two kinds of bytes follow:

- `certain` bytes are in some rank's own time whatever the order in which the ranks begin;
- `spanned` bytes pass one link between the first rank's beginning and the last one's end, which is
  longer than the slowest rank's own time by no more than what the ranks' beginnings are apart.

What is counted are different bytes that ranks of other nodes need, each once for a node: a library
can send more than that, and none can do with less, since none compresses by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from records.communication import COMPUTING, Communication

BITS = 2**64 - 1


#: Ranks leave a barrier within a few short messages of each other. That is less than this in most
#: iterations, and so in the median, on any network, if no rank has to wait for a processor.
MOST_SKEW_S = 1e-3

#: Methods of pairs by which a message is answered by another, which only leaves when all of the
#: first is there (benchmarks/pairs/transfer.c).
ROUND_TRIPS = ("send-recv", "irecv-send", "persistent", "partitioned")


ONE_SIDED = ("put", "get", "accumulate", "get-accumulate", "rput", "rget", "fetch-and-op",
             "compare-and-swap")  # fmt: skip
#: The windows within one access to which an operation ends when it is flushed.
WINDOWS = ("create", "allocate", "shared", "dynamic")
IN_A_ROW = re.compile(r"(\d+) in a row")


@dataclass(frozen=True)
class Message:
    """One message of an iteration, from a rank to another."""

    source: int
    destination: int
    size_bytes: int


@dataclass(frozen=True)
class Bytes:
    """What has to pass one link, one way; see above."""

    certain: float = 0.0
    spanned: float = 0.0


def pairs_in(group: str, ranks: int) -> list[tuple[int, int]]:
    """Return the pairs of a group of `pairs`, each with the rank that begins first in front.

    The groups are named as in benchmarks/pairs/pairs.c. Raises ValueError for another.
    """
    words = group.split()
    if words[:3] == ["ranks", "0", "and"]:
        return [(0, int(words[3]))]
    if len(words) == 3 and words[2] in ("pair", "pairs"):
        if words[1] == "near":
            return [(2 * pair, 2 * pair + 1) for pair in range(int(words[0]))]
        if words[1] == "bisection":
            return [(pair, pair + ranks // 2) for pair in range(int(words[0]))]
    raise ValueError(f"{group!r} are not pairs of ranks")


def groups_in(group: str, ranks: int) -> list[list[int]]:
    """Return the ranks of each group of a collective operation; raises ValueError for another."""
    if group == "world":
        return [list(range(ranks))]
    if group == "halves":
        return [list(range(ranks // 2)), list(range(ranks // 2, ranks))]
    raise ValueError(f"{group!r} is not a group of a collective operation")


def most_through_a_node(messages: Iterable[Message], hosts: Sequence[str]) -> int:
    """Return the bytes that the busiest node sends to others, or gets from them."""
    through: Counter[tuple[str, str]] = Counter()
    for message in messages:
        source, destination = hosts[message.source], hosts[message.destination]
        if source != destination:
            through["out", source] += message.size_bytes
            through["in", destination] += message.size_bytes
    return max(through.values(), default=0)


def of_pairs(result: Communication, hosts: Sequence[str]) -> Bytes:
    """Return the bytes of messages between pairs of ranks.

    Certain is what one pair between two nodes moves one after the other: the rank that begins a
    round trip or a window has its whole way to the answer in its own time, whenever the other one
    begins. Of an exchange it is one message: the rank that begins first waits for the other's,
    which was not sent before.
    """
    method, pairs = result.method.split(), pairs_in(result.group, len(hosts))
    crossing = [(one, other) for one, other in pairs if hosts[one] != hosts[other]]
    if not crossing:
        return Bytes()
    size = result.message_bytes
    if method[0] == "window":
        size *= int(method[-1])
        return Bytes(size, most_through_a_node([Message(*p, size) for p in crossing], hosts))
    both_ways = [Message(*p, size) for p in [*crossing, *(pair[::-1] for pair in crossing)]]
    through = most_through_a_node(both_ways, hosts)
    if method[0] not in ROUND_TRIPS:
        return Bytes(size, through)
    # Of the messages that leave a node, or come to it, one is the last there, and is then answered.
    ends = Counter(hosts[one] for one, _ in crossing), Counter(hosts[two] for _, two in crossing)
    most = max(max(count.values()) for count in ends)
    return Bytes(2 * size, max((most + 1) * size, through))


def of_messages(
    messages: Sequence[Message], groups: list[list[int]], hosts: Sequence[str]
) -> Bytes:
    """Return the bytes of messages in groups whose ranks all wait for what they get.

    Whichever rank of a group begins first has what it gets from other nodes in its own time, since
    none of it was sent before. What the last one sends reaches ranks that have begun already.
    """
    crossing = [m for m in messages if hosts[m.source] != hosts[m.destination]]
    got: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    for message in crossing:
        got[message.destination] += message.size_bytes
        sent[message.source] += message.size_bytes
    certain = max(
        max(min(got[rank] for rank in group), min(sent[rank] for rank in group)) for group in groups
    )
    return Bytes(certain, most_through_a_node(crossing, hosts))


def of_collective(result: Communication, hosts: Sequence[str]) -> Bytes:
    """Return the bytes of a collective operation: what its nodes do not have and need.

    Of a reduction a node needs one vector, to which others' have come together on their way. Of
    what has a root nothing is certain: the root can be through before another rank begins. Nothing
    is told of unequal blocks and scans.
    """
    groups, size = groups_in(result.group, len(hosts)), result.message_bytes
    through: Counter[str] = Counter()
    certain = 0
    for group in groups:
        own = Counter(hosts[rank] for rank in group)
        if len(own) < 2:
            continue
        root = hosts[group[0]]
        if result.operation in ("gather", "scatter"):
            # Into the root's node, or out of it.
            through[root] += size * (len(group) - own[root])
        elif result.operation == "reduce-scatter-block-sum":
            through.update({host: size * count for host, count in own.items()})
        elif result.operation.startswith("reduce-") and result.operation != "reduce-scatter-sum":
            through[root] += size
        elif result.operation == "bcast":
            through.update({host: size for host in own if host != root})
        elif result.operation == "allgather":
            through.update({host: size * (len(group) - count) for host, count in own.items()})
            certain = max(certain, size * (len(group) - max(own.values())))
        elif result.operation == "alltoall":
            # Counted by nodes: messages between single ranks are as many as ranks, squared.
            through.update({h: size * count * (len(group) - count) for h, count in own.items()})
            certain = max(certain, size * (len(group) - max(own.values())))
        elif result.operation.startswith("allreduce-"):
            through.update(dict.fromkeys(own, size))
            certain = max(certain, size)
    return Bytes(certain, max(through.values(), default=0))


def of_one_sided(result: Communication, hosts: Sequence[str]) -> Bytes:
    """Return the bytes of a one-sided operation of rank 0 on rank 1's memory.

    Who gets, lets go of a lock or flushes waits until the data are there. Else they may be under
    way before the other rank begins, as what `rput` has done with may.
    """
    if hosts[0] == hosts[1]:
        return Bytes()
    row = IN_A_ROW.search(result.method)
    size = result.message_bytes * (int(row[1]) if row else 1)
    kind = result.method.split(" ")[0]
    waits = "get" in result.operation or kind == "lock" or kind in WINDOWS
    return Bytes(size if waits and result.operation != "rput" else 0, size)


def of_two_ranks(result: Communication, hosts: Sequence[str]) -> Bytes:
    """Return the bytes of what is between two ranks alone, as its operation's name says."""
    if hosts[0] == hosts[1]:
        return Bytes()
    size = result.message_bytes
    if result.operation.startswith("layout-") or result.operation == "long-round-trip":
        return Bytes(2 * size, 2 * size)
    if result.operation == "threads":
        # Rank 0 has its whole window in its own time, to the answer.
        return Bytes(result.moved_bytes, result.moved_bytes)
    # The root of a broadcast can be through before the other rank begins.
    return Bytes(size if result.operation == "long-allreduce-bxor" else 0, size)


def bytes_over_links(
    result: Communication, hosts: Sequence[str], messages: Sequence[Message] | None = None
) -> Bytes:
    """Return what an iteration has to bring over one link; `hosts` has the host of each rank.

    `messages` are those of an iteration where its record does not say them. Without them, where
    ranks share nodes, nothing is known about what is neither pairs, collective nor one-sided.
    """
    if result.operation == "pairs":
        return of_pairs(result, hosts)
    if result.operation in ONE_SIDED:
        return of_one_sided(result, hosts)
    if result.operation.startswith(("layout-", "long-")) or result.operation == "threads":
        return of_two_ranks(result, hosts)
    if messages is not None:
        return of_messages(messages, [list(range(len(hosts)))], hosts)
    if result.operation in ("some-to-some", "halo") or result.operation.startswith("neighbour-"):
        # The busiest node brings the mean at least, where all that moves goes to other nodes.
        alone = len(set(hosts)) == len(hosts)
        return Bytes(spanned=result.moved_bytes / len(hosts) if alone else 0)
    if result.operation.startswith("file-"):
        return Bytes()  # What goes to a file, goes by other ways than links between ranks.
    if result.message_bytes == 0 or result.operation in ("barrier", "cartesian", "echo"):
        return Bytes()
    if result.method == COMPUTING:
        return Bytes()
    return of_collective(result, hosts)


def least_seconds(
    result: Communication,
    hosts: Sequence[str],
    link_bytes_per_s: float,
    *,
    oversubscribed: bool = False,
    messages: Sequence[Message] | None = None,
) -> float:
    """Return the shortest possible time of an iteration in seconds; 0 if none is known.

    If ranks wait for processors it is unknown when they begin, so only the certain bytes
    count. A window begins at one time on all ranks, by clocks that are wrong by `clock_error_s`.
    """
    needed = bytes_over_links(result, hosts, messages)
    if result.synchronisation == "window":
        most = max(needed.certain, needed.spanned)
        return max(0.0, most / link_bytes_per_s - 2 * result.clock_error_s)
    certain = needed.certain / link_bytes_per_s
    if oversubscribed or result.synchronisation not in ("barrier", "dissemination"):
        return certain
    return max(certain, needed.spanned / link_bytes_per_s - MOST_SKEW_S)


def numbers_below(seed: int) -> Callable[[int], int]:
    """Return a source of whole numbers from 0 to below a limit, each equally likely.

    SplitMix64 of Steele, Lea and Flood (2014); what would favour the small numbers is dropped.
    """
    state = seed

    def below(limit: int) -> int:
        nonlocal state
        while True:
            state = (state + 0x9E3779B97F4A7C15) & BITS
            number = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & BITS
            number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & BITS
            number ^= number >> 31
            if number < BITS - BITS % limit:
                return number % limit

    return below


def drawn_messages(
    seed: int, ranks: int, messages: int, most_bytes: int, *, double: bool
) -> list[Message]:
    """Return the messages of an exchange; `messages` are those that a rank sends on average.

    Sizes are from 0 to `most_bytes`. With `double` every pair also has one the other way.
    """
    below = numbers_below(seed)
    drawn = []
    for _ in range(ranks * messages):
        source, destination = below(ranks), below(ranks - 1)
        destination += destination >= source
        drawn.append(Message(source, destination, below(most_bytes + 1)))
    if double:
        drawn += [Message(m.destination, m.source, below(most_bytes + 1)) for m in list(drawn)]
    return drawn
