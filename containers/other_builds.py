"""Builds of one MPI with other options: their entries, from the one that asks for them."""

from typing import Any


def with_builds(entries: dict[str, Any]) -> dict[str, Any]:
    """Return entries with one more for each of their `options`, after the one that has these.

    It is the entry that has them, with what differs. Raises ValueError where one is there already;
    what is no entry, or has no options, is left to whoever checks entries.
    """
    found: dict[str, Any] = {}
    for name, entry in entries.items():
        found[name] = entry
        options = entry.get("options") if isinstance(entry, dict) else None
        for option, words in options.items() if isinstance(options, dict) else ():
            own = f"{name.removesuffix('-spack')}-{option}-spack"
            if own in entries:
                raise ValueError(
                    f"implementations.{name}: `{own}`, a build of its `options`, has an entry of "
                    "its own; rename one of the two"
                )
            found[own] = {
                **{key: value for key, value in entry.items() if key not in ("options", "default")},
                "build_options": words,
                "build_of": name,
            }
    return found
