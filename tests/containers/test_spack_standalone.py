"""spack.yaml of one implementation may be copied anywhere, and needs no variable there."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from containers.programs import ProvisionError
from containers.spack import environment as spack_environment
from containers.spack import standalone
from containers.spack.recipes import SpackError
from tests.containers.test_spack import DATA, NAMES, PROJECT, chosen


def strings(value: Any) -> list[str]:
    """Return all texts of some data."""
    if isinstance(value, dict):
        return [text for one in value.values() for text in strings(one)]
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("name", NAMES)
def test_it_has_what_spack_yaml_has_of_the_implementation(name: str) -> None:
    made = standalone.environment_of(PROJECT, name, "virtual")["spack"]
    for definition in ("mpi", "programs"):
        found = [
            specification
            for entry in made["definitions"]
            # What is left is said in terms of nothing.
            if definition in entry and eval(entry.get("when", "True"), {})
            for specification in entry[definition]
        ]
        assert found == chosen(name, definition)
    parts = {"include", "repos", "develop", "definitions"}
    # A view puts programs on the PATH of whoever activates it; images have folders of their own.
    assert {key: made[key] for key in DATA.keys() - parts} == {
        key: DATA[key] for key in DATA.keys() - parts
    } | {"view": True}
    assert not [text for text in strings(made) if "WYEAST_" in text]


def test_its_paths_are_whole_and_its_site_is_the_one_that_was_named() -> None:
    name = "mpich-4.0.2-source-ucx-spack"
    made = standalone.environment_of(PROJECT, name, "virtual")["spack"]
    site = PROJECT / "site_configs/virtual/spack"
    found = {"path": f"{PROJECT}/spack_repo/found", "prefer_modify": True, "optional": True}
    assert made["include"] == [{"path": f"{site}/options/ucx"}, {"path": str(site)}, found]
    assert made["repos"] == {"wyeast": f"{PROJECT}/spack_repo/wyeast"}
    assert made["develop"]["wyeast-benchmarks"]["path"] == f"{PROJECT}/benchmarks"
    for text in strings(made):
        assert text.partition("/")[0] not in spack_environment.PARTS
    without = standalone.environment_of(PROJECT, "mpich-4.0.2-spack", "")["spack"]
    assert without["include"] == [found]


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(
        SpackError, match=r"spack\.yaml does not define mpich; these are: openmpi-5"
    ):
        standalone.environment_of(PROJECT, "mpich", "")
    with pytest.raises(ProvisionError, match="WYEAST_SITE is virtaul, which has no folder spack"):
        standalone.environment_of(PROJECT, NAMES[0], "virtaul")


def test_a_lock_of_an_older_one_is_named(tmp_path: Path) -> None:
    name = "mpich-4.0.2-spack"

    def made(site: str) -> subprocess.CompletedProcess[str]:
        words = ["-m", "containers.spack.standalone", f"--implementations={name}"]
        return subprocess.run(
            [sys.executable, *words, f"--out={tmp_path}"], cwd=PROJECT, text=True,
            capture_output=True, timeout=120, env={"WYEAST_SITE": site, "PATH": "/usr/bin:/bin"},
        )  # fmt: skip

    done = made("virtual")
    assert (done.stdout, done.stderr) == (f"{tmp_path / name}\n", "")
    text = (tmp_path / name / "spack.yaml").read_text()
    assert yaml.safe_load(text) == standalone.environment_of(PROJECT, name, "virtual")
    (tmp_path / name / "spack.lock").write_text("{}")
    assert made("virtual").stderr == ""
    done = made("")
    assert f"{tmp_path / name}/spack.yaml has changed, and spack.lock beside it" in done.stderr
    assert made("virtaul").returncode == 1
