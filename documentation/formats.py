"""The pages of formats: the keys of a site's file, and the typed records with their readers."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from documentation.targets import cell
from records import (
    campaign,
    events,
    journal,
    kept,
    launch,
    manifest,
    program_output,
    references,
    values,
)
from site_configs.site_file import KEYS

#: The page whose table says what each key means.
MEANINGS = Path("docs") / "how-to" / "add-a-site.md"
ROW = re.compile(r"(?m)^\| ((?:`\w+`(?:, )?)+) \| (.+) \|$")
#: What is public of the records, by topic: the models, and what reads them.
PUBLIC: dict[str, tuple[tuple[type, ...], tuple[Callable[..., Any], ...]]] = {
    "A campaign": (
        (campaign.Campaign, campaign.LeftOut),
        (campaign.find_campaign, campaign.read_campaign),
    ),
    "Its manifest": (
        (manifest.Manifest, manifest.ImageFacts, manifest.LoadedLibraries, manifest.LoadedBy,
         manifest.Design, manifest.RoundDone, manifest.Night),
        (manifest.read_manifest,),
    ),
    "A launch": ((launch.LaunchRecord,), (kept.kept_launches, kept.read_records)),
    "The values of its series": ((values.LaunchValues,), ()),
    "What a program printed": (
        (program_output.ProgramOutput,),
        tuple(one for name, one in vars(program_output).items()
              if name.startswith(("read", "parse")) and inspect.isfunction(one)
              and one.__module__ == program_output.__name__),
    ),
    "The journal": (
        (events.Begun, events.Planned, events.Intended, events.Submitted, events.Recorded,
         events.Lost, events.Ended),
        tuple(one for name, one in vars(journal).items()
              if name.startswith("read") and inspect.isfunction(one)
              and one.__module__ == journal.__name__),
    ),
    "References of a site": (
        (references.References, references.CellReference, references.MetricReference), (),
    ),
}  # fmt: skip


def site_keys(root: Path) -> str:
    """Return the page of the keys of site.yaml: what they may be, and what they mean."""
    said = {
        key: meaning
        for keys, meaning in ROW.findall((root / MEANINGS).read_text())
        for key in re.findall(r"\w+", keys)
    }
    lines = [
        "# The keys of site.yaml", "",
        "What the typed model accepts; anything else is refused with file, line and the nearest "
        "known word. [How to add a site](../how-to/add-a-site.md).", "",
        "| key | needed | must be | meaning |", "|---|---|---|---|",
    ]  # fmt: skip
    for name, key in KEYS.items():
        meaning = re.sub(r"\]\((#)", rf"]({MEANINGS.name}\1", said[name])
        meaning = re.sub(r"\]\((?!\.\./)", "](../how-to/", meaning)
        needed = "yes" if key.needed else "no"
        lines.append(f"| `{name}` | {needed} | {cell(key.words)} | {meaning} |")
    return "\n".join(lines) + "\n"


def records(root: Path) -> str:
    """Return the page of the records' models and readers."""
    lines = [
        "# Records in Python", "",
        "The models of what a campaign leaves behind, and what reads them: for programs of your "
        "own, in a shell with `. ./activate`. All numbers are in SI units. What a reader cannot "
        "accept it refuses with a sentence. The programs' own lines: "
        "[FORMAT.md](../../benchmarks/FORMAT.md).",
    ]  # fmt: skip
    for title, (models, readers) in PUBLIC.items():
        lines += ["", f"## {title}"]
        for reader in readers:
            lines += ["", f"### `{reader.__module__}.{reader.__name__}`", "", "```python",
                      signature_of(reader), "```", "", text_of(reader)]  # fmt: skip
        for model in models:
            lines += ["", f"### `{model.__module__}.{model.__name__}`", "", text_of(model), "",
                      "| field | type |", "|---|---|"]  # fmt: skip
            lines += [f"| `{name}` | `{cell(type_of(kind))}` |" for name, kind in fields_of(model)]
    return "\n".join(lines) + "\n"


def fields_of(model: type) -> list[tuple[str, Any]]:
    """Return the names and types of a model's fields."""
    if issubclass(model, BaseModel):
        return [(name, field.annotation) for name, field in model.model_fields.items()]
    hints = inspect.get_annotations(model)
    return [(name, kind) for name, kind in hints.items() if not name.startswith("_")]


def type_of(kind: Any) -> str:
    """Return a type in words of Python, without the modules."""
    if isinstance(kind, str):
        return kind
    of = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(type_of, of))
    if origin is typing.Annotated:
        return type_of(of[0])
    if origin is typing.Literal:
        return "one of " + ", ".join(map(repr, of))
    if of:
        return f"{getattr(origin, '__name__', origin)}[{', '.join(map(type_of, of))}]"
    return "None" if kind is type(None) else getattr(kind, "__name__", str(kind))


def signature_of(function: Callable[..., Any]) -> str:
    """Return how a function is called."""
    found = str(inspect.signature(function)).replace("'", "")
    return function.__name__ + re.sub(r"<function (\w+) at \w+>", r"\1", found)


def text_of(documented: Any) -> str:
    """Return what the code says of a class or function, in paragraphs."""
    return cell(inspect.cleandoc(documented.__doc__ or ""))
