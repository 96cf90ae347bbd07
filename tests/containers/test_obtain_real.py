"""What `make images` pulls before it builds: current images that a trusted key has signed."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers import bill_of_materials, build, images, store, trust
from containers.apptainer import call
from containers.registry_connection import Registry, RegistryError
from containers.sharing import obtain
from records import locks
from tests.containers import own_machine, travelling
from tests.containers.travelling import NAME, make, place, run

pytestmark = pytest.mark.real
OTHER = "openmpi-5.0.11"
#: Signed as well: one of other inputs than its lock says, and one that does not say of which.
OLD, SILENT = "mpich-3.4.3", "lam-7.1.4"
LACKING = "openmpi-4.1.8"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key to sign with, and small images."""
    path = tmp_path_factory.mktemp("obtain")
    home = path / "gpg"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", ""]
    make(*gpg, "--quick-generate-key", "Good <good@site>", "rsa2048", "sign", "never")
    (path / "good.asc").write_text(make(*gpg, "--armor", "--export", "good@site"))
    secret = path / "secret"
    secret.write_text(make(*gpg, "--armor", "--export-secret-keys", "good@site"))
    call("key", "import", secret, APPTAINER_KEYSDIR=str(path / "keys"))
    make("gpgconf", "--homedir", str(home), "--kill", "gpg-agent")
    for name in (NAME, OTHER, OLD, SILENT):
        travelling.new_sif(path, name)
    return path


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """A registry with images that are signed and one that is not; all its locks say today's inputs.

    Whoever keeps it has written these: nobody signs a registry's lock.
    """
    with travelling.plainly_served(folder / "served") as port:
        root = trusting(folder, folder / "sender")
        current = build.recipe_of(root, NAME, "mmdebstrap").inputs_sha256()
        for name, inputs in ((NAME, current), (OTHER, current), (OLD, "0" * 64), (SILENT, None)):
            place(root, folder / f"{name}.sif")
            image = store.folder(root) / f"{name}.sif"
            if inputs:
                bill_of_materials.put_inside(image, bill(inputs), folder)
            if name != OTHER:
                call("sign", "--keyidx", "0", image, APPTAINER_KEYSDIR=str(folder / "keys"))
            travelling.lock_again(root, name)
        found = f"oras://localhost:{port}/site/images"
        done = run(root, "sharing.registry", "push", "--registry", found)
        assert done.returncode == 0, done.stderr
        yield found


def bill(inputs: str) -> str:
    """A bill of materials that says of what inputs an image is."""
    properties = [{"name": bill_of_materials.INPUTS, "value": inputs}]
    of_image = {"component": {"type": "container", "name": "x", "properties": properties}}
    return json.dumps({"bomFormat": "CycloneDX", "metadata": of_image})


def trusting(folder: Path, root: Path) -> Path:
    """A checkout without images that trusts the key."""
    travelling.new_checkout(root)
    (root / trust.FOLDER / "good.asc").write_text((folder / "good.asc").read_text())
    return root


@pytest.fixture
def receiver(tmp_path: Path, folder: Path) -> Path:
    return trusting(folder, tmp_path / "receiver")


@pytest.fixture(autouse=True)
def _own_machine(receiver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No campaign of this machine refuses what these tests install elsewhere."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    monkeypatch.setattr(locks, "SHARED", (tmp_path / "shared",))
    monkeypatch.setenv("PATH", travelling.environment(receiver)["PATH"])


def obtained(root: Path, address: str) -> subprocess.CompletedProcess[str]:
    return own_machine.run(
        root, "containers.sharing.obtain", "--images", NAME, "--images-from", address
    )


def test_what_a_registry_has_is_pulled_and_not_built(receiver: Path, address: str) -> None:
    done = obtained(receiver, address)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0].startswith(f"pulled from {address} and verified: {NAME}, ")
    assert said[1:] == [f"images are up to date: {NAME}"]
    entry = images.entry_of(receiver, NAME)
    assert trust.admit(receiver, NAME, {"image_policy": "signed"}).path.is_file()
    assert entry["origin"]["lock"] == "registry" and "admitted" not in entry
    # One that is current is not asked for.
    done = obtained(receiver, "oras://localhost:1/nobody")
    assert done.returncode == 0, done.stderr
    # One that was lost comes by the digest of this checkout's own lock, whoever signed it.
    images.verify(receiver, NAME).unlink()
    (receiver / trust.FOLDER / "good.asc").unlink()
    obtain.pull_current(receiver, Registry(address), [NAME], None)
    assert images.verify(receiver, NAME).is_file() and images.entry_of(receiver, NAME) == entry


def test_what_it_lacks_is_left_to_the_build_and_said(
    receiver: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    obtain.pull_current(receiver, Registry(address), [LACKING], None)
    assert capsys.readouterr().out == f"{address} has no {LACKING}, so it is built here\n"
    with (receiver / "benchmarks" / "Makefile").open("a") as file:
        file.write("# changed\n")
    obtain.pull_current(receiver, Registry(address), [NAME], None)
    said = f"{address} has {NAME} of other inputs than this checkout's, so it is built here\n"
    assert capsys.readouterr().out == said
    assert not (receiver / images.LOCK).exists() and not store.folder(receiver).exists()


@pytest.mark.parametrize(
    ("name", "where", "words"),
    [
        (OTHER, "", "is not signed; .* by a registry's own lock only signed images are taken"),
        (OLD, "", f"is signed, but not for what .* lock says: .* the inputs {'0' * 64}, and"),
        (SILENT, "", "does not say what is in it: it has no object"),
        (NAME, "oras://localhost:1/nobody", "connection refused"),
    ],
)  # fmt: skip
def test_what_cannot_be_trusted_or_reached_is_no_reason_to_build(
    name: str, where: str, words: str, receiver: Path, address: str
) -> None:
    with pytest.raises(RegistryError, match=words) as error:
        obtain.pull_current(receiver, Registry(where or address), [name], None)
    assert str(error.value).endswith("or build it here: IMAGES_FROM=none")
    assert not (receiver / images.LOCK).exists()


def test_without_a_trusted_key_nothing_is_taken(receiver: Path, address: str) -> None:
    (receiver / trust.FOLDER / "good.asc").unlink()
    with pytest.raises(RegistryError, match="has no key to verify who made it"):
        obtain.pull_current(receiver, Registry(address), [NAME], None)
