"""What differs between two campaigns and affects a comparison (comparability.yaml)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from analysis.comparison.caveats import image_libraries
from inference.intervals import median
from records.campaign import Campaign
from records.experiments import concerned_by
from records.launch import Launch
from records.nodes import fact_text
from records.program_output import ProgramOutput
from records.yaml_text import from_yaml

FILE = Path(__file__).parent / "comparability.yaml"


class Rule(BaseModel):
    """What may differ, where it is found, and what follows from it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    of: Literal["campaign", "image", "launch", "conditions"]
    at: Annotated[list[str], Field(min_length=1)]
    #: The experiments that it concerns, by their entries; all if none is named.
    experiments: list[str] = []
    between_nodes: bool = False
    within: bool = False
    absent: str | None = None
    least: float = 0.0
    full: Annotated[float, Field(gt=0)] | None = None
    moves: Annotated[int, Field(ge=1, le=4)]
    effect: Literal["caveat", "refuse"]
    reason: Annotated[str, Field(min_length=20)]


@dataclass(frozen=True)
class Discrepancy:
    """Something that differs between two campaigns; `where` is an image or cells, if any.

    `implementation` is that of the second campaign, if the difference concerns only one.
    """

    rule: Rule
    before: Any
    after: Any
    where: str = ""
    implementation: str = ""

    @property
    def sentence(self) -> str:
        """Return the difference in words."""
        of = f" of {self.where}" if self.where else ""
        if self.before is None or self.after is None:
            one = "first" if self.before is None else "second"
            has = self.after if self.before is None else self.before
            return (
                f"{self.rule.name}{of}: unknown for the {one}, {shown(has)} in the other: "
                f"{self.rule.reason}"
            )
        return f"{self.rule.name}{of}: {in_words(self.before, self.after)}: {self.rule.reason}"


def plain_words(value: Any) -> str:
    """Return a value as text, an object in words."""
    return fact_text(value) if isinstance(value, Mapping) else str(value)


def shown(value: Any) -> str:
    """Return a value in words, shortened if it is long, like digests and command lines."""
    text = plain_words(value)
    return text if len(text) <= 60 else f"{text[:16]}…"


def in_words(before: Any, after: Any) -> str:
    """Return two values in words; for long lists of words and for objects only what differs."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return "; ".join(
            f"{key} {in_words(before.get(key), after.get(key))}"
            for key in sorted({*before, *after})
            if before.get(key) != after.get(key)
        )
    words = [plain_words(value).split() for value in (before, after)]
    if min(map(len, words)) > 5:
        only = [
            [word for word in one if word not in other] for one, other in (words, reversed(words))
        ]
        if any(only):
            return " and ".join(
                f"only the {name} has {shown(' '.join(own))}"
                for name, own in zip(("first", "second"), only, strict=True)
                if own
            )
    return f"{shown(before)} and {shown(after)}"


@cache
def rules() -> list[Rule]:
    """Return the rules, each with the experiments whose entries name it."""
    found = TypeAdapter(list[Rule]).validate_python(from_yaml(FILE.read_text()))
    return [one.model_copy(update={"experiments": list(concerned_by(one.name))}) for one in found]


def value_at(data: Any, path: Iterable[str]) -> Any:
    """Return the value at a place in nested objects, or None if there is nothing."""
    for key in path:
        if not isinstance(data, Mapping):
            return None
        data = data.get(key)
    return data


def of_campaign(manifest: Mapping[str, Any], rule: Rule) -> Any:
    """Return the value that a rule concerns in a campaign's manifest, or None if unknown."""
    found = value_at(manifest, rule.at)
    return rule.absent if found is None else found


def facts_of(manifest: Mapping[str, Any], image: str) -> Mapping[str, Any]:
    """Return what a manifest says of an image; nothing where it does not have it.

    Into one with the machine's own MPI that MPI is bound, in the place of the image's libraries and
    of what Spack built.
    """
    found: Mapping[str, Any] = value_at(manifest, ("images", image)) or {}
    variant = value_at(manifest, ("host_mpi", "variant"))
    bound = variant is not None and image.endswith(f"+{variant}")
    return {**found, "libraries": None, "packages": None} if bound else found


