"""No program of an image runs before it is admitted: not to read its labels, nor for its bill."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers import images, store
from containers.apptainer import call
from containers.sources import sha256_of
from tests.containers import foreign, travelling
from tests.containers.foreign import LABELS, Person
from tests.containers.travelling import NAME

pytestmark = [pytest.mark.real, pytest.mark.serial]
WHO = ["root", "user"] if os.geteuid() == 0 else ["user"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("foreign")


@pytest.fixture(scope="module")
def sif(folder: Path) -> Path:
    return foreign.new_sif(folder)


@pytest.fixture(params=WHO)
def someone(request: pytest.FixtureRequest) -> Iterator[Person]:
    with foreign.person(request.param) as found:
        yield found


def entry_of(sif: Path) -> dict[str, object]:
    """What somebody says who wants the image to run: all that an entry of a build has."""
    return {
        "file": f"{NAME}.sif", "sha256": sha256_of(sif), "bytes": sif.stat().st_size,
        "inputs_sha256": "0" * 64, "built_utc": "2026-01-01T00:00:00Z", "labels": LABELS,
    }  # fmt: skip


def checkout(someone: Person, sif: Path | None = None, **more: object) -> Path:
    root = someone.folder / "checkout"
    (root / "containers" / "trust").mkdir(parents=True)
    shutil.copy(foreign.PROJECT / "containers/implementations.yaml", root / "containers")
    if sif:
        path = store.folder(root) / f"{NAME}.sif"
        path.parent.mkdir(parents=True)
        shutil.copy(sif, path)
        images.write_entry(root, NAME, {**entry_of(sif), **more})
    someone.own()
    return root


def test_the_image_does_leave_its_mark_where_it_is_asked_by_inspect(
    someone: Person, sif: Path
) -> None:
    """Else the tests below would prove nothing."""
    place = shutil.copy(sif, someone.folder)
    someone.own()
    code = (
        "import subprocess, sys; sys.exit(subprocess.call(['apptainer', 'inspect', sys.argv[1]]))"
    )
    someone.run("-c", code, str(place))
    assert someone.mark() == foreign.SECRET


def test_labels_are_read_without_it(someone: Person, sif: Path) -> None:
    path = store.folder(checkout(someone, sif)) / f"{NAME}.sif"
    code = "import sys; from containers import images as i; i.labels_inside(i.Path(sys.argv[1]))"
    done = someone.run("-c", code, str(path))
    assert someone.mark() is None
    assert (
        done.returncode and "does not say what it is: it has no object inspect-meta" in done.stderr
    )


def test_it_is_put_nowhere(someone: Person, sif: Path) -> None:
    """By the one way in which images of registries and of bundles come in."""
    root = checkout(someone)
    place = Path(shutil.copy(sif, someone.folder))
    someone.own()
    code = (
        "import json, sys; from containers import images as i; "
        "i.install(i.Path(sys.argv[1]), sys.argv[2], i.Path(sys.argv[3]), json.loads(sys.argv[4]), "
        "'the image of a bundle')"
    )
    done = someone.run("-c", code, str(root), NAME, str(place), json.dumps(entry_of(sif)))
    assert someone.mark() is None and place.exists()
    assert done.returncode and "does not say what it is" in done.stderr


def test_its_bill_is_read_without_it(someone: Person, sif: Path) -> None:
    root = checkout(someone, sif)
    done = someone.run("-m", "containers.bill_of_materials", WYEAST_ROOT=str(root))
    assert someone.mark() is None
    assert done.returncode == 1 and "does not say what is in it: it has no object" in done.stderr


def test_a_registry_s_word_runs_nothing(
    someone: Person, sif: Path, folder: Path, served: int, tmp_path: Path
) -> None:
    """With an empty trust folder, and where the caller answers for whatever comes."""
    root = checkout(someone)
    address = f"oras://localhost:{served}/x"
    entry = entry_of(sif)
    lock, packed = tmp_path / "lock", tmp_path / "lock.sif"
    lock.write_text(json.dumps({"schema": images.SCHEMA, "images": {NAME: entry}}))
    call("sif", "new", packed)
    call("sif", "add", "--datatype", "6", packed, lock)
    call("push", sif, f"{address}/{NAME}:{entry['sha256']}")
    call("push", packed, f"{address}/{NAME}:lock")
    words = ["-m", "containers.sharing.registry", "pull", "--registry", address, "--images", NAME]
    asked = [*words, "--lock", "registry"]
    for more, sentence in ([], "ALLOW_UNSIGNED=1"), (["--allow-unsigned"], "does not say what it"):
        done = someone.run(*asked, *more, WYEAST_ROOT=str(root))
        assert someone.mark() is None
        assert done.returncode and sentence in done.stderr
    assert not images.available(root)


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[int]:
    with travelling.plainly_served(folder / "served") as port:
        yield port


def test_what_is_unknown_runs_in_no_check(someone: Person, sif: Path) -> None:
    """An entry that looks like a build's own, as a bundle's rerun used to take it over."""
    root = checkout(someone, sif)
    code = (
        "import sys; from pathlib import Path; from campaign import provenance; "
        f"provenance.describe_images(Path(sys.argv[1]), ['{NAME}'], {{}})"
    )
    done = someone.run("-c", code, str(root), WYEAST_ROOT=str(root))
    assert someone.mark() is None
    assert done.returncode and f"make admit IMAGES={NAME}" in done.stderr
