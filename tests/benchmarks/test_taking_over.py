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
HEADER = "hpl/node_memory.h"


def played_mpi(folder: Path, version: str) -> None:
    """Put a compiler there that says it is of that version; it knows no MPI."""
    path = folder / "bin/mpicc"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'#!/bin/sh\ncase $1 in --version) echo {version};; *) exec cc -DBY={version} "$@";; esac\n'
    )
    path.chmod(0o755)


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
    command = [
        str(built.build / "bin" / PROGRAM),
        *["--p", "1", "--q", "2", "--nb", "64", "--n", "9000000"],
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr


def test_other_options_are_compiled_with(small: Built) -> None:
    other = Built(small.implementation, small.prefix, small.build, f"{AS_BUILT} -DX", small.sources)
    assert compiled(other) == FILES and compiled(other) == set()
    assert compiled(small) == FILES


def test_another_compiler_compiles(small: Built) -> None:
    played_mpi(small.prefix, "2")
    assert compiled(small) == FILES and compiled(small) == set()


def test_what_is_made_of_another_header_is_compiled(small: Built, tmp_path: Path) -> None:
    """Where the header differs in the copy; and where it was changed after what is taken over."""
    changed = small.with_another(tmp_path / "copy", HEADER, ("#ifndef", "/* Changed. */\n#ifndef"))
    assert compiled(changed) == {"hpl_dat", "node_memory"}
    header = small.sources / HEADER
    header.write_text(f"/* Changed. */\n{header.read_text()}")
    late = small.with_another(tmp_path / "late", "common/written.c", ("#include", "\n#include"))
    assert compiled(late) == {"hpl_dat", "node_memory", "written"}


def test_a_changed_file_is_compiled_whatever_the_clock_says(small: Built, tmp_path: Path) -> None:
    """Played by what was compiled in an hour from now."""
    for path in small.build.rglob("*.o"):
        os.utime(path, (time.time() + 3600,) * 2)
    assert "9000000 needs" in said(small)
    changed = small.with_another(tmp_path / "copy", "hpl/hpl_dat.c", ("needs", "has a use for"))
    assert compiled(changed) == {"hpl_dat"}
    assert "9000000 has a use for" in said(changed) and "9000000 needs" in said(small)


def test_what_no_compiler_reads_is_not_changed_so(small: Built, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="nothing says what is made of it"):
        small.with_another(tmp_path / "copy", "Makefile", ("-O3", "-O2"))
