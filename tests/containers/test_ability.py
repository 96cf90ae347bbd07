"""What keeps a machine from running any container is found before anything is built."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from containers import ability, programs
from containers.ability import build_facts, refuse_inability
from containers.programs import ProvisionError

PROJECT = Path(__file__).resolve().parents[2]
#: Runs a command where there is no deeper user namespace: Linux nests 32 of them.
DEEPEST = """
unshare --user --map-root-user true 2>/dev/null &&
    exec unshare --user --map-root-user sh -c "$0" "$0" "$@"
exec "$@"
"""
LOOK = "from containers.ability import refused_namespace; print(refused_namespace())"


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An Apptainer's parts on a machine where nothing stands in its way, seen by its user."""
    folder = tmp_path / "libexec" / "apptainer" / "bin"
    folder.mkdir(parents=True)
    (tmp_path / "apptainer.conf").write_text("bind path = /etc/hosts\n")
    (tmp_path / "fuse").touch()
    monkeypatch.setattr(ability, "FUSE", tmp_path / "fuse")
    monkeypatch.setattr(ability, "build_facts", lambda: {
        "LIBEXECDIR": str(tmp_path / "libexec"),
        "APPTAINER_CONF_FILE": str(tmp_path / "apptainer.conf"),
    })  # fmt: skip
    monkeypatch.setattr(ability, "refused_namespace", lambda: 0)
    monkeypatch.setattr(programs, "find", lambda name, state: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return folder


def test_without_user_namespaces_only_a_setuid_part_helps_and_root_not_even_that(
    parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_inability()
    monkeypatch.setattr(ability, "refused_namespace", lambda: errno.ENOSPC)
    starter = parts / "starter-suid"
    starter.touch()
    starter.chmod(0o755)
    for mode in (None, 0o755):
        if mode is not None:
            starter.chmod(mode)
        with pytest.raises(ProvisionError, match=r"no user namespace \(No space .*setuid part"):
            refuse_inability()
    monkeypatch.setattr(ability, "is_setuid", lambda path: path == starter)
    refuse_inability()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(ProvisionError, match="no user namespace"):
        refuse_inability()


def test_apparmor_may_allow_apptainer_what_it_refuses_us(
    parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restricted, profiles = tmp_path / "restricted", tmp_path / "apparmor.d"
    monkeypatch.setattr(ability, "RESTRICTED", restricted)
    monkeypatch.setattr(ability, "PROFILES", profiles)
    profiles.mkdir()
    (profiles / "local").mkdir()
    (profiles / "ping").write_text("profile ping /usr/bin/ping {}\n")

    def refused(code: int) -> bool:
        monkeypatch.setattr(ability, "refused_namespace", lambda: code)
        try:
            refuse_inability()
        except ProvisionError as error:
            assert "no user namespace" in str(error)
            return True
        return False

    restricted.write_text("1\n")
    assert refused(errno.EACCES), "there is no profile of Apptainer"
    profile = "profile apptainer /usr/libexec/apptainer/bin/starter{,-suid} flags=(unconfined) {\n"
    (profiles / "apptainer").write_text(f"{profile}  userns,\n}}\n")
    assert not refused(errno.EACCES) and not refused(errno.EPERM)
    assert refused(errno.ENOSPC), "no profile changes a limit"
    restricted.write_text("0\n")
    assert refused(errno.EPERM), "then it was not AppArmor"
    restricted.unlink()
    assert refused(errno.EPERM)


def test_only_what_mounts_images_needs_fuse(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ability, "FUSE", parts / "nothing")
    # It unpacks them then.
    refuse_inability()
    (parts / "squashfuse_ll").touch()
    with pytest.raises(ProvisionError, match=r"nothing cannot be opened \(No such file.*0666"):
        refuse_inability()


def test_a_folder_that_is_mounted_over_the_images_own_is_named(parts: Path, tmp_path: Path) -> None:
    conf = tmp_path / "apptainer.conf"
    not_there = tmp_path / "no"
    for words in (
        "bind path = /opt", f"# bind path = {tmp_path}:/opt/mpi",
        f"bind path = {tmp_path}:/opt/mpich", f"bind path = {not_there}:/opt/mpi",
    ):  # fmt: skip
        conf.write_text(f"{words}\n")
        refuse_inability()
    conf.write_text(f"mount home = yes\nbind path = {tmp_path}:/opt/mpi/\n")
    with pytest.raises(ProvisionError, match=rf"bind path = {tmp_path}`, which hides /opt/mpi of"):
        refuse_inability()


@pytest.mark.parametrize(
    ("said", "is_old"),
    [("1.0.3", True), ("0.9.1-1.el8", True), ("1.1.0", False), ("1.4.5-2+b1", False),
     ("2.0.0-rc.1", False), ("devel", False), ("", False)],
)  # fmt: skip
def test_an_old_apptainer_is_named(
    parts: Path, monkeypatch: pytest.MonkeyPatch, said: str, is_old: bool
) -> None:
    facts = ability.build_facts() | {"PACKAGE_VERSION": said}
    monkeypatch.setattr(ability, "build_facts", lambda: facts)
    monkeypatch.setattr(ability, "apptainer_command", lambda: Path("/old/bin/apptainer"))
    if not is_old:
        refuse_inability()
        return
    with pytest.raises(ProvisionError, match=rf"/old/bin/apptainer is Apptainer {said}, and 1\.1"):
        refuse_inability()


def test_the_machines_own_apptainer_says_its_version() -> None:
    facts = build_facts()
    assert not facts or ability.VERSION.match(facts["PACKAGE_VERSION"])


def test_a_setuid_part_is_roots(parts: Path) -> None:
    starter = parts / "starter-suid"
    starter.touch()
    for mode in (0o755, 0o4755):
        starter.chmod(mode)
        assert ability.is_setuid(starter) == (mode == 0o4755 and os.stat(starter).st_uid == 0)
    assert not ability.is_setuid(parts / "none")


def test_the_kernel_itself_is_asked() -> None:
    """Where it gives none: in the deepest of those that it nests."""
    words = [sys.executable, "-c", LOOK]
    answers = [
        subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
        for command in (words, ["sh", "-c", DEEPEST, DEEPEST, *words])
    ]
    assert answers == ["0\n", f"{errno.ENOSPC}\n"]
