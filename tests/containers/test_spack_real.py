"""With a real Spack: locks, installations on two MPIs, an image and a check in it.

These are the only tests that are left out where what they need is missing: Spack is in no package
registry. SPACK_ROOT names one, or `make spack` provides one.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from containers import build, images, spack, spack_environment, spack_mirror
from containers.bases import bases_of
from containers.build import Progress, ensure_bases
from containers.sources import fetch_archive, load_sources
from containers.table import load_table
from spack_repo.wyeast import linkage
from tests import bare_mpi

PROJECT = Path(__file__).resolve().parents[2]
NAME = "openmpi-4.1.4-spack"
MPIS = {"openmpi": ("openmpi-5.0.11", "~romio"), "mpich": ("mpich-5.0.2", "")}

pytestmark = [
    pytest.mark.real,
    pytest.mark.spack,
    pytest.mark.skipif(
        spack.find(PROJECT) is None, reason="needs Spack: set SPACK_ROOT, or run make spack"
    ),
]


@pytest.fixture(scope="module")
def found() -> spack.Spack:
    provided = spack.provide(PROJECT)
    pinned = load_sources(PROJECT)
    spack_mirror.fill(
        PROJECT,
        [fetch_archive(source, PROJECT / ".wyeast", pinned.debian.suite)
         for source in pinned.archives.values()],
    )  # fmt: skip
    spack_mirror.releases(PROJECT)
    return provided


def test_the_lock_is_what_spack_makes_of_the_environment(found: spack.Spack) -> None:
    table = load_table(PROJECT)
    base = bases_of(PROJECT, table, table.resolve(NAME), load_sources(PROJECT), "mmdebstrap")[0]
    ensure_bases([base], PROJECT, Progress())
    made = spack_environment.concretize(PROJECT, found, base.path(PROJECT / ".wyeast"), NAME)
    kept = spack_environment.lock_path(PROJECT, NAME).read_text()
    # Another Spack may call the same thing by another hash.
    assert spack_environment.difference(kept, made) in (
        ["no change"],
        ["the same packages, built by changed recipes"],
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
    found: spack.Spack, state: Path, *words: str
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    solver = str(spack.folder(PROJECT) / "solver")
    return subprocess.run(
        [str(found.command), *words],
        capture_output=True, text=True, timeout=1800,
        env={**os.environ, "SPACK_DISABLE_LOCAL_CONFIG": "1", "PYTHONPATH": solver,
             "SPACK_USER_CACHE_PATH": str(spack.folder(PROJECT) / "cache"),
             "SPACK_PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


@pytest.mark.parametrize("origin", ["checkout", "release"])
def test_our_programs_are_installed_against_the_mpi_asked_for(
    tmp_path: Path, found: spack.Spack, origin: str
) -> None:
    prefixes = {mpi: bare_mpi.install(PROJECT, MPIS[mpi][0]) for mpi in MPIS}
    installed = {}
    for mpi, prefix in prefixes.items():
        scope = site(tmp_path / mpi / "site", mpi, prefix, MPIS[mpi][1], found.packages)
        environment = tmp_path / mpi / "environment"
        environment.mkdir()
        version = "develop" if origin == "checkout" else "0.1.0"
        content: dict[str, Any] = {
            "specs": [f"wyeast-benchmarks@={version}"],
            "concretizer": {"reuse": False}, "view": False,
        }  # fmt: skip
        if origin == "checkout":
            # Both are built from one folder, as a user's are.
            source = tmp_path / "checkout" / "benchmarks"
            if not source.exists():
                ignored = shutil.ignore_patterns("build")
                shutil.copytree(PROJECT / "benchmarks", source, ignore=ignored)
            content["develop"] = {
                "wyeast-benchmarks": {"spec": "wyeast-benchmarks@=develop", "path": str(source)}
            }
        (environment / "spack.yaml").write_text(yaml.safe_dump({"spack": content}))
        words = ("-C", str(scope), "-e", str(environment))
        done = run_spack(found, tmp_path, *words, "install", "--test=root", "--show-log-on-error")
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        place = run_spack(found, tmp_path, *words, "location", "-i", "wyeast-benchmarks")
        installed[mpi] = Path(place.stdout.strip()) / "bin"
    for mpi, folder in installed.items():
        programs = sorted(folder.iterdir())
        assert len(programs) > 5
        linkage.check(programs, prefixes[mpi], ["hpl_dat", "profiled"])
        other = next(prefix for name, prefix in prefixes.items() if name != mpi)
        with pytest.raises(linkage.WrongLibrary, match="not to the MPI under"):
            linkage.check(programs, other, ["hpl_dat", "profiled"])


def test_an_image_runs_a_check(found: spack.Spack) -> None:
    build.build(PROJECT, [NAME], "mmdebstrap", force=False)
    image = images.verify(PROJECT, NAME)
    assert image.stat().st_size < 150e6
    labels = images.labels(image)
    assert labels["org.wyeast.builder"] == "spack"
    done = subprocess.run(
        ["make", "-s", "run", "ROUNDS=1", "CHECKS=Preflight", f"IMAGES={NAME}"],
        cwd=PROJECT, capture_output=True, text=True, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
