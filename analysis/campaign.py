"""Read a campaign folder: the manifest, every launch, and what is wrong with any of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from analysis.facts import differing
from analysis.hpl_output import HplRun, read_hpl_output
from analysis.npb_output import NpbRun, read_npb_output
from analysis.record_types import RecordError
from analysis.records import ProgramOutput, explain, read_program_output
from analysis.start_up import start_up_times

#: What a launch printed, by its output_format.
Output = ProgramOutput | list[HplRun] | NpbRun
READERS: dict[str, Callable[[Path], Output]] = {
    "wyeast-records-1": read_program_output, "hpl": read_hpl_output, "npb": read_npb_output,
}  # fmt: skip

MANIFEST_SCHEMA = "wyeast-campaign-1"
LAUNCH_SCHEMA = "wyeast-launch-1"
#: In the folder of a campaign that came in a bundle: whose site is another machine's.
IMPORTED = "imported.json"
#: What every manifest has and analysis cannot do without.
MANIFEST_KEYS: dict[str, type | tuple[type, ...]] = {
    "campaign": str, "site": str, "tier": str, "created_utc": str, "rounds": int, "images": dict,
    "machine": dict, "software": dict, "finished_utc": (str, type(None)), "commands": list,
    "order_seed": int, "inputs": dict,
}  # fmt: skip
#: What parameters of a launch must look like, since tables are ordered by them: of an experiment.
PARAMETERS = {
    "PointToPoint": {"pair": r"(Send|Isend|Ssend|Issend)/(Recv|Irecv)", "message_range": ".+"},
    "StartUp": {"cache": ".+", "ranks": r"\d{1,9}"},
}
#: The same of whatever runs on a grid of two dimensions.
GRID = {"grid": r"\d{1,9}x\d{1,9}", "n": r"\d{1,9}"}


class CampaignError(Exception):
    """A folder that is no campaign; the text is a sentence."""


class LaunchRecord(BaseModel):
    """What a campaign says of a launch (`launch.json`); times in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    schema_: Literal["wyeast-launch-1"]
    launch: str
    round: int
    position: int | None
    experiment: str
    parameters: dict[str, str | int | float]
    cell: str
    implementation: str
    image_sha256: str
    #: `not verified`, or what verified it says; None of campaigns from before it was noted.
    image_signature: str | None = None
    program: str
    output_format: Literal["wyeast-records-1", "hpl", "npb"]
    ranks: int
    nodes: int
    oversubscribed: bool = False
    site: str
    partition: str
    tier: str
    command: str
    started_utc: str
    ended_utc: str
    wall_s: float | None
    times_s: dict[str, float] = {}
    #: Of the first node's processors together: busy, idle, stolen (given to a hypervisor's others).
    processors_s: dict[str, float] = {}
    #: The first node just before the launch: where its `facts` are, `load_average`, `running`
    #: processes, `memory_available_bytes`, `clock_hz`.
    node: dict[str, str | int | float | None] = {}
    exit_code: int | None
    outcome: Literal["sound", "suspect", "failed"]
    sentence: str | None
    reframe: dict[str, str]

    @model_validator(mode="after")
    def parameters_of_the_experiment(self) -> LaunchRecord:
        """Refuse parameters by which no table could be ordered."""
        needed = dict(PARAMETERS.get(self.experiment, {}))
        for name, form in (needed | (GRID if "grid" in self.parameters else {})).items():
            if name not in self.parameters:
                raise ValueError(f"parameters: {self.experiment} lacks {name!r}")
            if not re.fullmatch(form, str(self.parameters[name])):
                raise ValueError(f"parameters: {name} is {str(self.parameters[name])[:60]!r}")
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


@dataclass(frozen=True)
class Problem:
    """Something that was left out, and why."""

    where: str
    sentence: str


@dataclass
class Campaign:
    """A campaign as far as it can be read."""

    path: Path
    manifest: dict[str, Any]
    launches: list[Launch] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def sound(self) -> list[Launch]:
        """Return the launches that enter statistics."""
        return [launch for launch in self.launches if launch.output is not None]


def find_campaign(root: Path, name: str) -> Path:
    """Return the folder of a campaign: a path, a name in runs/, or the latest of some.

    `latest` is that of all, the name of a site that of the site, and eight digits (20261121) or
    the beginning of a time that of the day; imported ones are found by their names alone.
    """
    runs = root / "runs"
    for path in (Path(name), runs / name):
        if (path / "manifest.json").is_file():
            return path
    found = sorted(
        path.parent for path in runs.glob("*/manifest.json") if not is_imported(path.parent)
    )
    if name == "latest" and not found:
        raise CampaignError("runs/ holds no campaign yet; measure one with: make run")
    for path in sorted(found, key=lambda path: path.name[:16], reverse=True):
        if name == "latest" or fits(name, path):
            return path
    raise CampaignError(f"{name} is no campaign: there is no manifest.json in it; see: ls runs")


def is_imported(folder: Path) -> bool:
    """Return whether a campaign came in a bundle, so that its site is another machine's."""
    return (folder / IMPORTED).exists()


def fits(name: str, folder: Path) -> bool:
    """Return whether a campaign, in `<UTC time>-<site>-<name>`, is of a day or a site."""
    time, _, rest = folder.name.partition("-")
    if len(name) >= 8 and name[:8].isdigit():
        return time.startswith(name)
    try:
        # A site's name may have the same beginning as another one's.
        return rest.startswith(f"{name}-") and read_manifest(folder)["site"] == name
    except CampaignError:
        return False


