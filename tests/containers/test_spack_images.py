"""What Spack's images have and say: the checks' programs, labels, which MPI is linked to."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from containers import spack, spack_environment, spack_lock, spack_mirror
from tests.containers import travelling
from tests.containers.test_spack import NAMES, PROJECT, chosen, name_and_version

FOUND = spack.Spack(Path("/nowhere/spack"), Path("/nowhere/packages"), "1.1.0")


def packages(name: str) -> dict[str, str]:
    """What spack.yaml asks for beside the MPI: package → specification."""
    return {name_and_version(word)[0]: word for word in chosen(name, "programs")}


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
            base.path(root / ".wyeast").parent.mkdir(parents=True)
            base.path(root / ".wyeast").touch()
            done.append(base.name)

    def run(
        root: Path, found: object, base: Path, name: str, environment: Path, *words: str
    ) -> subprocess.CompletedProcess[str]:
        assert base.exists(), "Spack runs in it"
        (environment / "spack.lock").write_text('{"_meta": {"file-type": "spack-lockfile"}, '
                                                '"concrete_specs": {}, "roots": []}')  # fmt: skip
        done.append(" ".join(words[:2]))
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr(spack_environment, "provide_apptainer", provide)
    monkeypatch.setattr(spack_environment, "ensure_bases", ensure_bases)
    monkeypatch.setattr(spack_environment, "run", run)
    monkeypatch.setattr(spack, "provide", lambda root: FOUND)
    return done


def test_a_mirror_is_made_on_a_machine_without_a_base(steps: list[str], tmp_path: Path) -> None:
    for _ in range(2):
        assert spack_mirror.create(tmp_path / "root", FOUND, NAMES[0]) == []
    assert steps == ["Apptainer to build with", "build-spack", "mirror create",
                     "Apptainer", "mirror create"]  # fmt: skip


def test_a_lock_is_renewed_on_a_machine_without_a_base(steps: list[str], tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / spack_environment.LOCKS).unlink()
    assert spack_lock.renew(root, [NAMES[0]]) == []
    assert steps == ["Apptainer to build with", "build-spack", "concretize --force"]
