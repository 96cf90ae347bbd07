"""What Spack's images have and say: the checks' programs, labels, which MPI is linked to."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from containers import build
from containers.apptainer import Admitted
from containers.commands import StepError
from containers.spack import environment as spack_environment
from containers.spack import image as spack_image
from containers.spack import lock as spack_lock
from containers.spack import mirror as spack_mirror
from containers.spack import recipes
from containers.spack import tool as spack
from containers.table import TableError, load_table, parse_table
from spack_repo.wyeast import linkage
from tests.containers import travelling
from tests.containers.test_spack import LOCKED, NAMES, PROJECT, chosen, name_and_version

FOUND = spack.Spack(Path("/nowhere/spack"), Path("/nowhere/packages"), "1.1.0")


def packages(name: str) -> dict[str, str]:
    """What spack.yaml asks for beside the MPI: package → specification."""
    return {name_and_version(word)[0]: word for word in chosen(name, "programs")}


# Programs.


def make_variable(name: str) -> set[str]:
    done = subprocess.run(
        ["make", "-s", "--no-print-directory", "-C", str(PROJECT / "benchmarks"),
         f"--eval=words: ; @echo $({name})", "words"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


def programs_of_checks() -> set[str]:
    """Every program that a check of MPI names, NPB's own apart, which are made up of two names."""
    found = set()
    for path in (PROJECT / "reframe_checks").rglob("*.py"):
        if path.name == "pvm.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assign):
                named = {getattr(one, key, "") for one in node.targets for key in ("id", "attr")}
                if "program" not in named:
                    continue
                whole = node.value
                parts = [whole.body, whole.orelse] if isinstance(whole, ast.IfExp) else [whole]
                found |= {p.value for p in parts if isinstance(p, ast.Constant)}
    return {str(name) for name in found} | {"NPmpi", "hpl_dat", "profiled"}


@pytest.mark.parametrize("name", NAMES)
def test_every_image_has_the_programs_that_the_checks_run(name: str) -> None:
    asked = packages(name)
    assert len(asked.keys() & {"hpl", "hpl-hpcc"}) == 1 and "netpipe" in asked
    there = make_variable("PROGRAMS") | {"xhpl", "NPmpi", "NPtcp"}
    if "+blas" in asked["wyeast-benchmarks"].split():
        there |= make_variable("BLAS_PROGRAMS")
    needed = programs_of_checks()
    assert {"dgemm", "linpack", "pingpong", "collective", "xhpl"} <= needed
    assert needed <= there


def test_the_recipe_s_blas_programs_are_the_makefile_s_and_of_no_other_recipe() -> None:
    folder = PROJECT / "spack_repo/wyeast/packages"
    recipe = (folder / "wyeast_benchmarks/package.py").read_text()
    (words,) = re.findall(r"with_blas = (\(.*\))", recipe)
    assert set(ast.literal_eval(words)) == make_variable("BLAS_PROGRAMS")
    # Two packages with a program of one name could not be linked into one folder.
    assert "install-blas" in recipe
    assert "install-blas" not in (folder / "hpl_hpcc/package.py").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_npb_has_what_the_check_runs(name: str) -> None:
    asked = packages(name).get("npb")
    if asked is None:
        return
    values: dict[str, Any] = {}
    for node in ast.parse((PROJECT / "reframe_checks/nas.py").read_text()).body:
        if isinstance(node, ast.Assign):
            target = ast.unparse(node.targets[0])
            if target in ("BENCHMARKS", "SQUARE", "QUICK", "PAPER"):
                values[target] = eval(ast.unparse(node.value))
    words = dict(word.split("=") for word in asked.split()[1:])
    of_npb = set(values["BENCHMARKS"]) - set(values["SQUARE"])
    assert {one.lower() for one in of_npb} <= set(words["names"].split(","))
    classes = {size for size, _ in [*values["QUICK"], *values["PAPER"]]}
    assert classes == {"S", "W", "B"}
    assert classes <= set(words["classes"].split(","))


# Labels.


def recipe_of(name: str) -> spack_image.SpackRecipe:
    recipe = build.recipe_of(PROJECT, name, "mmdebstrap")
    assert isinstance(recipe, spack_image.SpackRecipe)
    return recipe


