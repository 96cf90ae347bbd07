"""An MPI that was built without MPI-IO, as an MPICH without ROMIO, has all programs but one."""

from pathlib import Path

import pytest

from tests.benchmarks.conftest import Built

pytestmark = pytest.mark.real
#: What such an MPICH's mpi.h still names is the type of a file; constants and calls are ROMIO's.
WITHOUT = """
#pragma GCC system_header
#include_next <mpi.h>
#undef MPI_MODE_CREATE
#undef MPI_MODE_EXCL
#undef MPI_MODE_RDWR
#undef MPI_MODE_DELETE_ON_CLOSE
#define MPI_File_open no_call
#define MPI_File_close no_call
"""


def test_files_are_refused_and_the_program_is_built_all_the_same(
    one: Built, tmp_path: Path
) -> None:
    (tmp_path / "mpi.h").write_text(WITHOUT)
    lacking = Built(one.implementation, one.prefix, tmp_path, f"-O0 -Werror -I{tmp_path}")
    made = lacking.make("-j2", f"{tmp_path}/bin/files")
    assert made.returncode == 0, made.stderr
    lacking.refuse("files", ["--folder", str(tmp_path)], 2, "this MPI has no MPI_File_open")
