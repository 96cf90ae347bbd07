"""The cluster's programs: which packages are unpacked, and when again."""

import subprocess
from pathlib import Path

import pytest

from cluster import programs
from cluster.description import ClusterError
from containers import apt


def test_what_is_unpacked_does_not_depend_on_whether_the_machine_has_it() -> None:
    said = (
        "NOTE: This is only a simulation!\n"
        "Inst libmunge2 [0.5.14-1] (0.5.15-2+deb12u1 Debian:12.15/oldstable [amd64]) []\n"
        "Inst munge (0.5.15-2+deb12u1 Debian:12.15/oldstable [amd64])\n"
        "Conf munge (0.5.15-2+deb12u1 Debian:12.15/oldstable [amd64])\n"
    )
    assert dict(programs.WOULD_INSTALL.findall(said)) == {
        "libmunge2": "0.5.15-2+deb12u1", "munge": "0.5.15-2+deb12u1",
    }  # fmt: skip


@pytest.mark.real
def test_what_the_machine_has_is_asked_for_without_taking_it_from_others(tmp_path: Path) -> None:
    """A shell that needs procps is no broken package because the cluster wants procps, too."""
    machine = apt.of_machine(tmp_path)
    machine.update()
    said = machine.run("install", *programs.ASKED, "base-files", "libc6")
    assert programs.WOULD_INSTALL.findall(said)
    assert {"base-files", "libc6"} <= dict(programs.WOULD_INSTALL.findall(said)).keys()


def test_they_are_unpacked_again_where_a_library_of_the_machine_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking: list[list[str]] = [[], ["libold.so.1"], [], ["libnew.so.2"], ["libnew.so.2"]]
    unpacked: list[Path] = []

    def unpack(state: Path, folder: Path, packages: list[str]) -> dict[str, str]:
        unpacked.append(folder)
        return dict.fromkeys(packages, "1")

    monkeypatch.setattr(programs, "unpack", unpack)
    launchers = dict.fromkeys(programs.LAUNCHERS.values(), "2")
    monkeypatch.setattr(programs, "unpack_launchers", lambda state, folder: launchers)
    monkeypatch.setattr(programs, "lacking", lambda state: lacking.pop(0))
    state = tmp_path / "cluster"
    programs.provide(state)
    assert len(unpacked) == 1 and "nothing is installed" in capsys.readouterr().out
    programs.provide(state)
    assert len(unpacked) == 2
    with pytest.raises(ClusterError, match=r"provides libnew\.so\.2, which .*update"):
        programs.provide(state)


def test_those_of_another_scheduler_are_unpacked_when_it_is_asked_for_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked: list[set[str]] = []

    def unpack(state: Path, folder: Path, packages: list[str]) -> dict[str, str]:
        unpacked.append(set(packages))
        return dict.fromkeys(packages, "1")

    monkeypatch.setattr(programs, "unpack", unpack)
    launchers = dict.fromkeys(programs.LAUNCHERS.values(), "2")
    monkeypatch.setattr(programs, "unpack_launchers", lambda state, folder: launchers)
    monkeypatch.setattr(programs, "lacking", lambda state: [])
    for scheduler in ("slurm", "slurm", "sge", "sge", "slurm"):
        programs.provide(tmp_path / "cluster", scheduler)
    assert unpacked == [
        set(programs.PACKAGES), {*programs.PACKAGES, *programs.OF_SCHEDULERS["sge"]}
    ]  # fmt: skip


@pytest.mark.parametrize(
    "error",
    [apt.AptError("no mirror"), OSError("full"), subprocess.CalledProcessError(2, ["tar"])],
)
def test_what_cannot_be_had_is_a_sentence_and_leaves_nothing(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> dict[str, str]:
        raise error

    monkeypatch.setattr(programs, "unpack", fail)
    with pytest.raises(ClusterError, match="the cluster's programs cannot be"):
        programs.provide(tmp_path / "cluster")
    assert list((tmp_path / "cluster").iterdir()) == []