@pytest.mark.parametrize("name", LOCKED)
def test_labels_say_which_programs_of_others_there_are(name: str, tmp_path: Path) -> None:
    labels, asked = recipe_of(name).labels(), packages(name)
    assert (labels.get("org.wyeast.nas") == "official") == ("npb" in asked)
    imb = "intel-mpi-benchmarks" in asked
    assert labels.get("org.wyeast.foreign_programs") == ("IMB-MPI1" if imb else None)
    assert not imb or "+mpi1" in asked["intel-mpi-benchmarks"].split()
    hpl = name_and_version(asked["hpl"])[1] if "hpl" in asked else "2.0"
    assert labels["org.wyeast.hpl"] == hpl
    implementation = load_table(PROJECT).resolve(name)
    assert implementation.labels().items() <= labels.items()
    # What the build writes into the image.
    spack_image.stage(recipe_of(name), tmp_path, FOUND, "2026-01-01T00:00:00Z")
    lines = (tmp_path / "wyeast/build/labels").read_text().splitlines()
    assert dict(line.split(" ", 1) for line in lines) == labels


def test_an_image_without_its_label_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of("mpich-5.0.1-spack")
    labels = recipe.labels()
    del labels["org.wyeast.nas"]
    monkeypatch.setattr("containers.images.labels_inside", lambda image: labels)
    manifest = {"inputs_sha256": "x", "debian_packages": {}}
    monkeypatch.setattr("containers.build.call", lambda *words: json.dumps(manifest))
    made = Admitted(Path("new.sif"), ())
    with pytest.raises(StepError, match="labels do not match"):
        build.check_content(made, recipe, "x", tmp_path / "log")
    labels |= recipe.labels()
    assert build.check_content(made, recipe, "x", tmp_path / "log") == labels


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("intel-mpi-2021.18-spack", "Intel(R) MPI Library 2021.18 for Linux* OS"),
        ("mvapich2-2.3.7-1-spack", "MVAPICH2 Version      :\t2.3.7"),
        ("mpich-5.0.1-spack", "MPICH Version:      5.0.1"),
        ("openmpi-5.0.10-spack", "Open MPI v5.0.10, package: Open MPI root@host"),
    ],
)
def test_the_version_is_what_the_library_says(name: str, said: str) -> None:
    """Preflight compares them; Spack may call the same version by another name."""
    found = load_table(PROJECT).resolve(name)
    match = re.match(str(found.says), said)
    assert match and match[1] == found.version == found.labels()["org.wyeast.version"]


def test_spack_s_name_of_a_version_is_for_its_images_alone() -> None:
    text = (PROJECT / "containers/implementations.yaml").read_text()
    wrong = text.replace("    version: 5.0.2\n", "    version: 5.0.2\n    spack_version: 5.0.2\n")
    assert wrong != text
    with pytest.raises(TableError, match="`spack_version` belongs to `builder: spack`"):
        parse_table(wrong)


# What the programs are linked to.


