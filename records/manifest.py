"""A campaign's manifest: what was requested, with what and where; one reader and one writer."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from records import files
from records.base import CampaignError, Count, Duration, ExitCode, Number, RoundNumber
from records.causes import harmless_strings
from records.disturbance import Often, Outside
from records.nodes import BOUNDS, possible
from records.noise import Quiet

FILE = "manifest.json"
MANIFEST_SCHEMA = "wyeast-campaign-1"
#: A name that becomes part of a path: without slashes, and neither hidden nor an option.
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
PlainName = Annotated[str, Field(pattern=rf"^{PLAIN.pattern}$")]
#: Of an implementation: plain, with `+` before its variant.
ImageName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
COMMIT = re.compile(r"[0-9a-f]{40,64}")
#: What is recorded of an installation of the site, which runs on the machine itself. What runs in a
#: container has no such word, like all that was measured before there was another way.
OUTSIDE: Literal["outside a container"] = "outside a container"
#: A campaign's command as campaign.request writes it: words that a shell takes for nothing else.
_WORD = r"(?:[\w@%+=:,./-]|'[^']*'|\"'\")+"
_GIVEN = (
    "SITE|TIER|ROUNDS|BUDGET|IMAGES|CHECKS|HOST_MPI|RAW_BY_RANK|ALL_PAIRS|RANKS|RANKS_PER_NODE|RESUME|PAPER|NAME|"
    "KEEP_NIGHTS"
)
COMMAND = re.compile(
    rf"make (?:run|study|nightly)(?: (?:{_GIVEN})={_WORD})*"
    rf"|python -m campaign(?: (?='?--){_WORD})*",
    re.ASCII,
)
NO_COMMAND = "a command that Wyeast does not write"


def time_of(text: str) -> str:
    """Refuse what is not a time."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"not a time: {text[:60]!r}") from None
    return text


#: A time in UTC as ISO 8601 has it.
Utc = Annotated[str, AfterValidator(time_of)]


def with_processor(machine: dict[str, Any]) -> dict[str, Any]:
    """Refuse facts of a machine without its processor's name, which may be unknown."""
    if not isinstance(machine.get("cpu_model", 0), str | None):
        raise ValueError("lacks 'cpu_model'")
    # Of several nodes that differ, each one's is named.
    numbers = {name: machine.get(name) for name in BOUNDS}
    possible({name: one for name, one in numbers.items() if not isinstance(one, str)})
    return machine


def of_commit(software: dict[str, Any]) -> dict[str, Any]:
    """Refuse what is not a commit: it becomes an argument of commands."""
    commit = software.get("wyeast_commit")
    if commit is not None and not (isinstance(commit, str) and COMMIT.fullmatch(commit)):
        raise ValueError("has a 'wyeast_commit' that is not a commit")
    return software


def of_site(data: dict[str, Any] | None) -> dict[str, Any] | None:
    """Refuse data of a site that readers of a campaign could not take as what they are."""
    if not data:
        return data
    if not isinstance(data.get("scheduler", ""), str):
        raise ValueError("has a 'scheduler' that is not a name")
    topology = data.get("topology") or {}
    if not isinstance(topology, dict) or not all(
        isinstance(patterns, list) and all(isinstance(one, str) for one in patterns)
        for patterns in topology.values()
    ):
        raise ValueError("has a 'topology' that is not lists of patterns by switch")
    return data


