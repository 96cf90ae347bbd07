"""Where images are from: what nobody answers for is kept out, listed and asked about."""

import grp
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from containers import admission, bases, build, images, origin, sources, store, trust
from containers.apptainer import ImageError
from containers.locking import BuildError
from containers.registry_connection import Registry, RegistryError
from containers.sharing import registry
from containers.table import load_table
from tests.containers import own_machine
from tests.other_user import OTHER, give_list, needs_root
from tests.sif_files import said, write_sif

PROJECT = Path(__file__).resolve().parents[2]
NAME = "mpich-5.0.2"
PULLED = {"how": "pulled", "from": "oras://somewhere/x", "lock": "registry"}
#: What entries were before they said where an image is from, and what others would write there.
UNKNOWN: list[dict[str, Any]] = [
    {},
    {"pulled_from": "oras://somewhere"},
    {"origin": PULLED},
    {"origin": {"how": "bundle", "from": "x.tar.gz"}},
    {"origin": "built"},
    {"origin": {"how": "built", "from": "oras://somewhere"}},
    {"admitted": True},
]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("*.pyc", "images.lock", "build", "*.asc")
    for folder in ("containers", "benchmarks"):
        shutil.copytree(PROJECT / folder, tmp_path / folder, ignore=ignored)
    return tmp_path


def place(root: Path, lacking: str = "", **more: Any) -> Path:
    """Put an image into its place, by an entry that names the inputs of this checkout."""
    path = store.folder(root) / f"{NAME}.sif"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_sif(path, [said({"org.wyeast.implementation": NAME})])
    inputs = build.recipe_of(root, NAME, "mmdebstrap").inputs_sha256()
    entry = {
        "file": path.name, "sha256": sources.sha256_of(path), "bytes": path.stat().st_size,
        "inputs_sha256": inputs, "built_utc": "2026-01-01T00:00:00Z",
        "labels": images.labels_inside(path), **more,
    }  # fmt: skip
    entry.pop(lacking, None)
    images.write_entry(root, NAME, entry)
    return path


def run(root: Path, module: str, *words: str) -> subprocess.CompletedProcess[str]:
    return own_machine.run(root, f"containers.{module}", *words)


def test_what_was_built_here_runs(checkout: Path) -> None:
    path = place(checkout, origin=origin.BUILT)
    assert trust.admit(checkout, NAME, {}).path == path
    build.build(checkout, [NAME], "mmdebstrap", force=False)


