"""spack.yaml of one implementation may be copied anywhere, and needs no variable there."""

import shutil
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
    # A user of an installation of somebody else's may write nothing there.
    found = {"path": "found", "prefer_modify": True, "optional": True}
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


def test_a_build_is_not_written_without_what_its_option_is(tmp_path: Path) -> None:
    """Spack would end with an error about a folder that nobody has named, or in Ramble's script."""
    name = "mpich-4.0.2-source-ucx-spack"
    for site, lacking in (("", "and no site is named"), ("box", "which box does not have")):
        root = tmp_path / f"of {site}"
        (root / "site_configs/box/spack").mkdir(parents=True)
        shutil.copy(PROJECT / "spack.yaml", root)
        said = f"{name} needs the folder spack/options/ucx of a site, {lacking}: name one that has"
        with pytest.raises(SpackError, match=said):
            standalone.environment_of(root, name, site)
    done = made(tmp_path / "one", "", name, NAMES[0])
    assert (done.returncode, done.stdout) == (1, "") and name in done.stderr
    assert not (tmp_path / "one").exists(), "nothing is written where one of them cannot be"
    # All that there are: those that can be, and what the others lack.
    done = made(tmp_path / "all", "")
    left_out = [one for one in NAMES if f"left out: {one} needs " in done.stderr]
    assert name in left_out and done.returncode == 0
    written = [path.name for path in (tmp_path / "all").iterdir()]
    assert sorted([*written, *left_out]) == sorted(NAMES)
    for one in written:
        data = yaml.safe_load((tmp_path / "all" / one / "spack.yaml").read_text())
        assert all(entry.get("optional") for entry in data["spack"]["include"])


@pytest.mark.parametrize("content", [b"spack:\n  specs: [zlib]\n", b"\xff\xfe", b""])
def test_what_somebody_else_has_made_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / NAMES[0] / "spack.yaml"
    path.parent.mkdir()
    path.write_bytes(content)
    done = made(tmp_path, "", NAMES[0])
    assert (done.returncode, done.stdout) == (1, "") and path.read_bytes() == content
    assert done.stderr == (
        f"spack-environment: {path} was not made by this command; name another folder with OUT, or "
        "remove it\n"
    )


def made(folder: Path, site: str, *names: str) -> subprocess.CompletedProcess[str]:
    words = ["-m", "containers.spack.standalone", f"--implementations={','.join(names)}"]
    return subprocess.run(
        [sys.executable, *words, f"--out={folder}"], cwd=PROJECT, text=True,
        capture_output=True, timeout=120, env={"WYEAST_SITE": site, "PATH": "/usr/bin:/bin"},
    )  # fmt: skip


def test_a_lock_of_an_older_one_is_named(tmp_path: Path) -> None:
    name = "mpich-4.0.2-spack"

    done = made(tmp_path, "virtual", name)
    assert (done.stdout, done.stderr) == (f"{tmp_path / name}\n", "")
    text = (tmp_path / name / "spack.yaml").read_text()
    data = yaml.safe_load(text)
    link = data["spack"]["config"].pop("develop_stage_link")
    assert Path(link).parent == tmp_path / name / "found"
    assert data == standalone.environment_of(PROJECT, name, "virtual")
    assert (tmp_path / name / "found").is_dir()
    (tmp_path / name / "spack.lock").write_text("{}")
    assert made(tmp_path, "virtual", name).stderr == ""
    # As often as it is asked: the first may have been killed before it could say so.
    for _ in range(2):
        done = made(tmp_path, "", name)
        assert f"{tmp_path / name}/spack.yaml is newer than spack.lock beside it" in done.stderr
    (tmp_path / name / "spack.lock").write_text("{}")
    assert made(tmp_path, "", name).stderr == ""
    assert made(tmp_path, "virtaul", name).returncode == 1
