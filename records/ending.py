"""What a program says last: that its output is whole, what disturbed it, and where its ranks were.

The last two are what the ranks themselves saw (benchmarks/FORMAT.md): an MPI may have been told to
place them in one way and have done another, and whether they waited for processors is measured.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, model_validator

from records.base import MOST_RANKS, Count, Duration, Positive, Ranges, Record, Share

#: More than the last line of any output has, read from its end in growing pieces.
FIRST_BYTES, MOST_BYTES = 4096, 2**26
#: By this share of an operation's time ranks without a processor may be late, at most; and where
#: nobody knows of how many messages a time is, a rank may wait for so much of its time.
MOST_WAITED = 0.05
#: How long another one keeps a processor that ranks share: Linux gives 3 ms by default, up to its
#: next tick, of which it mostly has 250 a second (benchmarks/common/waiting.c).
SLICE_S = 4e-3

AnyEntry = TypeVar("AnyEntry")


def pairs(runs: Any) -> Any:
    """Return lists in a list as tuples: JSON has none."""
    if not isinstance(runs, list):
        return runs
    return [tuple(run) if isinstance(run, list) else run for run in runs]


#: What a host calls itself: nothing that would change a terminal.
HostName = Annotated[str, Field(pattern=r"^[!-~]{1,256}$")]
List = Annotated[Ranges, Field(max_length=5000)]
#: For ranks in a row what each of them has, and how many they are.
HostRuns = Annotated[list[tuple[HostName, Positive]], BeforeValidator(pairs)]
ListRuns = Annotated[list[tuple[List, Positive]], BeforeValidator(pairs)]


def by_rank(runs: Sequence[tuple[AnyEntry, int]]) -> Iterator[AnyEntry]:
    """Yield what each rank has."""
    return (entry for entry, ranks in runs for _ in range(ranks))


class RankPlaces(Record):
    """On which host each rank was, and on what of it it might run.

    A core has the number of the first of its processors, which are its hyper-threads. What a kernel
    did not tell is empty.
    """

    hosts: HostRuns
    processors: ListRuns
    cores: ListRuns
    sockets: ListRuns
    numa_nodes: ListRuns

    @model_validator(mode="after")
    def of_the_same_ranks(self) -> Self:
        """Refuse what is not of as many ranks in all, or of more than there are."""
        counts = {
            sum(ranks for _, ranks in runs)
            for runs in (self.hosts, self.processors, self.cores, self.sockets, self.numa_nodes)
        }
        if len(counts) > 1 or max(counts) > MOST_RANKS:
            raise ValueError("hosts, processors, cores, sockets and NUMA nodes are not of as many "
                             "ranks")  # fmt: skip
        return self


#: Those that were read, each once: launches of an implementation are mostly placed alike.
_PLACEMENTS: dict[str, RankPlaces] = {}


def once(placement: RankPlaces) -> RankPlaces:
    """Return the placement that is equal to this one and was there first."""
    return _PLACEMENTS.setdefault(placement.model_dump_json(), placement)


SharedPlacement = Annotated[RankPlaces, AfterValidator(once)]


class ProcessorWait(Record):
    """How long the rank for which messages waited longest was without a processor; in s.

    It waits while it could run and others do, on `turns` occasions. `most_share` is the greatest
    share of its time that any rank waited; None of older outputs, whose rank is that one.
    """

    rank: Count
    counted_s: Duration
    waited_s: Duration
    turns: Count
    most_share: Share | None = None

    @property
    def own_share(self) -> float:
        """Return which part of its time it waited."""
        return min(1.0, self.waited_s / self.counted_s) if self.counted_s else 0.0

    @property
    def share(self) -> float:
        """Return the greatest part of its time that any rank waited."""
        return self.own_share if self.most_share is None else self.most_share

    @property
    def delay_s(self) -> float:
        """Return how long a message that comes at any moment waits for its rank, on average.

        The rank is without a processor for `own_share` of the time. The wait that a message meets
        lasts for another E[w²] / 2 E[w]: more than waits do on average where they differ, since
        it meets the long ones. The kernel counts their sum and number alone. So it is taken for the
        average, as if they were distributed exponentially, or for a slice, if that is longer: half
        of the longest wait there is where one other has the processor at a time.
        """
        each_s = self.waited_s / self.turns if self.turns else 0.0
        return self.own_share * max(each_s, SLICE_S)


class ToldAtEnd(Record):
    """What every program of ours says at its end.

    `stopped` is how often a rank went on after it had been stopped, `carriers` how often a link of
    a rank's node lost or regained its carrier; None of programs that do not count it.
    """

    stopped: Count | None = None
    carriers: Count | None = None
    placement: SharedPlacement | None = None
    waiting: ProcessorWait | None = None


class End(ToldAtEnd):
    """The last line; an output without it was cut off."""

    record: Literal["end"]
    results: Count


class ToldDisturbances(ToldAtEnd):
    """The last line of an output whose own format has no place for what it says."""

    record: Literal["disturbances"]
    stopped: Count
    carriers: Count


_LAST_LINE: TypeAdapter[End | ToldDisturbances] = TypeAdapter(End | ToldDisturbances)


def last_line(path: Path) -> bytes:
    """Return the last line of a file that is no longer than any output's; raises OSError."""
    with path.open("rb") as file:
        size, read = os.fstat(file.fileno()).st_size, FIRST_BYTES
        while True:
            file.seek(max(0, size - read))
            text = file.read(read).rstrip(b"\n")
            if b"\n" in text or read >= min(size, MOST_BYTES):
                return text.rpartition(b"\n")[2]
            read *= 16


def told_in(path: Path) -> ToldAtEnd:
    """Return what a program's last line says.

    An output without such a line tells nothing, whatever it is.
    """
    try:
        return _LAST_LINE.validate_json(last_line(path))
    except (OSError, ValueError):
        return ToldAtEnd()
