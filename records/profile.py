"""Profiles: the MPI calls of each rank of a program (benchmarks/FORMAT.md, `profile`).

A profile is a file of its own, `wyeast-profile-1`, beside the output of the profiled program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from records.base import Count, HeaderFacts, Positive, Record, RecordError, Seconds
from records.counting import how_many
from records.ending import End
from records.experiments import compared, experiments
from records.program_output import explain, parse_line

#: How profiled experiments and the file with the profile are called; the checks use both. What is
#: before the name of another experiment makes it a profiled one.
PREFIX = "Profile"
FILE = "profile.jsonl"
#: Calls are timed to the nanosecond and printed with ten digits.
ROUNDING = 1e-6


CallKind = Literal["message", "collective", "one-sided"]


def is_profiled(experiment: str) -> bool:
    """Return whether an experiment is another one whose program is profiled.

    One that has a metric of its own, or that is called after no other, only begins with the word.
    """
    if not experiment.startswith(PREFIX) or experiment in compared():
        return False
    return experiment.removeprefix(PREFIX) in experiments()


class ProfileHeader(HeaderFacts):
    """Which program was profiled, with what, where."""

    format: Literal["wyeast-profile-1"]


class ProfiledRank(Record):
    """A rank from the end of MPI_Init to the beginning of MPI_Finalize; times in seconds.

    Of a larger world it is the sum of the `ranks` of a node, named by the lowest of them.
    """

    record: Literal["profile_rank"]
    rank: Count
    wall_s: Seconds
    user_s: Seconds
    system_s: Seconds
    #: How many threads called MPI; the most of one rank.
    threads: Count
    #: Messages received whose size or sender could not be seen.
    unseen_receives: Count
    #: Messages to and from ranks that are not of MPI_COMM_WORLD.
    outside_messages: Count
    ranks: Positive | None = None
    #: Of the rank that ran longest.
    longest_wall_s: Seconds | None = None

    @model_validator(mode="after")
    def node_is_whole(self) -> ProfiledRank:
        """Refuse half of what makes it a node's, and a rank that ran longer than all together."""
        if (self.ranks is None) != (self.longest_wall_s is None):
            raise ValueError("ranks and longest_wall_s are of a node, and go together")
        if self.slowest_s > self.wall_s * (1 + ROUNDING):
            raise ValueError("a rank ran longer than all ranks of its node together")
        return self

    @property
    def slowest_s(self) -> float:
        """Return how long the rank ran, or the slowest of the node."""
        return self.wall_s if self.longest_wall_s is None else self.longest_wall_s

    @property
    def cpu_s(self) -> float:
        """Return the processors' time, the system's share included."""
        return self.user_s + self.system_s


class ProfiledFunction(Record):
    """The calls of one function by one rank; bytes that it sent or gave, and that it received."""

    record: Literal["profile"]
    rank: Count
    function: Annotated[str, Field(pattern=r"^MPI_\w+$")]
    calls: Positive
    time_s: Seconds
    sent_messages: Count
    sent_bytes: Count
    received_messages: Count
    received_bytes: Count

    @model_validator(mode="after")
    def bytes_are_of_messages(self) -> ProfiledFunction:
        """Refuse bytes without a message."""
        for messages, count in (
            (self.sent_messages, self.sent_bytes),
            (self.received_messages, self.received_bytes),
        ):
            if count and not messages:
                raise ValueError(f"{count} bytes in no message")
        return self


class MessageSizes(Record):
    """How many of a function's messages had at least so many bytes, and less than twice as many."""

    record: Literal["profile_messages"]
    rank: Count
    function: str
    at_least_bytes: Annotated[list[Count], Field(min_length=1)]
    messages: list[Positive]

    @model_validator(mode="after")
    def powers_of_two(self) -> MessageSizes:
        """Refuse bins that are not powers of two in ascending order, each with its count."""
        if len(self.at_least_bytes) != len(self.messages):
            raise ValueError("at_least_bytes and messages do not have one entry for each bin")
        if sorted(set(self.at_least_bytes)) != self.at_least_bytes:
            raise ValueError("the bins do not ascend")
        if any(size & (size - 1) for size in self.at_least_bytes):
            raise ValueError("a bin does not begin at a power of two")
        return self


