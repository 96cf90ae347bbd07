"""Where the base of images is from: Debian's own bootstrap, or the pinned container image."""

import os
import shutil
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from containers import bootstrap


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that has all that Debian's bootstrap needs; return its folder for this test."""
    release = tmp_path / "os-release"
    release.write_text('NAME="Debian GNU/Linux"\nID=debian\n')
    monkeypatch.setattr(bootstrap, "OS_RELEASE", release)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/tmp")
    monkeypatch.setattr(os, "statvfs", lambda place: SimpleNamespace(f_flag=os.ST_NOSUID))
    return tmp_path


def test_debian_s_own_is_used_where_it_can_be(debian: Path) -> None:
    assert bootstrap.chosen(None) == ("mmdebstrap", None)
    assert bootstrap.chosen("docker") == ("docker", None)


@pytest.mark.parametrize("text", ["ID=rocky\n", "ID=ubuntu\nID_LIKE=debian\n", None])
def test_other_distributions_build_on_the_container_base(debian: Path, text: str | None) -> None:
    release = debian / "os-release"
    release.unlink() if text is None else release.write_text(text)
    assert bootstrap.chosen(None) == ("docker", "this machine is not Debian")
    assert bootstrap.chosen("mmdebstrap") == ("mmdebstrap", None)


@pytest.mark.parametrize("lacking", ["apt-get", "dpkg"])
def test_a_debian_without_its_tools_is_told_which(
    debian: Path, lacking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        shutil, "which", lambda name: None if name == lacking else f"/usr/bin/{name}"
    )
    assert bootstrap.chosen(None) == ("docker", f"this machine has no {lacking}")


@pytest.mark.parametrize(("name", "flag"), [("noexec", os.ST_NOEXEC), ("nodev", os.ST_NODEV)])
def test_a_temporary_folder_that_is_mounted_closed_is_named(
    debian: Path, name: str, flag: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda place: SimpleNamespace(f_flag=flag))
    kind, why = bootstrap.chosen(None)
    assert kind == "docker" and f"/tmp is mounted {name}; set TMPDIR" in str(why)


def test_a_temporary_folder_in_a_closed_home_is_named(
    debian: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    home = debian / "home"
    (home / "tmp").mkdir(parents=True)
    for path in (debian, *debian.parents[:-2]):
        # Pytest's own folder is closed, and is so again for the tests that come after this one.
        mode = path.stat().st_mode
        request.addfinalizer(partial(path.chmod, mode))
        path.chmod(mode | 0o111)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(home / "tmp"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    home.chmod(0o755)
    assert bootstrap.why_not_mmdebstrap() is None
    home.chmod(0o700)
    assert f"others may not enter {home}" in str(bootstrap.why_not_mmdebstrap())
    # Root enters everywhere, and needs no other users.
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert bootstrap.why_not_mmdebstrap() is None
