"""What Open MPI waits for in MPI_Init, and that the variable of its label spares it that alone."""

from pathlib import Path

import pytest

from containers import images
from tests.containers.built_images import PROJECT, inside, launch_of, records

pytestmark = pytest.mark.real
IMPLEMENTATION = "openmpi-5.0.11"
#: What MPI_Init sleeps, and as often a launch is repeated as a busy machine may make one longer.
SLEEP_S, TRIES = 1.0, 20


@pytest.fixture
def openmpi(_built: None) -> Path:
    return images.verify(PROJECT, IMPLEMENTATION)


def initialisation_s(image: Path, **variables: str) -> float:
    """Return how long the slower of two ranks was in MPI_Init."""
    found = records(inside(image, *launch_of(image, 2, "startup", is_spared=False), **variables))
    [times] = [record for record in found if record.get("operation") == "startup"]
    main, initialised = times["main_s"], times["initialised_s"]
    assert isinstance(main, list) and isinstance(initialised, list)
    return max(float(end) - float(begin) for begin, end in zip(main, initialised, strict=True))


def test_the_label_s_variable_spares_the_wait(openmpi: Path) -> None:
    spared = images.read_labels(images.labels(openmpi), openmpi.name).init_wait
    assert spared
    assert initialisation_s(openmpi) > SLEEP_S
    # However slow the machine is, without the sleep some launch is quicker than it.
    assert any(initialisation_s(openmpi, **spared) < SLEEP_S for _ in range(TRIES))


def test_what_is_left_out_was_closed_without_use(openmpi: Path) -> None:
    """The component that sleeps says that it has nothing to work with, and none is missed."""
    verbose = {"OMPI_MCA_btl_base_verbose": "100"}
    spared = images.read_labels(images.labels(openmpi), openmpi.name).init_wait
    whole = inside(openmpi, *launch_of(openmpi, 2, "startup", is_spared=False), **verbose)
    assert whole.returncode == 0
    assert "init of component ofi returned failure" in whole.stderr
    less = inside(openmpi, *launch_of(openmpi, 2, "startup", is_spared=False), **verbose, **spared)
    assert less.returncode == 0 and "component ofi" not in less.stderr

    def chosen(said: str) -> set[str]:
        return {line.rpartition("component ")[2] for line in said.splitlines()
                if "init of component" in line and "success" in line}  # fmt: skip

    assert chosen(less.stderr) == chosen(whole.stderr) != set()
