"""The programs built by hand, with the wheels' MPIs installed outside any image."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from containers.table import load_table
from tests.bare_mpi import install
from tests.lanes import BUILDS, SOUND

PROJECT = Path(__file__).resolve().parents[2]
#: Namespaces of its own for a command: what an ordinary user has as the root of one.
UNSHARE = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"])]
#: How many tests at once start ranks (pytest-xdist's workers).
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
#: Has MPICH's ranks leave the processor to those they wait for. Its collective operations in shared
#: memory never do: four ranks on two processors take them for a hundred times as long.
MPICH_WAITS_FOR_OTHERS = {
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    **{
        f"MPIR_CVAR_{operation}_POSIX_INTRA_ALGORITHM": "mpir"
        for operation in ("BARRIER", "BCAST", "REDUCE", "ALLREDUCE")
    },
}
#: The Makefile's own options.
AS_BUILT = "-O2 -g"
#: Is in a build's folder: how it was compiled, and of what each object, by digests.
COMPILED = "compiled.json"
SANITIZERS = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other workers from building in a folder, which all have in common."""
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def of_all_workers(factory: pytest.TempPathFactory, name: str) -> Path:
    """Return a folder that every worker and lane has; what is built there is built once."""
    base = factory.getbasetemp()
    own = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = Path(os.environ.get(BUILDS) or own) / name
    folder.mkdir(exist_ok=True)
    return folder


@cache
def needless_wait(implementation: str) -> dict[str, str]:
    """Return the variables that spare ranks what MPI_Init waits for where there is no fabric."""
    return load_table(PROJECT).resolve(implementation).init_wait


