"""What all records of a program's output have in common (benchmarks/FORMAT.md)."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Difference = Annotated[float, Field(allow_inf_nan=False)]
Epoch = Annotated[float, Field(gt=0, allow_inf_nan=False)]
#: More than any program has counted: beyond what it prints there may be no floating-point number.
MOST_COUNTED = 2**64 - 1
Count = Annotated[int, Field(ge=0, le=MOST_COUNTED)]
Positive = Annotated[int, Field(ge=1, le=MOST_COUNTED)]
Share = Annotated[float, Field(ge=0, le=1)]
#: Of records of launches and campaigns, where more is no measurement but damage: thirty years,
#: and more ranks, nodes, launches and processes than any machine has had.
Duration = Annotated[float, Field(ge=0, le=1e9)]
RoundNumber = Annotated[int, Field(ge=1, le=999_999)]
Number = Annotated[int, Field(ge=1, le=10**8)]
#: More than any machine has had.
MOST_RANKS = 10**7
#: Of a larger world records have summaries (benchmarks/common/record_pieces.h).
MOST_RANKS_LISTED = 1000
#: More processors, cores, sockets or NUMA nodes than a host has: Linux knows 8192 processors.
MOST_NUMBERS = 2**14
#: A process ends with 0 to 255; schedulers add what they have to say, as PBS 256 and a signal.
ExitCode = Annotated[int, Field(ge=-1024, le=1024)]


def whole_number(digits: str) -> int:
    """Return a whole number that a program has printed; raise ValueError for one too large."""
    # Python itself reads no more than some thousands of digits.
    number = int(digits) if len(digits) <= 30 else math.inf
    if number > MOST_COUNTED:
        raise ValueError(f"{digits[:30]}… is more than any program counts")
    return int(number)


@lru_cache(maxsize=4096)
def numbers_of(ranges: str) -> frozenset[int]:
    """Return the numbers that a list such as `0-3,8` has: the same object for many ranks alike.

    Raises ValueError for larger ones, or more, than a host has, before memory is taken for them.
    """
    found: list[range] = []
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        found.append(range(whole_number(first), whole_number(last or first) + 1))
    if any(one.stop > MOST_NUMBERS for one in found) or sum(map(len, found)) > MOST_NUMBERS:
        raise ValueError(f"{ranges[:30]} is of more than the {MOST_NUMBERS} numbers from 0 on")
    return frozenset(chain.from_iterable(found))


def of_a_host(ranges: str) -> str:
    """Return a list of numbers; raise ValueError where no host has so many."""
    numbers_of(ranges)
    return ranges


#: Numbers and ranges of them, as Slurm's lists have them.
Ranges = Annotated[
    str, Field(pattern=r"^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$"), AfterValidator(of_a_host)
]


def packed(times: Sequence[float]) -> Any:
    """Return times in eight bytes each: a campaign has millions of raw iterations."""
    return array("d", times)


#: The times of single iterations, in seconds and in order, one at least.
Times = Annotated[list[Seconds], Field(min_length=1), AfterValidator(packed)]


class RecordError(ValueError):
    """An output that cannot be read; the text names file and line."""


class OneOfMany:
    """A frozen model of which a campaign has many: which names were given is noted once for all.

    For each by itself that takes more room than what it has to say.
    """

    def model_post_init(self, _: Any) -> None:
        """Share the set of names with the others."""
        given: set[str] = self.__pydantic_fields_set__  # type: ignore[attr-defined]
        shared = _GIVEN.setdefault(frozenset(given), given)
        object.__setattr__(self, "__pydantic_fields_set__", shared)


#: The sets of names that were given, one of each.
_GIVEN: dict[frozenset[str], set[str]] = {}


class Record(OneOfMany, BaseModel):
    """A line of output; a key that the format does not know is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class TimeSummary(Record):
    """Order statistics of the iterations of one launch, in seconds."""

    min: Seconds
    quartile1: Seconds
    median: Seconds
    mean: Seconds
    quartile3: Seconds
    max: Seconds

    @model_validator(mode="after")
    def ordered(self) -> TimeSummary:
        """Refuse statistics that no sample can have."""
        ascending = (self.min, self.quartile1, self.median, self.quartile3, self.max)
        if list(ascending) != sorted(ascending) or not self.min <= self.mean <= self.max:
            raise ValueError("min, quartiles, median, mean and max are not in order")
        return self