class Part(BaseModel):
    """A part of a manifest; keys that this version does not know are kept, and never written."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The part as in its file, for rules that look up places by name."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class LoadedBy(Part):
    """Programs of an image, or libraries of its MPI by their paths, and what they load."""

    by: list[str]
    files: list[str]


class LoadedLibraries(Part):
    """What the programs of an image load, as its own loader says, and the digest of each file."""

    sha256: dict[str, Sha256]
    loaded: list[LoadedBy]

    @model_validator(mode="after")
    def each_has_a_digest(self) -> LoadedLibraries:
        """Refuse a file without its digest."""
        if any(path not in self.sha256 for one in self.loaded for path in one.files):
            raise ValueError("names a library without its digest")
        return self


class SpackPackage(Part):
    """A package of an image that Spack built, installed there or needed to build it."""

    name: str
    version: str
    target: str
    #: Its options, as words of Spack's specifications.
    variants: list[str] = []
    #: `source`, `checkout`, or the path of one that was there.
    origin: str
    #: The digests of its archives and patches, as far as they have one.
    sources: list[Sha256] = []
    #: The packages that it needs, as `name@version`.
    dependencies: list[str] = []


class ImageFacts(Part):
    """An image that is measured: its digest, its description of itself, and what it loads."""

    sha256: Sha256
    signature: str | None = None
    labels: dict[str, str] = {}
    manifest: dict[str, Any] | None = None
    #: None of campaigns from before this was recorded, and where the image does not tell.
    libraries: LoadedLibraries | None = None
    #: None where Spack did not build it, and of campaigns from before this was recorded.
    packages: list[SpackPackage] | None = None
    #: OUTSIDE where it is no image but an installation of the site; None in a container.
    runs: Literal["outside a container"] | None = None


class RoundDone(Part):
    """A round that was completed."""

    round: RoundNumber
    started_utc: Utc | None = None
    wall_s: Duration
    launches: Annotated[Count, Field(le=10**8)] | None = None
    load_average: Annotated[float, Field(ge=0, le=10**7)] | None = None
    reframe_exit_code: ExitCode


#: With so many blocks every cell begins; and of so many of all a budget has to have room for looks
#: to be worth their price (simulated in docs/method/designs.md).
BEGIN, FEWEST = 3, 3.3
#: The rules that decide what is measured next (`analysis.precision.waves.decide`).
DECIDED_BY: Literal[4] = 4


#: What of a manifest is declared before the first launch, and stays as it is.
DECLARED = (
    "schema", "campaign", "name", "site", "tier", "created_utc", "checks", "study", "like",
    "time_limit", "raw_by_rank", "all_pairs", "ranks", "ranks_per_node", "order_seed", "design",
    "repeat_beyond", "images", "host_mpi", "site_data", "inputs", "machine", "environment",
    "software", "night",
)  # fmt: skip


class Design(BaseModel):
    """How a campaign with a budget decides what it measures, and on what basis it claims.

    Declared before anything is measured. Times in seconds; `margins` are by experiment: how far
    from 1 a ratio may be to be called equivalent, as a share.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    #: 1: later rounds had everything, also what is compared with nothing. 2: whether there was room
    #: for looks was decided after the first round. 3: what had too few blocks for a look was of no
    #: family.
    version: Literal[1, 2, 3, 4] = DECIDED_BY
    budget_s: Annotated[float, Field(gt=0, le=1e9)]
    seed: Annotated[int, Field(gt=-(2**63), lt=2**63)]
    #: At how many complete blocks is looked, and the share of the level that each look has.
    looks: list[Annotated[int, Field(ge=2, le=10**6)]]
    shares: list[Annotated[float, Field(gt=0, le=1)]]
    margins: dict[str, Annotated[float, Field(ge=0, le=100)]]
    #: With so many blocks each check begins.
    begin: Annotated[int, Field(ge=2, le=1000)]
    #: Looks are worth their price from so many blocks of all on; below is one test at the end.
    fewest: Annotated[float, Field(ge=2, le=1000)]
    wave_s: Annotated[float, Field(gt=0, le=1e9)]
    #: The campaign whose waves are measured again as it decided them, without new decisions.
    repeats: PlainName | None = None
    #: Of one that repeats: whether the other one was tested once. None of one that decides by
    #: itself, and of repetitions from before it was noted.
    once: bool | None = None


class Night(Part):
    """What makes a campaign a night, or one that repeats part of a night."""

    again_of: PlainName | None = None
    number: Number | None = None
    broken: dict[str, str] = {}


