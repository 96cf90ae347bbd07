"""Records of messages between ranks: what a launch of a communication program measured."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from records.base import (
    Count,
    Difference,
    Epoch,
    Positive,
    Ranges,
    Record,
    Seconds,
    Times,
    TimesThatLast,
    TimeSummary,
)
from records.experiments import operations

#: What communications are of, by the entries of experiments; benchmarks/FORMAT.md says what each
#: one's message is.
OPERATIONS = operations()


#: A non-blocking call by itself; with a computation that takes as long as the call did; and that
#: computation. The slower a library's call, the longer the latter two are, so their times are not
#: compared.
ALONE, BESIDE, COMPUTING = "non-blocking", "non-blocking overlapped", "non-blocking computing"


class PingPong(Record):
    """Round trips of one pair and message size; times are of the whole round trip."""

    record: Literal["result"]
    operation: Literal["pingpong"]
    pair: str
    order: Literal["modified", "original"]
    message_bytes: Count
    iterations: Positive
    warmup: Count
    time_s: TimesThatLast
    verified_bytes: Count
    memory_copy_s: Seconds


class World(Record):
    """The world that the ranks formed."""

    record: Literal["result"]
    operation: Literal["world"]
    ranks: Positive
    distinct_hosts: Positive


class LoadedLibrary(Record):
    """The file that ranks loaded MPI from, by the loader's path; empty if there is none."""

    record: Literal["result"]
    operation: Literal["library"]
    ranks: Positive
    path: str


class Shared(Record):
    """The processors that have something of a kind in common, as lists of the kernel's."""

    kind: str
    processors: Annotated[list[Ranges], Field(min_length=1)]


class Topology(Record):
    """What processors share, the smallest first, on the hosts from this one to the next."""

    record: Literal["result"]
    operation: Literal["topology"]
    host: str
    objects: list[Shared]


class ControlVariables(Record):
    """What rank 0's library says of how messages go, by its tool interface's own names."""

    record: Literal["result"]
    operation: Literal["control_variables"]
    variables: dict[str, str]


class PerformanceVariables(Record):
    """What rank 0's library counted before the round trips and after them."""

    record: Literal["result"]
    operation: Literal["performance_variables"]
    variables: dict[str, Annotated[list[int], Field(min_length=2, max_length=2)]]


class Latency(Record):
    """Round trips of a rank, `to`, with the one that it measured with, `from`."""

    record: Literal["result"]
    operation: Literal["latency"]
    source: Count = Field(alias="from")
    to: Count
    message_bytes: Count
    iterations: Positive
    time_s: TimeSummary


class Transport(Record):
    """How two ranks communicate, as far as it is known."""

    record: Literal["result"]
    operation: Literal["transport"]
    source: Count = Field(alias="from")
    to: Count
    transport: Literal["shared memory", "network", "unknown"]
    evidence: str


class DeviceBytes(Record):
    """What a network device carried, and the devices that it lies on or under."""

    device: str
    kind: Literal["net", "infiniband", "cxi"]
    sent_bytes: Count
    received_bytes: Count
    stacked: list[str]

    @property
    def both_ways(self) -> int:
        """Return how many bytes it carried in the direction in which these were fewer."""
        return min(self.sent_bytes, self.received_bytes)


class Fabric(Record):
    """What the devices of a host carried while its ranks exchanged a known volume of messages."""

    record: Literal["result"]
    operation: Literal["fabric"]
    host: str
    ranks: Positive
    #: To ranks of other hosts, and as much from there.
    between_bytes: Count
    #: From ranks of this host to each other.
    within_bytes: Count
    #: Of that, what ranks copied by one call of the kernel from each other's memory.
    cma_bytes: Count
    #: How many ranks had XPMEM open.
    xpmem_ranks: Count
    counted_devices: Count
    devices: list[DeviceBytes]


class Startup(Record):
    """When the ranks of one launch arrived, in seconds since the epoch by rank.

    Each rank reads the clock of its own node.
    """

    record: Literal["result"]
    operation: Literal["startup"]
    clock: Literal["CLOCK_REALTIME"]
    ranks: Annotated[int, Field(ge=2)]
    main_s: list[Epoch]
    initialised_s: list[Epoch]
    last_integer_s: Epoch

    @model_validator(mode="after")
    def one_time_per_rank(self) -> Startup:
        """Refuse a result that lacks a rank."""
        if not len(self.main_s) == len(self.initialised_s) == self.ranks:
            raise ValueError("main_s and initialised_s do not have one time for each rank")
        return self


class LeastAndMost(Record):
    """The shortest and longest of the ranks' durations, in seconds; negative if clocks differ."""

    min: Difference
    max: Difference

    @model_validator(mode="after")
    def ordered(self) -> LeastAndMost:
        """Refuse a minimum above the maximum."""
        if self.min > self.max:
            raise ValueError("min and max are not in order")
        return self


class StartupDurations(Record):
    """The durations of one launch since its beginning, in seconds."""

    record: Literal["result"]
    operation: Literal["startup_durations"]
    since_s: Epoch
    launch_to_main_s: LeastAndMost
    main_to_initialised_s: LeastAndMost
    launch_to_last_integer_s: Seconds


class Communication(Record):
    """Iterations of one communication of a group of ranks; times are of the last rank through."""

    record: Literal["result"]
    operation: str
    method: str
    group: str
    message_bytes: Count
    ranks: Positive
    iterations: Positive
    warmup: Count
    synchronisation: Literal["barrier", "dissemination", "window", "none"]
    discarded: Count
    clock_error_s: Seconds
    time_s: TimeSummary
    #: Of a large world the summary of these medians.
    median_by_rank_s: Annotated[list[Seconds], Field(min_length=1)] | TimeSummary
    moved_bytes: Count
    verified_bytes: Count

    @model_validator(mode="after")
    def every_byte_was_verified(self) -> Communication:
        """Refuse an unknown operation, and one whose data were not all compared."""
        if self.operation not in OPERATIONS:
            raise ValueError(f"the operation {self.operation!r} is unknown")
        if self.moved_bytes != self.verified_bytes:
            raise ValueError(
                f"{self.moved_bytes} bytes moved and {self.verified_bytes} were verified"
            )
        return self

    @property
    def series(self) -> str:
        """Return what is measured, without the size of the message."""
        return " ".join(word for word in (self.operation, self.method, f"[{self.group}]") if word)


class Iterations(Record):
    """The times of single iterations, in seconds and in order."""

    record: Literal["iterations"]
    operation: Literal["pingpong"]
    pair: str
    order: Literal["modified", "original"]
    message_bytes: Count
    time_s: Times


class CommunicationIterations(Record):
    """The times of a communication's iterations, in seconds and in order."""

    record: Literal["iterations"]
    operation: str
    method: str
    group: str
    message_bytes: Count
    time_s: Times


class RankIterations(Record):
    """One rank's own times for a communication's iterations, in seconds and in order."""

    record: Literal["rank_iterations"]
    operation: str
    method: str
    group: str
    message_bytes: Count
    rank: Count
    time_s: Times
