"""Images that travel through a real registry with TLS and a password: whole, or not at all."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers import images, store
from containers.apptainer import call
from tests.containers import travelling
from tests.containers.travelling import NAME, PASSWORD, Registry, place, run

pytestmark = [pytest.mark.real, pytest.mark.serial]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("registry")


@pytest.fixture(scope="module")
def registry(folder: Path) -> Iterator[Registry]:
    with travelling.served(folder / "served") as found:
        yield found


@pytest.fixture(scope="module")
def sender(folder: Path, registry: Registry) -> Path:
    """A checkout whose image is in the registry."""
    root = travelling.new_checkout(folder / "sender")
    place(root, travelling.new_sif(folder, NAME))
    done = run(
        root, "sharing.registry", "push", "--registry", registry.address(), **registry.access()
    )
    assert done.returncode == 0, done.stderr
    assert "pushed to oras://localhost" in done.stdout
    return root


@pytest.fixture
def receiver(tmp_path: Path, sender: Path) -> Path:
    return travelling.new_checkout(tmp_path / "receiver")


def pull(
    root: Path, registry: Registry, *arguments: str, port: int | None = None
) -> subprocess.CompletedProcess[str]:
    address = registry.address(port)
    return run(
        root, "sharing.registry", "pull", "--registry", address, *arguments, **registry.access()
    )


def assert_refused(done: subprocess.CompletedProcess[str], root: Path, words: str) -> None:
    assert done.returncode == 1
    assert words in done.stderr and len(done.stderr.splitlines()) == 1
    assert PASSWORD not in done.stdout + done.stderr
    found = store.folder(root)
    assert not found.exists() or list(found.iterdir()) == []
    assert not (root / images.LOCK).exists()


def test_a_pulled_image_is_the_pushed_one_and_is_not_built_again(
    sender: Path, receiver: Path, registry: Registry
) -> None:
    lock = ["--lock", str(sender / images.LOCK)]
    done = pull(receiver, registry, *lock, "--dry-run")
    assert done.returncode == 0 and "would pull" in done.stdout
    assert not (receiver / images.LOCK).exists()
    done = pull(receiver, registry, *lock)
    assert done.returncode == 0, done.stderr
    assert "pulled from" in done.stdout and "inputs that differ" not in done.stdout
    path = images.verify(receiver, NAME)
    assert path.read_bytes() == images.verify(sender, NAME).read_bytes()
    assert list(path.parent.iterdir()) == [path]
    built = run(receiver, "build", "--images", NAME)
    assert built.returncode == 0 and "up to date" in built.stdout
    before = path.stat().st_mtime_ns
    # Now images.lock here has the digest.
    done = pull(receiver, registry)
    assert done.returncode == 0 and done.stdout.startswith("is here already")
    assert path.stat().st_mtime_ns == before
    assert PASSWORD not in (receiver / images.LOCK).read_text()


def test_what_is_there_is_not_pushed_again(sender: Path, registry: Registry) -> None:
    done = run(
        sender, "sharing.registry", "push", "--registry", registry.address(), **registry.access()
    )
    assert done.returncode == 0 and done.stdout.startswith("is there already")


def test_without_a_lock_the_registry_is_taken_at_its_word_only_when_told(
    receiver: Path, registry: Registry
) -> None:
    assert_refused(pull(receiver, registry, "--images", NAME), receiver, "has no digest of mpich")
    word = ["--images", NAME, "--lock", "registry"]
    assert_refused(pull(receiver, registry, *word), receiver, "or set ALLOW_UNSIGNED=1")
    done = pull(receiver, registry, *word, "--allow-unsigned")
    assert done.returncode == 0, done.stderr
    assert images.verify(receiver, NAME).is_file()


def test_an_image_of_other_inputs_says_so(sender: Path, receiver: Path, registry: Registry) -> None:
    with (receiver / "benchmarks" / "Makefile").open("a") as file:
        file.write("# changed\n")
    done = pull(receiver, registry, "--lock", str(sender / images.LOCK))
    assert done.returncode == 0 and "built from inputs that differ" in done.stdout


def test_another_image_under_the_digest_is_refused(
    folder: Path, sender: Path, receiver: Path, registry: Registry, tmp_path: Path
) -> None:
    other = travelling.new_sif(tmp_path, NAME)
    digest = images.entry_of(sender, NAME)["sha256"]
    where = f"{registry.address()}/{NAME}:{digest}"
    call("push", other, where, **registry.access())
    try:
        done = pull(receiver, registry, "--lock", str(sender / images.LOCK))
    finally:
        call("push", images.verify(sender, NAME), where, **registry.access())
    assert_refused(done, receiver, "is not the intended image")


def test_a_file_changed_in_the_registrys_store_is_refused(
    sender: Path, receiver: Path, registry: Registry
) -> None:
    digest = images.entry_of(sender, NAME)["sha256"]
    [blob] = registry.folder.glob(f"store/**/blobs/sha256/{digest[:2]}/{digest}/data")
    whole = blob.read_bytes()
    middle = len(whole) // 2
    blob.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    try:
        done = pull(receiver, registry, "--lock", str(sender / images.LOCK))
    finally:
        blob.write_bytes(whole)
    assert_refused(done, receiver, "was changed or is damaged")


def test_a_transfer_that_is_cut_leaves_nothing_and_the_next_is_whole(
    sender: Path, receiver: Path, registry: Registry
) -> None:
    lock = ["--lock", str(sender / images.LOCK)]
    with travelling.narrow_way(registry.port, 1_000_000, then_cut=True) as (port, reached):
        done = pull(receiver, registry, *lock, port=port)
        assert reached.is_set()
    assert_refused(done, receiver, "run this again")
    assert pull(receiver, registry, *lock).returncode == 0


def test_a_killed_transfer_installs_nothing_and_the_next_is_whole(
    sender: Path, receiver: Path, registry: Registry
) -> None:
    lock = ["--lock", str(sender / images.LOCK)]
    with travelling.narrow_way(registry.port, 1_000_000, then_cut=False) as (port, reached):
        client = subprocess.Popen(
            [sys.executable, "-m", "containers.sharing.registry", "pull",
             "--registry", registry.address(port), *lock],
            env=travelling.environment(receiver, **registry.access()), start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 600
        while not reached.wait(timeout=0.1):
            assert client.poll() is None and time.monotonic() < deadline
        os.killpg(client.pid, signal.SIGKILL)
        client.wait()
    assert not (receiver / images.LOCK).exists()
    assert not store.by_digest(receiver).exists()
    assert pull(receiver, registry, *lock).returncode == 0
    left = {path.name for path in store.folder(receiver).iterdir()}
    assert left == {f"{NAME}.sif", store.STORE}
    assert list(store.by_digest(receiver).iterdir()) == [images.verify(receiver, NAME)]


def test_the_registry_asks_for_a_password_and_for_the_sites_authority(
    sender: Path, receiver: Path, registry: Registry
) -> None:
    words = ["pull", "--registry", registry.address(), "--lock", str(sender / images.LOCK)]
    access = registry.access()
    done = run(receiver, "sharing.registry", *words, SSL_CERT_FILE=access["SSL_CERT_FILE"])
    assert_refused(done, receiver, "apptainer registry login")
    done = run(receiver, "sharing.registry", *words, **{**access, "SSL_CERT_FILE": "/dev/null"})
    assert_refused(done, receiver, "SSL_CERT_FILE")


def test_a_login_is_enough(sender: Path, receiver: Path, registry: Registry) -> None:
    access = travelling.environment(receiver, SSL_CERT_FILE=registry.access()["SSL_CERT_FILE"])
    subprocess.run(
        ["apptainer", "registry", "login", "--username", "user", "--password-stdin",
         f"oras://localhost:{registry.port}"],
        input=PASSWORD, text=True, check=True, env=access, capture_output=True,
    )  # fmt: skip
    lock = str(sender / images.LOCK)
    done = run(receiver, "sharing.registry", "pull", "--registry", registry.address(), "--lock",
               lock,
               SSL_CERT_FILE=access["SSL_CERT_FILE"])  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_labels_that_the_image_has_not_are_refused(
    sender: Path, receiver: Path, registry: Registry, tmp_path: Path
) -> None:
    lock = json.loads((sender / images.LOCK).read_text())
    lock["images"][NAME]["labels"]["org.wyeast.pmi"] = "pmi2"
    (tmp_path / "lock").write_text(json.dumps(lock))
    done = pull(receiver, registry, "--lock", str(tmp_path / "lock"))
    assert_refused(done, receiver, "labels that differ from the lock's")
