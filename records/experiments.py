"""What is known about each experiment by its name: its entry in experiments.yaml."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from records.base import RecordError
from records.yaml_text import from_yaml

FILE = Path(__file__).with_name("experiments.yaml")
#: How values are read from a launch, and the units that each of them can have.
UNITS = {
    "time": ("s",), "bandwidth": ("B/s",), "rate": ("FLOP/s", "op/s"), "start-up": ("s",),
}  # fmt: skip
#: What a parameter is that cells are ordered by.
FORMS = {"number": r"\d{1,9}", "grid": r"\d{1,9}x\d{1,9}"}
#: How many digits an entry's digest has: rows of history say by it how they were read.
DIGITS = 4
#: The section of the report of all experiments that have none of their own.
COMMON = "communication"
WhatIsRead = Literal["time", "bandwidth", "rate", "start-up"]
Section = Literal["communication", "point-to-point", "linpack", "start-up", "nas"]
#: What is derived from launches of some experiments: LogGP's parameters, those of them that plain
#: round trips tell, and the latency of the smallest message.
Model = Literal["loggp", "loggp-round-trip", "latency"]
ProofKind = Literal["image", "site"]
Words = Annotated[str, Field(min_length=1)]
Parameters = Mapping[str, str | int | float]


class ExperimentEntry(BaseModel):
    """An experiment's entry; experiments.yaml says what each of its keys is for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$")]
    metric: Words | None = None
    label: Words | None = None
    unit: Words | None = None
    formula: Words | None = None
    values: WhatIsRead | None = None
    margin: Annotated[float, Field(gt=0, lt=1)]
    operations: tuple[Annotated[str, Field(pattern=r"^[a-z]+(-[a-z]+)*$")], ...] = ()
    order: dict[str, Literal["number", "grid"] | tuple[str, ...]] = {}
    group: Words = "{experiment}, all cells"
    over: str | None = None
    apart: dict[str, str] = {}
    caption: str | None = None
    section: Section = "communication"
    models: dict[Model, dict[str, tuple[str, ...]]] = {}
    concerned_by: tuple[str, ...] = ()
    sample: tuple[str, ...] = ()
    proves: dict[ProofKind, str] = {}
    earlier_clock: Literal["", "MPI_Wtime", "CLOCK_MONOTONIC", "CLOCK_REALTIME"] = "CLOCK_MONOTONIC"
    not_compared: Words | None = None
    once: Literal["campaign", "image"] | None = None
    importance: Annotated[int, Field(ge=1, le=99)] = 5

    @field_validator("sample")
    @classmethod
    def are_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse what is not a regular expression."""
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a valid pattern: {error}") from None
        return patterns

    @model_validator(mode="after")
    def is_compared_or_not(self) -> ExperimentEntry:
        """Refuse half a metric, a unit that such values cannot have, and unknown parameters."""
        parts = {
            key: getattr(self, key) for key in ("metric", "label", "unit", "formula", "values")
        }
        lacking = [key for key, value in parts.items() if value is None]
        if self.not_compared and len(lacking) < len(parts):
            raise ValueError(
                "what is not_compared must not have metric, label, unit, formula and values"
            )
        if not self.not_compared and lacking:
            raise ValueError(f"lacks {', '.join(lacking)}; or say why it is not_compared")
        if self.once and not self.not_compared:
            raise ValueError("once: an experiment that is compared is measured in every round")
        if self.values and self.unit not in UNITS[self.values]:
            raise ValueError(
                f"values: {self.values} is in {' or '.join(UNITS[self.values])}, not in {self.unit}"
            )
        unknown = set(self.named_in_group) - self.order.keys()
        if unknown:
            raise ValueError(f"group: {', '.join(sorted(unknown))} is not a parameter of order")
        for key, parameter in (("caption", self.caption), ("over", self.over)):
            if parameter is not None and parameter not in self.order:
                raise ValueError(f"{key}: {parameter} is not a parameter of order")
        if self.over is not None and self.order[self.over] != "number":
            raise ValueError(f"over: {self.over} is not ordered as a number")
        return self

    def wrong_parameter(self, parameters: Parameters) -> str | None:
        """Return in words which parameters cannot order a table; None if all can."""
        for name, form in self.order.items():
            if name not in parameters:
                return f"{self.name} lacks {name!r}"
            value = str(parameters[name])
            known = value in form if isinstance(form, tuple) else re.fullmatch(FORMS[form], value)
            if not known:
                return f"{name} is {value[:60]!r}"
        return None

    def order_of(self, parameters: Parameters) -> tuple[Any, ...]:
        """Return a cell's place among those of the experiment, by its parameters."""
        keys: list[Any] = []
        for name, form in self.order.items():
            value = str(parameters[name])
            if isinstance(form, tuple):
                keys.append(form.index(value))
            elif form == "number":
                keys.append(int(value))
            else:
                rows, columns = map(int, value.split("x"))
                keys += [rows * columns, rows]
        return (*keys, str(parameters))

    @property
    def named_in_group(self) -> tuple[str, ...]:
        """Return the parameters that a group's name has, in its order."""
        fields = [field for _, field, _, _ in string.Formatter().parse(self.group)]
        return tuple(dict.fromkeys(one for one in fields if one and one != "experiment"))

    def unusual(self, parameters: Parameters) -> dict[str, str]:
        """Return the parameters that distinguish a cell from the usual ones."""
        return {
            name: str(parameters[name])
            for name, usual in self.apart.items()
            if str(parameters.get(name, usual)) != usual
        }

    def group_of(self, parameters: Parameters) -> str:
        """Return the group of cells that one with these parameters belongs to."""
        named = self.group.format_map({"experiment": self.name, **parameters})
        words = [f"{value} {name}" for name, value in self.unusual(parameters).items()]
        return ", ".join([named[:1].upper() + named[1:], *words])

    def group_parameters(self, parameters: Parameters) -> tuple[tuple[str, str], ...]:
        """Return the parameters that all cells have in the group of one with these."""
        named = {name: str(parameters[name]) for name in self.named_in_group}
        return (*named.items(), *self.unusual(parameters).items())

    def is_modelled(self, model: Model, parameters: Parameters) -> bool:
        """Return whether a model applies to the cell with these parameters."""
        return model in self.models and all(
            str(parameters.get(name)) in allowed for name, allowed in self.models[model].items()
        )

    @property
    def digest(self) -> str:
        """Return DIGITS hexadecimal digits that change when the values read do."""
        read = f"{self.name} {self.metric} {self.unit} {self.values}"
        return hashlib.sha256(read.encode()).hexdigest()[:DIGITS]


