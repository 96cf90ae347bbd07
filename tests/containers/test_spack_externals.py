"""What Spack takes from a machine is proven before anything is built with it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from containers.apptainer import Admitted, state_of
from containers.spack import environment as spack_environment
from containers.spack import external_proof, externals
from containers.spack.external_proof import External
from containers.spack.recipes import SpackError
from tests.containers import travelling
from tests.containers.test_spack import NAMES, PROJECT

real = pytest.mark.real
#: The library that is made up, for the table as if it were libnuma.
PC = (
    "Name: numa\nDescription: x\nVersion: 1\nLibs: -L{prefix}/lib -lnuma\n"
    "Cflags: -I{prefix}/include\n"
)
MENDS = "add {package} to packages.build"


def said(external: External) -> str | None:
    """What is said of an external that cannot be used; None of one that can."""
    found = list(external_proof.sentences([external], "packages.yaml", MENDS))
    return found[0] if found else None


@pytest.fixture
def numa(tmp_path: Path) -> External:
    """A prefix with a library, its header and what pkg-config and libtool know of it."""
    prefix = tmp_path / "numa"
    for folder in ("include", "lib/pkgconfig"):
        (prefix / folder).mkdir(parents=True)
    (prefix / "include/numa.h").write_text("int numa_available(void);\n")
    source = tmp_path / "numa.c"
    source.write_text("int numa_available(void) { return 0; }\n")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", str(source), "-o", str(prefix / "lib/libnuma.so")],
        check=True, timeout=60,
    )  # fmt: skip
    (prefix / "lib/pkgconfig/numa.pc").write_text(PC.format(prefix=prefix) + "Libs.private: -lm\n")
    (prefix / "lib/libnuma.la").write_text("# libtool\ndependency_libs=' -lm'\n")
    return External("numactl", "2.0.16", str(prefix))


def add(file: str, text: str) -> Callable[[Path], object]:
    def change(prefix: Path) -> None:
        (prefix / file).write_text(PC.format(prefix=prefix) + text if file.endswith("pc") else text)

    return change


@real
def test_an_external_with_all_that_building_needs_is_not_spoken_of(numa: External) -> None:
    assert said(numa) is None
    # Not linked to, it is only started, or read.
    shutil.rmtree(Path(numa.prefix, "include"))
    assert said(External(numa.name, numa.version, numa.prefix, linked=False)) is None


@real
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (shutil.rmtree, "is no folder here: correct it in packages.yaml"),
        (lambda prefix: (prefix / "include/numa.h").unlink(),
         "has no header numa.h: add libnuma-dev to packages.build"),
        (lambda prefix: (prefix / "include/numa.h").write_text("#include <no/such.h>\n"),
         "has no header numa.h: add libnuma-dev"),
        (lambda prefix: (prefix / "lib/libnuma.so").rename(prefix / "lib/libnuma.so.1"),
         "lacks libnuma, which programs are linked to: add libnuma-dev to packages.build"),
        (lambda prefix: (prefix / "lib/libnuma.so").write_text("no library"),
         "cannot be linked to: "),
        # What a library of a fabric needed, and the base did not have.
        (add("lib/pkgconfig/numa.pc", "Libs.private: -lnowhere -lrdmacm\n"),
         "which numa.pc names for those who link it statically: add librdmacm-dev"),
        (add("lib/pkgconfig/numa.pc", "Requires.private: nowhere\n"),
         "is unknown to pkg-config: Package 'nowhere', required by 'numa', not found: correct it"),
        (add("lib/libnuma.la", "dependency_libs=' -L/usr/lib -lpsm2'\n"),
         "lib/libnuma.la names, so that libtool links to it: add libpsm2-dev"),
        (add("lib/libnuma.la", "dependency_libs=' /nowhere/libibverbs.la'\n"),
         "names /nowhere/libibverbs.la, which is not there: add libibverbs-dev"),
    ],
    ids=["prefix", "header", "header's header", "library", "no library", "private", "requires",
         "libtool", "libtool's library"],
)  # fmt: skip
def test_what_an_external_lacks_is_said_with_what_mends_it(
    numa: External, change: Callable[[Path], object], words: str
) -> None:
    change(Path(numa.prefix))
    sentence = said(numa)
    assert sentence is not None and "\n" not in sentence
    assert sentence.startswith(f"numactl 2.0.16 at {numa.prefix}, an external, ")
    assert words in sentence


@pytest.fixture
def mpi(tmp_path: Path) -> External:
    """A prefix of an MPI whose wrapper is as one of MPICH's."""
    prefix = tmp_path / "mpi"
    for folder in ("bin", "include", "lib"):
        (prefix / folder).mkdir(parents=True)
    (prefix / "include/mpi.h").write_text("int MPI_Init(int *, char ***);\n")
    source = tmp_path / "mpi.c"
    source.write_text("int MPI_Init(int *a, char ***b) { return a == 0 && b == 0; }\n")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", str(source), "-o", str(prefix / "lib/libmpi.so")],
        check=True, timeout=60,
    )  # fmt: skip
    (prefix / "bin/mpicc").write_text(
        f'#!/bin/sh\nexec gcc -I{prefix}/include "$@" -L{prefix}/lib -lmpi\n'
    )
    (prefix / "bin/mpicc").chmod(0o755)
    return External("mpich", "4.0.2", str(prefix))


@real
@pytest.mark.parametrize(
    ("removed", "words"),
    [
        (None, None),
        ("bin/mpicc", "has no bin/mpicc, by which programs are compiled for it: add libmpich-dev"),
        ("include/mpi.h", "that finds no mpi.h: add libmpich-dev"),
        ("lib/libmpi.so", "lacks libmpi, which "),
    ],
)
def test_an_mpi_is_proven_by_its_wrapper(
    mpi: External, removed: str | None, words: str | None
) -> None:
    if removed:
        Path(mpi.prefix, removed).unlink()
    sentence = said(mpi)
    assert (sentence is None) if words is None else (sentence is not None and words in sentence)


