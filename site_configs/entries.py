"""What a file of a site says key by key, each with its line; a mistake is a sentence with both."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from records import layout
from records.yaml_text import LOADER


class SiteError(Exception):
    """A site's file is not valid; the text has one sentence per line, with file and line number."""


def is_number(value: Any) -> bool:
    """Return whether a value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_text(value: Any) -> bool:
    """Return whether a value is a text that says something."""
    return isinstance(value, str) and bool(value)


def are_texts(value: Any) -> bool:
    """Return whether a value is a list of such texts."""
    return isinstance(value, list) and all(map(is_text, value))


def is_positive(value: Any) -> bool:
    """Return whether a value is a finite number above 0."""
    return is_number(value) and 0 < value < float("inf")


@dataclass(frozen=True)
class LineOfFile:
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class SiteEntry:
    """A value and the place of its key; `node` is what YAML read there."""

    value: Any
    place: LineOfFile
    node: Any


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that names the nearest known word, or nothing."""
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f"; did you mean `{close[0]}`?" if close else ""


def composed(path: Path, shown: str) -> tuple[Any, Any]:
    """Return YAML's loader and the root node of a file; raise SiteError for what is not YAML."""
    try:
        loader = LOADER(path.read_text())
        return loader, loader.get_single_node()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SiteError(f"{shown} cannot be read: {reason}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{shown}:{mark.line + 1}" if mark else shown
        raise SiteError(f"{where}: not YAML: {getattr(error, 'problem', error)}") from None


def entries_of(loader: Any, node: Any, place: LineOfFile) -> dict[str, SiteEntry]:
    """Return a mapping's entries by key; raise SiteError for anything else, or a repeated key."""
    if not isinstance(node, yaml.MappingNode):
        raise SiteError(f"{place}: expected `key: value` lines")
    found: dict[str, SiteEntry] = {}
    for key_node, value_node in node.value:
        here = LineOfFile(place.file, key_node.start_mark.line + 1)
        try:
            key, value = (
                loader.construct_object(part, deep=True) for part in (key_node, value_node)
            )
        except (yaml.YAMLError, ValueError) as error:
            reason = getattr(error, "problem", None) or error
            raise SiteError(f"{here}: {reason}") from None
        if str(key) in found:
            raise SiteError(
                f"{here}: the key `{key}` is already in line {found[str(key)].place.line}"
            )
        found[str(key)] = SiteEntry(value, here, value_node)
    return found


def read_entries(path: Path, root: Path) -> dict[str, SiteEntry]:
    """Return the keys of a YAML file with their lines; raises SiteError."""
    shown = layout.name_of(root, path)
    loader, node = composed(path, shown)
    return entries_of(loader, node, LineOfFile(shown, 1))
