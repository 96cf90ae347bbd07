"""What was compiled before is taken over only where compiling it again would be the same."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.benchmarks.conftest import AS_BUILT, PROJECT, Built

pytestmark = pytest.mark.real
#: A program of four small files, and a header that two of them have.
PROGRAM, FILES = "hpl_dat", {"hpl_dat", "node_memory", "arguments", "written"}
HEADER, HAVE_IT = "hpl/node_memory.h", {"hpl_dat", "node_memory"}


def played_mpi(folder: Path, version: str) -> None:
    """Put a compiler there that says it is of that version, and has a header of the MPI."""
    path = folder / "bin/mpicc"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!/bin/sh\ncase $1 in --version) echo {version};; "
        f'*) exec cc -include {folder}/mpi.h "$@";; esac\n'
    )
    path.chmod(0o755)
    (folder / "mpi.h").touch()


@pytest.fixture
def small(tmp_path: Path) -> Built:
    """Return the program's sources, copied, with a compiler that the test may change."""
    played_mpi(tmp_path / "mpi", "1")
    sources = tmp_path / "sources"
    shutil.copytree(PROJECT / "benchmarks", sources, ignore=shutil.ignore_patterns("build"))
    (tmp_path / "build").mkdir()
    found = Built("played", tmp_path / "mpi", tmp_path / "build", sources=sources)
    assert compiled(found) == FILES and compiled(found) == set()
    return found


def compiled(built: Built) -> set[str]:
    """Build the program; return the files that were compiled for it."""
    done = built.make(f"{built.build}/bin/{PROGRAM}")
    assert done.returncode == 0, done.stderr
    commands = [line.split() for line in done.stdout.splitlines() if " -c -o " in line]
    return {Path(words[words.index("-o") + 1]).stem for words in commands}


def said(built: Built) -> str:
    """Return what the program says of a solution that needs more memory than there may be."""
    program = str(built.build / "bin" / PROGRAM)
    command = [program, "--p", "1", "--q", "2", "--nb", "64", "--n", "9000000"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def changed_behind(path: Path) -> None:
    """Change a file that says to be of long ago."""
    path.write_text(f"/* Changed. */\n{path.read_text()}")
    os.utime(path, (0, 0))


def test_other_options_are_compiled_with(small: Built) -> None:
    other = Built(small.implementation, small.prefix, small.build, f"{AS_BUILT} -DX", small.sources)
    assert compiled(other) == FILES and compiled(other) == set()
    assert compiled(small) == FILES


def test_other_rules_compile_in_a_copy_too(small: Built, tmp_path: Path) -> None:
    changed = small.with_another(tmp_path / "copy", "Makefile", ("-std=c11", "-std=c17"))
    assert compiled(changed) == FILES and compiled(small) == set()


def test_another_compiler_compiles(small: Built) -> None:
    played_mpi(small.prefix, "2")
    assert compiled(small) == FILES and compiled(small) == set()


def test_another_mpi_s_header_compiles(small: Built) -> None:
    changed_behind(small.prefix / "mpi.h")
    assert compiled(small) == FILES and compiled(small) == set()


def test_what_is_made_of_another_header_is_compiled(small: Built, tmp_path: Path) -> None:
    """Where the header differs in the copy; and where it was changed after what is taken over."""
    changed = small.with_another(tmp_path / "copy", HEADER, ("#ifndef", "/* Changed. */\n#ifndef"))
    assert compiled(changed) == HAVE_IT
    changed_behind(small.sources / HEADER)
    late = small.with_another(tmp_path / "late", "common/written.c", ("#include", "\n#include"))
    assert compiled(late) == {*HAVE_IT, "written"} and compiled(small) == HAVE_IT


def test_a_changed_file_is_compiled_whatever_the_clock_says(small: Built, tmp_path: Path) -> None:
    """Played by what was compiled in an hour from now."""
    for path in small.build.rglob("*.o"):
        os.utime(path, (time.time() + 3600,) * 2)
    assert "9000000 needs" in said(small)
    changed = small.with_another(tmp_path / "copy", "hpl/hpl_dat.c", ("needs", "has a use for"))
    assert compiled(changed) == {"hpl_dat"}
    assert "9000000 has a use for" in said(changed) and "9000000 needs" in said(small)


def test_nothing_is_taken_over_where_make_failed(small: Built) -> None:
    """Nobody knows then which bytes an object is of, though they be again what they were."""
    header = small.sources / HEADER
    before = header.read_text()
    changed_behind(header)
    assert small.make(f"{small.build}/hpl/node_memory.o", "no_such_target").returncode != 0
    header.write_text(before)
    os.utime(header, (0, 0))
    assert compiled(small) == FILES and compiled(small) == set()


def test_a_remark_stays_until_what_it_is_about_is_right(small: Built) -> None:
    """Also where another worker, or another run, has compiled it."""
    target, file = f"{small.build}/bin/{PROGRAM}", small.sources / "common/written.c"
    before = file.read_text()
    file.write_text(f"{before}\nstatic int needless;\n")
    for _ in range(2):
        with pytest.raises(AssertionError, match="needless"):
            small.has(target)
    file.write_text(before)
    small.has(target)
    assert compiled(small) == set()


def test_objects_of_a_program_know_their_mpi(one: Built) -> None:
    """So that another version of it, whose header differs, compiles them again."""
    of = (one.build / "pingpong/pingpong.d").read_text().split()
    assert any(word.endswith("/mpi.h") for word in of)