@dataclass
class Built:
    """The programs built with one MPI."""

    implementation: str
    prefix: Path
    build: Path
    flags: str = AS_BUILT
    sources: Path = PROJECT / "benchmarks"

    def make(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run make in the sources with this MPI's compiler, which one worker does at a time.

        What is left where it fails or is killed is not kept: not for the next command either.
        """
        variables = [f"CC={self.prefix}/bin/mpicc", *self.variables()]
        command = ["make", "-C", str(self.sources), f"BUILD={self.build}", *variables, *words]
        with alone_in(self.build):
            (self.build / SOUND).unlink(missing_ok=True)
            how = self.compiled_how(variables)
            of = self.what_is_left(how)
            (self.build / COMPILED).unlink(missing_ok=True)
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=3000, check=False
            )
            if done.returncode == 0:
                of = self.compiled_of() if " -c -o " in done.stdout else of
                (self.build / COMPILED).write_text(json.dumps({"how": how, "of": of}))
                (self.build / SOUND).touch()
            return done

    def has(self, *targets: str) -> None:
        """Build programs; fail where the compiler has a remark on one.

        What was said when they were built may have been to another worker, or another run. After a
        remark all is compiled again: what it was about may be right now.
        """
        said = self.build / "said"
        with alone_in(self.build):
            if said.exists() and "warning" in said.read_text():
                said.unlink()
                for path in self.build.rglob("*.o"):
                    path.unlink()
        done = self.make("-j2", *targets)
        assert done.returncode == 0, done.stderr
        with said.open("a") as file:
            file.write(done.stderr)
        assert "warning" not in said.read_text(), said.read_text()

    def with_another(self, folder: Path, file: str, *texts: tuple[str, str]) -> "Built":
        """Return programs, still to be built, of sources of which one file has other texts.

        What was compiled is taken over; make() drops what that file was part of.
        """
        sources, build = folder / "benchmarks", folder / "build"
        shutil.copytree(self.sources, sources, ignore=shutil.ignore_patterns("build"))
        left = shutil.ignore_patterns("hpcc", "bin", "lib", "said", SOUND)
        with alone_in(self.build):
            shutil.copytree(self.build, build, ignore=left)
        for path in build.rglob("*.d"):
            path.write_text(path.read_text().replace(f"{self.build}/", f"{build}/"))
        text = (sources / file).read_text()
        for old, new in texts:
            assert old in text, old
            text = text.replace(old, new)
        (sources / file).write_text(text)
        return Built(self.implementation, self.prefix, build, self.flags, sources)

    def compiled_how(self, variables: list[str]) -> list[str]:
        """Return what make is told, which version its compilers are, and a digest of its rules."""
        named = dict(word.split("=", 1) for word in variables)
        compilers = {named[name].split()[0] for name in ("CC", "PLAIN_CC") if name in named}
        versions = [
            subprocess.check_output([one, "--version"], text=True, timeout=300)
            for one in sorted(compilers)
        ]
        rules = sorted([self.sources / "Makefile", *self.sources.glob("*/program.mk")])
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in rules]
        return [*variables, *versions, *digests]

    def compiled_of(self) -> dict[str, str]:
        """Return a digest of all files that each object was compiled of, headers included.

        By their bytes, as they are now: those of the C library and the compiler are left out, which
        make is not told of either.
        """

        @cache
        def digest(name: str) -> bytes:
            path = self.sources / name
            bytes_of = path.read_bytes() if path.is_file() else b""
            return hashlib.sha256(name.encode() + b"\0" + bytes_of).digest()

        found = {}
        for path in self.build.rglob("*.d"):
            names = path.read_text().replace("\\\n", " ").split()[1:]
            of = sorted({os.path.normpath(name.rstrip(":")) for name in names})
            key = path.with_suffix(".o").relative_to(self.build).as_posix()
            found[key] = hashlib.sha256(b"".join(map(digest, of))).hexdigest()
        return found

    def what_is_left(self, how: list[str]) -> dict[str, str]:
        """Remove what would be compiled otherwise today; return what the others are made of.

        Make knows only which file is newer.
        """
        record = self.build / COMPILED
        before = json.loads(record.read_text()) if record.exists() else {"how": [], "of": {}}
        now = self.compiled_of()
        # HPL's objects are of an archive that is known by its digest: nothing says what of it.
        differ = [
            path
            for path in self.build.rglob("*.o")
            for name in [path.relative_to(self.build).as_posix()]
            if before["how"] != how or before["of"].get(name) != now.get(name)
        ]
        for path in differ:
            path.unlink()
            now.pop(path.relative_to(self.build).as_posix(), None)
        if differ:
            shutil.rmtree(self.build / "bin", ignore_errors=True)
            shutil.rmtree(self.build / "lib", ignore_errors=True)
        return now

    def variables(self) -> list[str]:
        """Return what make is told of the compiler's options."""
        return [f"CFLAGS={self.flags}"]

    def run(
        self, program: str, *arguments: str, ranks: int = 2, folder: Path | None = None,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Start ranks of a program; more ranks than cores, of all workers, do not spin."""
        command = [str(self.build / "bin" / program), *arguments]
        return self.run_command(command, ranks, folder, **environment)

    def refuse(
        self, program: str, arguments: list[str], ranks: int, sentence: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program; fail unless it ends with exit code 2 and one sentence with these words."""
        done = self.run(program, *arguments, ranks=ranks)
        said = [line for line in done.stderr.splitlines() if line.startswith(f"{program}: ")]
        assert len(said) == 1 and sentence in said[0], done.stderr
        assert done.returncode == 2, (done.stdout, done.stderr)
        return done

    def run_command(
        self, command: list[str], ranks: int = 2, folder: Path | None = None,
        before: Sequence[str] = (), **environment: str,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Start ranks of a command, with words before the launcher's."""
        cores = len(os.sched_getaffinity(0))
        crowded = ranks > cores or WORKERS > 1
        options = []
        if "openmpi" in self.implementation:
            options += ["--oversubscribe"] if ranks > cores else []
            # Another worker's ranks would be bound to the same cores.
            options += ["--bind-to", "none"] if WORKERS > 1 else []
        return subprocess.run(
            [*before, self.prefix / "bin" / "mpiexec", *options, "-n", str(ranks), *command],
            capture_output=True, text=True, timeout=1500, check=False, cwd=folder,
            env={
                **os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_mpi_yield_when_idle": "1" if crowded else "0",
                **(MPICH_WAITS_FOR_OTHERS if crowded else {}),
                **needless_wait(self.implementation), "OPENBLAS_NUM_THREADS": "1", **environment,
            },
        )  # fmt: skip


class Sanitized(Built):
    """The same, watched by the address and undefined-behaviour sanitizers; built when asked for."""

    def variables(self) -> list[str]:
        """Return the same without what a file asks for beside: at -O3 su3 compiles for minutes."""
        return [*super().variables(), "OPTIMISATION="]

    def check(
        self, program: str, *arguments: str, code: int = 0, ranks: int = 2,
        folder: Path | None = None, **environment: str,
    ) -> None:  # fmt: skip
        """Run a program; fail unless it ends with the code and the sanitizers find nothing."""
        made = self.make("-j2", f"{self.build}/bin/{program}")
        assert made.returncode == 0, made.stderr
        # The MPI libraries keep what they allocate until the process ends; leaks are not ours to
        # judge.
        environment = {"ASAN_OPTIONS": "detect_leaks=0", **environment}
        done = self.run(program, *arguments, ranks=ranks, folder=folder, **environment)
        assert done.returncode == code, done.stderr
        assert "runtime error" not in done.stderr and "Sanitizer" not in done.stderr


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Built]:
    """Return what builds all programs with an MPI, once."""

    @cache
    def build(implementation: str) -> Built:
        prefix = install(PROJECT, implementation)
        programs = Built(implementation, prefix, of_all_workers(tmp_path_factory, implementation))
        programs.has("all", "blas")
        return programs

    return build


@pytest.fixture(scope="session", params=["openmpi-5.0.11", "mpich-5.0.2"])
def built(request: pytest.FixtureRequest, builds: Callable[[str], Built]) -> Built:
    """Return the programs built with an MPI."""
    return builds(request.param)


@pytest.fixture(scope="session")
def one(builds: Callable[[str], Built]) -> Built:
    """Return the programs built with the MPI that starts quickest: for what depends on none."""
    return builds("mpich-5.0.2")


@pytest.fixture(scope="session")
def changed_clock(one: Built, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return changed_clock.c as a library to load before a program."""
    library = tmp_path_factory.mktemp("changed_clock") / "changed_clock.so"
    source = PROJECT / "tests/benchmarks/programs/changed_clock.c"
    subprocess.run(
        [one.prefix / "bin/mpicc", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o",
         library, source],
        check=True,
    )  # fmt: skip
    return str(library)


@pytest.fixture(scope="session")
def yielding(builds: Callable[[str], Built]) -> Built:
    """Return the programs built with an MPI whose ranks can wait without a processor."""
    return builds("openmpi-5.0.11")


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Built], Sanitized]:
    """Return what builds programs, as they are asked for, for the sanitizers."""

    @cache
    def build(implementation: str, prefix: Path) -> Sanitized:
        folder = of_all_workers(tmp_path_factory, f"sanitized-{implementation}")
        return Sanitized(implementation, prefix, folder, SANITIZERS)

    return lambda built: build(built.implementation, built.prefix)


@pytest.fixture(scope="session")
def sanitized(built: Built, watched: Callable[[Built], Sanitized]) -> Sanitized:
    """Return the programs built with an MPI for the sanitizers."""
    return watched(built)


@pytest.fixture(scope="session")
def sanitized_one(one: Built, watched: Callable[[Built], Sanitized]) -> Sanitized:
    """Return the programs built with one MPI for the sanitizers: for what depends on none."""
    return watched(one)