def wrong_key(
    manifest: Mapping[str, Any], keys: Mapping[str, type | tuple[type, ...]]
) -> str | None:
    """Return what is wrong with the first key that a manifest lacks or has another kind of."""
    for key, kind in keys.items():
        if not isinstance(manifest.get(key), kind):
            return f"lacks {key!r}, or it is not what a manifest has there"
    return None


def read_manifest(path: Path) -> dict[str, Any]:
    """Return a campaign's manifest; raise CampaignError if it cannot be used."""
    file = path / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise CampaignError(f"{file} cannot be read: {error}") from None
    if not isinstance(manifest, dict):
        raise CampaignError(f"{file} is no JSON object; a manifest is one")
    if manifest.get("schema") != MANIFEST_SCHEMA:
        raise CampaignError(
            f"{file} has the schema {manifest.get('schema')!r}; this version reads "
            f"{MANIFEST_SCHEMA!r}"
        )
    if wrong := wrong_key(manifest, MANIFEST_KEYS):
        raise CampaignError(f"{file} {wrong}")
    for name, image in manifest["images"].items():
        if not (isinstance(image, dict) and isinstance(image.get("sha256"), str)):
            raise CampaignError(f"{file}: the entry {name!r} of 'images' has no 'sha256'")
    if not all(isinstance(digest, str) for digest in manifest["inputs"].values()):
        raise CampaignError(f"{file}: an entry of 'inputs' is no digest")
    if not isinstance(manifest["machine"].get("cpu_model", 0), str | None):
        raise CampaignError(f"{file}: 'machine' lacks 'cpu_model'")
    return manifest


def measured_on(path: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest whose `machine` is the nodes that measured, where the campaign has them.

    Of what differs among them each value is named. Raises CampaignError for a node's file that
    cannot be read.
    """
    nodes: list[dict[str, Any]] = []
    for file in sorted((path / "nodes").glob("*.json")):
        try:
            nodes.append(dict(json.loads(file.read_text())))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise CampaignError(f"{file} cannot be read: {error}") from None
    if not nodes:
        return manifest
    machine = {}
    for key in dict.fromkeys(key for node in nodes for key in node):
        values = list({json.dumps(node.get(key)): node.get(key) for node in nodes}.values())
        machine[key] = values[0] if len(values) == 1 else differing(values)
    return {**manifest, "machine": machine}


def manifest_of_nodes(campaign: Campaign) -> dict[str, Any]:
    """Return a campaign's manifest as `measured_on` does, for pages that people read.

    A node's file that cannot be read becomes one of the campaign's problems; `machine` is then the
    one that the campaign was started on.
    """
    try:
        manifest = measured_on(campaign.path, campaign.manifest)
        # A node's file may have been written without it.
        return {**manifest, "machine": {"cpu_model": None, **manifest["machine"]}}
    except CampaignError as error:
        campaign.problems.append(
            Problem("nodes", f"{error}; the machine shown is the one that started the campaign")
        )
        return campaign.manifest


def read_launch(folder: Path) -> tuple[LaunchRecord, Output | None]:
    """Return a launch's record and output; raise RecordError with file and line."""
    file = folder / "launch.json"
    try:
        data = json.loads(file.read_text())
        if not isinstance(data, dict):
            raise RecordError(f"{file}:1: not a JSON object")
        record = LaunchRecord.model_validate({"schema_": data.pop("schema", None), **data})
    except ValidationError as error:
        raise RecordError(f"{file}: {explain(error)}") from None
    except json.JSONDecodeError as error:
        raise RecordError(f"{file}:{error.lineno}: not a JSON object ({error.msg})") from None
    except RecordError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError(f"{file}: cannot be read: {error}") from None
    if record.launch != folder.name:
        raise RecordError(f"{file}: says that it is {record.launch}: copied or renamed")
    if record.outcome != "sound":
        return record, None
    output = READERS[record.output_format](folder / "stdout")
    if record.experiment == "StartUp" and isinstance(output, ProgramOutput):
        try:
            start_up_times(output, record.started_s())
        except ValueError as error:
            raise RecordError(f"{folder / 'stdout'}: {error}") from None
    return record, output


def read_campaign(path: Path) -> Campaign:
    """Read a campaign; what cannot be read is listed in `problems`, the rest is kept."""
    campaign = Campaign(path, read_manifest(path))
    seen: dict[tuple[int, str, str], str] = {}
    if removed := campaign.manifest.get("raw_removed_utc"):
        campaign.problems.append(
            Problem(path.name, f"its raw output was removed {removed} by the retention of nights; "
                    "its tables and report are there")
        )  # fmt: skip
    for folder in sorted((path / "launches").glob("*")):
        if folder.name.startswith("."):
            # A launch in flight when the campaign was killed: never whole, never counted.
            continue
        try:
            record, output = read_launch(folder)
        except (RecordError, OSError) as error:
            campaign.problems.append(Problem(folder.name, str(error)))
            continue
        key = (record.round, record.cell, record.implementation)
        if key in seen:
            campaign.problems.append(
                Problem(folder.name, f"{folder}: the same launch as {seen[key]}, left out")
            )
            continue
        seen[key] = folder.name
        digest = campaign.manifest["images"].get(record.implementation, {}).get("sha256")
        if digest != record.image_sha256:
            campaign.problems.append(
                Problem(folder.name, f"{folder}: ran an image that is not the manifest's")
            )
            continue
        if output is None:
            said = record.sentence or "no reason was kept"
            campaign.problems.append(Problem(folder.name, f"{record.outcome}: {said}"))
        campaign.launches.append(Launch(record, output))
    return campaign
