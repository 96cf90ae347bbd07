"""With a real Spack: locks, installations on two MPIs, a binary cache, images and checks in them.

These are the only tests that are left out where what they need is missing: Spack is in no package
registry. SPACK_ROOT names one, or `make spack` provides one.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from containers import build, images
from containers.apptainer import call, exec_options
from containers.programs import ProvisionError
from containers.sources import fetch_archive, load_sources
from containers.spack import environment as spack_environment
from containers.spack import externals, given, recipes, standalone
from containers.spack import mirror as spack_mirror
from containers.spack import tool as spack
from containers.spack.source_folder import SourceFolder
from containers.table import load_table
from spack_repo.wyeast import linkage
from tests import bare_mpi
from tests.containers import travelling
from tests.containers.test_spack_images import programs_of_checks

PROJECT = Path(__file__).resolve().parents[2]
MPIS = {"openmpi": ("openmpi-5.0.11", "~romio"), "mpich": ("mpich-5.0.2", "")}

pytestmark = [pytest.mark.real, pytest.mark.serial, pytest.mark.spack]


@pytest.fixture(scope="module")
def found() -> spack.Spack:
    try:
        if spack.find(PROJECT) is None:
            pytest.skip("needs Spack: set SPACK_ROOT, or run make spack")
    except ProvisionError as error:
        # One that was named is meant.
        if "SPACK_ROOT" in os.environ:
            raise
        pytest.skip(f"needs Spack: {error}")
    provided = spack.provide(PROJECT)
    pinned = load_sources(PROJECT)
    spack_mirror.fill(
        PROJECT,
        [fetch_archive(source, PROJECT / ".wyeast", pinned.debian.suite)
         for source in pinned.archives.values()],
    )  # fmt: skip
    spack_mirror.releases(PROJECT)
    return provided


@pytest.mark.parametrize(
    "name", ["openmpi-4.1.4-spack", "mpich-4.0.2-spack", "mpich-4.0.2-source-spack"]
)
def test_the_base_has_all_that_building_with_a_lock_s_externals_needs(name: str) -> None:
    externals.prove(PROJECT, spack_environment.provide_base(PROJECT, name), name)


@pytest.mark.parametrize("name", load_table(PROJECT).built_by("spack"))
def test_a_lock_is_what_spack_makes_of_the_environment(found: spack.Spack, name: str) -> None:
    base = spack_environment.provide_base(PROJECT, name)
    made = spack_environment.concretize(PROJECT, found, base, name)
    kept = spack_environment.lock_path(PROJECT, name).read_text()
    # Another Spack may call the same thing by another hash.
    assert spack_environment.difference(kept, made) in (
        ["no change"],
        ["the same packages, built from changed recipes"],
    )


def site(folder: Path, mpi: str, prefix: Path, variants: str, upstream: Path) -> Path:
    """Write the configuration of a machine that has gcc, make and one MPI under a prefix."""
    version = subprocess.run(
        ["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True
    ).stdout.strip()
    implementation = MPIS[mpi][0].removeprefix(f"{mpi}-")
    mpi_spec = f"{mpi}@={implementation} ~fortran {variants}".strip()
    compilers = {"c": "/usr/bin/gcc"}
    packages: dict[str, Any] = {
        "gcc": {
            "externals": [{
                "spec": f"gcc@={version} languages=c", "prefix": "/usr",
                "extra_attributes": {"compilers": compilers},
            }],
            "buildable": False,
        },
        "gmake": {"externals": [{"spec": "gmake@=4.3", "prefix": "/usr"}], "buildable": False},
        mpi: {"externals": [{"spec": mpi_spec, "prefix": str(prefix)}], "buildable": False},
        "mpi": {"buildable": False, "require": [mpi]},
    }  # fmt: skip
    folder.mkdir(parents=True)
    content = {
        "packages": packages,
        "repos": {
            "builtin": str(upstream / "repos/spack_repo/builtin"),
            "wyeast": str(PROJECT / "spack_repo/wyeast"),
        },
        "config": {"install_tree": {"root": str(folder.parent / "software")}},
        "mirrors": {"carried": {"url": spack_mirror.folder(PROJECT).as_uri(), "binary": False}},
    }
    for section, value in content.items():
        (folder / f"{section}.yaml").write_text(yaml.safe_dump({section: value}))
    return folder


def run_spack(
    found: spack.Spack, *words: str, **variables: str
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    solver = str(spack.folder(PROJECT) / "solver")
    return subprocess.run(
        [str(found.command), *words],
        capture_output=True, text=True, timeout=1800,
        env={**os.environ, "SPACK_DISABLE_LOCAL_CONFIG": "1", "PYTHONPATH": solver,
             "SPACK_USER_CACHE_PATH": str(spack.folder(PROJECT) / "cache"),
             "SPACK_PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1", **variables},
    )  # fmt: skip


def environment_of(
    folder: Path, found: spack.Spack, mpi: str, prefix: Path, source: Path | None
) -> tuple[str, ...]:
    """Make an environment of our programs; return the words with which Spack is told of it.

    They are built from a checkout's `source`, or without one from a release's archive.
    """
    scope = site(folder / "site", mpi, prefix, MPIS[mpi][1], found.packages)
    environment = folder / "environment"
    environment.mkdir()
    released = json.loads((PROJECT / spack_mirror.RELEASES).read_text())
    version = "develop" if source else next(iter(released))
    content: dict[str, Any] = {
        # Here is no BLAS that Spack is told of.
        "specs": [f"wyeast-benchmarks@={version} ~blas"],
        "concretizer": {"reuse": False}, "view": False,
    }  # fmt: skip
    if source:
        content["develop"] = {
            "wyeast-benchmarks": {"spec": "wyeast-benchmarks@=develop", "path": str(source)}
        }
    (environment / "spack.yaml").write_text(yaml.safe_dump({"spack": content}))
    return "-C", str(scope), "-e", str(environment)


def installed_in(found: spack.Spack, words: tuple[str, ...]) -> Path:
    """Return where an environment's programs are installed."""
    place = run_spack(found, *words, "location", "-i", "wyeast-benchmarks")
    return Path(place.stdout.strip()) / "bin"


