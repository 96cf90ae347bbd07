"""What is hidden from containers, what cannot be, and what of a launch is collected."""

import errno
import os
import re
import socket
from pathlib import Path

import pytest
from reframe.core.exceptions import SanityError

from containers import apptainer
from records.base import RecordError
from records.left_behind import read_left
from records.packs import segment_of, what_is_left
from reframe_checks.bin.noting import is_of_the_disk
from reframe_checks.mixins.guest import collect_outputs, isolation
from reframe_checks.mixins.hidden_places import places_of
from tests.whole_records import launch


def test_all_names_of_checkout_and_stage_are_hidden_each_once(tmp_path: Path) -> None:
    checkout = tmp_path / "disk" / "wyeast"
    (checkout / "stage").mkdir(parents=True)
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    named = tmp_path / "home" / "wyeast"
    assert places_of(named, named / "stage") == [checkout, named]
    assert places_of(checkout, tmp_path / "stage") == [checkout, tmp_path / "stage"]


def test_parts_of_a_checkout_that_lie_elsewhere_are_hidden_there_too(tmp_path: Path) -> None:
    checkout, disk = tmp_path / "wyeast", tmp_path / "disk"
    for folder in (checkout / ".wyeast", disk / "runs", disk / "images"):
        folder.mkdir(parents=True)
    (checkout / "runs").symlink_to(disk / "runs")
    (checkout / ".wyeast" / "images").symlink_to(disk / "images")
    places = places_of(checkout, checkout / "stage")
    assert places == [disk / "images", disk / "runs", checkout]


@pytest.mark.parametrize(
    "place", ["/opt", "/opt/wyeast", "/opt/mpi/wyeast", "/usr/lib/wyeast", "/"]
)
def test_a_checkout_where_images_have_what_they_run_is_refused(place: str, tmp_path: Path) -> None:
    with pytest.raises(SanityError, match=r"cannot be hidden from containers.*: move the checkout"):
        isolation(Path(place), tmp_path, alone=True)
    assert places_of(Path("/opt/ours/wyeast"), Path("/opt/ours/wyeast/x"))


@pytest.mark.parametrize("alone", [True, False])
def test_containers_that_share_a_node_share_what_ranks_need(
    alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stage").mkdir()
    options = isolation(tmp_path, tmp_path / "stage", alone)
    assert {"--cleanenv", "--no-home", "--no-mount=cwd", "--no-mount=/opt"} <= set(options)
    assert ({"--pid", "--ipc", "--no-mount=tmp"} <= set(options)) == alone
    covers = [option for option in options if option.endswith(f"destination={tmp_path},ro")]
    assert len(covers) == 1
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    # Else it could take away what hides the checkout, or look into Apptainer's own processes.
    dropped = "CAP_SYS_ADMIN" if alone else "CAP_SYS_ADMIN,CAP_SYS_PTRACE"
    assert f"--drop-caps={dropped}" in apptainer.launch_options(alone)


def test_a_file_is_collected_and_nothing_else(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "good").write_text("numbers")
    collect_outputs(tmp_path, ["good", "missing"])
    assert (tmp_path / "good").read_text() == "numbers" and not (tmp_path / "missing").exists()
    os.mkfifo(work / "pipe")
    (work / "folder").mkdir()
    (work / "link").symlink_to(work / "good")
    with socket.socket(socket.AF_UNIX) as heard:
        here = Path.cwd()
        os.chdir(work)
        heard.bind("socket")
        os.chdir(here)
        for name in ("pipe", "folder", "link", "socket"):
            with pytest.raises(RecordError, match=rf"{name}, which .*is a {name} and not a file"):
                collect_outputs(tmp_path, [name])
            assert not (tmp_path / name).exists()


@pytest.mark.parametrize("error", [errno.EIO, errno.ESTALE, errno.EMFILE])
def test_a_file_that_the_disk_does_not_give_is_neither_empty_nor_the_launchs_fault(
    error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "file").write_text("numbers")

    def fail(*_: object, **__: object) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(OSError, match=re.escape(os.strerror(error))) as raised:
        collect_outputs(tmp_path, ["file"])
    assert is_of_the_disk(raised.value), "the attempt is lost, and made again"
    with pytest.raises(OSError, match=re.escape(os.strerror(error))):
        segment_of(launch(), {"file": tmp_path / "work" / "file"}, "wy-0123456789ab")


def test_a_file_that_its_program_has_closed_to_us_is_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    (tmp_path / "file").write_text("numbers")
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(RecordError, match="cannot be read: Permission denied"):
        read_left(tmp_path / "file")
    assert what_is_left(tmp_path / "file") == b""


def test_no_more_is_read_than_fits(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"12345")
    assert read_left(tmp_path / "long", 5) == b"12345"
    with pytest.raises(RecordError, match="at most 0 MB are read"):
        read_left(tmp_path / "long", 4)
