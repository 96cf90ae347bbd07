"""What differs between two campaigns and bears on a comparison (comparability.yaml)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from analysis.campaign import Launch
from analysis.records import ProgramOutput

FILE = Path(__file__).parent / "comparability.yaml"


class Rule(BaseModel):
    """What may differ, where it stands, and what follows from it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    of: Literal["campaign", "image", "launch"]
    at: Annotated[list[str], Field(min_length=1)]
    experiments: list[str] = []
    effect: Literal["caveat", "refuse"]
    reason: Annotated[str, Field(min_length=20)]


@dataclass(frozen=True)
class Difference:
    """Something that differs between two campaigns; `where` is an image or cells, if any."""

    rule: Rule
    before: Any
    after: Any
    where: str = ""

    @property
    def sentence(self) -> str:
        """Return the difference in words."""
        of = f" of {self.where}" if self.where else ""
        if self.before is None or self.after is None:
            one = "first" if self.before is None else "second"
            has = self.after if self.before is None else self.before
            return (
                f"{self.rule.name}{of}: not known of the {one}, {shown(has)} in the other: "
                f"{self.rule.reason}"
            )
        return (
            f"{self.rule.name}{of}: {shown(self.before)} and {shown(self.after)}: "
            f"{self.rule.reason}"
        )


def shown(value: Any) -> str:
    """Return a value in words: long ones, as digests and command lines, at their beginning."""
    text = str(value)
    return text if len(text) <= 60 else f"{text[:16]}…"


@cache
def rules() -> list[Rule]:
    """Return the rules."""
    return TypeAdapter(list[Rule]).validate_python(yaml.safe_load(FILE.read_text()))


def value_at(data: Any, path: Iterable[str]) -> Any:
    """Return what stands at a place of nested objects, or None where there is nothing."""
    for key in path:
        if not isinstance(data, Mapping):
            return None
        data = data.get(key)
    return data


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], images: Iterable[tuple[str, str]]
) -> list[Difference]:
    """Return what differs between two manifests; `images` pairs those that are compared."""
    found = []
    for rule in rules():
        if rule.of == "campaign":
            values = value_at(before, rule.at), value_at(after, rule.at)
            if values[0] != values[1]:
                found.append(Difference(rule, *values))
        elif rule.of == "image":
            for one, other in images:
                values = (
                    value_at(before, ("images", one, *rule.at)),
                    value_at(after, ("images", other, *rule.at)),
                )
                if values[0] != values[1]:
                    named = one if one == other else f"{one} and {other}"
                    found.append(Difference(rule, *values, where=named))
    return found


def of_launch(launch: Launch, path: list[str]) -> Any:
    """Return a value of a launch's record, or of its output's header."""
    if path[0] == "header":
        if not isinstance(launch.output, ProgramOutput):
            return None
        return getattr(launch.output.header, path[1], None)
    return getattr(launch.record, path[0], None)


def launch_differences(before: Launch, after: Launch, cell: str) -> list[Difference]:
    """Return what differs between launches of one cell of two campaigns."""
    found = []
    for rule in rules():
        if rule.of == "launch":
            values = of_launch(before, rule.at), of_launch(after, rule.at)
            if values[0] != values[1]:
                found.append(Difference(rule, *values, where=cell))
    return found


def refuses(difference: Difference, experiment: str) -> bool:
    """Return whether a difference forbids to compare an experiment's cells.

    What is not known of one of the two, as of an older campaign, is a caveat.
    """
    rule = difference.rule
    known = difference.before is not None and difference.after is not None
    concerned = not rule.experiments or experiment in rule.experiments
    return known and concerned and rule.effect == "refuse"