class MatrixEntry(Record):
    """What went from one rank to another, as the sender or the receiver counted it."""

    record: Literal["profile_matrix"]
    kind: CallKind
    from_: Annotated[int, Field(ge=0, alias="from")]
    to: Count
    counted: Literal["sent", "received"]
    messages: Positive
    bytes: Count


OfProfile = ProfiledRank | ProfiledFunction | MessageSizes | MatrixEntry
RECORDS: dict[str, type[Record]] = {
    "header": ProfileHeader,
    "profile_rank": ProfiledRank,
    "profile": ProfiledFunction,
    "profile_messages": MessageSizes,
    "profile_matrix": MatrixEntry,
    "end": End,
}


@dataclass(frozen=True)
class Profile:
    """The whole profile of one launch."""

    header: ProfileHeader
    ranks: list[ProfiledRank]
    functions: list[ProfiledFunction]
    sizes: list[MessageSizes]
    matrix: list[MatrixEntry]

    @property
    def is_by_node(self) -> bool:
        """Return whether each of its `ranks` is the sum of a node's."""
        return self.ranks[0].ranks is not None


class _ProfileReader:
    """The records so far, each checked against those before it."""

    def __init__(self) -> None:
        self.header: ProfileHeader | None = None
        self.end: End | None = None
        self.keys: set[tuple[Any, ...]] = set()
        self.records: list[OfProfile] = []

    def take(self, record: Any) -> None:
        """Take a record in; raise ValueError with what is wrong."""
        if self.end:
            raise ValueError("there is more after the end record")
        if isinstance(record, ProfileHeader):
            if self.header:
                raise ValueError("a second header: the ranks did not form one world")
            self.header = record
        elif not self.header:
            raise ValueError("the first record is not the header")
        elif isinstance(record, End):
            self.end = record
        else:
            self.check(record, self.header.ranks)
            self.records.append(record)

    def check(self, record: OfProfile, ranks: int) -> None:
        """Refuse what contradicts the records before."""
        named = named_by(record)
        if max(named) >= ranks:
            raise ValueError(f"rank {max(named)} is not one of the {ranks} ranks")
        key: tuple[Any, ...] = (record.record, *named)
        if isinstance(record, MatrixEntry):
            key += (record.kind, record.counted)
        elif not isinstance(record, ProfiledRank):
            key += (record.function,)
        if key in self.keys:
            raise ValueError("a record that appears twice")
        self.keys.add(key)
        if isinstance(record, MessageSizes):
            self.check_sizes(record)

    def check_sizes(self, sizes: MessageSizes) -> None:
        """Refuse sizes that do not belong to the function before."""
        of = self.records[-1] if self.records else None
        if not isinstance(of, ProfiledFunction) or (of.rank, of.function) != (
            sizes.rank, sizes.function,
        ):  # fmt: skip
            raise ValueError("these message sizes do not follow the function that they belong to")
        if sum(sizes.messages) != of.sent_messages:
            raise ValueError(
                f"{sum(sizes.messages)} messages by size, but {of.function} sent {of.sent_messages}"
            )
        bins = list(zip(sizes.at_least_bytes, sizes.messages, strict=True))
        least = sum(size * count for size, count in bins)
        most = sum(max(2 * size - 1, 0) * count for size, count in bins)
        if not least <= of.sent_bytes <= most:
            raise ValueError(
                f"messages of {least} to {most} bytes in all, but {of.function} sent "
                f"{of.sent_bytes} bytes"
            )


def named_by(record: OfProfile) -> tuple[int, ...]:
    """Return the ranks that a record is of."""
    return (record.from_, record.to) if isinstance(record, MatrixEntry) else (record.rank,)


def read_profile(path: Path) -> Profile:
    """Return the profile of a file, as `profile_of` does."""
    return profile_of(lambda: path.read_text(errors="replace"), path)


