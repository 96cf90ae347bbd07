"""spack.yaml's environment of one implementation, run inside the base that images are built on.

It is the base that the implementation's image is built in, with the same paths, which is why a lock
that was made here is the lock of the image.
"""

import json
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from containers.apptainer import Admitted, command, exec_options, run_apart
from containers.apptainer_setup import provide as provide_apptainer
from containers.bases import Base, bases_of, ensure_bases
from containers.bases import admit as admit_base
from containers.commands import BuildProgress
from containers.locking import only_build
from containers.sources import load_sources
from containers.spack import site as spack_site
from containers.spack import tool as spack
from containers.spack.recipes import RECIPES, Needed, SpackError
from containers.spack.tool import Spack
from containers.table import ImplementationTable, load_table
from records import layout
from records.yaml_text import from_yaml

ENVIRONMENT = "spack.yaml"
#: One lock per implementation, in a folder of their own beside spack.yaml, whose they are: Spack's
#: own place for one, spack.lock beside spack.yaml, holds one alone.
LOCKS = "spack_locks"
SITE = spack_site.BASE
#: A site's folder, below its configuration of Spack, of folders of options' names: what Spack is
#: told in a build with that option.
OPTIONS = "options"

#: What of the checkout the environment refers to.
PARTS = ("benchmarks", RECIPES, "site_configs")
#: Where things are in the base.
INSIDE = "/opt/spack-environment"
SCOPE: dict[str, dict[str, Any]] = {
    # Ours first, here too: these files rank above the environment's own, and Spack takes a package
    # from the first repository that has it.
    "repos.yaml": {
        "repos": {
            "wyeast": "/opt/spack-environment/spack_repo/wyeast",
            "builtin": "/mnt/packages/repos/spack_repo/builtin",
        }
    },
    "config.yaml": {
        "config": {
            "install_tree": {"root": "/opt/software"},
            # A build has a folder of its own here: the base's /tmp is the machine's.
            "build_stage": ["/mnt/stage"],
            "source_cache": "/mnt/cache/sources",
        }
    },
    "concretizer.yaml": {"concretizer": {"concretization_cache": {"enable": True}}},
}
#: What of a lock is ours, and not Spack's.
SOURCES = "wyeast_sources"
#: How versions of our recipes end whose archive is the distribution's, packed anew.
OF_DEBIAN = "-debian"
#: The mirror that `make spack-mirror` fills.
CARRIED = {"carried": {"url": "file:///mnt/mirror", "binary": False}}


#: What was installed before, on the same base: Spack puts each package there as soon as it is done.
CACHE = {"built": {"url": "file:///mnt/built", "source": False, "signed": False, "autopush": True}}


@dataclass(frozen=True)
class Node:
    """One package of a lock."""

    name: str
    version: str
    hash: str
    target: str
    external: str | None
    develop: bool
    parameters: tuple[str, ...]
    dependencies: tuple[tuple[str, str], ...]
    #: Whose recipe it is: Spack's own, or ours.
    recipe: str = "builtin"
    #: Of the dependencies those that are there when it runs, by their hashes.
    running: tuple[str, ...] = ()


def asked_for(words: str) -> list[str]:
    """Return the names of a command's list of implementations; none of an empty one."""
    return [name for name in words.split(",") if name]


def of_the_distribution(table: ImplementationTable) -> list[str]:
    """Return the implementations whose MPI comes from the distribution, not from Spack.

    Without their builds with other options.
    """
    found = {name: table.resolve(name) for name in table.built_by("spack")}
    return [name for name, one in found.items() if one.external and one.build_of is None]


def from_archives_of_the_distribution(table: ImplementationTable) -> list[str]:
    """Return the implementations that Spack compiles from archives that the distribution has.

    Without those that have programs besides, of which it has no source.
    """
    found = {name: table.resolve(name) for name in table.built_by("spack")}
    return [
        name
        for name, one in found.items()
        if (one.spack_version or "").endswith(OF_DEBIAN) and not one.programs
    ]


def lock_path(root: Path, implementation: str) -> Path:
    """Return the path of an implementation's lock."""
    return root / LOCKS / f"{implementation}.lock"


