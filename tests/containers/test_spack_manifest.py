"""What an image of Spack's says of how it was built: by which Spack, recipes and flags."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from containers import staging
from containers.spack import environment as spack_environment
from containers.spack import image as spack_image
from containers.spack import tool as spack
from containers.spack.recipes import SpackError
from tests.containers.test_spack import (
    LOCKED,
    PROJECT,
    chosen,
    core,
    lock,
    name_and_version,
    repository_of,
)
from tests.containers.test_spack_images import FOUND, recipe_of

NAME = "mpich-5.0.1-spack"
RECIPES = "repos/spack_repo/builtin"


@pytest.fixture
def upstream(tmp_path: Path) -> spack.Spack:
    """Return a Spack with a recipe of a package of the lock's, and one of another's."""
    repository_of(tmp_path / "core", "bin/spack", "#!/bin/sh\necho 1.1.0\n")
    for package in ("libxml2", "unrelated"):
        repository_of(tmp_path / "packages", f"{RECIPES}/packages/{package}/package.py", "1")
    return spack.Spack(tmp_path / "core", tmp_path / "packages", "1.1.0")


def manifest_of(found: spack.Spack) -> dict[str, Any]:
    """Return what the manifest of an image says of its Spack."""
    said: dict[str, Any] = spack_image.known(recipe_of(NAME), found, "2026-01-01T00:00:00Z")
    return dict(said["spack"])


def test_the_manifest_has_the_commits_of_core_and_packages(upstream: spack.Spack) -> None:
    said = manifest_of(upstream)
    for key, folder in (("commit", upstream.core), ("packages_commit", upstream.packages)):
        git = ["git", "-C", str(folder), "rev-parse", "HEAD"]
        head = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
        assert said[key] == head
    assert said["version"] == said["lock_version"] == "1.1.0"
    (upstream.core / "bin/spack").write_text("#!/bin/sh\n# Changed here.\necho 1.1.0\n")
    assert manifest_of(upstream)["commit"] == f"{said['commit']}-dirty"


def test_recipes_of_the_lock_s_packages_are_told_apart_by_their_content(
    upstream: spack.Spack,
) -> None:
    before = manifest_of(upstream)["recipes_sha256"]
    packages = upstream.packages / RECIPES / "packages"
    (packages / "unrelated/package.py").write_text("2")
    assert manifest_of(upstream)["recipes_sha256"] == before
    (packages / "libxml2/package.py").write_text("2")
    assert manifest_of(upstream)["recipes_sha256"] != before


def test_what_is_not_a_checkout_has_no_commit(upstream: spack.Spack, tmp_path: Path) -> None:
    inner = upstream.packages / "unpacked"
    inner.mkdir()
    assert spack.commit_of(inner) is None
    assert spack.commit_of(tmp_path / "nowhere") is None


def test_an_image_is_of_the_spack_that_is_found(
    upstream: spack.Spack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spack, "of_the_machine", lambda: None)
    pinned = recipe_of(NAME).inputs_sha256()
    monkeypatch.setattr(spack, "of_the_machine", lambda: upstream.core)
    monkeypatch.setattr(spack, "_packages_of", lambda core: upstream.packages)
    spack_image._found.cache_clear()
    own = recipe_of(NAME).inputs_sha256()
    assert own != pinned
    (upstream.packages / RECIPES / "packages/libxml2/package.py").write_text("2")
    assert recipe_of(NAME).inputs_sha256() not in (own, pinned)
    spack_image._found.cache_clear()


def test_a_lock_of_another_spack_is_said(tmp_path: Path) -> None:
    path = spack_environment.lock_path(PROJECT, NAME)
    found = spack.Spack(core(tmp_path / "core", "1.0.2"), tmp_path, "1.0.2")
    sentence = spack_image.other_version(found, path)
    assert sentence and "was made by Spack 1.1.0 and is installed by 1.0.2" in sentence
    assert f"make spack-lock IMPLEMENTATIONS={NAME}" in sentence and "\n" not in sentence
    same = spack.Spack(found.core, tmp_path, "1.1.0")
    assert spack_image.other_version(same, path) is None


def flags_of(name: str) -> str:
    level = "x86-64-v2" if "-x86-64-v2-" in name else "x86-64-v3"
    return f"{staging.FLAGS} -march={level} -mtune=generic"


@pytest.mark.parametrize("name", LOCKED)
def test_the_manifest_says_the_flags_of_each_package_as_far_as_they_are_known(name: str) -> None:
    flags = spack_image.package_flags(spack_environment.lock_path(PROJECT, name))
    ours = flags_of(name)
    for specification in chosen(name, "programs"):
        package = name_and_version(specification)[0]
        known = package in ("wyeast-benchmarks", "netpipe", "hpl-hpcc")
        assert flags[package] == (ours if known else f"as its recipe says, and {ours[7:]}")
    assert "gcc" not in flags and "openblas" not in flags, "externals are compiled elsewhere"
    said = spack_image.known(recipe_of(name), FOUND, "2026-01-01T00:00:00Z")
    assert said["spack"]["package_flags"] == flags


@pytest.mark.parametrize("name", LOCKED)
def test_the_compiler_is_the_one_of_the_lock(name: str) -> None:
    ours = flags_of(name)
    is_clang = name.endswith("-clang-spack")
    assert spack_image.compiled_with(spack_environment.lock_path(PROJECT, name)) == {
        "compiler": "clang-14" if is_clang else "gcc", "flags": ours,
    }  # fmt: skip


def with_compiler(tmp_path: Path, external: dict[str, Any] | None, target: str) -> Path:
    """A lock of our programs, compiled from C by one program and from Fortran by another."""
    edges = [
        {"name": "gcc", "hash": "gcc12", "parameters": {"virtuals": ["fortran"]}},
        {"name": "llvm", "hash": "llvm14", "parameters": {"virtuals": ["c", "cxx"]}},
    ]
    path = tmp_path / "some.lock"
    path.write_text(lock(
        {"name": "wyeast-benchmarks", "version": "1", "arch": {"target": target},
         "dependencies": edges},
        {"name": "gcc", "version": "12", "external": {"path": "/usr"}},
        {"name": "llvm", "version": "14", "external": external},
    ))  # fmt: skip
    return path


def test_another_compiler_and_target_are_said(tmp_path: Path) -> None:
    said = {"path": "/usr", "extra_attributes": {"compilers": {"c": "/usr/bin/clang-14"}}}
    assert spack_image.compiled_with(with_compiler(tmp_path, said, "x86_64_v2")) == {
        "compiler": "clang-14", "flags": f"{staging.FLAGS} -march=x86-64-v2 -mtune=generic",
    }  # fmt: skip
    said["extra_attributes"] = {"compilers": {"c": "/opt/llvm/bin/clang"}}
    found = spack_image.compiled_with(with_compiler(tmp_path, said, "x86_64_v3"))
    assert found["compiler"] == "/opt/llvm/bin/clang"
    with pytest.raises(SpackError, match="does not say which program compiles wyeast-benchmarks"):
        spack_image.compiled_with(with_compiler(tmp_path, None, "x86_64_v3"))
    text = (PROJECT / "containers/spack.def").read_text()
    assert '{{ compiler }} "$({{ compiler }} --version | head -n 1)"' in text


def test_packages_of_known_flags_are_built_by_our_makefile_which_has_them() -> None:
    for package in spack_image.BUILT_BY_OUR_MAKEFILE:
        name = package.replace("-", "_")
        recipe = (PROJECT / f"spack_repo/wyeast/packages/{name}/package.py").read_text()
        assert "MakefilePackage" in recipe and not re.search(r"FLAGS|-O\d", recipe)
    done = subprocess.run(
        ["make", "-s", "-C", PROJECT / "benchmarks", "flags"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == staging.FLAGS


def test_no_compiler_is_given_a_flag_that_it_does_not_know(tmp_path: Path) -> None:
    clang = tmp_path / "clang"
    clang.write_text('#!/bin/sh\ncase "$*" in *-fno-tree-*) exit 1 ;; esac\nexec gcc "$@"\n')
    clang.chmod(0o755)
    flags = {}
    for compiler in ("gcc", str(clang)):
        target = f"{tmp_path}/node_rates/stream_kernels.o"
        done = subprocess.run(
            ["make", "-n", "-C", PROJECT / "benchmarks", f"CC={compiler}", f"BUILD={tmp_path}",
             target],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        (line,) = (line for line in done.stdout.splitlines() if f" -o {target} " in line)
        flags[compiler] = {word for word in line.split() if word.startswith("-fno-")}
    assert flags == {
        "gcc": {"-fno-tree-loop-distribute-patterns"}, str(clang): {"-fno-builtin-memcpy"},
    }  # fmt: skip


def test_the_bill_says_no_variants_of_what_somebody_else_built() -> None:
    hwloc = {"name": "hwloc", "version": "2.11.1", "parameters": {"pci": True}}
    mpich = {"name": "mpich", "version": "4.0.2", "parameters": {"netmod": "ofi"},
             "external": {"path": "/opt/debian-mpi/mpich-4.0.2"}}  # fmt: skip
    found = {one["name"]: one["variants"] for one in spack_environment.bill(lock(hwloc, mpich))}
    assert found == {"hwloc": ["+pci"], "mpich": []}
