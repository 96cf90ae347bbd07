"""spack.yaml, its locks, its recipes and the table agree; what is missing is said in a sentence."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from containers import bases
from containers.programs import ProvisionError
from containers.sources import load_sources, sha256_of
from containers.spack import build_options, recipes
from containers.spack import environment as spack_environment
from containers.spack import lock as spack_lock
from containers.spack import mirror as spack_mirror
from containers.spack import tool as spack
from containers.spack.recipes import Needed, SpackError
from containers.table import load_table
from spack_repo.wyeast import linkage

PROJECT = Path(__file__).resolve().parents[2]
DATA: dict[str, Any] = yaml.safe_load((PROJECT / "spack.yaml").read_text())["spack"]
NAMES = load_table(PROJECT).built_by("spack")
LOCKED = sorted(path.stem for path in (PROJECT / spack_environment.LOCKS).glob("*.lock"))
RECIPES = sorted((PROJECT / "spack_repo" / "wyeast" / "packages").glob("*/package.py"))
#: Those that add a version to a recipe of Spack's own.
INHERITING = [path for path in RECIPES if "spack_repo.builtin.packages." in path.read_text()]


SITE = PROJECT / "site_configs" / spack_environment.SITE / "spack" / "packages.yaml"
EXTERNALS: dict[str, Any] = yaml.safe_load(SITE.read_text())["packages"]
#: What the site says of options, each a file in a folder of the option's name.
OPTIONS = sorted((SITE.parent / spack_environment.OPTIONS).glob("*/packages.yaml"))


def chosen(name: str, definition: str, data: dict[str, Any] = DATA) -> list[str]:
    """What spack.yaml, or other content of it, defines where an implementation is chosen."""
    variables = {"env": {"WYEAST_IMPLEMENTATION": name}}
    return [
        specification
        for entry in data["definitions"]
        if definition in entry and eval(entry.get("when", "True"), dict(variables))
        for specification in entry[definition]
    ]


def name_and_version(specification: str) -> tuple[str, str]:
    match = re.match(r"([\w-]+)@=([\w.-]+)", specification)
    assert match, f"{specification} has no explicit version"
    return match[1], match[2]


def test_environment_and_table_have_the_same_implementations() -> None:
    assert set(spack_environment.environment_names(PROJECT)) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_implementation_is_one_mpi_of_the_table_s_version(name: str) -> None:
    (specification,) = chosen(name, "mpi")
    assert specification == spack_environment.environment_names(PROJECT)[name]
    _, version = name_and_version(specification)
    found = load_table(PROJECT).resolve(name)
    assert version == (found.spack_version or found.version)
    assert name.endswith("-spack") and found.definition == "spack.def"


def test_what_is_chosen_without_a_word_is_in_the_environment() -> None:
    (specification,) = (
        s for e in DATA["definitions"] if "mpi" in e and eval(e["when"], {"env": {}})
        for s in e["mpi"]
    )  # fmt: skip
    assert name_and_version(specification)[0] == "openmpi"


@pytest.mark.parametrize("name", NAMES)
def test_every_implementation_has_a_lock(name: str) -> None:
    assert name in LOCKED, f"make it: make spack-lock IMPLEMENTATIONS={name}"


@pytest.mark.parametrize("name", LOCKED)
def test_a_lock_matches_what_spack_yaml_asks_for(name: str) -> None:
    assert name in NAMES, f"no implementation has the lock of {name}: remove it"
    text = spack_environment.lock_path(PROJECT, name).read_text()
    nodes = spack_environment.read_lock(text)
    roots = {
        (nodes[key].name, nodes[key].version) for key in spack_environment.roots_of(text)
    }  # fmt: skip
    wanted = [*chosen(name, "mpi"), *chosen(name, "programs")]
    assert roots == {name_and_version(specification) for specification in wanted}
    concrete = {nodes[key].name: nodes[key] for key in spack_environment.roots_of(text)}
    for specification in wanted:
        parameters = concrete[name_and_version(specification)[0]].parameters
        for word in specification.split()[1:]:
            variant, _, values = word.partition("=")
            found = next((p for p in parameters if p.partition("=")[0] == variant), None)
            assert found is not None, f"{name}: {word} is not in its lock"
            assert set(values.split(",")) == set(found.partition("=")[2].split(",")), word


@pytest.mark.parametrize("name", [name for name in LOCKED if name.startswith("openmpi-4.1")])
def test_open_mpi_can_be_started_by_srun(name: str) -> None:
    # Without Slurm's part its version 4 takes such a rank for one started alone, and refuses.
    nodes = spack_environment.read_lock(spack_environment.lock_path(PROJECT, name).read_text())
    built = [n for n in nodes.values() if n.name == "openmpi" and not n.external]
    assert all("schedulers=none" not in node.parameters for node in built)


def required_target(name: str) -> list[str]:
    """Return what an option says of all packages' target, or else what the base does."""
    option = load_table(PROJECT).resolve(name).build_option
    own = SITE.parent / "options" / str(option) / SITE.name
    said = yaml.safe_load(own.read_text())["packages"] if own.is_file() else {}
    found: list[str] = (
        said.get("all", {}).get("require:")
        or (yaml.safe_load(SITE.read_text())["packages"]["all"]["require"])
    )
    return found