@pytest.mark.parametrize("origin", ["checkout", "release"])
def test_our_programs_are_installed_against_the_mpi_asked_for(
    tmp_path: Path, found: spack.Spack, origin: str
) -> None:
    prefixes = {mpi: bare_mpi.install(PROJECT, MPIS[mpi][0]) for mpi in MPIS}
    source = None
    if origin == "checkout":
        # Both are built from one folder, as a user's are.
        source = tmp_path / "checkout" / "benchmarks"
        shutil.copytree(PROJECT / "benchmarks", source, ignore=shutil.ignore_patterns("build"))
    installed = {}
    for mpi, prefix in prefixes.items():
        words = environment_of(tmp_path / mpi, found, mpi, prefix, source)
        done = run_spack(found, *words, "install", "--test=root", "--show-log-on-error")
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        installed[mpi] = installed_in(found, words)
    for mpi, folder in installed.items():
        programs = sorted(folder.iterdir())
        assert len(programs) > 5
        linkage.check(programs, prefixes[mpi])
        other = next(prefix for name, prefix in prefixes.items() if name != mpi)
        with pytest.raises(linkage.WrongLibrary, match="not to the MPI under"):
            linkage.check(programs, other)


def test_a_cache_in_a_registry_installs_without_building(
    tmp_path: Path, found: spack.Spack
) -> None:
    prefix = bare_mpi.install(PROJECT, MPIS["openmpi"][0])
    words = environment_of(tmp_path / "user", found, "openmpi", prefix, None)

    def do(*command: str) -> str:
        done = run_spack(found, *words, *command)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    do("install", "--show-log-on-error")
    folder = installed_in(found, words)
    built = {path.name for path in folder.iterdir()}
    with travelling.plainly_served(tmp_path / "registry") as port:
        do("mirror", "add", "--unsigned", "cache", f"oci+http://127.0.0.1:{port}/wyeast")
        do("buildcache", "push", "--unsigned", "cache")
        do("uninstall", "--all", "--force", "--yes-to-all")
        assert not folder.exists()
        do("install", "--cache-only", "--no-check-signature")
    assert folder == installed_in(found, words)
    assert {path.name for path in folder.iterdir()} == built and "pingpong" in built
    linkage.check(sorted(folder.iterdir()), prefix)


