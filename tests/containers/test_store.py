"""The store of images: by digest, never replaced, and taken over from what was before it."""

import errno
import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from containers import images, locking, store
from containers.apptainer import state_of
from containers.selection import campaign_lock
from containers.sources import sha256_of
from records import files
from records.locks import exclusive
from tests.network_locks import lustre, nfs
from tests.sif_files import said, write_sif

__all__ = ["lustre", "nfs"]

NAME = "mpich-5.0.2"
OWN = {"org.wyeast.implementation": NAME}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "containers").mkdir()
    store.folder(tmp_path).mkdir(parents=True)
    return tmp_path


def new_image(root: Path, extra: str = "") -> tuple[Path, dict[str, object]]:
    """Return a file of an image, and its entry."""
    labels = OWN | ({"org.wyeast.pmi": extra} if extra else {})
    aside = write_sif(store.folder(root) / ".new", [said(labels)])
    digest = sha256_of(aside)
    return aside, {"file": f"{NAME}.sif", "sha256": digest, "labels": labels}


def install(root: Path, extra: str = "", guests: str = "") -> Path:
    aside, entry = new_image(root, extra)
    if guests:
        (images.guest_root(root, guests) / "containers").mkdir(parents=True)
    images.install(root, NAME, aside, entry, "the image", guests)
    return store.place_of(root, str(entry["sha256"]))


def test_another_image_of_a_name_leaves_the_one_that_may_be_running(root: Path) -> None:
    first = install(root)
    before = first.stat()
    second = install(root, "pmi2")
    assert first.is_file() and first.stat() == before and second != first
    assert images.verify(root, NAME) == second and images.labels(second) != OWN
    assert second.stat().st_mode & 0o777 == 0o555
    # For people, the name leads to the image of the lock.
    assert (store.folder(root) / f"{NAME}.sif").resolve() == second.resolve()


def test_the_same_image_again_is_the_same_file(root: Path) -> None:
    first = install(root)
    before = state_of(first)
    assert install(root) == first and state_of(first) == before
    # One that was damaged is no longer that image.
    first.chmod(0o755)
    first.write_bytes(b"damaged")
    assert install(root) == first and images.verify(root, NAME) == first


def test_images_of_before_run_as_they_are_and_are_taken_over(root: Path) -> None:
    aside, entry = new_image(root)
    named = store.folder(root) / f"{NAME}.sif"
    aside.rename(named)
    images.write_entry(root, NAME, entry)
    assert images.verify(root, NAME) == named and images.labels(named) == OWN
    inode = named.stat().st_ino
    images.take_over(root)
    place = store.place_of(root, str(entry["sha256"]))
    assert images.verify(root, NAME) == place and place.stat().st_ino == inode
    assert named.is_symlink() and named.resolve() == place.resolve()
    images.take_over(root)
    assert images.verify(root, NAME) == place


def test_a_file_that_is_not_the_locks_is_not_taken_over(root: Path) -> None:
    _, entry = new_image(root)
    named = store.folder(root) / f"{NAME}.sif"
    named.write_bytes(b"another")
    images.write_entry(root, NAME, entry)
    images.take_over(root)
    assert not named.is_symlink() and not store.by_digest(root).exists()
    with pytest.raises(images.ImageError, match="it is not the image that was built"):
        images.verify(root, NAME)


