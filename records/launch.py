"""One launch: its record, its folder, and what its program printed."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
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
    NotKept,
    Number,
    RecordError,
    RoundNumber,
)
from records.causes import one_line
from records.digests import copied, refuse_changed
from records.disturbance import Disturbance
from records.experiments import experiments, read_by
from records.files import aside_of, put_in_place, read_json, write_json
from records.hpl import HplRun, read_hpl_output
from records.manifest import ImageName, PlainName, Sha256, Utc
from records.nodes import possible
from records.npb import NpbRun, read_npb_output
from records.program_output import ProgramOutput, explain, read_program_output
from records.start_up import start_up_times

#: What a launch printed, by its output_format.
Output = ProgramOutput | list[HplRun] | NpbRun
READERS: dict[str, Callable[[Path], Output]] = {
    "wyeast-records-1": read_program_output, "wyeast-records-2": read_program_output,
    "hpl": read_hpl_output, "npb": read_npb_output,
}  # fmt: skip
LAUNCH_SCHEMA = "wyeast-launch-1"
#: The file of a launch's folder that has its record.
RECORD = "launch.json"
#: What a launch leaves in its stage folder, should it never get to be judged.
ASKED = "launch_asked.json"
#: What pydantic calls a key that a model does not have.
UNKNOWN = "extra_forbidden"
#: The name of a launch's folder: one that is not hidden, without slashes.
LaunchName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_=-][A-Za-z0-9.=_+-]*$")]
#: The name of a file of that folder.
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._+-]*$")]
#: Between points in time of which one clock may have been set meanwhile.
Apart = Annotated[float, Field(ge=-1e9, le=1e9)]
#: Of a node's processors together.
ProcessorTime = Annotated[float, Field(ge=0, le=1e15)]
#: Of a check: sizes, counts and the like.
Parameter = Annotated[int, Field(ge=0, le=2**53)] | Annotated[float, Field(ge=0, le=1e18)]
#: What a sweep over sizes is divided into, each part measured by launches of its own.
RANGE = "message_range"


def amounts(node: dict[str, str | int | float | None]) -> dict[str, str | int | float | None]:
    """Refuse less than nothing of a node, and more than any has."""
    for name, value in node.items():
        if isinstance(value, int | float) and value < 0:
            raise ValueError(f"{name} is {value}")
    possible(node)
    return node


class AskedLaunch(BaseModel):
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
    program: str
    output_format: Literal["wyeast-records-1", "wyeast-records-2", "hpl", "npb"]
    ranks: Number
    nodes: Number
    oversubscribed: bool = False
    site: PlainName
    partition: str
    tier: str
    command: str
    reframe: dict[str, str]
    started_utc: Utc

    @model_validator(mode="after")
    def parameters_of_the_experiment(self) -> Self:
        """Refuse parameters by which no table could be ordered."""
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
    #: By a clock that nobody sets, to the wall clock's precision where that was not set either.
    wall_s: Duration | None
    times_s: dict[str, Apart] = {}
    #: Of the first node's processors together: busy, idle, stolen (given to a hypervisor's others).
    processors_s: dict[str, ProcessorTime] = {}
    #: The first node just before the launch: where its `facts` are, `load_average`, `running`
    #: processes, `memory_available_bytes`, `clock_hz`.
    node: Annotated[dict[str, str | int | float | None], AfterValidator(amounts)] = {}
    #: What came from outside while it ran; None where nobody looked.
    disturbance: Disturbance | None = None
    #: How many processes its job had left running, which were ended before the next launch.
    left_running: Annotated[Count, Field(le=10**8)] = 0
    exit_code: ExitCode | None
    outcome: Literal["sound", "suspect", "failed"]
    sentence: Annotated[str, AfterValidator(one_line)] | None
    #: Of each file of the launch's folder; none of campaigns from before they were taken.
    sha256: dict[FileName, Sha256] = {}

    @model_validator(mode="after")
    def begins_before_it_ends(self) -> Self:
        """Refuse an end before the beginning."""
        began, ended = (
            at.replace(tzinfo=at.tzinfo or UTC)
            for at in map(datetime.fromisoformat, (self.started_utc, self.ended_utc))
        )
        if ended < began:
            raise ValueError(f"started {self.started_utc} and ended {self.ended_utc}, before that")
        return self

    def stolen_share(self) -> float | None:
        """Return what part of the processors' time a hypervisor took, if the launch says."""
        together = sum(self.processors_s.values())
        return self.processors_s.get("stolen", 0.0) / together if together > 0 else None

    def started_s(self) -> float:
        """Return when the launch began, in seconds since the epoch, to the microsecond."""
        return datetime.fromisoformat(self.started_utc).timestamp()


