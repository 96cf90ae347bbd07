"""A checkout with as many images as are asked for, of which ReFrame lists the checks."""

import hashlib
import json
import os

from tests.reframe_checks.conftest import LABELS, PROJECT, StandIn
from tests.sif_files import said, write_sif
from tests.unmeasured import unmeasured


def with_images(stand_in: StandIn, count: int) -> list[str]:
    """Have a checkout so many images and no other; return their names."""
    entries = {}
    for number in range(count):
        name = f"mpich-5.0.{100 + number}"
        labels = {**LABELS, "org.wyeast.implementation": name}
        file = stand_in.root / ".wyeast" / "images" / f"{name}.sif"
        write_sif(file, [said(labels)])
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        entries[name] = {"file": file.name, "sha256": digest, "labels": labels}
    lock = {"schema": "wyeast-images-1", "images": entries}
    (stand_in.root / "containers" / "images.lock").write_text(json.dumps(lock))
    return list(entries)


def environment(stand_in: StandIn, names: list[str]) -> dict[str, str]:
    """Return the environment in which the checks of a checkout's images are listed."""
    return {
        **unmeasured(), "PYTHONPATH": str(PROJECT), "RFM_SYSTEM": "local",
        "RFM_CONFIG_PATH": str(PROJECT / "site_configs"), "WYEAST_TIER": "quick",
        "RFM_PREFIX": str(stand_in.root / "reframe"), "WYEAST_ROOT": str(stand_in.root),
        "WYEAST_IMAGES": ",".join(names), "PATH": os.environ["PATH"],
    }  # fmt: skip
