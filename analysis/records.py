"""Read the output of the project's own programs (benchmarks/FORMAT.md), strictly.

Nothing is guessed and nothing dropped: what is not a whole, sound output is a `RecordError` that
names file and line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

FORMAT = "wyeast-records-1"

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Difference = Annotated[float, Field(allow_inf_nan=False)]
Epoch = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]


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


class PingPong(Record):
    """Round trips of one pair and message size; times are of the whole round trip."""

    record: Literal["result"]
    operation: Literal["pingpong"]
    pair: str
    order: Literal["modified", "original"]
    message_bytes: Count
    iterations: Positive
    warmup: Count
    time_s: TimeSummary
    verified_bytes: Count
    memory_copy_s: Seconds


class World(Record):
    """The world that the ranks formed."""

    record: Literal["result"]
    operation: Literal["world"]
    ranks: Positive
    distinct_hosts: Positive


class Latency(Record):
    """Round trips between rank 0 and another rank."""

    record: Literal["result"]
    operation: Literal["latency"]
    source: Count = Field(alias="from")
    to: Count
    message_bytes: Count
    iterations: Positive
    time_s: TimeSummary


class Transport(Record):
    """How rank 0 and another rank talk, as far as that can be told."""

    record: Literal["result"]
    operation: Literal["transport"]
    source: Count = Field(alias="from")
    to: Count
    transport: Literal["shared memory", "network", "unknown"]
    evidence: str


class Startup(Record):
    """When the ranks of one launch were there, in seconds since the epoch by rank.

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
    """The least and the most of the ranks' durations, in seconds; negative if clocks differ."""

    min: Difference
    max: Difference

    @model_validator(mode="after")
    def ordered(self) -> LeastAndMost:
        """Refuse a least that is more than the most."""
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


#: How often an iteration runs an emulated application: alone, without computing, together.
RUNS_OF_AN_ITERATION = 3

#: What communications are of; benchmarks/FORMAT.md says what each one's message is.
OPERATIONS = (
    "barrier", "bcast", "gather", "scatter", "allgather", "alltoall",
    "reduce-min", "reduce-sum", "allreduce-min", "allreduce-sum",
    "echo", "pairs", "some-to-some", "halo", "put", "get", "accumulate",
)  # fmt: skip


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
    synchronisation: Literal["barrier", "window", "none"]
    discarded: Count
    clock_error_s: Seconds
    time_s: TimeSummary
    median_by_rank_s: Annotated[list[Seconds], Field(min_length=1)]
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


class Emulation(Record):
    """Runs of an emulated application, alone and beside the others of the launch."""

    record: Literal["result"]
    operation: Literal["emulation"]
    application: Count
    graph: str
    ranks: Annotated[int, Field(ge=2)]
    world_ranks: list[Count]
    edges: Positive
    step_bytes: Count
    steps: Positive
    iterations: Positive
    warmup: Count
    alone_s: TimeSummary
    together_s: TimeSummary
    messages_s: TimeSummary
    computing_s: TimeSummary
    #: Not seconds but their ratio, together to alone.
    slowdown: TimeSummary
    overlap: Share
    communication_fraction_alone: Share
    communication_fraction_together: Share
    median_by_rank_alone_s: list[Seconds]
    median_by_rank_together_s: list[Seconds]
    drawn_by_rank_s: list[Seconds]
    sent_by_rank_bytes: list[Count]
    received_by_rank_bytes: list[Count]
    verified_bytes: Count

    @model_validator(mode="after")
    def one_entry_per_rank(self) -> Emulation:
        """Refuse a result that does not describe every rank, or a rank of the world twice."""
        lists = (
            self.world_ranks, self.median_by_rank_alone_s, self.median_by_rank_together_s,
            self.drawn_by_rank_s, self.sent_by_rank_bytes, self.received_by_rank_bytes,
        )  # fmt: skip
        if {len(entries) for entries in lists} != {self.ranks}:
            raise ValueError("the lists do not have one entry for each rank")
        if len(set(self.world_ranks)) != self.ranks:
            raise ValueError("a rank of the world stands twice in world_ranks")
        return self

    @model_validator(mode="after")
    def bytes_are_conserved(self) -> Emulation:
        """Refuse bytes that were lost, came from nowhere or were not verified."""
        sent, received = sum(self.sent_by_rank_bytes), sum(self.received_by_rank_bytes)
        if sent != received:
            raise ValueError(f"{sent} bytes were sent and {received} received")
        if sent != self.step_bytes * self.steps * self.iterations * RUNS_OF_AN_ITERATION:
            raise ValueError(f"{sent} bytes were sent, which is not what the steps have to send")
        if self.verified_bytes != self.step_bytes:
            raise ValueError(
                f"a step has {self.step_bytes} bytes, and {self.verified_bytes} were verified"
            )
        return self

    @property
    def series(self) -> str:
        """Return which of the launch's applications it is."""
        return f"application {self.application}: {self.graph}"


class Iterations(Record):
    """The times of single iterations, in seconds and in order."""

    record: Literal["iterations"]
    operation: Literal["pingpong"]
    pair: str
    order: Literal["modified", "original"]
    message_bytes: Count
    time_s: Annotated[list[Seconds], Field(min_length=1)]