def test_sources_of_a_folder_are_built_and_what_was_built_is_kept(
    tmp_path: Path, found: spack.Spack
) -> None:
    prefix = bare_mpi.install(PROJECT, MPIS["openmpi"][0])
    words = environment_of(tmp_path / "user", found, "openmpi", prefix, None)

    def do(*command: str) -> str:
        done = run_spack(found, *words, *command)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    do("concretize")
    needed = recipes.needed(PROJECT, found, (tmp_path / "user/environment/spack.lock").read_text())
    asked = {source.package: source for source in needed}
    assert asked.keys() == {"wyeast-benchmarks", "compiler-wrapper"}
    folder, mirror, built = (tmp_path / name for name in ("sources", "mirror", "built"))
    for number, source in enumerate(needed):
        # Under names that say nothing, as somebody may have them.
        (folder / str(number)).mkdir(parents=True)
        shutil.copy(spack_mirror.folder(PROJECT) / str(source.place), folder / str(number) / "file")
    built.mkdir()
    scope = tmp_path / "user/site"
    cache = {**spack_environment.CACHE["built"], "url": built.as_uri()}
    (scope / "mirrors.yaml").write_text(yaml.safe_dump({
        "mirrors": {"built": cache, "given": {"url": mirror.as_uri(), "binary": False}}
    }))  # fmt: skip
    # No address of upstream's is asked.
    (scope / "config.yaml").write_text(yaml.safe_dump({
        "config": {"install_tree": {"root": str(tmp_path / "software")},
                   "source_cache": str(tmp_path / "cache")}
    }))  # fmt: skip
    rows = given.look([needed], SourceFolder(folder), mirror)
    assert [row.where for row in rows] == ["have", "have"]
    do("install", "--show-log-on-error")
    programs = {path.name for path in installed_in(found, words).iterdir()}
    assert "pingpong" in programs
    # Once more, without any source: what was built is taken.
    do("uninstall", "--all", "--force", "--yes-to-all")
    shutil.rmtree(mirror)
    shutil.rmtree(tmp_path / "cache")
    do("install", "--no-check-signature")
    assert {path.name for path in installed_in(found, words).iterdir()} == programs
    linkage.check(sorted(installed_in(found, words).iterdir()), prefix)


def test_a_site_that_is_not_there_is_said(tmp_path: Path, found: spack.Spack) -> None:
    shutil.copy(PROJECT / spack_environment.ENVIRONMENT, tmp_path)
    for part in spack_environment.PARTS:
        (tmp_path / part).symlink_to(PROJECT / part)
    scope = tmp_path / "scope"
    scope.mkdir()
    builtin = str(found.packages / "repos/spack_repo/builtin")
    (scope / "repos.yaml").write_text(yaml.safe_dump({"repos": {"builtin": builtin}}))

    def externals(**variables: str) -> subprocess.CompletedProcess[str]:
        words = ("-C", str(scope), "-e", str(tmp_path), "config", "get", "packages")
        return run_spack(found, *words, **variables)

    wrong = externals(WYEAST_SITE="virtaul")
    assert wrong.returncode != 0 and "site_configs/virtaul/spack" in wrong.stdout + wrong.stderr
    assert "debian-mpi" in externals(WYEAST_SITE="virtual").stdout
    without = externals()
    assert without.returncode == 0 and "debian-mpi" not in without.stdout


def test_an_environment_that_was_copied_is_read_without_variables(
    tmp_path: Path, found: spack.Spack
) -> None:
    """As Ramble does it: spack.yaml alone, in another folder, read by Spack without variables."""
    name = "mpich-4.0.2-source-ucx-spack"
    copied = tmp_path / "copied"
    copied.mkdir()
    shutil.copy(standalone.write(PROJECT, name, "virtual", tmp_path / "made"), copied)
    scope = tmp_path / "scope"
    scope.mkdir()
    builtin = str(found.packages / "repos/spack_repo/builtin")
    (scope / "repos.yaml").write_text(yaml.safe_dump({"repos": {"builtin": builtin}}))

    def asked(*words: str, folder: Path = copied) -> str:
        done = run_spack(found, "-C", str(scope), "-e", str(folder), *words)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    roots = asked("find")
    assert all(root in roots for root in ("mpich@4.0.2-debian", "hpl-hpcc@", "wyeast-benchmarks@"))
    packages = yaml.safe_load(asked("config", "get", "packages"))["packages"]
    # Of the site, and of what it says of the option.
    assert packages["gcc"]["externals"] and packages["ucx"]["externals"]

    # What Spack finds on this machine is the environment's, beside it or in it, and never the
    # checkout's, which may be somebody else's.
    made = standalone.write(PROJECT, "mpich-4.0.2-spack", "", tmp_path / "made")
    shutil.copy(made, copied)
    text, checkout = made.read_text(), sorted((PROJECT / "spack_repo/found").iterdir())
    for folder in (made.parent, copied):
        assert "gcc@" in asked("compiler", "find", folder=folder)
    assert (made.parent / "found/packages.yaml").is_file() and made.read_text() == text
    assert yaml.safe_load((copied / "spack.yaml").read_text())["spack"]["packages"]["gcc"]
    assert sorted((PROJECT / "spack_repo/found").iterdir()) == checkout
    links = set((PROJECT / "benchmarks").glob("build-*"))
    asked("concretize")
    asked("stage", "wyeast-benchmarks")
    assert set((PROJECT / "benchmarks").glob("build-*")) == links
    assert [path.is_symlink() for path in (made.parent / "found").glob("build-*")] == [True]