def profile_of(read: Callable[[], str], path: Path) -> Profile:
    """Return the profile that `read` gives the text of; `path` is where that is.

    Raises RecordError with file and line for anything but one header, the records of every rank of
    the world, and one end record that counts them; also where there is no file, since a program
    that does not reach MPI_Finalize leaves none.
    """
    try:
        lines = read().splitlines()
    except FileNotFoundError:
        raise RecordError(
            f"{path}: there is no profile: the program was not profiled, or it ended without "
            "MPI_Finalize"
        ) from None
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
    reader = _ProfileReader()
    for number, line in enumerate(lines, 1):
        try:
            data = parse_line(line)
            model = RECORDS.get(str(data["record"]))
            if not model:
                raise ValueError(f"the record {data['record']!r} is unknown")
            reader.take(model.model_validate(data))
        except ValidationError as error:
            raise RecordError(f"{path}:{number}: {explain(error)}") from None
        except ValueError as error:
            raise RecordError(f"{path}:{number}: {error}") from None
    return _whole(reader, path, len(lines))


def _whole(reader: _ProfileReader, path: Path, last: int) -> Profile:
    records = reader.records
    if not reader.header:
        raise RecordError(f"{path}:1: the profile is empty")
    if not reader.end:
        raise RecordError(f"{path}:{last}: no end record: the profile is truncated")
    if reader.end.results != len(records):
        raise RecordError(
            f"{path}:{last}: the end record counts {reader.end.results} records, there are "
            f"{len(records)}"
        )
    ranks = [record for record in records if isinstance(record, ProfiledRank)]
    by_node = [record.ranks for record in ranks if record.ranks is not None]
    numbered = by_node or sorted(rank.rank for rank in ranks) == list(range(len(ranks)))
    there = sum(by_node) or len(ranks)
    if not numbered or len(by_node) not in (0, len(ranks)) or there != reader.header.ranks:
        raise RecordError(f"{path}:{last}: there are {there} of the {reader.header.ranks} ranks")
    known = {record.rank for record in ranks}
    if strange := [
        rank for record in records for rank in named_by(record) if by_node and rank not in known
    ]:
        raise RecordError(f"{path}:{last}: rank {strange[0]} is not the lowest of a node")
    functions = [record for record in records if isinstance(record, ProfiledFunction)]
    sizes = [record for record in records if isinstance(record, MessageSizes)]
    lacking = {(f.rank, f.function) for f in functions if f.sent_messages} - {
        (s.rank, s.function) for s in sizes
    }
    if lacking:
        rank, function = min(lacking)
        raise RecordError(
            f"{path}:{last}: rank {rank}: the sizes of {function}'s messages are missing"
        )
    return Profile(
        reader.header,
        sorted(ranks, key=lambda rank: rank.rank),
        functions,
        sizes,
        [record for record in records if isinstance(record, MatrixEntry)],
    )


def impossible_time(profile: Profile) -> str | None:
    """Say so when a rank spent longer in MPI calls than it ran, over all threads that called."""
    seconds: defaultdict[int, float] = defaultdict(float)
    for function in profile.functions:
        seconds[function.rank] += function.time_s
    for rank in profile.ranks:
        most = rank.wall_s * rank.threads
        spent = seconds[rank.rank]
        if spent > most * (1 + ROUNDING) + ROUNDING:
            return (
                f"rank {rank.rank} spent {spent:.6g} s in calls of MPI, and its "
                f"{how_many(rank.threads, 'thread')} ran for {most:.6g} s"
            )
    return None


def lost_message(profile: Profile) -> str | None:
    """Say so when a rank did not receive what another sent to it, as far as both were seen.

    Of a profile by node it is so of nodes' ranks together.
    """
    unseen = {rank.rank: rank.unseen_receives for rank in profile.ranks}
    counts: dict[tuple[int, int, str], tuple[int, int]] = {
        (entry.from_, entry.to, entry.counted): (entry.messages, entry.bytes)
        for entry in profile.matrix
        if entry.kind == "message"
    }
    for from_, to in sorted({key[:2] for key in counts}):
        sent = counts.get((from_, to, "sent"), (0, 0))
        received = counts.get((from_, to, "received"), (0, 0))
        all_seen = unseen[to] == 0
        fewer = received[0] <= sent[0] and received[1] <= sent[1]
        if received != sent and (all_seen or not fewer):
            return (
                f"rank {from_} sent {sent[0]} messages of {sent[1]} bytes to rank {to}, which "
                f"received {received[0]} of {received[1]} bytes"
            )
    return None