class Experiments(BaseModel):
    """The file: what is common to all, and the entries by name, in the order of tables."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    default: dict[Literal["margin"], float]
    better: dict[str, Literal["higher", "lower"]]
    experiments: dict[str, ExperimentEntry]

    @model_validator(mode="before")
    @classmethod
    def named_and_whole(cls, data: Any) -> Any:
        """Give each entry its name and what is common to all."""
        try:
            common, entries = dict(data["default"]), dict(data["experiments"])
            named = {name: common | {"name": name} | dict(entries[name]) for name in entries}
            return {**data, "experiments": named}
        except (KeyError, TypeError, ValueError):
            raise ValueError("it lacks default, better or experiments with entries") from None

    @model_validator(mode="after")
    def each_once(self) -> Experiments:
        """Refuse an operation or a section that two experiments have."""
        entries = self.experiments.values()
        sections: list[str] = [one.section for one in entries if one.section != COMMON]
        for of, names in (
            ("operations", [name for one in entries for name in one.operations]),
            ("section", sections),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{of}: {', '.join(twice)} is in two entries")
        return self


def read_experiments(file: Path) -> Experiments:
    """Return a file's content on the experiments; raises RecordError with what is wrong."""
    try:
        return Experiments.model_validate(from_yaml(file.read_text()))
    except yaml.YAMLError as error:
        raise RecordError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = first["msg"].removeprefix("Value error, ")
        raise RecordError(f"{file}: {where}: {what}" if where else f"{file}: {what}") from None


@cache
def declared() -> Experiments:
    """Return experiments.yaml."""
    return read_experiments(FILE)


def experiments() -> dict[str, ExperimentEntry]:
    """Return the entries by name, in the order of tables."""
    return declared().experiments


@cache
def compared() -> dict[str, ExperimentEntry]:
    """Return the entries that have a metric."""
    return {name: one for name, one in experiments().items() if not one.not_compared}


def read_by(values: WhatIsRead) -> tuple[str, ...]:
    """Return the experiments whose values are read in this way."""
    return tuple(name for name, one in compared().items() if one.values == values)


def serving(model: Model) -> tuple[str, ...]:
    """Return the experiments that something is derived from."""
    return tuple(name for name, one in experiments().items() if model in one.models)


def serves(model: Model, experiment: str, parameters: Parameters) -> bool:
    """Return whether something is derived from an experiment's cell with these parameters."""
    entry = experiments().get(experiment)
    return entry is not None and entry.is_modelled(model, parameters)


def proving(what: ProofKind) -> dict[str, str]:
    """Return the experiments whose launches prove something, each with the pattern of variants."""
    return {name: one.proves[what] for name, one in experiments().items() if what in one.proves}


def concerned_by(rule: str) -> tuple[str, ...]:
    """Return the experiments that a rule of comparability concerns."""
    return tuple(name for name, one in experiments().items() if rule in one.concerned_by)


def operations() -> tuple[str, ...]:
    """Return the operations of communications, over all experiments."""
    return tuple(name for one in experiments().values() for name in one.operations)