@pytest.mark.parametrize("name", LOCKED)
def test_a_lock_has_one_mpi_for_all_and_one_target(name: str) -> None:
    text = spack_environment.lock_path(PROJECT, name).read_text()
    nodes = spack_environment.read_lock(text)
    mpi, version = name_and_version(chosen(name, "mpi")[0])
    found = [node for node in nodes.values() if node.name == mpi]
    assert [node.version for node in found] == [version]
    for node in nodes.values():
        for dependency, key in node.dependencies:
            if dependency in ("openmpi", "mpich", "mvapich", "mvapich2", "intel-oneapi-mpi"):
                assert key == found[0].hash, f"{node.name} is built with another MPI"
    built = [node for node in nodes.values() if not node.external]
    assert {f"target={node.target}" for node in built} == set(required_target(name))
    assert (found[0].external is not None) == load_table(PROJECT).resolve(name).external


@pytest.mark.parametrize("name", LOCKED)
def test_a_lock_says_nothing_of_the_machine_that_made_it(name: str) -> None:
    text = spack_environment.lock_path(PROJECT, name).read_text()
    places = {
        node.external for node in spack_environment.read_lock(text).values() if node.external
    }  # fmt: skip
    places |= set(re.findall(r'"dev_path": ?"([^"]*)"', text))
    assert json.loads(text)["spack"]["version"] == spack.RELEASES["spack"].removeprefix("v")
    assert all(place.startswith(("/usr", "/opt/")) for place in places), places
    assert "/opt/spack-environment/benchmarks" in places


@pytest.mark.parametrize("name", LOCKED)
def test_a_lock_s_externals_are_those_of_the_base(name: str) -> None:
    text = spack_environment.lock_path(PROJECT, name).read_text()
    option = load_table(PROJECT).resolve(name).build_option
    known = {
        (*name_and_version(external["spec"]), external["prefix"])
        for file in (SITE, *(path for path in OPTIONS if path.parent.name == option))
        for package in yaml.safe_load(file.read_text())["packages"].values()
        for external in package.get("externals", [])
    }
    # That of Debian 12, which Spack finds by the compiler; no site says it.
    known.add(("glibc", "2.36", "/usr"))
    found = {
        (node.name, node.version, node.external)
        for node in spack_environment.read_lock(text).values()
        if node.external
    }
    assert found and found <= known


