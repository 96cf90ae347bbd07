"""What goes into an image that Spack builds, laid out for containers/spack.def."""

import hashlib
import json
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from containers import sources, staging
from containers.spack import environment as spack_environment
from containers.spack import recipes
from containers.spack import site as spack_site
from containers.spack import tool as spack
from containers.spack.recipes import SpackError
from containers.spack.tool import Spack
from containers.table import TABLE, Implementation

#: Our programs' package, by whose compiler and target an image is described.
PROGRAMS = "wyeast-benchmarks"
BUILT_BY_OUR_MAKEFILE = (PROGRAMS, "netpipe", "hpl-hpcc")
#: What the labels say of the programs of others that a package brings.
LABELS_OF_PACKAGES = {
    "npb": {"org.wyeast.nas": "official"},
    "intel-mpi-benchmarks": {"org.wyeast.foreign_programs": "IMB-MPI1"},
}


#: It asks the loader about every program and library of a new image.
LOADER = "containers/missing_libraries.sh"


@dataclass(frozen=True)
class SpackRecipe(staging.Recipe):
    """All that decides the content of an image that Spack builds."""

    def inputs_sha256(self) -> str:
        """Return the digest of everything that the image is made from."""
        # spack.yaml decides nothing beyond its lock, with which a test keeps it in agreement.
        paths = [
            self.lock(),
            Path(__file__),
            self.root / LOADER,
            *spack_environment.recipe_files(self.root),
        ]
        parts = [
            super().inputs_sha256(),
            [sources.sha256_of(path) for path in paths],
            # The pinned Spack is these releases, here or not; one of the machine's is what it is.
            self.spack_of_the_machine() or spack.RELEASES,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def spack_of_the_machine(self) -> dict[str, Any] | None:
        """Return which Spack and recipes SPACK_ROOT or PATH give; None where the pinned are used.

        Raises ProvisionError for a Spack that cannot be used.
        """
        core = spack.of_the_machine()
        return origin(_found(self.root, core), self.lock()) if core else None

    def labels(self) -> dict[str, str]:
        """Return the image's labels: the table's, and those of what else the lock installs."""
        text = self.lock().read_text()
        nodes = spack_environment.read_lock(text)
        roots = {nodes[key].name: nodes[key].version for key in spack_environment.roots_of(text)}
        found = super().labels()
        for package in sorted(roots.keys() & LABELS_OF_PACKAGES.keys()):
            found |= LABELS_OF_PACKAGES[package]
        if "hpl" in roots:
            # Not the archive's, which is there for `hpl-hpcc` alone.
            found[staging.HPL_LABEL] = roots["hpl"]
        return found

    def lock(self) -> Path:
        """Return the path of the lock; raises SpackError where there is none."""
        path = spack_environment.lock_path(self.root, self.implementation.name)
        if not path.is_file():
            raise SpackError(
                f"{path.relative_to(self.root)} is missing; make it: make spack-lock "
                f"IMPLEMENTATIONS={self.implementation.name}"
            )
        return path


def archives_of(
    root: Path, implementation: Implementation, archives: tuple[sources.Source, ...]
) -> tuple[sources.Source, ...]:
    """Return those archives of sources.lock that an implementation's lock is built from."""
    lock = spack_environment.lock_path(root, implementation.name)
    if not lock.is_file():
        # Whoever needs the lock says so.
        return archives
    listed = spack_environment.sources_in(lock.read_text()).values()
    digests = {source["sha256"] for found in listed for source in found}
    return tuple(one for one in archives if one.sha256 in digests) if digests else archives


@cache
def _found(root: Path, core: Path) -> Spack:
    # Every image needs this more than once, and it takes seconds; cached by `core`.
    found = spack.find(root)
    assert found is not None, f"{core} is one"
    return found


def origin(found: Spack, lock: Path) -> dict[str, Any]:
    """Return which Spack, and which recipes of its packages, install a lock.

    The recipes' digest is of all files of those that the lock needs; None where there are none.
    """
    nodes = spack_environment.read_lock(lock.read_text()).values()
    folder = found.packages / "repos" / "spack_repo" / "builtin" / "packages"
    names = sorted({node.name.replace("-", "_") for node in nodes if not node.external})
    files = [
        path
        for name in names
        for path in sorted((folder / name).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]
    lines = [f"{sources.sha256_of(path)}  {path.relative_to(folder)}\n" for path in files]
    return {
        "version": found.version,
        "commit": spack.commit_of(found.core),
        "packages_commit": spack.commit_of(found.packages),
        "recipes_sha256": hashlib.sha256("".join(lines).encode()).hexdigest() if lines else None,
    }


def other_version(found: Spack, lock: Path) -> str | None:
    """Return a sentence where a lock was made by another Spack than the one that installs it."""
    made_by = spack_environment.made_by(lock.read_text())
    if made_by == found.version:
        return None
    return (
        f"{lock.name} was made by Spack {made_by} and is installed by {found.version} of "
        f"{found.core}, whose recipes may differ: the manifest records both; renew the lock (make "
        f"spack-lock IMPLEMENTATIONS={lock.stem}), or set SPACK_ROOT to a Spack {made_by}"
    )


def package_flags(lock: Path) -> dict[str, str]:
    """Return which compiler flags each package that a lock builds has, as far as it is known."""
    nodes = spack_environment.read_lock(lock.read_text()).values()
    return {
        node.name: _flags(node.target, node.name in BUILT_BY_OUR_MAKEFILE)
        for node in sorted(nodes, key=lambda node: node.name)
        if not node.external
    }


def _flags(target: str, ours: bool) -> str:
    """Return our Makefile's flags or a recipe's, with what Spack's compiler wrapper adds.

    That is for the lock's target, whatever a package asks for.
    """
    words = staging.FLAGS if ours else "as its recipe says, and"
    return f"{words} -march={target.replace('_', '-')} -mtune=generic"


def compiled_with(lock: Path) -> dict[str, str]:
    """Return the `compiler` of our programs in a lock, and its `flags`; raises SpackError."""
    concrete = json.loads(lock.read_text())["concrete_specs"]
    for node in spack_environment.read_lock(lock.read_text()).values():
        for edge in concrete[node.hash].get("dependencies", ()) if node.name == PROGRAMS else ():
            if "c" in edge["parameters"]["virtuals"]:
                said = concrete[edge["hash"]].get("external") or {}
                program = ((said.get("extra_attributes") or {}).get("compilers") or {}).get("c")
                # As whoever compiles by hand calls the distribution's; one that Spack built itself
                # is where nobody else looks for it.
                if program:
                    return {"compiler": program.removeprefix("/usr/bin/"),
                            "flags": _flags(node.target, ours=True)}  # fmt: skip
    raise SpackError(
        f"{lock.name} does not say which program compiles {PROGRAMS}; make it a package of the base"
    )


def mpi_package(root: Path, implementation: Implementation) -> str:
    """Return the name of the package that is the MPI; raises SpackError for a name not there."""
    names = spack_environment.environment_names(root)
    if implementation.name not in names:
        raise SpackError(
            f"{spack_environment.ENVIRONMENT} does not define {implementation.name}, which {TABLE} "
            "has; add its definition"
        )
    return names[implementation.name].partition("@")[0]


def stage(recipe: SpackRecipe, folder: Path, found: Spack, built_utc: str) -> None:
    """Lay out in `folder` what the definition copies into the image."""
    name = recipe.implementation.name
    environment = folder / "environment"
    for part in (recipes.RECIPES, f"site_configs/{spack_environment.SITE}/spack"):
        shutil.copytree(recipe.root / part, environment / part,
                        ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    staging.copy_benchmarks(recipe.root, environment)
    shutil.copy(recipe.root / spack_environment.ENVIRONMENT, environment)
    shutil.copy(recipe.lock(), environment / "spack.lock")
    programs = folder / "wyeast" / "bin"
    programs.mkdir(parents=True)
    description = folder / "wyeast" / "build"
    build = staging.write_description(recipe, description, known(recipe, found, built_utc))
    lines = [f"export {k}='{v}'\n" for k, v in spack_environment.variables(name).items()]
    (build / "spack-environment").write_text("".join(lines))
    shutil.copy(recipe.root / LOADER, build)
    of_the_checkout = spack_environment.of_the_checkout(recipe.lock().read_text())
    (build / "of-the-checkout").write_text("".join(f"{key}\n" for key in of_the_checkout))
    # What the image says of its software: the environment, its lock, and the bill.
    inside = folder / "wyeast" / "spack"
    inside.mkdir()
    shutil.copy(recipe.root / spack_environment.ENVIRONMENT, inside)
    shutil.copy(recipe.lock(), inside / "spack.lock")
    bill = spack_environment.bill(recipe.lock().read_text())
    (inside / "software.json").write_text(json.dumps(bill, indent=1) + "\n")


def known(recipe: SpackRecipe, found: Spack, built_utc: str) -> dict[str, Any]:
    """Return the part of the manifest that is known before the build."""
    lock = recipe.lock()
    return {
        **staging.manifest(recipe, built_utc),
        "spack": {
            **origin(found, lock),
            "lock": lock.relative_to(recipe.root).as_posix(),
            "lock_sha256": sources.sha256_of(lock),
            "lock_version": spack_environment.made_by(lock.read_text()),
            "package_flags": package_flags(lock),
            "site_mirrors": {
                name: entry["url"]
                for name, entry in spack_site.mirrors_of_site(recipe.root).items()
            },
        },
    }