#: What of the checkout plain Spack reads and may write to.
PLAIN = ("spack.yaml", ".gitignore", "spack_repo", "site_configs", "benchmarks")


@pytest.mark.parametrize("site", ["virtual", ""])
def test_plain_spack_leaves_the_checkout_s_files_as_they_are(
    tmp_path: Path, found: spack.Spack, site: str
) -> None:
    root = tmp_path / "checkout"

    def git(*words: str, where: Path = root) -> str:
        return subprocess.run(
            ["git", *words], cwd=where, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    for name in git("ls-files", *PLAIN, where=PROJECT).splitlines():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PROJECT / name, root / name)
    git("init", "-q")
    git("add", "--all")
    # A user's own configuration; with -C Spack would write there, and not where a user's does.
    user = tmp_path / "user"
    user.mkdir()
    (user / "repos.yaml").write_text(yaml.safe_dump(
        {"repos": {"builtin": str(found.packages / "repos/spack_repo/builtin")}}
    ))  # fmt: skip
    (user / "config.yaml").write_text(yaml.safe_dump({"config": {
        "install_tree": {"root": str(tmp_path / "software")},
        "build_stage": [str(tmp_path / "stage")],
    }}))  # fmt: skip
    variables = {
        **os.environ, "SPACK_USER_CONFIG_PATH": str(user), "SPACK_SYSTEM_CONFIG_PATH": "/nowhere",
        "SPACK_USER_CACHE_PATH": str(spack.folder(PROJECT) / "cache"),
        "SPACK_PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(spack.folder(PROJECT) / "solver"),
        "WYEAST_SITE": site, "WYEAST_IMPLEMENTATION": "mpich-4.0.2-spack",
    }  # fmt: skip

    def do(*command: str) -> str:
        done = subprocess.run(
            [str(found.command), "-e", ".", *command], capture_output=True, text=True,
            timeout=1800, cwd=root, env=variables,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    if site:
        do("concretize")
        do("install", "--fake", "--no-cache")
        assert (root / "spack.lock").is_file()
    else:
        # Where no site names a compiler, it is by this that Spack finds one, before it concretizes.
        do("compiler", "find")
        assert "gcc" in do("compiler", "list")
        assert (root / "spack_repo/found" / "packages.yaml").is_file()
    assert git("diff") == "" and git("ls-files", "--others", "--exclude-standard") == ""


@pytest.mark.parametrize("name", spack_environment.of_the_distribution(load_table(PROJECT)))
def test_an_image_runs_checks(found: spack.Spack, name: str) -> None:
    build.build(PROJECT, [name], "mmdebstrap", force=False)
    image = images.verify(PROJECT, name)
    assert image.stat().st_size < 150e6
    labels = images.labels(image)
    assert labels["org.wyeast.builder"] == "spack"
    script = 'for name; do command -v "$name" >/dev/null || echo "$name"; done'
    missing = call("exec", *exec_options(), image, "sh", "-c", script, "_", *programs_of_checks())
    assert missing == ""
    done = subprocess.run(
        ["make", "-s", "run", "ROUNDS=1", f"IMAGES={name}",
         "CHECKS=Preflight|PointToPoint|Linpack"],
        cwd=PROJECT, capture_output=True, text=True, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