def environment_names(root: Path) -> dict[str, str]:
    """Return what spack.yaml can choose: implementation → the specification of its MPI.

    Raises SpackError for a file that is not as it must be.
    """
    try:
        data = from_yaml((root / ENVIRONMENT).read_text())["spack"]
        found = {}
        for definition in data["definitions"]:
            if "mpi" in definition:
                name = definition["when"].rpartition("== ")[2].strip().strip('"')
                (found[name],) = definition["mpi"]
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise SpackError(f"{root / ENVIRONMENT} is malformed: {error!r}") from None
    return found


def read_lock(text: str) -> dict[str, Node]:
    """Return a lock's packages by their hash; raises SpackError for what is no lock."""
    try:
        data = json.loads(text)
        if data["_meta"]["file-type"] != "spack-lockfile":
            raise ValueError(data["_meta"]["file-type"])
        return {key: _node(key, value) for key, value in data["concrete_specs"].items()}
    except (ValueError, KeyError, TypeError) as error:
        raise SpackError(f"this is not a Spack lock: {error!r}") from None


def roots_of(text: str) -> dict[str, str]:
    """Return the hash → specification of what a lock's environment asks for."""
    return {root["hash"]: root["spec"] for root in json.loads(text)["roots"]}


def of_the_checkout(text: str) -> list[str]:
    """Return the hashes of a lock's packages that are built from the checkout's own files.

    With those that are built with them.
    """
    nodes = read_lock(text)

    def is_one(node: Node) -> bool:
        return node.develop or any(is_one(nodes[key]) for _, key in node.dependencies)

    return sorted(key for key, node in nodes.items() if is_one(node))


def running(text: str) -> set[str]:
    """Return the hashes of a lock's packages that what it asks for needs when it runs.

    The others are there to build with, and in no image.
    """
    nodes, found = read_lock(text), set[str]()
    waiting = list(roots_of(text))
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting += nodes[key].running
    return found


def sources_in(text: str) -> dict[str, list[dict[str, Any]]]:
    """Return what the packages of a lock are made of, by hash; nothing of an older lock."""
    found: dict[str, list[dict[str, Any]]] = json.loads(text).get(SOURCES, {})
    return found


