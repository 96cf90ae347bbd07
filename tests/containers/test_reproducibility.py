"""Two images that differ are told apart down to the file; two of the same content are one file."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from containers import sif_header, sources
from containers.apptainer import call
from containers.sharing import reproducibility
from containers.sharing.reproducibility import compare, differing_files
from tests.containers.built_images import PROJECT, PVM

EPOCH = 1_700_000_000


def test_every_kind_of_difference_is_named(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    for name in ("same", "content", "mode", "time", "only"):
        (first / name).write_text("x")
        os.utime(first / name, (EPOCH, EPOCH))
    (first / "link").symlink_to("same")
    os.utime(first / "link", (EPOCH, EPOCH), follow_symlinks=False)
    shutil.copytree(first, second, symlinks=True)
    assert differing_files(first, second) == []
    (second / "content").write_text("y")
    os.utime(second / "content", (EPOCH, EPOCH))
    (second / "mode").chmod(0o755)
    os.utime(second / "time", (EPOCH + 1, EPOCH + 1))
    (second / "only").unlink()
    (second / "link").unlink()
    (second / "link").symlink_to("mode")
    os.utime(second / "link", (EPOCH, EPOCH), follow_symlinks=False)
    assert differing_files(first, second) == [
        "content: content", "link: content", "mode: mode", "only: only in the first",
        "time: modification time",
    ]  # fmt: skip


def test_what_is_not_a_sif_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.sif"
    path.write_bytes(b"x" * 200)
    with pytest.raises(sif_header.SifError, match="not a SIF file"):
        sif_header.settle(path, "x", EPOCH)
    assert path.read_bytes() == b"x" * 200


def build(content: Path, target: Path) -> Path:
    call("build", "--fakeroot", target, content, SOURCE_DATE_EPOCH=str(EPOCH))
    return target


@pytest.mark.real
def test_two_builds_differ_by_what_apptainer_writes_and_settled_headers_do_not(
    tmp_path: Path,
) -> None:
    content = tmp_path / "content"
    (content / ".singularity.d").mkdir(parents=True)
    (content / "file").write_text("x")
    first = build(content, tmp_path / "first.sif")
    copy = tmp_path / "copy.sif"
    call("sif", "new", copy)
    shutil.copy(first, copy)
    with copy.open("r+b") as file:
        file.seek(sif_header.HEADER_AT)
        file.write(os.urandom(16))
    assert compare(first, copy, tmp_path) == [
        "the header: identity or times; every object is the same"
    ]
    for path in (first, copy):
        sif_header.settle(path, "inputs", EPOCH)
    assert compare(first, copy, tmp_path) == []
    assert sources.sha256_of(first) == sources.sha256_of(copy)
    (content / "file").write_text("y")
    second = build(content, tmp_path / "second.sif")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    # Times after SOURCE_DATE_EPOCH are that.
    assert "the file system: file: content" in compare(first, second, scratch)


@pytest.mark.real
@pytest.mark.serial
def test_an_image_is_the_same_when_it_is_built_again(pvm: Path) -> None:
    command = [sys.executable, "-m", "containers.sharing.reproducibility", "--images", PVM]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{PVM} is the same when built again: sha256 {sources.sha256_of(pvm)}" in done.stdout


@pytest.mark.real
def test_an_image_that_differs_is_said_file_by_file(
    pvm: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def make_another(recipe: object, target: Path, *_: object) -> None:
        content = tmp_path / "content"
        (content / ".singularity.d").mkdir(parents=True)
        (content / "another").write_text("x")
        call("build", "--fakeroot", target, content, SOURCE_DATE_EPOCH=str(EPOCH))

    monkeypatch.setattr("containers.build.make_image", make_another)
    log = tmp_path / "log"
    assert not reproducibility.build_again(PROJECT, PVM, log)
    out = capsys.readouterr().out
    assert out.startswith(f"{PVM} differs when built again, in ")
    assert "the objects: " in log.read_text()
