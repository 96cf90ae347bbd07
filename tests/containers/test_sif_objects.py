"""What a SIF file says is read without Apptainer, and a file that lies is refused."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from containers import images, sif_objects
from containers.sif_header import SifError
from containers.sif_objects import BILL, JSON_OBJECT, SAID
from tests.sif_files import Part, said, write_sif

LABELS = {"org.wyeast.implementation": "mpich-5.0.2"}
GOOD = said(LABELS)
FILE_SYSTEM = Part(0x4004, b"hsqs" * 100)


def text_of(content: bytes) -> Part:
    return Part(JSON_OBJECT, content, SAID)


def test_labels_and_bill_are_found(tmp_path: Path) -> None:
    text = json.dumps({"bomFormat": "CycloneDX", "components": []})
    path = write_sif(tmp_path / "x.sif", [GOOD, FILE_SYSTEM, Part(BILL, text.encode(), "bill")])
    assert sif_objects.labels(path) == LABELS and sif_objects.bill(path) == text
    assert images.labels_inside(path) == LABELS
    assert [one.number for one in sif_objects.objects(path)] == [1, 2, 3]


PARTS: list[tuple[list[Part], str]] = [
    ([FILE_SYSTEM], "has no object inspect-metadata.json"),
    ([GOOD, GOOD], "has 2 object inspect-metadata.json"),
    ([Part(JSON_OBJECT, GOOD.content, "other.json")], "has no object"),
    ([Part(0x4007, GOOD.content, SAID)], "has no object"),
    ([Part(JSON_OBJECT, GOOD.content, SAID, offset=0)], "overlaps another one"),
    ([Part(JSON_OBJECT, GOOD.content, SAID, offset=4096)], "overlaps another one"),
    ([Part(JSON_OBJECT, GOOD.content, SAID, offset=-1)], "overlaps another one"),
    ([Part(JSON_OBJECT, GOOD.content, SAID, offset=2**62)], "outside the file"),
    ([Part(JSON_OBJECT, GOOD.content, SAID, size=10**6)], "outside the file"),
    ([Part(JSON_OBJECT, GOOD.content, SAID, size=2**62)], "outside the file"),
    ([Part(JSON_OBJECT, GOOD.content, SAID, size=-1)], "overlaps another one"),
    ([Part(0x4004, b"x" * 50, size=51), GOOD], "overlaps another one"),
    ([GOOD, Part(0x4004, b"x", number=1)], "have the same number"),
    ([text_of(b'{"data": "\xff"}')], "cannot be read: 'utf-8'"),
    ([text_of(b"[" * 100_000)], "nested too deeply"),
    ([text_of(b'{"a":' * 100_000)], "nested too deeply"),
    ([text_of(b"")], "cannot be read"),
    ([text_of(b"9" * 10_000)], "cannot be read"),
    ([text_of(b'{"data": 1, "data": 2}')], "a duplicate key"),
    ([text_of(b"[]")], "has no labels"),
    ([text_of(b'{"data": {"attributes": null}}')], "has no labels"),
    ([said(["a"])], "labels that are not text"),
    ([said({"a": 1})], "labels that are not text"),
    ([said({"a": "x" * 2**20})], "which is more than"),
]


@pytest.mark.parametrize(("parts", "sentence"), PARTS)
def test_hostile_objects_are_refused(tmp_path: Path, parts: list[Part], sentence: str) -> None:
    path = write_sif(tmp_path / "x.sif", parts)
    with pytest.raises(SifError, match=sentence):
        sif_objects.labels(path)
    with pytest.raises(images.ImageError, match=r"x.sif does not say what it is: .*make images"):
        images.labels_inside(path)


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ({"total": 2**40}, "descriptors"),
        ({"total": -1}, "descriptors"),
        ({"total": 0, "free": 0}, "descriptors"),
        ({"free": 9}, "descriptors"),
        ({"free": 6}, "not the one it states"),
        ({"at": 0}, "outside the file"),
        ({"at": -4096}, "outside the file"),
        ({"at": 2**62}, "outside the file"),
    ],
)
def test_hostile_headers_are_refused(tmp_path: Path, header: dict[str, int], sentence: str) -> None:
    path = write_sif(tmp_path / "x.sif", [GOOD], **header)
    with pytest.raises(SifError, match=sentence):
        sif_objects.labels(path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def link(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.symlink_to("other")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def none(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [cut, link, pipe, none])
def test_what_is_no_file_of_its_own_is_refused(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = write_sif(tmp_path / "x.sif", [GOOD])
    change(path)
    with pytest.raises((SifError, OSError)):
        sif_objects.labels(path)
    if change is link:
        # Of an image, which its digest identifies, the folder may be on a larger disk.
        assert images.labels_inside(path) == sif_objects.labels(path.with_name("other"))
        path.with_name("other").unlink()
    with pytest.raises(images.ImageError, match="does not say what it is"):
        images.labels_inside(path)


@pytest.mark.parametrize("text", [b"{}", b"[]", b"\xff"])
def test_an_invalid_bill_is_refused(tmp_path: Path, text: bytes) -> None:
    path = write_sif(tmp_path / "x.sif", [GOOD, Part(BILL, text)])
    with pytest.raises(SifError, match=r"not in the CycloneDX format|cannot be read"):
        sif_objects.bill(path)