def with_sources(text: str, needed: Iterable[Needed]) -> str:
    """Return a lock that says what its packages are made of, with digests and addresses.

    Spack reads a lock with it as one without.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for source in needed:
        said = {"kind": source.kind, "address": source.address, "sha256": source.sha256}
        if said not in found.setdefault(source.hash, []):
            found[source.hash].append(said)
    data = {**json.loads(text), SOURCES: dict(sorted(found.items()))}
    return json.dumps(data, separators=(",", ":"))


def made_by(text: str) -> str:
    """Return the version of the Spack that made a lock; `unknown` where it does not say."""
    return str((json.loads(text).get("spack") or {}).get("version", "unknown"))


def _node(key: str, value: dict[str, Any]) -> Node:
    parameters = value.get("parameters", {})
    words = []
    for name, setting in sorted(parameters.items()):
        if setting in ([], None) or name == "dev_path":
            continue
        if isinstance(setting, bool):
            words.append(("+" if setting else "~") + name)
        else:
            setting = setting if isinstance(setting, list) else [setting]
            words.append(f"{name}={','.join(str(part) for part in setting)}")
    target = value["arch"]["target"]
    return Node(
        name=value["name"],
        version=value["version"],
        hash=key,
        target=target if isinstance(target, str) else target["name"],
        external=(value.get("external") or {}).get("path"),
        develop="dev_path" in parameters,
        parameters=tuple(words),
        dependencies=tuple((d["name"], d["hash"]) for d in value.get("dependencies", [])),
        recipe=value.get("namespace", "builtin"),
        running=tuple(
            d["hash"]
            for d in value.get("dependencies", [])
            if {"link", "run"} & set(d.get("parameters", {}).get("deptypes", ()))
        ),
    )


def difference(old: str | None, new: str) -> list[str]:
    """Return, in words, what a new lock has that the old one had not, a line for each package."""
    after = _by_name(read_lock(new))
    if old is None:
        return [f"new: {len(after)} packages"]
    before = _by_name(read_lock(old))
    lines = []
    for name in sorted({*before, *after}):
        if name not in before:
            lines += [f"{name} {node.version} is new" for node in after[name]]
        elif name not in after:
            lines += [f"{name} {node.version} is gone" for node in before[name]]
        elif len(before[name]) == len(after[name]) == 1:
            lines += _changes(before[name][0], after[name][0])
        elif [n.hash for n in before[name]] != [n.hash for n in after[name]]:
            versions = [" and ".join(n.version for n in side[name]) for side in (before, after)]
            lines.append(f"{name}: from {versions[0]} to {versions[1]}")
    if not lines:
        same = {n.hash for ns in before.values() for n in ns} == {
            n.hash for ns in after.values() for n in ns
        }
        lines = ["no change" if same else "the same packages, built from changed recipes"]
    return lines


def _by_name(nodes: dict[str, Node]) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in sorted(nodes.values(), key=lambda node: (node.name, node.version, node.hash)):
        found.setdefault(node.name, []).append(node)
    return found


def _changes(old: Node, new: Node) -> list[str]:
    lines = []
    if old.version != new.version:
        lines.append(f"{new.name}: {old.version} became {new.version}")
    if old.target != new.target:
        lines.append(f"{new.name}: target {old.target} became {new.target}")
    if old.external != new.external:
        lines.append(
            f"{new.name}: {old.external or 'built here'} became {new.external or 'built here'}"
        )
    if old.recipe != new.recipe:
        lines.append(f"{new.name}: the recipe of {old.recipe} became that of {new.recipe}")
    gone = sorted(set(old.parameters) - set(new.parameters))
    come = sorted(set(new.parameters) - set(old.parameters))
    if gone or come:
        lines.append(f"{new.name}: {' '.join(gone) or 'nothing'} became {' '.join(come) or 'none'}")
    return lines


def bill(text: str) -> list[dict[str, Any]]:
    """Return the software bill of a lock: every package with version, variants, hash and origin.

    What is external has no variants there: those of the lock are Spack's defaults, with which
    nobody built it. What is only built with is told apart: it is in no image.
    """
    sources, needed = sources_in(text), running(text)
    return [
        {
            "name": node.name,
            "version": node.version,
            "target": node.target,
            "variants": [] if node.external else list(node.parameters),
            "spack_hash": node.hash,
            "from": node.external or ("checkout" if node.develop else "source"),
            "recipe": None if node.external else node.recipe,
            "sources": sources.get(node.hash, []),
            "needed_to": "run" if node.hash in needed else "build",
            "dependencies": [f"{name}/{key[:7]}" for name, key in node.dependencies],
        }
        for node in sorted(read_lock(text).values(), key=lambda node: (node.name, node.version))
    ]


def prepare(root: Path, implementation: str) -> Path:
    """Return a folder that is an implementation's environment, with its lock if it has one."""
    folder = spack.folder(root) / "environments" / implementation
    shutil.rmtree(folder, ignore_errors=True)
    for name in PARTS:
        # The checkout's are bound here.
        (folder / name).mkdir(parents=True)
    shutil.copy(root / ENVIRONMENT, folder)
    lock = lock_path(root, implementation)
    if lock.exists():
        shutil.copy(lock, folder / "spack.lock")
    return folder


def provide_base(root: Path, implementation: str, to_run: bool = False) -> Admitted:
    """Return the base that Spack builds an implementation in, made where it is not there.

    Apptainer is there to run it. With `to_run` the base that the image runs on is made as well.
    Raises the errors of this package: each is a sentence.
    """
    table, state = load_table(root), layout.state(root)
    both = bases_of(root, table, table.resolve(implementation), load_sources(root), "mmdebstrap")
    needed = both if to_run else both[:1]
    lacking = [base for base in needed if not base.path(state).exists()]
    provide_apptainer(builds=bool(lacking))
    if lacking:
        with only_build(root):
            ensure_bases(lacking, root, BuildProgress())
    return admit_base(both[0], state)


def cache_of(root: Path, base: Base) -> Path:
    """Return the folder of what was installed on a base.

    Each base has its own: Spack tells packages apart by their recipes, and not by the libraries
    that a configure script finds.
    """
    return spack.folder(root) / "cache" / "built" / base.digest()[:12]


