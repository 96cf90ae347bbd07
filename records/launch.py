"""One launch: its record, and what its program printed."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from records.base import (
    CampaignError,
    Count,
    Duration,
    ExitCode,
    Number,
    OneOfMany,
    RecordError,
    RoundNumber,
)
from records.causes import one_line
from records.digests import LaunchFiles
from records.disturbance import Disturbance
from records.ending import MOST_WAITED, ProcessorWait, SharedPlacement
from records.experiments import experiments
from records.files import json_of, json_text
from records.hpl import hpl_output
from records.image_file import ImageFile
from records.manifest import ImageName, PlainName, Sha256, Utc
from records.nodes import possible
from records.npb import npb_output
from records.placed import is_crowded
from records.program_output import explain, program_output
from records.values import FILE as VALUES
from records.values import LaunchValues, Output, read_as, values_in, values_of

#: How what a launch printed is read, by its output_format.
READERS: dict[str, Callable[[str, Path], Output]] = {
    "wyeast-records-1": program_output, "wyeast-records-2": program_output,
    "hpl": hpl_output, "npb": npb_output,
}  # fmt: skip
LAUNCH_SCHEMA = "wyeast-launch-1"
#: The file of a launch that has its record.
RECORD = "launch.json"
#: What pydantic calls a key that a model does not have.
UNKNOWN = "extra_forbidden"
#: The name of a launch, which may be a folder's: one that is not hidden, without slashes.
LaunchName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_=-][A-Za-z0-9.=_+-]*$")]
#: The name of a file of it.
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._+-]*$")]
#: Of a variable of the environment; and of how many of them.
LONGEST_NAME, MOST_VARIABLES = 200, 2000
#: The name of a variable of the environment, and some of them.
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=LONGEST_NAME)]
Variables = Annotated[list[VariableName], Field(max_length=MOST_VARIABLES)]
#: Between points in time, between which a clock may have been set.
Apart = Annotated[float, Field(ge=-1e9, le=1e9)]
#: Of a node's processors together.
ProcessorTime = Annotated[float, Field(ge=0, le=1e15)]
#: Of a check: sizes, counts and the like.
Parameter = Annotated[int, Field(ge=0, le=2**53)] | Annotated[float, Field(ge=0, le=1e18)]
#: The parts of a sweep over sizes, each measured by its own launches.
RANGE = "message_range"


def amounts(node: dict[str, str | int | float | None]) -> dict[str, str | int | float | None]:
    """Refuse less than nothing of a node, and more than any has."""
    for name, value in node.items():
        if isinstance(value, int | float) and value < 0:
            raise ValueError(f"{one_line(name)} is {value}")
    possible(node)
    return node


class AskedLaunch(OneOfMany, BaseModel):
    """What is known of a launch before it starts; times in seconds."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    schema_: Literal["wyeast-launch-1"] = Field(alias="schema")
    launch: LaunchName
    round: RoundNumber
    experiment: PlainName
    parameters: dict[str, str | Parameter]
    cell: str
    implementation: ImageName
    image_sha256: Sha256
    #: `not verified`, or what verified it says; None of campaigns from before it was noted.
    image_signature: str | None = None
    #: OUTSIDE where it ran on the machine itself, what its `image_sha256` is the digest of being an
    #: installation of the site; None in a container.
    runs: Literal["outside a container"] | None = None
    program: str
    output_format: Literal["wyeast-records-1", "wyeast-records-2", "hpl", "npb"]
    ranks: Number
    nodes: Number
    #: Whether it has more ranks than the site has processors, whatever came of that.
    has_more_ranks: bool = Field(default=False, alias="oversubscribed")
    site: PlainName
    partition: str
    tier: str
    command: str
    reframe: dict[str, str]
    started_utc: Utc

    @model_validator(mode="after")
    def parameters_of_the_experiment(self) -> Self:
        """Refuse parameters that could not order a table."""
        entry = experiments().get(self.experiment)
        if entry and (wrong := entry.wrong_parameter(self.parameters)):
            raise ValueError(f"parameters: {wrong}")
        return self

    @model_validator(mode="after")
    def a_rank_on_each_node(self) -> Self:
        """Refuse nodes without a rank, which no launch asks for."""
        if self.nodes > self.ranks:
            raise ValueError(f"nodes: {self.ranks} ranks cannot be on {self.nodes} nodes")
        return self

    @property
    def facts(self) -> dict[str, Any]:
        """What the file of it has."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class LaunchRecord(AskedLaunch):
    """What a campaign says of a launch (`launch.json`); times in seconds."""

    position: Number | None
    ended_utc: Utc
    #: By the monotonic clock, to the wall clock's precision if that was not set either.
    wall_s: Duration | None
    times_s: dict[str, Apart] = {}
    #: Of the first node's processors together: busy, idle, stolen (given to a hypervisor's others).
    processors_s: dict[str, ProcessorTime] = {}
    #: The first node just before the launch: where its `facts` are, `load_average`, `running`
    #: processes, `memory_available_bytes`, `clock_hz`.
    node: Annotated[dict[str, str | int | float | None], AfterValidator(amounts)] = {}
    #: Disturbances from outside while it ran; None if that was not checked.
    disturbance: Disturbance | None = None
    #: Which file its image was, as the first node saw it before and after; None where it did not.
    image_file: ImageFile | None = None
    #: What was removed of the variables that were there on its node, since no site names them.
    variables_removed: Variables = []
    #: Of a preflight: the ranks' own variables, with the values of those that decide what is
    #: measured; and which of these nobody here has set.
    environment: dict[VariableName, str | None] = {}
    from_elsewhere: Variables = []
    #: The version of the Apptainer that started it, if it was checked: by each image's preflight.
    apptainer: Annotated[str, Field(max_length=200)] | None = None
    #: How many processes its job had left running, which were ended before the next launch.
    left_running: Annotated[Count, Field(le=10**8)] = 0
    #: Where its ranks were, and how long the one waited for a processor that did so most: None
    #: where the program or the kernel does not tell.
    placement: SharedPlacement | None = None
    waiting: ProcessorWait | None = None
    exit_code: ExitCode | None
    outcome: Literal["sound", "suspect", "failed"]
    sentence: Annotated[str, AfterValidator(one_line)] | None
    #: Of each other file of the launch; none of campaigns from before they were taken.
    sha256: dict[FileName, Sha256] = {}
    #: The name given to the scheduler, which distinguishes this attempt from all others.
    job: Annotated[str, Field(pattern=r"^wy-[0-9a-f]{12}$")] | None = None

    @model_validator(mode="after")
    def begins_before_it_ends(self) -> Self:
        """Refuse an end before the beginning."""
        began, ended = (
            at.replace(tzinfo=at.tzinfo or UTC)
            for at in map(datetime.fromisoformat, (self.started_utc, self.ended_utc))
        )
        if ended < began:
            raise ValueError(f"ended {self.ended_utc}, before it started, {self.started_utc}")
        return self

    @property
    def oversubscribed(self) -> bool:
        """Return whether ranks waited for processors, because there were more ranks than these.

        Where nobody has measured how long, that there were is enough.
        """
        if self.waiting is None:
            return self.has_more_ranks
        return self.shares_cores and self.waiting.share >= MOST_WAITED

    @property
    def shares_cores(self) -> bool:
        """Return whether ranks share cores: the site has fewer, or they were put on fewer."""
        return self.has_more_ranks or bool(self.placement and is_crowded(self.placement))

    def stolen_share(self) -> float | None:
        """Return what part of the time that processors had work for a hypervisor took, if known.

        Idle time is left out: nothing is stolen of it, and it would hide what an implementation
        lost that waits a lot.
        """
        stolen = self.processors_s.get("stolen", 0.0)
        wanted = self.processors_s.get("busy", 0.0) + stolen
        return stolen / wanted if wanted > 0 else None

    def started_s(self) -> float:
        """Return when the launch began, in seconds since the epoch, to the microsecond."""
        return datetime.fromisoformat(self.started_utc).timestamp()


@dataclass(frozen=True, eq=False)
class Launch:
    """A launch with what its program printed, and the values of that.

    `printed` is None unless the launch is sound. With its values `kept`, it is read when somebody
    asks for it.
    """

    record: LaunchRecord
    printed: Output | None
    kept: LaunchValues | None = None
    read: Callable[[], Output] | None = None

    @property
    def is_sound(self) -> bool:
        """Return whether it enters statistics."""
        return self.printed is not None or self.read is not None

    @cached_property
    def output(self) -> Output | None:
        """Return what its program printed, None unless it is sound.

        Raises RecordError and OSError where that is read only now, and cannot be.
        """
        return self.read() if self.read else self.printed

    @cached_property
    def values(self) -> LaunchValues:
        """Return what it measured; raises RecordError for one that is not sound."""
        if self.kept is not None:
            return self.kept
        if self.output is None:
            raise RecordError(f"{self.record.launch} is not sound, and measured nothing")
        return values_of(self.record.experiment, self.output, self.record.started_s())


AskedKind = TypeVar("AskedKind", bound=AskedLaunch)


def record_of(kind: type[AskedKind], data: object, where: object) -> AskedKind:
    """Return a record of what a file has; raise RecordError with what is wrong with it."""
    if not isinstance(data, Mapping):
        raise RecordError(f"{where}:1: not a JSON object")
    if data.get("schema") != LAUNCH_SCHEMA:
        raise RecordError(
            f"{where} has the schema {repr(data.get('schema'))[:60]}; this version reads "
            f"{LAUNCH_SCHEMA!r}: use the version of Wyeast that wrote it"
        )
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)
        if unknown := [str(one["loc"][0])[:60] for one in wrong if one["type"] == UNKNOWN]:
            raise RecordError(
                f"{where} has {', '.join(map(repr, unknown[:3]))}, which this version does not "
                "know: use the version of Wyeast that wrote it"
            ) from None
        raise RecordError(f"{where}: {explain(error)}") from None


def asked_launch(**facts: Any) -> AskedLaunch:
    """Return the request for a launch; raises CampaignError for what no launch can have."""
    try:
        return record_of(AskedLaunch, {"schema": LAUNCH_SCHEMA, **facts}, facts.get("launch"))
    except RecordError as error:
        raise CampaignError(f"the launch cannot be recorded: {error}") from None


def finished_launch(asked: AskedLaunch, **facts: Any) -> LaunchRecord:
    """Return the record of a launch that has ended; raises CampaignError for an impossible one."""
    try:
        return record_of(LaunchRecord, {**asked.facts, **facts}, asked.launch)
    except RecordError as error:
        raise CampaignError(f"the launch cannot be recorded: {error}") from None


def parsed_record(read: Callable[[], str], where: Path, kind: type[AskedKind]) -> AskedKind:
    """Return the record that `read` gives the text of; raise RecordError with file and line."""
    try:
        data = json_of(read())
    except json.JSONDecodeError as error:
        raise RecordError(f"{where}:{error.lineno}: not a JSON object ({error.msg})") from None
    except OSError as error:
        raise RecordError(f"{where}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise RecordError(f"{where}: cannot be read: {error}") from None
    return record_of(kind, data, where)


def record_text(record: LaunchRecord) -> str:
    """Return the text of the file of a launch that has its record."""
    return json_text(record.facts)


def record_in(launch: LaunchFiles) -> LaunchRecord:
    """Return the record of a launch that a campaign keeps; raise RecordError with its place."""
    where = launch.where / RECORD
    record = parsed_record(lambda: launch.read(RECORD).decode(), where, LaunchRecord)
    if record.launch != launch.name:
        raise RecordError(f"{where}: says that it is {record.launch}: copied or renamed")
    return record


def text_in(launch: LaunchFiles, name: str) -> str:
    """Return the text of a file of a launch, whatever a program printed into it.

    Raises OSError and RecordError.
    """
    return io.TextIOWrapper(io.BytesIO(launch.read(name)), "utf-8", errors="replace").read()


def output_of(record: LaunchRecord, text: str, where: Path) -> Output:
    """Return what a sound launch printed; raise RecordError with place and line."""
    return READERS[record.output_format](text, where)


def output_in(launch: LaunchFiles, record: LaunchRecord) -> Output:
    """Return what a sound launch printed; raise RecordError with place and line, and OSError."""
    return output_of(record, text_in(launch, "stdout"), launch.where / "stdout")


def values_of_text(record: LaunchRecord, text: bytes) -> LaunchValues:
    """Return the values of a sound launch that printed this; raise RecordError and ValueError."""
    read = io.TextIOWrapper(io.BytesIO(text), "utf-8", errors="replace").read()
    output = output_of(record, read, Path(record.launch, "stdout"))
    return values_of(record.experiment, output, record.started_s())


def read_launch(launch: LaunchFiles, anew: bool = False) -> Launch:
    """Return a launch; raise RecordError with place and line, and OSError.

    Where its values were kept, and are what this version would compute, its output is not read
    before somebody asks for it. Else, and `anew`, it is read, and what was kept has to be what it
    gives.
    """
    record = record_in(launch)
    launch.refuse_changed(record.sha256)
    if record.outcome != "sound":
        return Launch(record, None)
    kept: LaunchValues | None = None
    if VALUES in record.sha256:
        kept = values_in(launch.read(VALUES), launch.where / VALUES)
        if kept.read_as != read_as(record.experiment):
            kept = None
        elif not anew:
            return Launch(record, None, kept, partial(output_in, launch, record))
    output = output_in(launch, record)
    try:
        values = values_of(record.experiment, output, record.started_s())
    except ValueError as error:
        raise RecordError(f"{launch.where / 'stdout'}: {error}") from None
    if kept not in (None, values):
        raise RecordError(f"{launch.where / VALUES}: these are not the values that stdout gives")
    return Launch(record, output, values)


def round_prefix(round_number: int) -> str:
    """Return how the names of a round's launches begin."""
    return f"round{round_number:03d}_"


def launch_name(round_number: int, cell: str, implementation: str) -> str:
    """Return the name of a launch: the same cell, image and round give the same name."""
    readable = re.sub(r"[^A-Za-z0-9.=_-]+", "_", f"{cell} {implementation}")
    return round_prefix(round_number) + readable
