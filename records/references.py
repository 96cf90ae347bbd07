"""Calibrated references: a cell's results with an image at a site, and the limits for launches.

They are in `references.calibrated.yaml` in a site's folder, beside the hand-written
`references.yaml`, and override it. What was measured with another image, on other nodes or
on another processor is stale, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from records import layout
from records.files import write_whole
from records.program_output import explain
from records.yaml_text import from_yaml

ACCEPTED, PROPOSED = "references.calibrated.yaml", "references.proposed.yaml"
#: What a check reported on a launch and its references, kept next to its output.
METRICS_FILE, METRICS_SCHEMA = "metrics.json", "wyeast-metrics-1"
HEAD = """\
# By `make calibrate` and `make accept-references`, from campaigns of this site; hand-written ones
# are in references.yaml. Every `reference` is [value, lower threshold, upper threshold, unit] as
# ReFrame has it: the threshold on the better side is null, and a launch beyond `better_beyond` is
# reported as better than its reference. docs/method/references.md has the rule.
"""
SCHEMA = "wyeast-references-1"
Number = Annotated[float, Field(allow_inf_nan=False)]


class ReferencesError(Exception):
    """A file of references cannot be used; the text is a sentence."""


class Strict(BaseModel):
    """What is read from a file; a key that is not known is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MetricReference(Strict):
    """The limits of a metric; `reference` is ReFrame's own tuple, in SI units."""

    reference: tuple[Number, Number | None, Number | None, str]
    better_beyond: Number
    launches: Annotated[int, Field(ge=2)]
    #: The smallest slowdown, as a fraction, with which a launch probably fails; None in files from
    #: before it was known.
    sees: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def judges_one_direction(self) -> MetricReference:
        """Refuse a reference with a threshold on both sides, or on none."""
        value, lower, upper, _ = self.reference
        if value <= 0 or (lower is None) == (upper is None):
            raise ValueError("a calibrated reference is above 0 and has a threshold on one side")
        return self

    @property
    def worst(self) -> float:
        """Return the value beyond which a launch fails."""
        value, lower, upper, _ = self.reference
        return value * (1 + (upper or 0.0) if lower is None else 1 + lower)

    def better_by(self, value: float) -> float | None:
        """Return by which fraction a value beats the reference, if beyond the spread."""
        expected, lower, _, _ = self.reference
        beyond = value > self.better_beyond if lower is not None else value < self.better_beyond
        if not beyond:
            return None
        return value / expected - 1 if lower is not None else expected / value - 1


class Here(NamedTuple):
    """What a reference must have been measured with to judge a launch."""

    image_sha256: str
    ranks: int
    nodes: int
    cpu_model: str | None


class CellReference(Strict):
    """The references of one cell with one implementation, and where they come from."""

    tier: str
    experiment: str
    cell: str
    implementation: str
    image_sha256: str
    ranks: int
    nodes: int
    cpu_model: str | None
    #: When the last of the campaigns ended.
    measured_utc: str
    campaigns: Annotated[list[str], Field(min_length=1)]
    rounds: int
    metrics: dict[str, MetricReference]

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what the reference applies to."""
        return (self.tier, self.cell, self.implementation)

    def stale(self, now: Here) -> str | None:
        """Return in words why a launch cannot be compared with it, or None if it can."""
        named = ("image", "number of ranks", "number of nodes", "processor")
        then = Here(self.image_sha256, self.ranks, self.nodes, self.cpu_model)
        other = [
            f"another {what} ({str(was)[:12]}, now {str(is_)[:12]})"
            for what, was, is_ in zip(named, then, now, strict=True)
            if was != is_
        ]
        if not other:
            return None
        return f"measured with {' and '.join(other)} until {self.measured_utc[:10]}"


class References(Strict):
    """A file of calibrated references."""

    schema_: Annotated[Literal["wyeast-references-1"], Field(alias="schema")]
    site: str
    references: list[CellReference]


def load(path: Path) -> list[CellReference]:
    """Return the references in a file; none if there is no file.

    Raises ReferencesError for a file that does not contain references.
    """
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ReferencesError(f"{path} cannot be read: {error}") from None
    try:
        # The parser in C, which has the same restrictions: a site has hundreds of references.
        found = References.model_validate(from_yaml(text))
    except yaml.YAMLError as error:
        raise ReferencesError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        raise ReferencesError(
            f"{path}: {explain(error)}; calibrate again: make calibrate SITE={path.parent.name}"
        ) from None
    if found.site != path.parent.name:
        raise ReferencesError(f"{path} belongs to site {found.site}: copied from there")
    return found.references


@cache
def accepted(folder: Path) -> dict[tuple[str, str, str], CellReference]:
    """Return the accepted references of a site's folder, read once; raises ReferencesError."""
    return {one.key: one for one in load(layout.seen(folder / ACCEPTED))}


def text_of(site: str, references: Iterable[CellReference]) -> str:
    """Return the content of a file with the references, in a fixed order."""
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "site": site,
        "references": [
            # JSON's tuples are lists, as in YAML.
            one.model_dump(mode="json")
            for one in sorted(references, key=lambda one: one.key)
        ],
    }
    return HEAD + yaml.dump(
        data, Dumper=yaml.CSafeDumper, sort_keys=False, default_flow_style=None, width=100
    )


def write(path: Path, references: Iterable[CellReference]) -> None:
    """Replace a file of references in one step; raises ReferencesError."""
    try:
        write_whole(path, text_of(path.parent.name, references))
    except OSError as error:
        raise ReferencesError(f"{path} cannot be written: {error.strerror}") from None


def merged(
    old: Iterable[CellReference], new: Iterable[CellReference]
) -> dict[tuple[str, str, str], CellReference]:
    """Return the old references, replaced by the new ones with the same key."""
    return {one.key: one for one in [*old, *new]}