class Manifest(Part):
    """What a campaign was to measure, with what and where it ran, and how far it is."""

    schema_: Literal["wyeast-campaign-1"] = Field(alias="schema")
    campaign: PlainName
    #: What a folder is named after; whoever makes one checks that it is possible.
    name: str | None = None
    site: PlainName
    #: As it stands in commands that are there to be pasted.
    tier: PlainName
    created_utc: Utc
    finished_utc: Utc | None
    rounds: RoundNumber
    #: An expression for names of checks; all that compare implementations without it.
    checks: str | None = None
    study: PlainName | None = None
    #: The campaign that this one repeats.
    like: str | None = None
    time_limit: str | None = None
    raw_by_rank: bool | None = None
    #: Whether every two implementations are compared, in one family an experiment; otherwise each
    #: is with the base alone.
    all_pairs: bool = False
    #: How many ranks communications have, and how many on a node, where a campaign chooses that.
    ranks: Annotated[list[Number], Field(min_length=1, max_length=100)] | None = None
    ranks_per_node: Annotated[list[Number], Field(min_length=1, max_length=100)] | None = None
    order_seed: Annotated[int, Field(gt=-(2**63), lt=2**63)]
    images: dict[ImageName, ImageFacts]
    host_mpi: dict[str, Any] | None = None
    site_data: Annotated[dict[str, Any] | None, AfterValidator(of_site)] = None
    inputs: dict[str, Sha256]
    machine: Annotated[dict[str, Any], AfterValidator(with_processor)]
    #: The variables of whoever started it; None for those whose values are private.
    environment: dict[str, str | None] = {}
    #: Those of them that were not handed on; None of campaigns from before that was so.
    variables_removed: list[str] | None = None
    software: Annotated[dict[str, Any], AfterValidator(of_commit)]
    commands: list[str]
    rounds_done: list[RoundDone] = []
    night: Night | None = None
    #: Of a campaign with a budget. `tested_once`: the budget was too small for looks, so all was
    #: measured equally often, and is tested once at the end.
    design: Design | None = None
    tested_once: bool = False
    #: How often what comes from outside may happen in a launch before its block is measured again.
    repeat_beyond: dict[Outside, Often] = {}
    #: How quiet its nodes were when it began, where that was looked at.
    quiet: Quiet | None = None
    raw_removed_utc: Utc | None = None
    #: Why it was not proven when its raw output was removed (`records.proof`).
    doubts: list[str] | None = None
    #: Of a part of a campaign: how much of it.
    sample: str | None = None
    #: Of one that came without what tells of people: what was replaced.
    redacted: str | None = None

    @model_validator(mode="after")
    def rounds_are_its_own(self) -> Manifest:
        """Refuse rounds that the campaign does not have, or has twice."""
        done = [one.round for one in self.rounds_done]
        if len(set(done)) < len(done) or max(done, default=1) > self.rounds:
            raise ValueError(f"its 'rounds_done' are not rounds of 1 to {self.rounds}, each once")
        return self

    def __getitem__(self, key: str) -> Any:
        """Return the file's value of a key; code that knows the key uses the attribute."""
        return self.facts[key]

    def get(self, key: str, otherwise: Any = None) -> Any:
        """Return the file's value of a key that may be missing."""
        return self.facts.get(key, otherwise)

    def __contains__(self, key: object) -> bool:
        """Return whether the file has a key."""
        return key in self.facts

    @property
    def commit(self) -> str | None:
        """Return the commit of Wyeast that it was measured with, if known."""
        found = self.software.get("wyeast_commit")
        return None if found is None else str(found)

    @property
    def rounds_of_all(self) -> int:
        """Return how many rounds measured everything, whatever earlier rounds had shown."""
        chosen = self.design is not None and not self.tested_once
        return min(self.rounds, self.design.begin) if chosen and self.design else self.rounds

    def commands_to_paste(self) -> list[str]:
        """Return the commands that measured it; what is none of ours is not repeated."""
        return [command if COMMAND.fullmatch(command) else NO_COMMAND for command in self.commands]

    def changed(self, **facts: Any) -> Manifest:
        """Return the manifest with other facts; raises CampaignError for invalid ones."""
        return manifest_of({**self.facts, **facts}, self.campaign)

    def declared_sha256(self) -> str:
        """Return the SHA-256 of what was declared before the first launch, which identifies it."""
        # As whoever reads the file has it: lines of a site's commands are one text there.
        declared = harmless_strings({key: self.facts[key] for key in DECLARED if key in self.facts})
        text = json.dumps(declared, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def unknown(self) -> list[str]:
        """Return the keys that this version does not know."""
        parts: list[Part] = [self, *self.images.values(), *self.rounds_done]
        parts += [self.night] if self.night else []
        return sorted({key for part in parts for key in part.model_extra or {}})

    def writable(self) -> Manifest:
        """Return the manifest; raise CampaignError if another version's keys would matter."""
        if unknown := self.unknown():
            raise CampaignError(
                f"the manifest of {self.campaign} has {', '.join(map(repr, unknown))[:200]}, which "
                f"this version does not know: {by_its_version(self.facts)}"
            )
        return self


def by_its_version(data: Mapping[str, Any]) -> str:
    """Return what to do about a manifest that another version wrote."""
    software = data.get("software")
    commit = software.get("wyeast_commit") if isinstance(software, Mapping) else None
    known = isinstance(commit, str) and COMMIT.fullmatch(commit)
    return "use the version of Wyeast that wrote it" + (f", commit {commit}" if known else "")


def manifest_of(data: object, where: object) -> Manifest:
    """Return the manifest in a file's data; raise CampaignError with what is wrong with it."""
    if not isinstance(data, Mapping):
        raise CampaignError(f"{where} is not a JSON object, as a manifest must be")
    if data.get("schema") != MANIFEST_SCHEMA:
        raise CampaignError(
            f"{where} has the schema {repr(data.get('schema'))[:60]}; this version reads "
            f"{MANIFEST_SCHEMA!r}: {by_its_version(data)}"
        )
    try:
        return Manifest.model_validate(data)
    except ValidationError as error:
        raise CampaignError(f"{where}{wrong_in(error)}") from None


def wrong_in(error: ValidationError) -> str:
    """Return the first thing that is wrong in a manifest, to follow its file's name."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = [str(part)[:60] for part in first["loc"]]
    said = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"]
    if not place:
        return f": {said}"
    if place[0] == "images" and "sha256" in place[2:]:
        return f": the entry {place[1]!r} of 'images' has no 'sha256' of 64 hexadecimal digits"
    if place[0] == "inputs" and len(place) > 1:
        return f": an entry of 'inputs' is not a digest: {place[1]!r}"
    if first["type"] == "value_error":
        if place[0] in ("machine", "software", "site_data"):
            return f": {place[0]!r} {said}"
        return f": {' in '.join(reversed(place))} is {said}"
    if len(place) == 1:
        return f" lacks {place[0]!r}, or it is not what a manifest has there"
    return f": {' in '.join(map(repr, reversed(place)))} is not what a manifest has there: {said}"


def read_manifest(folder: Path) -> Manifest:
    """Return a campaign's manifest; raise CampaignError if it cannot be used."""
    file = folder / FILE
    try:
        data = files.read_json(file)
    except OSError as error:
        raise CampaignError(f"{file} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise CampaignError(f"{file} cannot be read: {error}") from None
    return manifest_of(data, file)


def manifest_text(manifest: Manifest) -> str:
    """Return the text of a manifest's file, with what another version has written into it."""
    return files.json_text(manifest.facts)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace a campaign's manifest in one step.

    Raises OSError, and CampaignError for one that cannot be written or that another version wrote.
    """
    try:
        files.write_whole(folder / FILE, manifest_text(manifest.writable()))
    except ValueError as error:
        raise CampaignError(f"{folder / FILE} cannot be written: {error}") from None
