"""The images as built, for the tests that open and run them."""

from pathlib import Path

import pytest

from containers import build, images
from tests.containers.built_images import INTEL, LAM, MPIS, NAMES, PROJECT, PVM


@pytest.fixture(scope="session")
def _built() -> None:
    """Have the images built, once for all tests."""
    build.build(PROJECT, NAMES, "mmdebstrap", force=False)


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