def value_of(manifest: Mapping[str, Any], image: str, rule: Rule) -> Any:
    """Return the value that a rule concerns in an image of a campaign, or None if unknown."""
    if value_at(manifest, ("images", image)) is None:
        return None
    if rule.at == ["compiled_by"]:
        return image_libraries.compiled_by(facts_of(manifest, image))
    if rule.at == ["besides_mpi"]:
        return image_libraries.besides_mpi(facts_of(manifest, image))
    found = value_at(manifest, ("images", image, *rule.at))
    return rule.absent if found is None else found


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], images: Iterable[tuple[str, str]]
) -> list[Discrepancy]:
    """Return what differs between two manifests; `images` pairs those that are compared."""
    found = []
    for rule in rules():
        if rule.of == "campaign":
            values = tuple(of_campaign(one, rule) for one in (before, after))
            if values[0] != values[1]:
                found.append(Discrepancy(rule, values[0], values[1]))
        elif rule.of == "image":
            for one, other in images:
                values = value_of(before, one, rule), value_of(after, other, rule)
                if values[0] != values[1] and not is_explained(before, after, one, other, rule):
                    named = one if one == other else f"{one} and {other}"
                    found.append(Discrepancy(rule, *values, where=named, implementation=other))
    return found


def is_explained(
    before: Mapping[str, Any], after: Mapping[str, Any], one: str, other: str, rule: Rule
) -> bool:
    """Return whether two images that differ in a rule's value do not differ in what it is about.

    Whoever built them, an MPI of the same bytes was compiled once. Which libraries are loaded is
    not known of older campaigns; that their image is another one is said by its own rule.
    """
    images = facts_of(before, one), facts_of(after, other)
    if rule.at == ["compiled_by"]:
        known = [image_libraries.mpi(image) for image in images]
        return known[0] is not None and known[0] == known[1]
    return rule.at == ["besides_mpi"] and not all(image.get("libraries") for image in images)


def condition_differences(before: Campaign, after: Campaign) -> list[Discrepancy]:
    """Return what differs between the conditions of two campaigns' launches, by their medians.

    What is unknown for one of the two is ignored: older campaigns did not record it.
    """
    found = []
    for rule in rules():
        if rule.of != "conditions":
            continue
        sides = [
            [value for launch in campaign.sound() if (value := condition(launch, rule)) is not None]
            for campaign in (before, after)
        ]
        if not all(sides):
            continue
        one, other = (median(values) for values in sides)
        if abs(other - one) >= rule.least:
            found.append(Discrepancy(rule, round(one, 3), round(other, 3)))
    return found


def condition(launch: Launch, rule: Rule) -> float | None:
    """Return what a launch recorded about the conditions that it ran under."""
    if rule.at == ["stolen_share"]:
        return launch.record.stolen_share()
    found = value_at(launch.record.model_dump(), rule.at)
    return None if found is None else float(found)


def of_launch(launch: Launch, path: list[str]) -> Any:
    """Return a value of a launch's record, of its output, or of its output's header."""
    if path[0] == "header":
        if not isinstance(launch.output, ProgramOutput):
            return None
        return getattr(launch.output.header, path[1], None)
    if path[0] == "output":
        return getattr(launch.output, path[1], None)
    return getattr(launch.record, path[0], None)


def launch_differences(before: Launch, after: Launch, cell: str) -> list[Discrepancy]:
    """Return what differs between launches of one cell of two campaigns."""
    found = []
    for rule in rules():
        if rule.of == "launch":
            values = of_launch(before, rule.at), of_launch(after, rule.at)
            if values[0] != values[1]:
                found.append(
                    Discrepancy(rule, *values, cell, implementation=after.record.implementation)
                )
    return found


def refuses(difference: Discrepancy, experiment: str) -> bool:
    """Return whether a difference forbids comparing an experiment's cells.

    What is unknown for one of the two, such as an older campaign, is a caveat.
    """
    rule = difference.rule
    known = difference.before is not None and difference.after is not None
    concerned = not rule.experiments or experiment in rule.experiments
    return known and concerned and rule.effect == "refuse"
