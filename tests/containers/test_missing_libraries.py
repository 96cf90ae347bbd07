"""The loader is asked about every program and library of a new image, and each answer is said."""

import os
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SCRIPT = PROJECT / "containers/missing_libraries.sh"

LDD = r"""#!/bin/sh
case $1 in
*mpiexec) printf '\tlinux-vdso.so.1 (0x1)\n\tlibnuma.so.1 => not found\n'
    printf '\tlibc.so.6 => /lib/libc.so.6 (0x1)\n' ;;
*plugin.so) printf '\tlibnuma.so.1 => not found\n\tlibother.so.2 => not found\n' ;;
*old.so) echo "/lib/libc.so.6: version \`GLIBC_2.99' not found (required by $1)" >&2
    printf '\tlibc.so.6 => /lib/libc.so.6 (0x1)\n' ;;
*static) echo 'not a dynamic executable' >&2; exit 1 ;;
*) printf '\tlibc.so.6 => /lib/libc.so.6 (0x1)\n\tlibown.so => /opt/software/libown.so (0x1)\n' ;;
esac
"""
DPKG = """#!/bin/sh
case $2 in
*/libc.so.6) echo 'libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6' ;;
*) exit 1 ;;
esac
"""


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A folder with programs and libraries that the loader is content with."""
    for name, text in (("ldd", LDD), ("dpkg", DPKG)):
        program = tmp_path / "path" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    for name in ("bin/pingpong", "bin/static", "lib/libmpi.so.12.1"):
        elf(tmp_path / "image" / name)
    script = tmp_path / "image/bin/mpiexec"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return tmp_path / "image"


def elf(path: Path, mode: int = 0o755) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF...")
    path.chmod(mode)


def run(image: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = f"{image.parent}/path:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", str(SCRIPT), *words], capture_output=True, text=True, env={"PATH": path}
    )


def checked(image: Path) -> subprocess.CompletedProcess[str]:
    (image.parent / "packages").write_text("libc.so.6 libc6\nlibnuma.so.1 libnuma1\n")
    return run(image, "some-mpi", str(image.parent / "packages"), str(image))


def test_an_image_in_which_everything_is_found_is_an_image(image: Path) -> None:
    done = checked(image)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_missing_library_is_said_with_its_file_and_the_package_that_has_it(image: Path) -> None:
    elf(image / "bin/mpiexec")
    # A library is no program, and need not be executable.
    elf(image / "lib/openmpi/plugin.so", 0o644)
    done = checked(image)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    words = "missing library: {} does not find {}, which {} has"
    assert set(lines[:-1]) == {
        words.format(image / "bin/mpiexec", "libnuma.so.1", "libnuma1"),
        words.format(image / "lib/openmpi/plugin.so", "libnuma.so.1", "libnuma1"),
        words.format(image / "lib/openmpi/plugin.so", "libother.so.2",
                     "no package of the build base"),
    }  # fmt: skip
    assert "packages.run of some-mpi in containers/implementations.yaml" in lines[-1]


def test_a_version_that_a_library_lacks_is_missing_too(image: Path) -> None:
    elf(image / "lib/old.so")
    done = checked(image)
    assert done.returncode == 1 and "does not find GLIBC_2.99" in done.stdout


def test_a_provider_of_libfabric_may_lack_the_library_of_its_fabric(image: Path) -> None:
    elf(image / "lib/libfabric/prov/plugin.so")
    assert checked(image).returncode == 0


def test_packages_of_what_is_found_are_listed_where_everything_is(image: Path) -> None:
    done = run(image, "--packages", str(image))
    assert (done.returncode, done.stdout) == (0, "libc.so.6 libc6\n"), done.stderr


def test_the_definition_asks_in_the_run_stage_with_what_the_compile_stage_knew() -> None:
    compiled, run_stage = (PROJECT / "containers/spack.def").read_text().split("Stage: run")
    line = "missing_libraries.sh --packages /opt/software >/opt/wyeast/build/libraries"
    assert line in compiled
    # The machine's own /tmp is there while an image is built.
    assert "missing_libraries.sh {{ implementation }} libraries /opt /usr )" in run_stage
    assert run_stage.index("missing_libraries.sh") < run_stage.index("rm -rf /opt/wyeast/build")