class CommunicationIterations(Record):
    """The times of a communication's iterations, in seconds and in order."""

    record: Literal["iterations"]
    operation: str
    method: str
    group: str
    message_bytes: Count
    time_s: Annotated[list[Seconds], Field(min_length=1)]


class EmulationIterations(Record):
    """The times of an emulated application's iterations in one situation, in seconds."""

    record: Literal["iterations"]
    operation: Literal["emulation"]
    application: Count
    graph: str
    situation: Literal["alone", "together", "messages", "computing"]
    time_s: Annotated[list[Seconds], Field(min_length=1)]


class End(Record):
    """The last line; an output without it was cut off."""

    record: Literal["end"]
    results: Count


Result = (
    PingPong | World | Latency | Transport | Startup | StartupDurations | Communication | Emulation
)
RESULTS: dict[str, type[Result]] = {
    "pingpong": PingPong,
    "world": World,
    "latency": Latency,
    "transport": Transport,
    "startup": Startup,
    "startup_durations": StartupDurations,
    "emulation": Emulation,
    **dict.fromkeys(OPERATIONS, Communication),
}


SeriesOfTimes = Iterations | CommunicationIterations | EmulationIterations


class ProgramOutput(BaseModel):
    """The whole output of one launch."""

    header: Header
    results: list[Result]
    iterations: list[SeriesOfTimes]

    def communications(self) -> list[Communication]:
        """Return the results that are communications."""
        return [result for result in self.results if isinstance(result, Communication)]


def refuse_constant(name: str) -> float:
    """Refuse NaN and Infinity, which JSON does not have but Python's reader accepts."""
    raise ValueError(f"{name} is no number")


def parse_line(line: str) -> dict[str, Any]:
    """Return the object of a line; raise ValueError with what is wrong."""
    try:
        data = json.loads(line, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"not a JSON object ({error.msg}): {line.strip()[:60]!r}") from None
    if not isinstance(data, dict) or "record" not in data:
        raise ValueError(f"not a record: {line.strip()[:60]!r}")
    return data


def model_of(data: dict[str, Any]) -> type[Record]:
    """Return the model of a record; raise ValueError for an unknown kind."""
    kind = data["record"]
    if kind == "result":
        operation = data.get("operation")
        if operation in RESULTS:
            return RESULTS[operation]
        raise ValueError(f"the operation {operation!r} is unknown")
    series: type[Record] = Iterations
    if data.get("operation") in OPERATIONS:
        series = CommunicationIterations
    elif data.get("operation") == "emulation":
        series = EmulationIterations
    models: dict[str, type[Record]] = {
        "header": Header,
        "iterations": series,
        "end": End,
    }
    if kind not in models:
        raise ValueError(f"the record {kind!r} is unknown")
    return models[kind]


def explain(error: ValidationError) -> str:
    """Return the first thing that is wrong with a record, as a phrase."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    what = first["msg"].removeprefix("Value error, ")
    return f"{where}: {what}" if where else what


def read_program_output(path: Path) -> ProgramOutput:
    """Return the records of a program's output.

    Raises RecordError with file and line for anything but one header, results that are whole, and
    one end record that counts them.
    """
    lines = path.read_text(errors="replace").splitlines()
    header: Header | None = None
    end: End | None = None
    results: list[Any] = []
    iterations: list[SeriesOfTimes] = []
    for number, line in enumerate(lines, 1):
        try:
            record: Any = model_of(data := parse_line(line)).model_validate(data)
            if end:
                raise ValueError("there is more after the end record")
            if isinstance(record, Header):
                if header:
                    raise ValueError("a second header: the ranks did not form one world")
                header = record
            elif not header:
                raise ValueError("the first record is not the header")
            elif isinstance(record, End):
                end = record
            elif isinstance(record, SeriesOfTimes):
                follow_result(record, results[-1] if results else None)
                iterations.append(record)
            else:
                results.append(record)
        except ValidationError as error:
            raise RecordError(f"{path}:{number}: {explain(error)}") from None
        except ValueError as error:
            raise RecordError(f"{path}:{number}: {error}") from None
    if not header:
        raise RecordError(f"{path}:1: the output is empty")
    if not end:
        raise RecordError(f"{path}:{len(lines)}: no end record: the output is truncated")
    if end.results != len(results):
        raise RecordError(
            f"{path}:{len(lines)}: the end record counts {end.results} results, "
            f"there are {len(results)}"
        )
    return ProgramOutput.model_construct(header=header, results=results, iterations=iterations)


def follow_result(record: SeriesOfTimes, result: Any) -> None:
    """Raise ValueError unless the iterations belong to the result before them."""
    own = ("record", "situation", "time_s")
    key = [name for name in type(record).model_fields if name not in own]
    if any(getattr(record, name) != getattr(result, name, None) for name in key):
        raise ValueError("these iterations do not follow the result that they belong to")
    if len(record.time_s) != result.iterations:
        raise ValueError(
            f"{len(record.time_s)} times, but the result is of {result.iterations} iterations"
        )
