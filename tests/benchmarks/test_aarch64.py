"""The programs compiled for aarch64, run by an emulator of its processors: correctness alone.

The MPI is the wheel that sources.lock pins for aarch64. Its ranks are started by the same version
of this machine, whose PMI is words through a pipe. What these programs do without an MPI's help is
the same for every one; no time that they print means anything.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from containers import sources
from records.npb import read_npb_output
from records.program_output import read_program_output
from tests.benchmarks.conftest import PROJECT, Built, alone_in, of_all_workers
from tests.benchmarks.test_su3 import FEW, ROUNDING, lattice, su3
from tests.lanes import SOUND

pytestmark = pytest.mark.real
IMPLEMENTATION = "mpich-5.0.2"
COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
#: Where Debian has the C library that the compiler links.
C_LIBRARY = Path("/usr/aarch64-linux-gnu")


class Emulated(Built):
    """The programs built for aarch64; a rank is an emulator with one of them."""

    mpi: Path

    def variables(self) -> list[str]:
        """Return what make is told of the compiler."""
        return [
            *super().variables(), f"CC={COMPILER} -I{self.mpi}/include", f"PLAIN_CC={COMPILER}",
            f"LDFLAGS=-L{self.mpi}/lib", "LDLIBS=-lmpi",
        ]  # fmt: skip

    def run(
        self, program: str, *arguments: str, ranks: int = 2, folder: Path | None = None,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Start ranks of a program, which is built first."""
        self.has(f"{self.build}/bin/{program}")
        return super().run(program, *arguments, ranks=ranks, folder=folder, **environment)

    def run_command(
        self, command: list[str], ranks: int = 2, folder: Path | None = None,
        before: Sequence[str] = (), **environment: str,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Start ranks of a command."""
        emulated = [EMULATOR, "-L", str(C_LIBRARY), "-E", f"LD_LIBRARY_PATH={self.mpi}/lib"]
        # The emulator has no process_vm_readv, by which a rank copies from another's memory.
        environment = {"MPIR_CVAR_CH4_CMA_ENABLE": "0", **environment}
        return super().run_command([*emulated, *command], ranks, folder, before, **environment)


@pytest.fixture(scope="module")
def emulated(builds: Callable[[str], Built], tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    own = builds(IMPLEMENTATION)
    found = Emulated(own.implementation, own.prefix, of_all_workers(tmp_path_factory, "aarch64"))
    # With a name of its own for each wheel.
    pinned = sources.load_sources(PROJECT).wheel(IMPLEMENTATION, IMPLEMENTATION, "aarch64")
    found.mpi = of_all_workers(tmp_path_factory, f"aarch64-mpi-{pinned.sha256[:16]}")
    with alone_in(found.mpi):
        if not (found.mpi / SOUND).exists():
            shutil.rmtree(found.mpi)
            found.mpi.mkdir()
            sources.unpack_wheel(fetch(pinned, found.mpi), found.mpi, [])
            (found.mpi / SOUND).touch()
    return found


def fetch(source: sources.Source, folder: Path) -> Path:
    """Return another architecture's wheel."""
    path = PROJECT / ".wyeast" / "downloads" / source.file
    if not path.exists():
        command = ["pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                   "--only-binary", ":all:", "--platform", "manylinux_2_28_aarch64"]  # fmt: skip
        subprocess.run(
            [sys.executable, "-m", *command, "-d", folder, f"{source.name}=={source.version}"],
            check=True,
        )
        path = folder / source.file
    assert sources.sha256_of(path) == source.sha256
    return path


def test_what_is_built_is_for_it_and_for_old_c_libraries(emulated: Emulated) -> None:
    emulated.has(f"{emulated.build}/bin/pingpong")
    said = subprocess.run(
        ["aarch64-linux-gnu-readelf", "-h", emulated.build / "bin/pingpong"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "AArch64" in said
    needed = subprocess.run(
        ["aarch64-linux-gnu-objdump", "-T", (emulated.mpi / "lib" / "libmpi.so.12").resolve()],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    wanted = {
        tuple(map(int, word.strip("()").removeprefix("GLIBC_").split(".")[:2]))
        for word in needed.split() if word.strip("()").startswith("GLIBC_2.")
    }  # fmt: skip
    assert wanted and max(wanted) <= (2, 28)


def test_ranks_exchange_what_they_were_given(emulated: Emulated, tmp_path: Path) -> None:
    path = tmp_path / "out"
    done = emulated.run("preflight", "--ranks", "2", "--iterations", "10")
    assert done.returncode == 0, done.stderr
    path.write_text(done.stdout)
    assert "5.0.2" in str(json.loads(done.stdout.splitlines()[0])["library"])
    done = emulated.run("pingpong", "--sizes", "1024:65536:16128", "--iterations", "10")
    assert done.returncode == 0, done.stderr
    path.write_text(done.stdout)
    assert read_program_output(path).results


def test_what_is_compiled_is_kept_for_the_next_run(emulated: Emulated, one: Built) -> None:
    """As this machine's programs are: beside them, marked when its last command ended well."""
    emulated.has(f"{emulated.build}/bin/pingpong")
    for folder in (emulated.build, emulated.mpi):
        with alone_in(folder):
            assert folder.parent == one.build.parent and (folder / SOUND).exists()


@pytest.mark.long
def test_all_programs_are_compiled_without_a_remark(emulated: Emulated) -> None:
    """But `dgemm` and `linpack`, which need a BLAS for it."""
    emulated.has("all", "su3_naive")


@pytest.mark.long
@pytest.mark.parametrize("precision", ["double", "single"])
def test_a_lattice_is_the_same_on_both(emulated: Emulated, one: Built, precision: str) -> None:
    """The portable kernels, which are those that it has, against this machine's best ones."""
    arguments = [*lattice(4, 4, 4, 4), *FEW, "--start", "hot", "--precision", precision]
    there, here = su3(emulated, *arguments, ranks=2), su3(one, *arguments)
    assert there.instructions == "portable"
    within = ROUNDING if precision == "double" else 1e-5
    assert there.plaquettes == pytest.approx(here.plaquettes, rel=0, abs=within)


LONG = pytest.mark.long


@pytest.mark.parametrize(
    "benchmark", ["is", pytest.param("cg", marks=LONG), pytest.param("mg", marks=LONG)]
)
def test_the_nas_benchmarks_verify_their_results(
    emulated: Emulated, tmp_path: Path, benchmark: str
) -> None:
    done = emulated.run(f"nas_{benchmark}", "--class", "S", ranks=2)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    (tmp_path / "out").write_text(done.stdout)
    run = read_npb_output(tmp_path / "out")
    assert run.verified and not run.wrong and run.processes == 2


def test_memory_has_what_the_loops_of_stream_calculate(emulated: Emulated) -> None:
    done = emulated.run("stream", "--array-bytes", "80000", "--iterations", "2", ranks=1)
    assert done.returncode == 0, done.stderr