def program(path: Path, first: bytes = b"\x7fELF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(first)
    path.chmod(0o755)
    return path


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """An MPI, and packages of others with compiled programs, a script and data."""
    (tmp_path / "mpi/lib").mkdir(parents=True)
    (tmp_path / "mpi/lib/libmpi.so.12").touch()
    (tmp_path / "other/lib").mkdir(parents=True)
    (tmp_path / "other/lib/libmpi.so.40").touch()
    program(tmp_path / "osu/libexec/mpi/osu_latency")
    program(tmp_path / "osu/libexec/mpi/get_local_rank", b"#!/bin/sh\n")
    program(tmp_path / "hpl/bin/xhpl")
    program(tmp_path / "netpipe/bin/NPmpi")
    program(tmp_path / "netpipe/bin/NPtcp")
    (tmp_path / "hpl/bin/HPL.dat").write_text("HPLinpack benchmark input file\n")

    def ldd(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        name = Path(command[1]).name
        library = {"NPtcp": "libc.so.6 => /lib/libc.so.6 (0x1)"}.get(
            name, f"libmpi.so.12 => {tmp_path}/mpi/lib/libmpi.so.12 (0x1)"
        )
        if (tmp_path / f"{name}.wrong").exists():
            library = (tmp_path / f"{name}.wrong").read_text()
        return subprocess.CompletedProcess(command, 0, f"\t{library}\n", "")

    monkeypatch.setattr("subprocess.run", ldd)
    return {name: tmp_path / name for name in ("mpi", "osu", "hpl", "netpipe")}


def lines(prefixes: dict[str, Path]) -> list[str]:
    return [f"{name} {prefix}\n" for name, prefix in prefixes.items()]


def test_programs_of_others_are_proven_too(installed: dict[str, Path]) -> None:
    found = {path.name for path in linkage.prove(lines(installed), "mpi")}
    assert found == {"osu_latency", "get_local_rank", "xhpl", "NPmpi", "NPtcp"}


@pytest.mark.parametrize("name", ["osu_latency", "xhpl", "NPtcp"])
def test_a_program_of_another_mpi_ends_the_build(
    installed: dict[str, Path], tmp_path: Path, name: str
) -> None:
    words = f"libmpi.so.40 => {tmp_path}/other/lib/libmpi.so.40 (0x1)"
    (tmp_path / f"{name}.wrong").write_text(words)
    with pytest.raises(linkage.WrongLibrary, match=f"{name} is linked to .*not to the MPI under"):
        linkage.prove(lines(installed), "mpi")


def test_a_package_without_a_program_or_with_one_without_mpi_ends_the_build(
    installed: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "xhpl.wrong").write_text("libc.so.6 => /lib/libc.so.6 (0x1)")
    with pytest.raises(linkage.WrongLibrary, match="xhpl is linked to no MPI"):
        linkage.prove(lines(installed), "mpi")
    (tmp_path / "hpl/bin/xhpl").unlink()
    with pytest.raises(linkage.WrongLibrary, match="no program is there"):
        linkage.prove(lines(installed), "mpi")


def test_an_installation_without_the_mpi_is_said() -> None:
    done = subprocess.run(
        [sys.executable, PROJECT / "spack_repo/wyeast/linkage.py", "mpich"],
        input="hpl /opt/software/hpl\n", capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "linkage: mpich is not among what is installed: hpl\n"


def test_an_image_has_no_program_that_was_not_proven_before_it_was_stripped() -> None:
    text = (PROJECT / "containers/spack.def").read_text()
    before, proven = text.split("spack_repo/wyeast/linkage.py {{ mpi }}", 1)
    assert "/opt/wyeast/bin" not in before.partition("%post")[2] and "strip " not in before
    assert ">/tmp/programs" in proven and "done </tmp/programs" in proven
    assert proven.count('ln -s "$file"') == 1 and "strip --strip-unneeded" in proven


# A machine with nothing.


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A checkout without bases or Apptainer; what is done to it, step by step."""
    done: list[str] = []
    root = travelling.new_checkout(tmp_path / "root")
    for name in (spack_environment.ENVIRONMENT, spack_environment.LOCKS):
        os.symlink(PROJECT / name, root / name)

    def provide(builds: bool) -> None:
        done.append("Apptainer to build with" if builds else "Apptainer")

    def ensure_bases(bases: list[Any], root: Path, _: object) -> None:
        for base in bases:
            base.path(root / ".wyeast").parent.mkdir(parents=True, exist_ok=True)
            base.path(root / ".wyeast").touch()
            done.append(base.name)

    def run(
        root: Path, found: object, base: Admitted, name: str, environment: Path, *words: str
    ) -> subprocess.CompletedProcess[str]:
        assert base.path.exists(), "Spack runs in it"
        (environment / "spack.lock").write_text('{"_meta": {"file-type": "spack-lockfile"}, '
                                                '"concrete_specs": {}, "roots": []}')  # fmt: skip
        done.append(" ".join(words[:2]))
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr(spack_environment, "provide_apptainer", provide)
    monkeypatch.setattr(spack_environment, "ensure_bases", ensure_bases)
    monkeypatch.setattr(spack_environment, "run", run)
    monkeypatch.setattr(spack, "provide", lambda root: FOUND)
    monkeypatch.setattr(recipes, "needed", lambda root, found, text: [])
    return done


def test_a_mirror_is_made_on_a_machine_without_a_base(steps: list[str], tmp_path: Path) -> None:
    for _ in range(2):
        assert spack_mirror.create(tmp_path / "root", FOUND, NAMES[0]) == []
    # Of the image's bases, the one that it runs on cannot be made without the internet either.
    own = NAMES[0].removesuffix("-spack")
    assert steps == ["Apptainer to build with", "build-spack", f"run-{own}", "mirror create",
                     "Apptainer", "mirror create"]  # fmt: skip


def test_a_lock_is_renewed_on_a_machine_without_a_base(steps: list[str], tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / spack_environment.LOCKS).unlink()
    assert spack_lock.renew(root, [NAMES[0]]) == []
    assert steps == ["Apptainer to build with", "build-spack", "concretize --force"]
