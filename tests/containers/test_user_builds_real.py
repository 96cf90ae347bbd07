"""An ordinary user with subordinate ids builds an image, and measures with it."""

import pwd
from pathlib import Path

import pytest
import yaml

from records.manifest import read_manifest
from tests.containers.test_centre_real import PROJECT, Centre, opened_here, own_checkout
from tests.other_user import give, needs_root, open_folder, ordinary_user
from tests.packed import records_in

__all__ = ["open_folder"]
pytestmark = [pytest.mark.real, needs_root]
#: The image that is built soonest.
NAME = "pvm-3.4.6"


def test_a_user_builds_and_measures(open_folder: Path) -> None:
    root = own_checkout(open_folder)
    # What takes minutes or a network is here: the bases, and nothing of the image itself.
    for name in ("bases", "downloads"):
        (root / ".wyeast" / name).symlink_to(PROJECT / ".wyeast" / name)
    # Echoes through a daemon on a busy machine are slower than any machine of 1996; without any
    # reference the check would fail.
    references = {"local": {"bandwidth": [1.0, 0.0, None, "B/s"], "latency": [60.0, None, 0, "s"]}}
    place = root / "site_configs" / "local" / "references.yaml"
    place.write_text(yaml.safe_dump({"PvmEcho": references}))
    with ordinary_user() as user:
        give(root, pwd.getpwnam(user).pw_uid)
        assert f"\n{user}:" in f"\n{Path('/etc/subuid').read_text()}"
        own = Centre(root, user, opened_here(open_folder / "opened"))
        done = own.make("images", f"IMAGES={NAME}", "IMAGES_FROM=none")
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{NAME} is built" in done.stdout
        done = own.make("run", f"IMAGES={NAME}", "CHECKS=^(Preflight|Pvm)", "ROUNDS=1")
    assert done.returncode == 0, done.stdout + done.stderr
    [campaign] = (root / "runs").iterdir()
    assert {one["outcome"] for one in records_in(campaign).values()} == {"sound"}
    assert (campaign / "report.html").is_file()
    assert read_manifest(campaign).images[NAME].signature == "not verified: built here"