@dataclass(frozen=True)
class Launch:
    """A launch with what its program printed; `output` is None unless the launch is sound."""

    record: LaunchRecord
    output: Output | None


Kind = TypeVar("Kind", bound=AskedLaunch)


def record_of(kind: type[Kind], data: object, where: object) -> Kind:
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
    """Return what is asked of a launch; raises CampaignError for what no launch can have."""
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


def read_record(file: Path, kind: type[Kind]) -> Kind:
    """Return the record of a launch that a file has; raise RecordError with file and line."""
    try:
        data = read_json(file)
    except json.JSONDecodeError as error:
        raise RecordError(f"{file}:{error.lineno}: not a JSON object ({error.msg})") from None
    except (OSError, ValueError) as error:
        raise RecordError(f"{file}: cannot be read: {error}") from None
    return record_of(kind, data, file)


def write_asked(file: Path, asked: AskedLaunch) -> None:
    """Leave word of a launch before it starts."""
    write_json(file, asked.facts)


def read_records(campaign: Path) -> Iterator[LaunchRecord]:
    """Yield the records of a campaign's launches that can be read, without their outputs."""
    for file in sorted((campaign / "launches").glob(f"round*/{RECORD}")):
        try:
            yield read_record(file, LaunchRecord)
        except RecordError:
            # Whoever reads the campaign with its outputs says which and why.
            continue


def read_launch(folder: Path) -> tuple[LaunchRecord, Output | None]:
    """Return a launch's record and output; raise RecordError with file and line."""
    file = folder / RECORD
    record = read_record(file, LaunchRecord)
    if record.launch != folder.name:
        raise RecordError(f"{file}: says that it is {record.launch}: copied or renamed")
    refuse_changed(folder, record.sha256)
    if record.outcome != "sound":
        return record, None
    output = READERS[record.output_format](folder / "stdout")
    if record.experiment in read_by("start-up") and isinstance(output, ProgramOutput):
        try:
            start_up_times(output, record.started_s())
        except ValueError as error:
            raise RecordError(f"{folder / 'stdout'}: {error}") from None
    return record, output


def round_prefix(round_number: int) -> str:
    """Return how the names of a round's launches begin."""
    return f"round{round_number:03d}_"


def launch_name(round_number: int, cell: str, implementation: str) -> str:
    """Return the folder name of a launch: the same cell, image and round give the same name."""
    readable = re.sub(r"[^A-Za-z0-9.=_-]+", "_", f"{cell} {implementation}")
    return round_prefix(round_number) + readable


def write_launch(campaign: Path, record: LaunchRecord, files: Mapping[str, Path]) -> Path:
    """Add a finished launch; return its folder.

    `files` maps the names in the folder to what the launch left behind; a file that the launch
    never wrote becomes an empty one. The record gets the digest of each. Raises NotKept when the
    disk is full, and CampaignError when the launch is already there (nothing that was measured is
    overwritten).
    """
    target = campaign / "launches" / record.launch
    aside = aside_of(target)
    try:
        # Not its parents: a campaign that was renamed would be begun anew under its old name.
        aside.mkdir()
        digests = {name: copied(source, aside / name) for name, source in files.items()}
        # As whoever reads it will see it, names of files too.
        kept = finished_launch(record, sha256=digests)
        write_json(aside / RECORD, kept.facts)
        if target.exists():
            raise CampaignError(f"{target} exists already; a launch is never overwritten")
        put_in_place(aside, target)
    except OSError as error:
        raise NotKept(
            f"the launch {record.launch} could not be kept in {campaign}: {error.strerror}; "
            f"make room and resume: make run RESUME={campaign.name}"
        ) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return target


def finished_launches(campaign: Path) -> set[str]:
    """Return the names of the launches that are whole in a campaign folder.

    Raises CampaignError where that cannot be told: not as if all of them were gone.
    """
    folder = campaign / "launches"
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise CampaignError(
            f"{folder} cannot be read: {error.strerror}; put it back and resume, or measure a new "
            "campaign"
        ) from None
    return {path.parent.name for path in (campaign / "launches").glob(f"round*/{RECORD}")}
