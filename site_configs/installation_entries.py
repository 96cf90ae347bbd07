"""What `installations` in site.yaml may contain: our programs as the site has installed them.

They are measured outside of containers, by names that end in NAMED.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from records.environment import OF_LAUNCH
from records.yaml_text import LOADER
from site_configs.entries import SiteEntry, are_texts, entries_of, is_text, nearest
from site_configs.launchers import STARTED

#: What the name of an installation ends in where implementations are named.
NAMED = "+site"
#: Names of files have it in them, beside those of parameters.
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
#: A whole path that a shell and the loader's messages have as one word.
PATH = re.compile(r"(?:/[A-Za-z0-9_.@=+-]+)+")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+~-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: By one the programs of the prefix are found before all others, by the other what is left of a
#: launch.
OURS = ("PATH", OF_LAUNCH)


def is_installation(name: str) -> bool:
    """Return whether an implementation's name is that of an installation, which is no image."""
    return name.endswith(NAMED)


def any_image(names: Iterable[str]) -> bool:
    """Return whether any of some implementations is an image, which needs a container."""
    return not all(map(is_installation, names))


def images_in(words: str) -> str:
    """Return which implementations of a list, separated by commas, are images."""
    return ",".join(name for name in words.split(",") if not is_installation(name.strip()))


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: is_text(value) and bool(pattern.fullmatch(value))


def _variables(value: Any) -> bool:
    return isinstance(value, dict) and all(
        is_text(name) and VARIABLE.fullmatch(name) and name not in OURS and is_text(said)
        and "\0" not in said
        for name, said in value.items()
    )  # fmt: skip


def _commands(value: Any) -> bool:
    return are_texts(value) and not any("\0" in command for command in value)


_WHOLE_PATH = "a whole path with only letters, digits and _.@=+-"
#: Every key of an installation: what it must be, in words and as a test.
KEYS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "prefix": (f"{_WHOLE_PATH}, of the folder that has the programs in its bin/", _matches(PATH)),
    "family": (f"one of: {', '.join(STARTED)}", lambda value: value in STARTED),
    "version": ("the MPI's version, as text", _matches(VERSION)),
    "mpiexec": (f"{_WHOLE_PATH}, of the MPI's own launcher", _matches(PATH)),
    "pmi": ("one of: pmix, pmi2", lambda value: value in ("pmix", "pmi2")),
    "environment": (f"variables other than {' and '.join(OURS)}, with texts as values", _variables),
    "prepare": ("a list of commands of a shell", _commands),
}
NEEDED = ("prefix", "family", "version")


def problems(entry: SiteEntry, launch: object, policy: object) -> Iterator[str]:
    """Yield a sentence for all that is wrong with the key `installations` of a site.

    `launch` and `policy` are the site's `launch` and `image_policy`. Raises SiteError for what is
    no mapping.
    """
    if policy == "signed":
        yield (
            f"{entry.place}: `installations` cannot be measured with `image_policy: signed`, since "
            "nobody can sign them: leave out one of the two"
        )
    for name, found in entries_of(LOADER(""), entry.node, entry.place).items():
        if name not in entry.value:
            yield (
                f"{found.place}: the name of the installation {name} must be text: write it in "
                f'quotation marks, as in "{name}"'
            )
        elif not NAME.fullmatch(name):
            yield (
                f"{found.place}: the installation `{name}` must have a name of at most 64 "
                f"lower-case letters, digits and ._-; it is measured as <name>{NAMED}"
            )
        keys = entries_of(LOADER(""), found.node, found.place)
        for key, one in keys.items():
            if key not in KEYS:
                yield (
                    f"{one.place}: unknown key `{key}` of the installation {name}"
                    f"{nearest(key, KEYS)}"
                )
            elif not KEYS[key][1](one.value):
                yield (
                    f"{one.place}: `{key}` of the installation {name} must be {KEYS[key][0]}, not "
                    f"{one.value}{nearest(one.value, STARTED) if key == 'family' else ''}"
                )
            elif key == "environment":
                # Of a name that is there twice, who reads the file takes the last.
                entries_of(LOADER(""), one.node, one.place)
        # Who starts ranks by a scheduler or by the machine's launcher needs none of its own.
        needed = (*NEEDED, *(("mpiexec",) if launch == "mpiexec" else ()))
        for key in needed:
            if key not in keys:
                why = ", by which `launch: mpiexec` starts ranks" if key == "mpiexec" else ""
                yield (
                    f"{found.place}: the installation {name} lacks `{key}`{why}: it must be "
                    f"{KEYS[key][0]}"
                )
