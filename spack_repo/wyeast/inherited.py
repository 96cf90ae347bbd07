"""Changes to what a recipe of ours inherits from Spack's own recipe of the same package.

A recipe that inherits keeps the other one's versions and options, and adds a version whose sources
are to be had where upstream's are not.
"""

from collections.abc import Callable
from typing import Any

from spack.package import Spec


def dependencies_only_when(package: type[Any], condition: str, *names: str) -> None:
    """Let a package need the dependencies of these names only where a condition holds too."""
    found: dict[Spec, dict[str, Any]] = {}
    for when, of_when in package.dependencies.items():
        for name, dependency in of_when.items():
            # One of ours that excludes the condition is another dependency of the name.
            concerned = name in names and when.intersects(condition)
            key = Spec(f"{when} {condition}") if concerned else when
            found.setdefault(key, {})[name] = dependency
    package.dependencies = found


def patches_only_when(
    package: type[Any], condition: str, concerned: Callable[[Any], bool] = lambda patch: True
) -> None:
    """Apply to a package the patches that are concerned only where a condition holds too."""
    found: dict[Spec, list[Any]] = {}
    for when, of_when in package.patches.items():
        for patch in of_when:
            key = Spec(f"{when} {condition}") if concerned(patch) else when
            found.setdefault(key, []).append(patch)
    package.patches = found
