"""The same programs under two names differ in nothing: real campaigns say so, too."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.comparison.compare import compare
from containers import images, store
from records.campaign import read_campaign
from tests.unmeasured import unmeasured

pytestmark = [pytest.mark.real, pytest.mark.serial, pytest.mark.long]
PROJECT = Path(__file__).resolve().parents[2]
#: Of one length, so that one can stand in the other's place.
IMAGE, TWIN = "mpich-5.0.2", "mpich-5.0.9"
LABEL = "org.wyeast.implementation"
CHECKS = "^EchoTest|^HaloExchange"
#: Each of two experiments may have a false difference in 4% of campaigns: two of three have any in
#: 2% at most.
CAMPAIGNS, MOST_WRONG = 3, 1


@pytest.fixture
def twins() -> Iterator[str]:
    """Return what names an image's twin to whatever looks for images: those of a bundle's rerun.

    The twin is the image but for the name that it has on its label.
    """
    name = f"twin{os.getpid()}"
    guests = images.guest_root(PROJECT, name)
    store.folder(guests).mkdir(parents=True)
    (guests / images.LOCK).parent.mkdir(parents=True)
    lock = images.load_own_lock(PROJECT)
    entry = lock["images"][IMAGE]
    data = store.path_of(PROJECT, entry).read_bytes()
    before, after = (f'"{LABEL}":"{one}"'.encode() for one in (IMAGE, TWIN))
    assert data.count(before) == 1
    file = store.folder(guests) / f"{TWIN}.sif"
    file.write_bytes(data.replace(before, after))
    facts = {
        "file": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "labels": {**entry["labels"], LABEL: TWIN},
    }  # fmt: skip
    lock["images"] = {TWIN: {**entry, **facts}}
    (guests / images.LOCK).write_text(json.dumps(lock))
    yield name
    shutil.rmtree(guests)
    for path in (PROJECT / "runs").glob(f"*-local-{name}"):
        shutil.rmtree(path)


def test_an_image_differs_from_its_twin_no_more_often_than_stated(twins: str) -> None:
    wrong: list[list[str]] = []
    for _ in range(CAMPAIGNS):
        command = (
            f". ./activate && exec python -m campaign --images={IMAGE},{TWIN} --budget=90s "
            f"--checks='{CHECKS}' --name={twins}"
        )
        done = subprocess.run(
            ["bash", "-c", command], cwd=PROJECT, capture_output=True, text=True, check=False,
            env={**unmeasured(), images.GUESTS: twins},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        path = max((PROJECT / "runs").glob(f"*-local-{twins}"))
        comparison = compare(read_campaign(path))
        verdicts = [(cell.name, one) for cell in comparison.cells for one in cell.verdicts.values()]
        # On a busy machine the budget may have no room for both experiments.
        assert verdicts
        wrong.append([name for name, one in verdicts if one.is_different])
    assert sum(map(bool, wrong)) <= MOST_WRONG, wrong