@real
def test_compilers_and_programs_are_started(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    tool = External("gmake", "4.3", str(tmp_path), linked=False)
    assert "has no program bin/make or bin/gmake" in str(said(tool))
    (tmp_path / "bin/gmake").symlink_to(sys.executable)
    assert said(tool) is None
    works = External("gcc", "12", "/usr", False, {"c": str(shutil.which("gcc"))})
    assert said(works) is None
    wrong = tmp_path / "gfortran"
    assert f"has no {wrong}, its compiler for fortran" in str(
        said(External("gcc", "12", "/usr", False, {"fortran": str(wrong)}))
    )
    wrong.write_text("#!/bin/sh\necho 'f951: fatal error: of its own' >&2; exit 1\n")
    wrong.chmod(0o755)
    assert "with " + str(wrong) + ": f951: fatal error: of its own" in str(
        said(External("gcc", "12", "/usr", False, {"fortran": str(wrong)}))
    )


def test_a_compiler_that_does_not_end_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "gcc"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setattr(external_proof, "PATIENCE_S", 0.3)
    sentence = said(External("gcc", "12", "/usr", False, {"c": str(slow)}))
    assert f"does not let {slow} end within 0.3 s" in str(sentence)


def test_it_runs_in_a_base_with_nothing_but_python(tmp_path: Path) -> None:
    asked = {
        "externals": [{"name": "hwloc", "version": "2", "prefix": str(tmp_path / "nowhere")}],
        "setting": "s", "packages": "p {package}",
    }  # fmt: skip
    text = Path(external_proof.__file__).read_text()

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", "-", json.dumps(asked)],
            input=text, capture_output=True, text=True, cwd=tmp_path, timeout=120,
        )  # fmt: skip

    done = run()
    assert (done.returncode, done.stderr) == (1, ""), done.stderr
    assert done.stdout.startswith(f"hwloc 2 at {tmp_path}/nowhere, an external, is no folder here")
    asked["externals"] = []
    done = run()
    assert (done.returncode, done.stdout) == (0, "")


def test_a_lock_says_what_it_takes_from_the_base() -> None:
    name = "openmpi-4.1.4-spack"
    found = {
        one.name: one
        for one in externals.externals_of(spack_environment.lock_path(PROJECT, name).read_text())
    }
    assert found["openmpi"].prefix == f"{externals.PREFIXES}/openmpi-4.1.4"
    assert found["openmpi"].linked and found["openblas"].linked and not found["gmake"].linked
    assert found["gcc"].compilers["fortran"] == "/usr/bin/gfortran"
    assert "wyeast-benchmarks" not in found


class _Base:
    """A base in which the proof says something."""

    def __init__(self, code: int, out: str, error: str = "") -> None:
        self.answer = code, out, error
        self.words: list[str] = []

    def __call__(self, words: list[str], patience_s: float, text: str) -> object:
        assert "def prove(" in text
        self.words = [str(word) for word in words]
        return subprocess.CompletedProcess(words, *self.answer)


def test_what_the_base_lacks_is_said_for_the_implementation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = travelling.new_checkout(tmp_path / "root")
    for name in (spack_environment.LOCKS, "site_configs"):
        (root / name).symlink_to(PROJECT / name)
    (tmp_path / "base.sqfs").write_text("a base")
    admitted = Admitted(tmp_path / "base.sqfs", state_of(tmp_path / "base.sqfs"))
    base = _Base(1, "openblas 0.3.21 at /usr, an external, lacks libopenblas: mend\n")
    monkeypatch.setattr(externals, "run_apart", base)
    with pytest.raises(SpackError, match=rf"^{NAMES[0]}: openblas 0\.3\.21 .*: mend$"):
        externals.prove(root, admitted, NAMES[0])
    asked = json.loads(base.words[-1])
    assert {one["name"] for one in asked["externals"]} >= {"gcc", "openblas"}
    assert f"packages.build of {NAMES[0]}" in asked["packages"]
    monkeypatch.setattr(externals, "run_apart", _Base(0, ""))
    externals.prove(root, admitted, NAMES[0])
    monkeypatch.setattr(externals, "run_apart", _Base(127, "", "python3: not found"))
    with pytest.raises(SpackError, match=r"cannot be proven in .*base\.sqfs: python3: not found"):
        externals.prove(root, admitted, NAMES[0])

    def endless(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("apptainer", 1)

    monkeypatch.setattr(externals, "run_apart", endless)
    with pytest.raises(SpackError, match=r"were not proven within 300 s"):
        externals.prove(root, admitted, NAMES[0])


def test_what_plain_spack_takes_from_a_site_is_proven_here(tmp_path: Path) -> None:
    with pytest.raises(SpackError, match=r"no spack\.lock .*mine: run spack -e \. concretize"):
        externals.prove_site(tmp_path, "mine")
    lock = json.loads(spack_environment.lock_path(PROJECT, "openmpi-4.1.4-spack").read_text())
    lock["concrete_specs"] = {
        key: value for key, value in lock["concrete_specs"].items()
        if value["name"] in ("openmpi", "glibc")
    }  # fmt: skip
    lock["roots"] = []
    (tmp_path / "spack.lock").write_text(json.dumps(lock))
    with pytest.raises(SpackError) as raised:
        externals.prove_site(tmp_path, "mine")
    (sentence,) = str(raised.value).splitlines()
    assert sentence.startswith("mine: openmpi 4.1.4 at /opt/debian-mpi/openmpi-4.1.4, an external")
    assert "site_configs/mine/spack/packages.yaml" in sentence
