"""What Apptainer needs of the machine, for those who build images and for those who run them."""

import errno
import io
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from containers import apptainer, apptainer_setup, apt, programs
from records import layout
from records.locks import exclusive


def in_both(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    """Have it for who calls Apptainer and for who provides it."""
    for module in (apptainer, apptainer_setup):
        monkeypatch.setattr(module, name, value)


def test_who_only_runs_images_needs_no_subordinate_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    in_both(monkeypatch, "on_path", lambda: Path("/usr/bin/apptainer"))
    in_both(monkeypatch, "private_command", lambda: Path("/nowhere"))
    monkeypatch.setattr(programs, "ensure", lambda *_, **__: [])
    monkeypatch.setattr(programs, "_has_range", lambda path, names: False)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert apptainer_setup.provide() == Path("/usr/bin/apptainer")
    with pytest.raises(programs.ProvisionError, match=r"no range in /etc/subuid"):
        apptainer_setup.provide(builds=True)


def test_a_free_range_of_ids_is_proposed_unless_a_service_gives_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"uid": "alice:100000:65536\nbob:300000:65536\n", "gid": "alice:100000:65536\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(programs, "SUBORDINATE_IDS", [str(tmp_path / name) for name in files])
    services = tmp_path / "nsswitch.conf"
    monkeypatch.setattr(programs, "NAME_SERVICES", services)
    monkeypatch.setattr(programs, "_user_name", lambda: "carol")
    monkeypatch.setattr("os.geteuid", lambda: 1234)
    free = "--add-subuids 365536-431071 --add-subgids 365536-431071 carol; .* make pull"
    for answers in (None, "passwd: files sss\n", "subid: files\n"):
        if answers is not None:
            services.write_text(answers)
        with pytest.raises(programs.ProvisionError, match=free):
            programs.ensure_subordinate_ids()
    services.write_text("passwd: files\nsubid: sss\n")
    assert not programs.ensure_subordinate_ids()


@pytest.mark.parametrize("user", [0, 1000])
def test_with_an_apptainer_there_only_builds_ask_for_more(
    user: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine of a centre: without apt, dpkg and tools for images, and nobody is root."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(programs, "search_path", lambda state: str(tmp_path / "empty"))
    monkeypatch.setattr(programs, "library_folders", lambda state: [])
    in_both(monkeypatch, "ROOT", tmp_path)
    in_both(monkeypatch, "on_path", lambda: Path("/opt/apptainer/bin/apptainer"))
    asked: list[str] = []

    def install(packages: set[str], state: Path) -> None:
        asked.extend(sorted(packages))
        raise apt.AptError("there is no apt-get")

    class Machine:
        def update(self) -> None:
            pass

        def run(self, *words: str) -> None:
            install(set(words[2:]), tmp_path)

    monkeypatch.setattr(programs, "unpack_as_user", install)
    monkeypatch.setattr(apt, "of_machine", lambda state: Machine())
    monkeypatch.setattr(programs, "ensure_subordinate_ids", lambda: pytest.fail("for a build only"))
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert apptainer_setup.provide(say=False) == Path("/opt/apptainer/bin/apptainer")
    assert asked == []
    for bootstrap, wanted in (
        ("mmdebstrap", ["mmdebstrap", "squashfs-tools", "uidmap"]),
        ("docker", ["squashfs-tools", "uidmap"]),
    ):
        with pytest.raises(programs.ProvisionError, match=rf"{', '.join(wanted)} cannot be"):
            apptainer_setup.provide(say=False, builds=True, bootstrap=bootstrap)
        assert asked == wanted
        asked.clear()
    in_both(monkeypatch, "on_path", lambda: None)
    monkeypatch.setattr(apptainer_setup, "_install_package", lambda state: False)
    with pytest.raises(programs.ProvisionError, match="patchelf, squashfuse cannot be"):
        apptainer_setup.provide(say=False)


@pytest.mark.parametrize("folder", ["a b", "a\\b", "a\tb"])
def test_no_apptainer_is_unpacked_where_it_could_mount_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    state = tmp_path / folder / ".wyeast"
    in_both(monkeypatch, "ROOT", state.parent)
    in_both(monkeypatch, "on_path", lambda: None)
    monkeypatch.setattr(apptainer_setup, "_install_package", lambda state: False)
    monkeypatch.setattr(programs, "ensure", lambda *_, **__: [])
    monkeypatch.setattr(programs, "ensure_subordinate_ids", lambda: False)
    monkeypatch.setattr("containers.apt.of_suite", lambda *_: pytest.fail("it was downloaded"))
    with pytest.raises(programs.ProvisionError, match="a space or a backslash in its path"):
        apptainer_setup.provide(say=False)
    # Of it there is no more than who was at it.
    assert [path.name for path in state.iterdir()] == ["locks"]


def test_who_installs_beside_another_waits_and_says_for_whom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, done = io.StringIO(), list[str]()
    in_both(monkeypatch, "ROOT", tmp_path)
    in_both(monkeypatch, "on_path", lambda: None)
    monkeypatch.setattr(apptainer_setup, "_provide", lambda *_: done.append("installed"))
    monkeypatch.setattr(sys, "stderr", said)
    second = threading.Thread(target=apptainer_setup.provide)
    with exclusive(tmp_path / ".wyeast" / "locks" / "setup", "process 7"):
        second.start()
        while not said.getvalue().endswith("\n") and second.is_alive():
            time.sleep(0.01)
        assert done == []
    second.join()
    waits = "setup: another one installs in this checkout and is waited for: process 7"
    assert said.getvalue().startswith(waits) and said.getvalue().count("\n") == 1
    assert done == ["installed"]


def test_users_of_an_installation_have_its_apptainer_or_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They install nothing into it, and remove nothing from it."""
    installation, home = tmp_path / "sw", tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("WYEAST_ROOT", str(installation))
    monkeypatch.setenv(layout.HOME, str(home))
    in_both(monkeypatch, "ROOT", installation)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(programs, "ensure", lambda *_, **__: [])
    with pytest.raises(programs.ProvisionError, match="load its module, or ask whoever installed"):
        apptainer_setup.provide(say=False)
    own = installation / ".wyeast" / "bin" / "apptainer"
    stamp = installation / ".wyeast" / "apptainer" / "complete"
    for path, text in (
        (own, ""),
        (stamp, f"{apptainer_setup.RECIPE} {installation / '.wyeast'}\n"),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert apptainer_setup.provide(say=False) == own == apptainer.apptainer_command()
    in_both(monkeypatch, "on_path", lambda: Path("/opt/apptainer"))
    assert apptainer_setup.provide(say=False) == Path("/opt/apptainer") and own.exists()
    assert list(home.iterdir()) == []


def test_what_root_has_left_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after a `sudo make setup`."""
    own = tmp_path / ".wyeast" / "bin" / "apptainer"

    def refuse(say: bool) -> Path:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(own))

    monkeypatch.setattr(apptainer_setup, "provide", refuse)
    monkeypatch.setattr(sys, "argv", ["apptainer", "--quiet"])
    assert apptainer_setup.main() == 1
    assert capsys.readouterr().err == f"apptainer: {own}: Permission denied\n"