@pytest.mark.parametrize("recipe", INHERITING, ids=lambda path: path.parent.name)
def test_a_recipe_that_inherits_adds_versions_of_its_own_with_their_digests(recipe: Path) -> None:
    tree = ast.parse(recipe.read_text())
    (package,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    name = recipe.parent.name.title().replace("_", "")
    assert package.name == name and [ast.unparse(base) for base in package.bases] == [
        f"Builtin{name}"
    ]
    versions = [
        node for node in ast.walk(package)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "version"
    ]  # fmt: skip
    # One adds no version, but what the distribution installs with it.
    assert versions or name == "Blis"
    for version in versions:
        said = {one.arg: ast.literal_eval(one.value) for one in version.keywords}
        assert re.fullmatch("[0-9a-f]{64}", said["sha256"]) and "://" in said["url"]
        # No version of upstream's is replaced.
        assert re.fullmatch(r"[0-9.]+(-[0-9]+)?-[a-z]+", ast.literal_eval(version.args[0]))


def test_ours_win_over_spack_s_own_recipes_in_the_base_and_in_plain_spack() -> None:
    assert list(spack_environment.SCOPE["repos.yaml"]["repos"]) == ["wyeast", "builtin"]
    # An environment's repositories rank above those of Spack's own configuration.
    assert list(DATA["repos"]) == ["wyeast"]


@pytest.mark.parametrize(
    "recipe", sorted({*RECIPES} - {*INHERITING}), ids=lambda path: path.parent.name
)
def test_a_recipe_pins_its_sources_and_names_no_mpi(recipe: Path) -> None:
    tree = ast.parse(recipe.read_text())
    (package,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    # Spack finds a class by its package's name.
    assert package.name == recipe.parent.name.title().replace("_", "")
    calls = [n.value for n in package.body
             if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)]  # fmt: skip
    needed = [
        ast.literal_eval(c.args[0]) for c in calls if getattr(c.func, "id", "") == "depends_on"
    ]
    assert "mpi" in needed and "c" in needed
    assert not {"openmpi", "mpich", "mvapich", "mvapich2", "intel-oneapi-mpi"} & set(needed)
    versions = [call for call in calls if getattr(call.func, "id", "") == "version"]
    pinned = {archive.sha256 for archive in load_sources(PROJECT).archives.values()}
    for version in versions:
        number = ast.literal_eval(version.args[0])
        digests = [ast.literal_eval(k.value) for k in version.keywords if k.arg == "sha256"]
        if number == "develop":
            assert not digests
        elif recipe.parent.name != "wyeast_benchmarks":
            # What a machine without the internet has, by its distribution, is what is built.
            assert set(digests) <= pinned
    assert any(getattr(n, "name", "") == "linked_to_the_asked_mpi" for n in package.body)


def test_a_release_is_the_same_archive_whoever_makes_it(tmp_path: Path) -> None:
    recipe = (PROJECT / "spack_repo/wyeast/packages/wyeast_benchmarks/package.py").read_text()
    pinned = dict(re.findall(r'version\("([\d.]+)", sha256="([0-9a-f]{64})"\)', recipe))
    commits = json.loads((PROJECT / spack_mirror.RELEASES).read_text())
    assert set(pinned) == set(commits)
    for version, commit in commits.items():
        git = ["git", "-C", str(PROJECT), "cat-file", "-e", f"{commit}^{{commit}}"]
        if subprocess.run(git, capture_output=True).returncode:
            pytest.skip(f"this checkout has no history as far back as {commit}")
        prefix = f"wyeast-benchmarks-{version}"
        made = spack_mirror.archive_of(PROJECT, commit, prefix, tmp_path, "benchmarks")
        assert sha256_of(made) == pinned[version]


def test_a_release_lies_where_its_recipe_looks_for_it(tmp_path: Path) -> None:
    repository_of(tmp_path, "benchmarks/Makefile", "all:\n", "1")
    (tmp_path / "spack_repo/wyeast").mkdir(parents=True)
    kept = json.loads((PROJECT / spack_mirror.RELEASES).read_text())
    (tmp_path / spack_mirror.RELEASES).write_text(json.dumps(dict.fromkeys(kept, "1")))
    (placed,) = spack_mirror.releases(tmp_path)
    recipe = (PROJECT / "spack_repo/wyeast/packages/wyeast_benchmarks/package.py").read_text()
    (address,) = re.findall(r'"/(\.wyeast/\S+\.tar\.gz)"', recipe)
    assert (tmp_path / address).read_bytes() == placed.read_bytes()
    assert spack_mirror.folder(tmp_path) in placed.parents
    left = {path.name for path in (tmp_path / address).parent.iterdir()}
    assert left == {Path(address).name}


def test_a_release_asks_for_the_declaration_that_differs_in_mpich_4_0() -> None:
    """Its profile does not compile else: spack.yaml's own mpich@4.0.2 is such a one."""
    for commit in json.loads((PROJECT / spack_mirror.RELEASES).read_text()).values():
        done = subprocess.run(
            ["git", "-C", str(PROJECT), "show", f"{commit}:benchmarks/profile/interface.h"],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"this checkout has no history as far back as {commit}")
        assert "_Generic(&PMPI_Pready_list" in done.stdout


def test_the_recipes_repository_is_of_spack_1() -> None:
    repository = yaml.safe_load((PROJECT / "spack_repo/wyeast/repo.yaml").read_text())["repo"]
    assert repository == {"namespace": "wyeast", "api": "v2.0"}
    assert DATA["repos"] == {"wyeast": "spack_repo/wyeast"}


def test_externals_are_the_table_s_packages() -> None:
    for name in spack_environment.of_the_distribution(load_table(PROJECT)):
        mpi, version = name_and_version(chosen(name, "mpi")[0])
        (external,) = EXTERNALS[mpi]["externals"]
        assert external["spec"] == f"{mpi}@={version}"
        assert external["prefix"] == f"/opt/debian-mpi/{mpi}-{version}"


def test_what_is_built_from_source_is_built_where_no_mpi_of_the_distribution_is() -> None:
    table, pinned = load_table(PROJECT), load_sources(PROJECT)
    mpis = {
        package
        for name in spack_environment.of_the_distribution(table)
        for package in table.resolve(name).packages.build
    }
    for name in NAMES:
        found = table.resolve(name)
        build, _ = bases.bases_of(PROJECT, table, found, pinned, "mmdebstrap")
        there = {package.partition("=")[0] for package in build.packages}
        assert mpis <= there if found.external else not mpis & there
        assert set(found.packages.build) <= there and not set(found.without) & there


def test_what_was_built_before_is_of_one_base(tmp_path: Path) -> None:
    table, pinned = load_table(PROJECT), load_sources(PROJECT)
    folders: dict[Path, set[str]] = {}
    for name in NAMES:
        build, _ = bases.bases_of(PROJECT, table, table.resolve(name), pinned, "mmdebstrap")
        folders.setdefault(spack_environment.cache_of(tmp_path, build), set()).add(build.digest())
    assert len(folders) > 1 and all(len(of) == 1 for of in folders.values())


@pytest.mark.parametrize("name", LOCKED)
def test_nothing_of_the_checkout_s_is_taken_from_what_was_built_before(name: str) -> None:
    text = spack_environment.lock_path(PROJECT, name).read_text()
    nodes = spack_environment.read_lock(text)
    found = {nodes[key].name for key in spack_environment.of_the_checkout(text)}
    # Our Makefile builds these, with sources of the checkout.
    assert found == {"wyeast-benchmarks", "netpipe", "hpl-hpcc"} & {n.name for n in nodes.values()}


# Words about a change.


def lock(*nodes: dict[str, Any]) -> str:
    return json.dumps({
        "_meta": {"file-type": "spack-lockfile"}, "roots": [],
        "concrete_specs": {
            n["name"] + n["version"] + n.get("h", ""): {"arch": {"target": "x86_64_v3"}, **n}
            for n in nodes
        },
    })  # fmt: skip


HWLOC = {"name": "hwloc", "version": "2.11.1", "parameters": {"pci": True, "cflags": []}}


@pytest.mark.parametrize(
    "old, new, words",
    [
        (None, [HWLOC], ["new: 1 packages"]),
        ([HWLOC], [HWLOC], ["no change"]),
        ([HWLOC], [{**HWLOC, "namespace": "builtin"}], ["no change"]),
        (
            [HWLOC],
            [{**HWLOC, "namespace": "wyeast"}],
            ["hwloc: the recipe of builtin became that of wyeast"],
        ),
        ([HWLOC], [{**HWLOC, "h": "x"}], ["the same packages, built from changed recipes"]),
        ([HWLOC], [{**HWLOC, "version": "2.12"}], ["hwloc: 2.11.1 became 2.12"]),
        ([HWLOC], [{**HWLOC, "parameters": {"pci": False}}], ["hwloc: +pci became ~pci"]),
        ([], [HWLOC], ["hwloc 2.11.1 is new"]),
        ([HWLOC], [], ["hwloc 2.11.1 is gone"]),
        (
            [HWLOC],
            [{**HWLOC, "external": {"path": "/usr"}}],
            ["hwloc: built here became /usr"],
        ),
    ],
)
def test_a_difference_in_words(old: Any, new: Any, words: list[str]) -> None:
    before = lock(*old) if old is not None else None
    assert spack_environment.difference(before, lock(*new)) == words


@pytest.mark.parametrize("name", LOCKED)
def test_a_lock_says_what_its_packages_are_made_of(name: str) -> None:
    text = spack_environment.lock_path(PROJECT, name).read_text()
    sources, nodes = spack_environment.sources_in(text), spack_environment.read_lock(text)
    for key, of_package in sources.items():
        assert nodes[key].external is None and of_package
        for source in of_package:
            # An archive or patch without a digest could be anything.
            assert re.fullmatch("[0-9a-f]{64}", source["sha256"]), source
            assert source["kind"] in ("archive", "patch") and source["address"]
    without = {node.name for key, node in nodes.items() if not node.external and key not in sources}
    # One is of the checkout, the other is what the compiler has.
    assert without <= {"wyeast-benchmarks", "gcc-runtime"}


def test_the_software_list_has_sources_recipes_and_what_each_is_needed_to_do() -> None:
    name = "mpich-4.0.2-source-spack"
    text = spack_environment.lock_path(PROJECT, name).read_text()
    found = {one["name"]: one for one in spack_environment.bill(text)}
    assert found["mpich"]["recipe"] == "wyeast" and found["mpich"]["needed_to"] == "run"
    (archive,) = found["mpich"]["sources"]
    assert archive["kind"] == "archive" and archive["address"].endswith("mpich_4.0.2.orig.tar.xz")
    assert found["compiler-wrapper"]["needed_to"] == "build"
    assert (found["openblas"]["recipe"], found["openblas"]["sources"]) == (None, [])


@pytest.mark.parametrize(
    "name", [name for name in NAMES if load_table(PROJECT).resolve(name).programs]
)
def test_programs_of_others_are_in_the_software_list_and_the_mpi_is_not_built_twice(
    name: str,
) -> None:
    text = spack_environment.lock_path(PROJECT, name).read_text()
    found = {one["name"]: one for one in spack_environment.bill(text)}
    for specification in load_table(PROJECT).resolve(name).programs:
        package, version = name_and_version(specification)
        assert (found[package]["version"], found[package]["needed_to"]) == (version, "run")
        assert [source["kind"] for source in found[package]["sources"]] == ["archive"]
    of = load_table(PROJECT).resolve(name).build_of
    plain = spack_environment.lock_path(PROJECT, str(of)).read_text()
    mpi, _ = name_and_version(chosen(name, "mpi")[0])
    same = {one["spack_hash"] for one in spack_environment.bill(plain)}
    # An option of the MPI besides makes another of it.
    is_same = load_table(PROJECT).resolve(name).build_options is None
    assert (found[mpi]["spack_hash"] in same) == is_same


def test_a_lock_keeps_its_bytes_where_nothing_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, other = tmp_path, {**HWLOC, "name": "xz"}
    monkeypatch.setattr(spack_environment, "provide_base", lambda root, name: None)
    needed = Needed("hwloc", "2.11.1", "builtin", "hwloc2.11.1", "archive", "https://x", (),
                    "a" * 64, "place")  # fmt: skip
    monkeypatch.setattr(recipes, "needed", lambda root, found, text: [needed])
    made = [lock(HWLOC, other), lock(other, HWLOC), lock({**HWLOC, "version": "2.12"}, other)]
    monkeypatch.setattr(spack_environment, "concretize", lambda *_: made.pop(0))
    path = spack_environment.lock_path(root, "x")
    found = spack.Spack(Path("/nowhere"), Path("/nowhere"), "1.1.0")
    monkeypatch.setattr(spack, "provide", lambda root: found)
    monkeypatch.setattr(spack_lock, "load_table", lambda root: None)
    monkeypatch.setattr(build_options, "define", lambda *_: False)
    texts = []
    for _ in range(3):
        assert spack_lock.renew(root, ["x"]) == []
        texts.append(path.read_text())
    assert texts[0] == texts[1] != texts[2]
    assert spack_environment.sources_in(texts[0]) == {
        "hwloc2.11.1": [{"kind": "archive", "address": "https://x", "sha256": "a" * 64}]
    }


def test_what_is_not_a_lock_is_refused() -> None:
    for text in ("", "[]", "{}", '{"_meta": {"file-type": "other"}}'):
        with pytest.raises(SpackError, match="not a Spack lock"):
            spack_environment.read_lock(text)


# Where Spack comes from.


def core(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "spack").write_text(f"#!/bin/sh\necho '{version}'\n")
    (folder / "bin" / "spack").chmod(0o755)
    return folder


@pytest.mark.parametrize("version", ["0.23.1", "0.23.0.dev0 (abc)", "1.0.2"])
def test_an_old_spack_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("SPACK_ROOT", str(core(tmp_path / "old", version)))
    with pytest.raises(ProvisionError, match=r"Spack (0\.23|1\.0).* need 1\.1 or newer") as caught:
        spack.find(tmp_path)
    assert "\n" not in str(caught.value)


def test_an_old_spack_leaves_real_tests_out_and_one_that_is_named_fails_them(
    tmp_path: Path,
) -> None:
    old = core(tmp_path / "old", "0.23.1")
    words = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-k", "site",
             "tests/containers/test_spack_real.py"]  # fmt: skip
    variables = {k: v for k, v in os.environ.items() if k != "SPACK_ROOT"}
    variables["PATH"] = f"{old}/bin:{variables['PATH']}"
    for named, code, outcome in (({}, 0, "1 skipped"), ({"SPACK_ROOT": str(old)}, 1, "1 error")):
        done = subprocess.run(
            words, cwd=PROJECT, env=variables | named, capture_output=True, text=True
        )
        assert done.returncode == code, done.stdout
        assert outcome in done.stdout and "0.23.1, but spack.yaml" in done.stdout


