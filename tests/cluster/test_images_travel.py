"""Two sites exchange an image: signed on this machine, pulled and launched on the cluster."""

import json
import shutil
from pathlib import Path

import pytest

from cluster import box
from containers import images, store, trust
from containers.sources import sha256_of
from records.kept import kept_launches
from tests.cluster.conftest import PROJECT, Checkout
from tests.containers import travelling
from tests.containers.travelling import PASSWORD, run
from tests.packed import records_in

pytestmark = pytest.mark.cluster
NAME = "mpich-5.0.2"
CHECK = f"python -m campaign.site.check --site virtual --images {NAME}"


@pytest.fixture
def sender(tmp_path: Path) -> Path:
    """Return a checkout of this machine's with the image that is built here, signed by a new key.

    The image of the project itself stays as it is.
    """
    root = travelling.new_checkout(tmp_path / "sender")
    built = images.verify(PROJECT, NAME)
    store.folder(root).mkdir(parents=True)
    shutil.copy(built, store.folder(root) / f"{NAME}.sif")
    images.write_entry(root, NAME, images.entry_of(PROJECT, NAME))
    for words in (["new-key", "--name", "Sender", "--email", "sender@local"], ["sign"]):
        done = run(root, "trust", *words)
        assert done.returncode == 0, done.stderr
    assert images.entry_of(root, NAME)["sha256"] != images.entry_of(PROJECT, NAME)["sha256"]
    return root


def pull_through_registry(sender: Path, checkout: Checkout, folder: Path) -> str:
    """Push the sender's image to a registry and pull it on the cluster; return what that said.

    The registry is on loopback of this machine, and the cluster's network is another: a way leads
    from its loopback to the registry. The lock comes by another way than the image.
    """
    checkout.give(sender / images.LOCK, "images.lock.of-sender")
    process, _ = box.running(box.state_folder(PROJECT))
    door = travelling.listener_at(process)
    with (
        travelling.served(folder) as registry,
        travelling.narrow_way(registry.port, listener=door) as (port, _),
    ):
        done = run(sender, "sharing.registry", "push", "--registry", registry.address(),
                   **registry.access())  # fmt: skip
        assert done.returncode == 0 and "pushed to" in done.stdout, done.stderr
        checkout.give(registry.folder / "ca.crt", "site.crt")
        login = (
            f"export SSL_CERT_FILE=$PWD/site.crt && printf %s {PASSWORD} | apptainer registry "
            f"login --username user --password-stdin oras://localhost:{port}"
        )
        done = checkout.run(
            f"{login} && make pull REGISTRY={registry.address(port)} LOCK=images.lock.of-sender "
            f"IMAGES={NAME}"
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_image_signed_here_runs_there_if_the_senders_key_is_trusted(
    sender: Path, checkout: Checkout, tmp_path: Path
) -> None:
    said = pull_through_registry(sender, checkout, tmp_path / "registry")
    signed = images.entry_of(sender, NAME)["sha256"]
    assert "pulled from" in said and signed in said
    # `make run` would take it as it is.
    assert "inputs that differ" not in said and "cannot be built" not in said
    pulled = store.folder(checkout.root) / f"{NAME}.sif"
    assert sha256_of(pulled) == signed and pulled.stat().st_uid != 0
    assert images.entry_of(checkout.root, NAME)["sha256"] == signed

    checkout.edit_site("launch: srun", "launch: srun\nimage_policy: signed")
    for command in (f"make verify IMAGES={NAME}", CHECK):
        done = checkout.run(command)
        said = done.stdout + done.stderr
        assert done.returncode != 0 and "none of the trusted keys" in said, said
    assert not any(map(kept_launches, checkout.root.glob("runs/*")))

    [key] = (sender / trust.FOLDER).glob("*.asc")
    checkout.give(key, f"{trust.FOLDER}/{key.name}")
    done = checkout.run(f"make verify IMAGES={NAME}")
    assert done.returncode == 0 and f"signed by {key.stem}" in done.stdout, done.stderr
    done = checkout.run(CHECK)
    assert done.returncode == 0, done.stdout + done.stderr

    [campaign] = (checkout.root / "runs").glob("*-virtual-check-site")
    image = json.loads((campaign / "manifest.json").read_text())["images"][NAME]
    assert image["sha256"] == signed and image["signature"] == f"signed by {key.stem}"
    [launch] = records_in(campaign).values()
    assert launch["experiment"] == "Preflight" and launch["image_sha256"] == signed
    assert launch["outcome"] == "sound" and launch["nodes"] > 1