def tool_binds(root: Path, found: Spack, built: Path | None = None) -> list[str]:
    """Return what Apptainer must bind for Spack to run in the base, as SOURCE:TARGET[:ro].

    With `built`, the folder of what was installed before.
    """
    state = spack.folder(root)
    scope = state / "configuration"
    # A folder with a place for each, bound to one that every base has: nothing is left in an image.
    places = state / "mounts"
    mirrors, folders = spack_site.in_base(spack_site.mirrors_of_site(root))
    own = ("spack", "packages", "solver", "scope", "mirror", "cache", "built", "stage")
    for name in (*own, *folders.values()):
        (places / name).mkdir(parents=True, exist_ok=True)
    for folder in (scope, state / "cache", state / "mirror", state / "software"):
        folder.mkdir(parents=True, exist_ok=True)
    if built:
        built.mkdir(parents=True, exist_ok=True)
    listed = {**(CACHE if built else {}), **CARRIED, **mirrors}
    content = {**SCOPE, "mirrors.yaml": {"mirrors": listed}}
    for name, configured in content.items():
        (scope / name).write_text(yaml.safe_dump(configured, sort_keys=False))
    return [
        f"{places}:/mnt",
        f"{found.core}:/mnt/spack:ro",
        f"{found.packages}:/mnt/packages:ro",
        f"{state / 'solver'}:/mnt/solver:ro",
        f"{scope}:/mnt/scope:ro",
        f"{state / 'mirror'}:/mnt/mirror",
        f"{state / 'cache'}:/mnt/cache",
        *([f"{built}:/mnt/built"] if built else []),
        *(f"{path}:/mnt/{name}:ro" for path, name in folders.items()),
    ]


def environment_binds(root: Path, environment: Path) -> list[str]:
    """Return what Apptainer must bind for an environment of the checkout's to be in the base."""
    return [
        f"{environment}:{INSIDE}",
        # Spack records here what is installed, which is nothing; an image has its own record.
        f"{spack.folder(root) / 'software'}:/opt/software",
        *(f"{root / name}:{INSIDE}/{name}:ro" for name in PARTS),
    ]


def variables(implementation: str) -> dict[str, str]:
    """Return the variables that Spack needs in the base."""
    return {
        "WYEAST_IMPLEMENTATION": implementation,
        "WYEAST_SITE": SITE,
        # Nothing of a user's own ~/.spack is in an image.
        "SPACK_DISABLE_LOCAL_CONFIG": "1",
        "SPACK_USER_CACHE_PATH": "/mnt/cache",
        "PYTHONPATH": "/mnt/solver",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def run(
    root: Path, found: Spack, base: Admitted, implementation: str, environment: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of Spack's in the base, in the environment of an implementation."""
    given = variables(implementation)
    return run_apart(
        command("exec", *exec_options(), "--contain",
                *(f"--bind={bind}" for bind in tool_binds(root, found)),
                *(f"--bind={bind}" for bind in environment_binds(root, environment)),
                *(f"--env={name}={value}" for name, value in given.items()),
                base, "/mnt/spack/bin/spack", "-C", "/mnt/scope", "-e", INSIDE, *words)
    )  # fmt: skip


def concretize(root: Path, found: Spack, base: Admitted, implementation: str) -> str:
    """Return a new lock by Spack for an implementation; raises SpackError."""
    environment = prepare(root, implementation)
    (environment / "spack.lock").unlink(missing_ok=True)
    done = run(root, found, base, implementation, environment, "concretize", "--force")
    made = environment / "spack.lock"
    if done.returncode or not made.exists():
        words = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise SpackError(
            f"{implementation} does not concretize with Spack {found.version}: {words}"
        )
    return made.read_text()


def recipe_files(root: Path) -> list[Path]:
    """Return the files of our recipes and of the base's site that decide what Spack builds.

    Without what the site says of options: what of that an image is built with, its lock has.
    """
    folders = (root / RECIPES, root / "site_configs" / SITE / "spack")
    return sorted(
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not path.is_relative_to(folder / OPTIONS)
    )