def lasting(times: TimeSummary) -> TimeSummary:
    """Refuse times whose median is 0: they give neither a rate nor a ratio."""
    if times.median <= 0:
        raise ValueError("the median is 0 s, which no clock can measure")
    return times


#: Of what cannot take no time, unlike a collective operation without data.
TimesThatLast = Annotated[TimeSummary, AfterValidator(lasting)]


def without_runs(entries: Any) -> Any:
    """Return the host of each rank, where a header says how many in a row have one.

    Raises ValueError for more ranks than there are, before memory is taken for them.
    """
    if not isinstance(entries, list) or not any(isinstance(entry, list) for entry in entries):
        return entries
    runs = [entry for entry in entries if isinstance(entry, list) and len(entry) == 2]
    if len(runs) < len(entries) or any(type(ranks) is not int or ranks < 1 for _, ranks in runs):
        raise ValueError("hosts are names, or each a name and a number of ranks")
    if sum(ranks for _, ranks in runs) > MOST_RANKS:
        raise ValueError(f"hosts are of more than {MOST_RANKS} ranks")
    return [host for host, ranks in runs for _ in range(ranks)]


def ranks_of_run(processors: list[int | str]) -> int:
    """Return how many ranks in a row an entry is of: one's processors, or ranges and a number."""
    match processors:
        case [str(), int(ranks)] if ranks > 0:
            return ranks
        case _ if not any(isinstance(one, str) for one in processors):
            return 1
    raise ValueError("processors are a rank's own, or ranges of them and a number of ranks")


class HeaderFacts(Record):
    """What ran, with what, where: common to all formats."""

    record: Literal["header"]
    format: str
    program: str
    program_version: str
    library: str
    mpi_standard: str
    ranks: Positive
    #: One for each rank.
    hosts: Annotated[list[str], BeforeValidator(without_runs)]
    #: One entry for each rank, or of a large world for ranks in a row: ranges, and how many.
    processors: list[list[Count | Ranges]]
    clock: str
    clock_tick_s: Seconds
    clock_resolution_s: Seconds
    started_utc: str
    parameters: dict[str, Any]

    @model_validator(mode="after")
    def one_entry_per_rank(self) -> Self:
        """Refuse a header that does not describe every rank."""
        if not len(self.hosts) == sum(map(ranks_of_run, self.processors)) == self.ranks:
            raise ValueError("hosts and processors do not have one entry for each rank")
        return self


class MpiWtime(Record):
    """The MPI's own clock, which times nothing here: what it is good for, in seconds.

    `cost_s` is what a reading takes; a `resolution_s` of 0 means that it stood still for a second.
    """

    tick_s: Seconds
    resolution_s: Seconds
    cost_s: Seconds


class Header(HeaderFacts):
    """The header of a program of ours.

    `mpi_wtime` is None for a library that is not MPI, and in `wyeast-records-1`, where MPI_Wtime
    itself is the `clock` of everything that had an MPI.
    """

    format: Literal["wyeast-records-1", "wyeast-records-2"]
    mpi_wtime: MpiWtime | None

    @model_validator(mode="before")
    @classmethod
    def of_the_first_format(cls, data: Any) -> Any:
        """Read a header from before MPI_Wtime was a property beside the clock."""
        if not isinstance(data, dict) or data.get("format") != "wyeast-records-1":
            return data
        if "mpi_wtime" in data:
            raise ValueError("mpi_wtime is not a key of wyeast-records-1")
        return {**data, "mpi_wtime": None}


class CampaignError(Exception):
    """A campaign cannot be read, started, written or resumed; the text is a sentence."""


class NotKept(CampaignError):
    """The disk did not take a launch's output; the text is a sentence."""
