"""What all records of a program's output have in common (benchmarks/FORMAT.md)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Difference = Annotated[float, Field(allow_inf_nan=False)]
Epoch = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]


def packed(times: Sequence[float]) -> Any:
    """Return times in eight bytes each: of raw iterations a campaign has millions."""
    return array("d", times)


#: The times of single iterations, in seconds and in order, one at least.
Times = Annotated[list[Seconds], Field(min_length=1), AfterValidator(packed)]


class RecordError(ValueError):
    """An output that cannot be read; the text names file and line."""


class Record(BaseModel):
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
        """Refuse statistics that no sample has."""
        ascending = (self.min, self.quartile1, self.median, self.quartile3, self.max)
        if list(ascending) != sorted(ascending) or not self.min <= self.mean <= self.max:
            raise ValueError("min, quartiles, median, mean and max are not in order")
        return self


def lasting(times: TimeSummary) -> TimeSummary:
    """Refuse times of which the median is none: no rate and no ratio can be made of them."""
    if times.median <= 0:
        raise ValueError("the median is 0 s, which no clock can have told from nothing")
    return times


#: Of what cannot take no time, unlike a collective operation without data.
TimesThatLast = Annotated[TimeSummary, AfterValidator(lasting)]


class Header(Record):
    """What ran, with what, where."""

    record: Literal["header"]
    format: Literal["wyeast-records-1"]
    program: str
    program_version: str
    library: str
    mpi_standard: str
    ranks: Positive
    hosts: list[str]
    processors: list[list[Count]]
    clock: str
    clock_tick_s: Seconds
    clock_resolution_s: Seconds
    started_utc: str
    parameters: dict[str, Any]

    @model_validator(mode="after")
    def one_entry_per_rank(self) -> Header:
        """Refuse a header that does not describe every rank."""
        if not len(self.hosts) == len(self.processors) == self.ranks:
            raise ValueError("hosts and processors do not have one entry for each rank")
        return self


class End(Record):
    """The last line; an output without it was cut off."""

    record: Literal["end"]
    results: Count