@pytest.mark.parametrize("more", UNKNOWN)
def test_what_is_unknown_is_kept_out_until_somebody_answers_for_it(
    checkout: Path, more: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    place(checkout, **more)
    asks = f"nobody here has vouched for it .* make admit IMAGES={NAME}; else remove"
    with pytest.raises(ImageError, match=asks):
        trust.admit(checkout, NAME, {})
    # Though its inputs are those of this checkout: that is its own word.
    with pytest.raises(BuildError, match=asks):
        build.build(checkout, [NAME], "mmdebstrap", force=False)
    assert f"it is kept out; make admit IMAGES={NAME}" in "".join(admission.listed(checkout))
    admission.admit(checkout, NAME)
    assert "may run from now on" in capsys.readouterr().out
    assert trust.admit(checkout, NAME, {})
    build.build(checkout, [NAME], "mmdebstrap", force=False)
    [line] = admission.listed(checkout)
    assert "it runs on the word of" in line and "(make admit, 20" in line


def test_the_word_is_for_the_file_that_was_there(checkout: Path) -> None:
    place(checkout)
    admission.admit(checkout, NAME)
    (store.folder(checkout) / f"{NAME}.sif").write_bytes(b"another")
    with pytest.raises(ImageError, match="has sha256"):
        trust.admit(checkout, NAME, {})
    with pytest.raises(ImageError, match="has sha256"):
        admission.admit(checkout, NAME)


def test_the_command_lists_and_asks(checkout: Path) -> None:
    assert run(checkout, "admission").stdout == "there are no images here\n"
    place(checkout, pulled_from="oras://somewhere")
    (store.folder(checkout) / "left.sif").write_bytes(b"x")
    done = run(checkout, "admission")
    assert done.returncode == 0
    first, second = done.stdout.splitlines()
    assert first == (
        f"{NAME} is pulled from oras://somewhere: it is kept out; make admit IMAGES={NAME}"
    )
    assert second.endswith("left.sif is not in any lock, so nothing runs it")
    done = run(checkout, "build", "--images", NAME)
    assert done.returncode == 1 and "up to date" not in done.stdout
    assert "nobody here has vouched for it" in done.stderr and "Traceback" not in done.stderr


def test_an_entry_that_names_no_inputs_is_no_error_of_ours(checkout: Path) -> None:
    recipe = build.recipe_of(checkout, NAME, "mmdebstrap")
    for lacking in ("bytes", "inputs_sha256"):
        place(checkout, lacking=lacking)
        assert not build.up_to_date(recipe, images.load_lock(checkout))
    for module, words, sentence in (
        ("sharing.reproducibility", ["--images", NAME], "the inputs of"),
        (
            "sharing.registry",
            ["push", "--registry", "oras://localhost:1/x"],
            "has an incomplete entry for",
        ),
    ):
        done = run(checkout, module, *words)
        assert done.returncode == 1 and sentence in done.stderr
        assert "Traceback" not in done.stderr


@pytest.fixture
def pulls(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of somebody's and its image, which any registry gives."""
    sender = tmp_path / "sender"
    (sender / "containers").mkdir(parents=True)
    for name in ("containers", "benchmarks"):
        shutil.copytree(checkout / name, sender / name, dirs_exist_ok=True)
    path = place(sender, origin=origin.BUILT, admitted=origin.word("make admit"))

    def transfer(verb: str, of: Registry, *words: str | Path, size_bytes: int = 0) -> None:
        assert verb == "pull"
        shutil.copy(path, words[-2])

    monkeypatch.setattr(registry, "transfer", transfer)
    theirs = registry.read_lock((sender / images.LOCK).read_text(), "theirs")
    monkeypatch.setattr(registry, "pull_lock", lambda of, name: theirs)
    return sender / images.LOCK


WHERE = Registry("oras://site.org/x")


def test_a_lock_s_file_is_the_word_for_its_digests(checkout: Path, pulls: Path) -> None:
    registry.pull(checkout, WHERE, NAME, str(pulls), dry_run=False)
    entry = images.entry_of(checkout, NAME)
    assert entry["origin"] == {
        "how": "pulled", "from": "oras://site.org/x", "lock": str(pulls),
        "lock_sha256": sources.sha256_of(pulls), "signed_by": [],
    }  # fmt: skip
    assert entry["admitted"]["how"] == f"LOCK={pulls}"
    assert trust.admit(checkout, NAME, {})
    # By the lock here, what it says of that image goes on to hold.
    (store.folder(checkout) / f"{NAME}.sif").unlink()
    registry.pull(checkout, WHERE, NAME, "", dry_run=False)
    assert images.entry_of(checkout, NAME) == entry


def test_a_registry_s_own_word_needs_a_signature_or_ours(checkout: Path, pulls: Path) -> None:
    def pull(unsigned: bool) -> None:
        registry.pull(checkout, WHERE, NAME, "registry", dry_run=False, unsigned=unsigned)

    with pytest.raises(RegistryError, match=r"has no key .* ALLOW_UNSIGNED=1"):
        pull(False)
    assert not images.available(checkout)
    pull(True)
    entry = images.entry_of(checkout, NAME)
    assert entry["admitted"]["how"] == "ALLOW_UNSIGNED=1"
    assert entry["origin"]["lock"] == "registry"


def test_a_pull_by_the_lock_here_answers_for_nothing(checkout: Path, pulls: Path) -> None:
    place(checkout)
    (store.folder(checkout) / f"{NAME}.sif").unlink()
    registry.pull(checkout, WHERE, NAME, "", dry_run=False)
    with pytest.raises(ImageError, match=r"pulled from oras://site[.]org/x with the digest of"):
        trust.admit(checkout, NAME, {})
    # Of what is here already, too, the file of a lock is a word.
    registry.pull(checkout, WHERE, NAME, str(pulls), dry_run=False)
    assert trust.admit(checkout, NAME, {})


def test_a_push_does_not_tell_where_this_checkout_had_it_from(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(checkout, origin=PULLED, admitted=origin.word("make admit"))
    given: list[dict[str, Any]] = []
    monkeypatch.setattr(registry, "transfer", lambda *words, **more: None)
    monkeypatch.setattr(registry, "pull_lock", lambda of, name: {})
    monkeypatch.setattr(registry, "push_lock", lambda of, name, entry: given.append(entry))
    registry.push(checkout, WHERE, NAME, dry_run=False)
    assert [sorted(entry) for entry in given] == [sorted(registry.LockEntry.model_fields)]


def test_guests_are_used_by_name_and_written_nowhere(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guests = images.guest_root(checkout, "abc123")
    shutil.copytree(checkout / "containers", guests / "containers")
    shutil.copytree(checkout / "benchmarks", guests / "benchmarks")
    load_table.cache_clear()
    path = place(guests, origin={"how": "bundle", "from": "x.tar.gz"},
                 admitted=origin.word("make rerun"))  # fmt: skip
    with pytest.raises(ImageError, match="is not in"):
        trust.admit(checkout, NAME, {})
    with images.with_guests("abc123"):
        admitted = trust.admit(checkout, NAME, {})
        assert admitted.path == path
        assert images.labels(admitted)["org.wyeast.implementation"] == NAME
        other = {"file": "other.sif", "labels": {}, "sha256": "0" * 64}
        images.write_entry(checkout, "other", other)
    assert set(json.loads((checkout / images.LOCK).read_text())["images"]) == {"other"}
    assert images.available(checkout) == [] and os.environ.get(images.GUESTS) is None
    [line] = admission.listed(checkout)
    assert line == f"{NAME} is from the bundle x.tar.gz: only the rerun of that bundle uses it"
    monkeypatch.setenv(images.GUESTS, "../../x")
    with pytest.raises(ImageError, match="no bundle's images are there"):
        images.load_lock(checkout)


def test_only_our_own_bases_are_admitted(checkout: Path, tmp_path: Path) -> None:
    state = checkout / ".wyeast"
    base, _ = build.recipe_of(checkout, NAME, "mmdebstrap").bases
    path = base.path(state)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"a base")
    assert bases.admit(base, state).path == path
    path.chmod(0o666)
    with pytest.raises(ImageError, match=r"can be written by others; remove it"):
        bases.admit(base, state)
    path.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o644)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ImageError, match="it is not a regular file"):
        bases.admit(base, state)
    if os.geteuid() == 0:
        path.unlink()
        path.write_bytes(b"a stranger's")
        os.chown(path, 65534, 65534)
        with pytest.raises(ImageError, match="belongs to another user"):
            bases.admit(base, state)


@pytest.mark.parametrize(("place_of", "mode"), [("folder", 0o777), ("file", 0o666)])
def test_an_image_that_others_may_replace_is_refused(
    checkout: Path, place_of: str, mode: int
) -> None:
    """Between the moment at which it is admitted and that at which it starts there is time."""
    path = place(checkout, origin=origin.BUILT)
    target = path.parent if place_of == "folder" else path
    target.chmod(mode)
    for site in ({}, {"image_group": "users"}):
        with pytest.raises(images.ImageError, match=r"can be written by others .*: chmod go-w"):
            trust.admit(checkout, NAME, site)
    target.chmod(0o755)
    assert trust.admit(checkout, NAME, {})


def test_a_folder_in_which_others_may_replace_the_store_is_refused(checkout: Path) -> None:
    place(checkout, origin=origin.BUILT)
    images.take_over(checkout)
    above = store.folder(checkout)
    above.chmod(0o777)
    with pytest.raises(images.ImageError, match=rf"{above} can be written by others"):
        trust.admit(checkout, NAME, {})
    above.chmod(0o755)
    assert trust.admit(checkout, NAME, {}).path.parent == store.by_digest(checkout)


def test_an_access_control_list_lets_nobody_replace_an_image(checkout: Path) -> None:
    """The mode of what has a list, and of what belongs to a group of one's own, tells nothing."""
    path = place(checkout, origin=origin.BUILT)
    for target in (path, path.parent):
        give_list(target, OTHER, 7)
        with pytest.raises(images.ImageError, match=r"could put another image"):
            trust.admit(checkout, NAME, {})
        give_list(target, OTHER, 5)
        assert trust.admit(checkout, NAME, {})
    if os.geteuid() != 0:
        # The mode tells more of a group that is nobody's own.
        return
    give_list(path, 0, 7, grp.getgrnam("users").gr_gid)
    with pytest.raises(images.ImageError, match="by its access control list"):
        trust.admit(checkout, NAME, {"image_group": "staff"})
    assert trust.admit(checkout, NAME, {"image_group": "users"})


def test_the_sticky_bit_of_a_file_protects_nothing(checkout: Path) -> None:
    path = place(checkout, origin=origin.BUILT)
    path.chmod(0o1666)
    with pytest.raises(images.ImageError, match="can be written by others"):
        trust.admit(checkout, NAME, {})


@needs_root
@pytest.mark.parametrize("which", ["file", "folder"])
def test_an_image_of_another_user_is_refused(checkout: Path, which: str) -> None:
    """Its owner could write it once it is admitted, though it has the digest of the lock by now."""
    path = place(checkout, origin=origin.BUILT)
    target = path if which == "file" else path.parent
    os.chown(target, OTHER, grp.getgrnam("users").gr_gid)
    with pytest.raises(images.ImageError, match=rf"{target} belongs to user {OTHER}, who could"):
        trust.admit(checkout, NAME, {})
    assert trust.admit(checkout, NAME, {"image_group": "users"})
    # Whose checkout it is may have it.
    os.chown(checkout, OTHER, OTHER)
    assert trust.admit(checkout, NAME, {})


@needs_root
def test_a_group_that_may_replace_images_is_named_by_the_site(checkout: Path) -> None:
    path = place(checkout, origin=origin.BUILT)
    os.chown(path.parent, -1, grp.getgrnam("users").gr_gid)
    path.parent.chmod(0o775)
    with pytest.raises(images.ImageError, match="image_group: users"):
        trust.admit(checkout, NAME, {"image_group": "staff"})
    assert trust.admit(checkout, NAME, {"image_group": "users"})


def test_signing_starts_over_after_it_was_killed(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place(checkout, origin=origin.BUILT)
    aside = path.with_name(f".signed-{path.name}")
    aside.touch(0o555)

    def copy(source: Path, target: Path) -> None:
        # Nobody but root could write over that file.
        assert source == path and not target.exists()
        raise OSError("the disk is full")

    monkeypatch.setattr(shutil, "copy2", copy)
    with pytest.raises(OSError, match="the disk is full"):
        trust.sign_image(checkout, NAME, path, checkout, 0)
    assert not aside.exists()
