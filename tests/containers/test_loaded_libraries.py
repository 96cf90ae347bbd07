"""What the programs of an image load, as the image itself tells."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from campaign import provenance
from containers import loaded_libraries
from records.manifest import LoadedLibraries

PROJECT = Path(__file__).resolve().parents[2]
SAID = """\
= /opt/wyeast/bin/pingpong
\tlinux-vdso.so.1 (0x00007ffd1)
\tlibmpi.so.12 => /opt/mpi/lib/libmpi.so.12 (0x00007f1)
\tlibc.so.6 => /lib/libc.so.6 (0x00007f1)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f1)
= /opt/wyeast/bin/collective
\tlibmpi.so.12 => /opt/mpi/lib/libmpi.so.12 (0x00007f2)
\tlibc.so.6 => /lib/libc.so.6 (0x00007f2)
= /opt/wyeast/bin/on_nodes.sh
\tnot a dynamic executable
= /opt/mpi/lib/libmpi.so.12
\tlibc.so.6 => /lib/libc.so.6 (0x00007f2)
{a}  /opt/mpi/lib/libmpi.so.12
{b}  /lib/libc.so.6
""".format(a="a" * 64, b="b" * 64)


def test_what_is_loaded_has_a_digest_and_what_loads_alike_stands_together() -> None:
    found = loaded_libraries.read(SAID)
    assert found == {
        "sha256": {"/lib/libc.so.6": "b" * 64, "/opt/mpi/lib/libmpi.so.12": "a" * 64},
        "loaded": [
            {"by": ["pingpong", "collective"],
             "files": ["/lib/libc.so.6", "/opt/mpi/lib/libmpi.so.12"]},
            {"by": ["on_nodes.sh"], "files": []},
            {"by": ["/opt/mpi/lib/libmpi.so.12"], "files": ["/lib/libc.so.6"]},
        ],
    }  # fmt: skip
    LoadedLibraries.model_validate(found)


@pytest.mark.parametrize("said", ["", "sh: ldd: not found\n", SAID.replace("b" * 64, "")])
def test_an_answer_that_lacks_something_is_none(said: str) -> None:
    assert loaded_libraries.read(said) is None


def test_paths_may_have_spaces_and_no_name_before_them() -> None:
    lines = SAID.replace("/opt/mpi/lib", "/opt/my mpi").splitlines()
    lines[2] = "\t/opt/my mpi/libmpi.so.12 (0x00007f1)"
    found = loaded_libraries.read("\n".join(lines))
    assert found and [*found["sha256"]] == ["/lib/libc.so.6", "/opt/my mpi/libmpi.so.12"]
    assert found["loaded"][0]["files"] == [*found["sha256"]]


def test_a_manifest_names_no_file_without_its_digest() -> None:
    found: dict[str, Any] = loaded_libraries.read(SAID) or {}
    with pytest.raises(ValidationError, match="a library without its digest"):
        LoadedLibraries.model_validate({**found, "sha256": {}})


def test_a_shell_answers_the_question(tmp_path: Path) -> None:
    # As in an image: of two programs, one is a script.
    text = loaded_libraries.QUESTION.replace("/opt/wyeast/bin/*", "/bin/sh /usr/bin/ldd")
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, timeout=60)
    found = loaded_libraries.read(done.stdout)
    assert found is not None, done.stderr
    by = {name: one["files"] for one in found["loaded"] for name in one["by"]}
    assert by["/usr/bin/ldd"] == [] and any("libc.so" in path for path in by["/bin/sh"])


@pytest.mark.real
@pytest.mark.parametrize("name", ["mpich-5.0.2", "openmpi-5.0.11"])
def test_an_image_tells_what_its_programs_load(name: str) -> None:
    said = provenance.describe_images(PROJECT, [name], {})[name]
    found = LoadedLibraries.model_validate(said["libraries"])
    by = {name: one.files for one in found.loaded for name in one.by}
    (library,) = [name for name in by if name.startswith("/")]
    assert library in by["pingpong"] and library.startswith("/opt/mpi/lib/libmpi.so")
    assert not any("openblas" in path for path in by["pingpong"])
    assert any("openblas" in path for path in by["xhpl"])
    assert "libraries" not in provenance.describe_images(PROJECT, [name], {}, loaded=False)[name]