def test_what_came_into_the_store_meanwhile_is_not_replaced(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another checkout, which shares the store, is a moment faster, and runs what it has put."""
    aside, entry = new_image(root)
    place = store.place_of(root, str(entry["sha256"]))
    theirs: list[os.stat_result] = []

    def first(path: Path) -> None:
        if not theirs:
            shutil.copy(path, place)
            theirs.append(place.stat())

    monkeypatch.setattr(files, "flush_to_disk", first)
    assert store.keep(root, aside, str(entry["sha256"])) == place
    assert place.stat() == theirs[0] and not aside.exists()


@pytest.mark.parametrize("moment", ["read", "linked"])
def test_a_name_that_goes_to_another_file_meanwhile_is_left_to_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    aside, entry = new_image(root)
    named = store.folder(root) / f"{NAME}.sif"
    aside.rename(named)
    images.write_entry(root, NAME, entry)
    before, place = named.stat(), store.place_of(root, str(entry["sha256"]))

    def replace() -> None:
        if named.stat().st_ino == before.st_ino:
            (root / "new").write_bytes(b"another")
            (root / "new").replace(named)

    def read(path: Path) -> str:
        digest = sha256_of(path)
        if moment == "read":
            replace()
        return digest

    def linked(root: Path, aside: Path, sha256: str) -> Path:
        replace()
        return keep(root, aside, sha256)

    keep = store.keep
    monkeypatch.setattr(store, "sha256_of", read)
    monkeypatch.setattr(store, "keep", linked)
    images.take_over(root)
    assert named.read_bytes() == b"another" and not named.is_symlink()
    assert place.exists() == (moment == "linked")
    assert {path.name for path in place.parent.iterdir()} <= {place.name}


def test_a_file_system_without_second_names_has_a_store_as_well(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> NoReturn:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)
    aside, entry = new_image(root)
    named, place = store.folder(root) / f"{NAME}.sif", store.place_of(root, str(entry["sha256"]))
    aside.rename(named)
    images.write_entry(root, NAME, entry)
    images.take_over(root)
    before = place.stat()
    assert named.resolve() == place.resolve() and images.verify(root, NAME) == place
    assert install(root) == place and place.stat() == before


def test_guests_share_the_store_and_nobody_else_uses_them(root: Path) -> None:
    own, guest = install(root), install(root, "pmi2", guests="abc")
    assert guest.parent == own.parent
    assert images.verify(root, NAME) == own
    with images.with_guests("abc"):
        assert images.verify(root, NAME) == guest and images.labels(guest) != OWN
        assert images.entry_of(root, NAME)["guest"] is True
    assert "guest" not in images.entry_of(root, NAME)
    with pytest.raises(images.ImageError, match="is not in"):
        images.labels(guest)


def test_what_no_lock_names_is_removed_unless_a_campaign_may_run_it(root: Path) -> None:
    old, guest, new = install(root), install(root, "pmi2", guests="abc"), install(root, "pmix")
    site = root / "site_configs" / "far" / "site.yaml"
    site.parent.mkdir(parents=True)
    site.write_text("scheduler: slurm\n")
    lock = campaign_lock(root, "far")
    lock.parent.mkdir(parents=True)
    with exclusive(lock, str(os.getpid())):
        locking.prune(root)
        assert old.is_file()
    locking.prune(root)
    assert not old.exists() and guest.is_file() and new.is_file()


def test_what_is_in_use_stays_on_nfs_too(root: Path, nfs: None) -> None:
    old, _ = install(root), install(root, "pmix")
    with store.in_use(root, [old.stem]):
        locking.prune(root)
        assert old.is_file()
    locking.prune(root)
    assert not old.exists()


def test_nothing_is_removed_where_none_can_tell_who_uses_it(root: Path, lustre: None) -> None:
    old, _ = install(root), install(root, "pmix")
    with store.in_use(root, [old.stem]):
        assert images.prune(root) == [] and old.is_file()


def test_nothing_is_removed_by_a_lock_that_cannot_be_read(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, _ = install(root), install(root, "pmix")
    install(root, "pmi2", guests="abc")
    lock = images.guest_root(root, "abc") / images.LOCK
    lock.write_text("{")
    locking.prune(root)
    assert old.is_file()
    assert f"unused images are not removed: {lock} cannot be read" in (capsys.readouterr().err)


def test_nothing_is_removed_from_a_store_that_others_may_share(root: Path, tmp_path: Path) -> None:
    old, _ = install(root), install(root, "pmix")
    store.folder(root).rename(tmp_path / "shared")
    store.folder(root).symlink_to(tmp_path / "shared")
    locking.prune(root)
    assert old.is_file()
