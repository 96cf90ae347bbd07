"""The images as built, for the tests that open and run them."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers import build, images
from records import locks
from tests.containers.built_images import INTEL, LAM, MPIS, NAMES, PROJECT, PVM


@pytest.fixture(autouse=True)
def _own_machine(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Let no campaign that measures on this machine refuse what a test only plays."""
    if not request.node.get_closest_marker("real"):
        folder = tmp_path_factory.mktemp("shared")
        folder.chmod(0o1777)
        monkeypatch.setattr(locks, "SHARED", (folder,))


@pytest.fixture(scope="session")
def _built() -> None:
    """Have the images built, once for all tests."""
    build.build(PROJECT, NAMES, "mmdebstrap", force=False)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that containers do not have from the machine: not /tmp.

    Its name is the checkout's: what an image has of an MPI there is the next run's, too.
    """
    own = hashlib.sha256(bytes(PROJECT)).hexdigest()[:12]
    folder = (Path("/opt") if os.geteuid() == 0 else Path.home()) / f"wyeast-test-{own}"
    # Of a run that was killed.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest, _built: None) -> str:
    return str(request.param)


@pytest.fixture
def image(name: str) -> Path:
    return images.verify(PROJECT, name)


@pytest.fixture(params=MPIS)
def mpi(request: pytest.FixtureRequest, _built: None) -> str:
    return str(request.param)


@pytest.fixture
def mpi_image(mpi: str) -> Path:
    return images.verify(PROJECT, mpi)


@pytest.fixture
def intel(_built: None) -> Path:
    return images.verify(PROJECT, INTEL)


@pytest.fixture
def lam(_built: None) -> Path:
    return images.verify(PROJECT, LAM)


@pytest.fixture
def pvm(_built: None) -> Path:
    return images.verify(PROJECT, PVM)