def test_what_is_not_a_spack_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACK_ROOT", str(tmp_path))
    with pytest.raises(ProvisionError, match="is not a Spack"):
        spack.find(tmp_path)


def without_spack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACK_ROOT", raising=False)
    monkeypatch.setattr(
        "shutil.which", lambda name: None if name == "spack" else f"/usr/bin/{name}"
    )


def test_without_network_it_says_what_is_missing_and_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_spack(monkeypatch)
    monkeypatch.setenv(spack.UPSTREAM_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(ProvisionError, match=r"spack v[\d.]+ is missing .* SPACK_ROOT .*UPSTREAM"):
        spack.provide(tmp_path)
    assert not (tmp_path / ".wyeast" / "spack" / "spack").exists()


@pytest.mark.parametrize("words", [["--version"], ["location", "--repo", "builtin"]])
def test_a_spack_that_hangs_is_said_and_no_configuration_of_the_user_s_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.delenv("SPACK_DISABLE_LOCAL_CONFIG", raising=False)
    folder = core(tmp_path / "core", "1.1.0")
    (folder / "repo.yaml").touch()
    # It hangs at these words alone, and where it would read ~/.spack; else it answers.
    (folder / "bin/spack").write_text(
        f"#!/bin/sh\n[ $SPACK_DISABLE_LOCAL_CONFIG ] || exit 1\n"
        f'[ "$*" != "{" ".join(words)}" ] || [ ! -e {tmp_path}/hang ] || exec sleep 60\n'
        f"[ $1 = location ] && echo {folder}/repos/spack_repo/builtin || echo 1.1.0\n"
    )
    (folder / "repos/spack_repo/builtin").mkdir(parents=True)
    (folder / "repos/spack_repo/builtin/repo.yaml").touch()
    monkeypatch.setenv("SPACK_ROOT", str(folder))
    assert spack.find(tmp_path) == spack.Spack(folder, folder, "1.1.0")
    monkeypatch.setattr(spack, "PATIENCE", 0.2)
    (tmp_path / "hang").touch()
    with pytest.raises(ProvisionError, match=f"{' '.join(words)} did not finish within 0.2 s"):
        spack.find(tmp_path)


def repository_of(path: Path, file: str, content: str, *tags: str) -> str:
    """Commit a file, that can be executed, to a repository, and tag the commit; return that."""
    git = ["git", "-C", str(path), "-c", "user.name=a", "-c", "user.email=a@b"]
    if not (path / ".git").exists():
        path.mkdir(parents=True, exist_ok=True)
        subprocess.run([*git, "init", "-q"], check=True)
    (path / file).parent.mkdir(parents=True, exist_ok=True)
    (path / file).write_text(content)
    (path / file).chmod(0o755)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", content], check=True)
    for tag in tags:
        subprocess.run([*git, "tag", "--force", tag], check=True, capture_output=True)
    commit = spack.head_of(path)
    assert commit is not None
    return commit


def test_the_own_spack_is_renewed_when_another_release_is_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_spack(monkeypatch)
    monkeypatch.setattr(spack, "solver", lambda root: root)
    upstream = tmp_path / "upstream"
    commits = {}
    for number in ("1.1.8", "1.1.9"):
        said = f"#!/bin/sh\necho {number}\n"
        tag = f"v{number}"
        commits[number] = {
            "spack": repository_of(upstream / "spack.git", "bin/spack", said, tag),
            "spack-packages": repository_of(
                upstream / "spack-packages.git", "recipes", number, tag
            ),
        }
    monkeypatch.setenv(spack.UPSTREAM_VARIABLE, str(upstream))
    for number in ("1.1.8", "1.1.9"):
        pinned = {"spack": f"v{number}", "spack-packages": f"v{number}"}
        monkeypatch.setattr(spack, "RELEASES", {**spack.RELEASES, **pinned})
        monkeypatch.setattr(spack, "COMMITS", {**spack.COMMITS, **commits[number]})
        found = spack.provide(tmp_path)
        assert found.version == number
        assert (found.packages / "recipes").read_text() == number
    # Nothing is cloned twice.
    monkeypatch.setenv(spack.UPSTREAM_VARIABLE, "/nowhere")
    assert spack.provide(tmp_path) == found


def test_a_pinned_release_is_cloned_once_from_a_local_mirror(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "upstream" / "compiler-wrapper.git"
    release = spack.RELEASES["compiler-wrapper"]
    commit = repository_of(repository, "cc.sh", "#!/bin/sh\n", release)
    monkeypatch.setitem(spack.COMMITS, "compiler-wrapper", commit)
    monkeypatch.setenv(spack.UPSTREAM_VARIABLE, str(tmp_path / "upstream"))
    found = spack.clone(tmp_path, "compiler-wrapper")
    assert (found / "cc.sh").exists()
    monkeypatch.setenv(spack.UPSTREAM_VARIABLE, "/nowhere")
    assert spack.clone(tmp_path, "compiler-wrapper") == found
    first = spack_mirror.wrapper(tmp_path)
    digest = sha256_of(first)
    first.unlink()
    assert sha256_of(spack_mirror.wrapper(tmp_path)) == digest


def test_a_release_that_was_moved_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spack.COMMITS.keys() == spack.RELEASES.keys()
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in spack.COMMITS.values())
    repository = tmp_path / "upstream" / "compiler-wrapper.git"
    release = spack.RELEASES["compiler-wrapper"]
    commit = repository_of(repository, "cc.sh", "#!/bin/sh\n", release)
    monkeypatch.setitem(spack.COMMITS, "compiler-wrapper", commit)
    monkeypatch.setenv(spack.UPSTREAM_VARIABLE, str(tmp_path / "upstream"))
    moved = repository_of(repository, "cc.sh", "#!/bin/sh\nrm -rf ~\n", release)
    with pytest.raises(ProvisionError, match=f"is commit {moved}, but {commit} is pinned"):
        spack.clone(tmp_path, "compiler-wrapper")
    assert list(spack.folder(tmp_path).iterdir()) == []


# What a program is linked to.


def link(folder: Path, name: str, target: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(target)


@pytest.fixture
def prefixes(tmp_path: Path) -> tuple[Path, Path]:
    """Two prefixes of links to libraries in one folder, as Debian's MPIs are."""
    shared = tmp_path / "usr"
    shared.mkdir()
    (shared / "libmpi.so.40.30.4").touch()
    (shared / "libmpich.so.12.2.2").touch()
    link(tmp_path / "openmpi" / "lib", "libmpi.so.40", shared / "libmpi.so.40.30.4")
    link(tmp_path / "mpich" / "lib", "libmpi.so", shared / "libmpich.so.12.2.2")
    return tmp_path / "openmpi", tmp_path / "mpich"


def test_a_program_of_the_other_mpi_is_found_out(
    prefixes: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openmpi, mpich = prefixes
    words = f"\tlinux-vdso.so.1 (0x0)\n\tlibmpi.so.40 => {tmp_path}/usr/libmpi.so.40.30.4 (0x1)\n"
    monkeypatch.setattr(
        "subprocess.run", lambda *a, **k: subprocess.CompletedProcess(a, 0, stdout=words)
    )
    program = tmp_path / "pingpong"
    linkage.check([program], openmpi)
    with pytest.raises(linkage.WrongLibrary, match="not to the MPI under"):
        linkage.check([program], mpich)
    words = "\tlibmpi.so.40 => not found\n"
    with pytest.raises(linkage.WrongLibrary, match="does not find its libmpi"):
        linkage.check([program], openmpi)
    words = "\tlibc.so.6 => /lib/libc.so.6 (0x1)\n"
    with pytest.raises(linkage.WrongLibrary, match="linked to no MPI"):
        linkage.check([program], openmpi)
    linkage.check([program], openmpi, without_mpi=["pingpong"])


def test_no_program_and_no_library_are_no_success(prefixes: tuple[Path, Path]) -> None:
    with pytest.raises(linkage.WrongLibrary, match="no program"):
        linkage.check([], prefixes[0])
    with pytest.raises(linkage.WrongLibrary, match="has no MPI library"):
        linkage.check([], prefixes[0] / "lib")
