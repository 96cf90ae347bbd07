"""What Spack's recipes say that the packages of a lock are made of."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from containers.spack import tool as spack
from containers.spack.tool import Spack

#: Our recipes, a folder of the checkout.
RECIPES = "spack_repo"
#: How long Spack may take to tell, in seconds; the first time it indexes all of its recipes.
PATIENCE_S = 900.0
#: Run by Spack, it tells.
QUESTION = f"{RECIPES}/wyeast/lock_sources.py"


class SpackError(Exception):
    """Spack could not do something; the text is a sentence with the next step."""


@dataclass(frozen=True)
class Needed:
    """One archive or patch that a package of a lock is made of."""

    package: str
    version: str
    #: The repository of the recipe: Spack's own, or ours.
    recipe: str
    hash: str
    kind: str
    address: str
    others: tuple[str, ...]
    sha256: str | None
    #: Where a mirror has it; None for a patch that lies beside its recipe.
    place: str | None

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return where upstream has it."""
        return (self.address, *self.others)


def needed(root: Path, found: Spack, lock: str) -> list[Needed]:
    """Return what the packages of a lock are made of, which Spack's recipes know.

    Raises SpackError where Spack cannot tell.
    """
    scope = spack.folder(root) / "reading"
    scope.mkdir(parents=True, exist_ok=True)
    repositories = {
        "wyeast": str(root / RECIPES / "wyeast"),
        "builtin": str(found.packages / "repos" / "spack_repo" / "builtin"),
    }
    (scope / "repos.yaml").write_text(yaml.safe_dump({"repos": repositories}, sort_keys=False))
    (scope / "asked.lock").write_text(lock)
    try:
        done = subprocess.run(
            [str(found.command), "-C", str(scope), "python", str(root / QUESTION),
             str(scope / "asked.lock")],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
            env={**os.environ, "SPACK_DISABLE_LOCAL_CONFIG": "1", "SPACK_PYTHON": sys.executable,
                 "SPACK_USER_CACHE_PATH": str(spack.folder(root) / "cache"),
                 "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SpackError(
            f"Spack {found.version} did not say within {PATIENCE_S:g} s what the lock's packages "
            f"are made of: try {found.command} spec zlib, which should answer in seconds"
        ) from None
    if done.returncode:
        raise SpackError(
            f"Spack {found.version} cannot tell what the lock's packages are made of: "
            f"{(done.stderr.strip() or done.stdout.strip())[-1000:]}"
        )
    return [one for package in json.loads(done.stdout) for one in _of_package(package)]


def _of_package(package: dict[str, Any]) -> list[Needed]:
    named = {key: package[key] for key in ("package", "version", "recipe", "hash")}
    return [
        Needed(**named, **{**source, "others": tuple(source["others"])})
        for source in package["sources"]
    ]
