"""The launchers of the machine's MPIs: what they say they are, and which images they start."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from site_configs import launchers
from site_configs.launchers import HostLauncher, LauncherError, identify, launcher_for, of_site

OPENMPI = "mpirun (Open MPI) 5.0.11\n\nReport bugs to https://www.open-mpi.org/community/help/\n"
OLDER = "mpirun (Open MPI) 4.1.8\n"
#: `mpiexec` of Open MPI 4 says otherwise.
OLDER_MPIEXEC = "mpiexec (OpenRTE) 4.1.8\n"
MPICH = "HYDRA build details:\n    Version:                                 5.0.2\n"
INTEL = "Intel(R) MPI Library for Linux* OS, Version 2021.19 Build 20260101 (id: 1)\n"


@pytest.fixture(autouse=True)
def nothing_is_known() -> Iterator[None]:
    """Have each launcher asked anew."""
    launchers._asked.cache_clear()
    yield
    launchers._asked.cache_clear()


def program(folder: Path, name: str, said: str, then: str = "") -> str:
    """Write a launcher that says what it is; return its path."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho asked >>{folder}/asked\ncat <<'.'\n{said}.\n{then}\n")
    path.chmod(0o755)
    return str(path)


def site(launcher: Any, **more: Any) -> dict[str, Any]:
    return {"name": "mine", "launch": "mpirun", "launcher": launcher, **more}


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (OPENMPI, ("openmpi", "5.0.11")),
        (OLDER, ("openmpi", "4.1.8")),
        (OLDER_MPIEXEC, ("openmpi", "4.1.8")),
        (MPICH, ("mpich", "5.0.2")),
        (INTEL, ("intel-mpi", "2021.19")),
        ("slurm 23.11.4", None),
        ("", None),
    ],
)
def test_a_launcher_introduces_itself(said: str, found: tuple[str, str] | None) -> None:
    assert identify(said) == found


def test_each_implementation_has_its_own(tmp_path: Path) -> None:
    ours = {
        "openmpi": program(tmp_path, "mpirun", OPENMPI),
        "mpich": program(tmp_path, "mpiexec", MPICH),
    }
    here = site(ours)
    assert launcher_for(here, "openmpi") == HostLauncher(ours["openmpi"], "openmpi", "5.0.11")
    assert str(launcher_for(here, "mpich")) == f"MPICH's launcher 5.0.2 ({ours['mpich']})"
    with pytest.raises(LauncherError) as refused:
        launcher_for(here, "intel-mpi")
    assert str(refused.value).startswith(
        "`launcher` of site_configs/mine/site.yaml names none for images of intel-mpi; add it"
    )
    # One descendant's starts those of the others.
    assert launcher_for(site(ours["mpich"]), "intel-mpi").family == "mpich"
    assert [one.family for one in of_site(here)] == ["openmpi", "mpich"]


@pytest.mark.parametrize(
    ("said", "family"),
    [(MPICH, "openmpi"), (OPENMPI, "mpich"), (OPENMPI, "intel-mpi"), (INTEL, "openmpi")],
)
def test_another_mpi_s_launcher_is_refused(tmp_path: Path, said: str, family: str) -> None:
    path = program(tmp_path, "mpirun", said)
    with pytest.raises(LauncherError) as refused:
        launcher_for(site(path), family)
    sentence = str(refused.value)
    assert f"({path}) cannot start images of {family}: each rank would believe that it is" in (
        sentence
    )
    assert f"{family}: /opt/.../bin/mpiexec}}`" in sentence


@pytest.mark.parametrize("family", ["lam", "pvm"])
def test_daemons_are_no_launcher_s(tmp_path: Path, family: str) -> None:
    with pytest.raises(LauncherError, match="they boot daemons of their own; measure them on a"):
        launcher_for(site(program(tmp_path, "mpirun", OPENMPI)), family)


@pytest.mark.parametrize(
    ("said", "then", "sentence"),
    [
        ("slurm 23.11.4\n", "", "does not say that it is the launcher of Open MPI, MPICH or Intel"),
        ("\n", "", "it says: nothing"),
        ("mpirun: no such library\n", "exit 127", "--version` fails where jobs are submitted (mpi"),
    ],
)
def test_what_does_not_say_what_it_is(tmp_path: Path, said: str, then: str, sentence: str) -> None:
    with pytest.raises(LauncherError) as refused:
        launcher_for(site(program(tmp_path, "mpirun", said, then)), "openmpi")
    assert sentence in str(refused.value)
    assert of_site(site(str(tmp_path / "mpirun"))) == []


def test_one_that_is_nowhere(tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match=r"fails where jobs are submitted \(.*No such file"):
        launcher_for(site(str(tmp_path / "mpirun")), "openmpi")


def test_one_that_hangs_is_ended_with_all_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launchers, "PATIENCE_S", 5)
    path = program(tmp_path, "mpirun", OPENMPI, f"sleep 600 & echo $! >{tmp_path}/child; wait")
    with pytest.raises(LauncherError, match=r"does not end within 5 s"):
        launcher_for(site(path), "openmpi")
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    with suppress(FileNotFoundError, ProcessLookupError):
        while child.read_text().rpartition(")")[2].split()[0] not in "ZX":
            time.sleep(0.01)


def test_it_is_asked_once_after_what_a_job_prepares_and_loads(tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    program(tmp_path / "opt", "mpirun", OPENMPI)
    loads = f'module() {{ echo "$*" >>{tmp_path}/loaded; PATH={tmp_path}/opt:$PATH; }}'
    here = site("mpirun", prepare=[loads], modules_system="lmod", modules=["openmpi/5"])
    for _ in range(3):
        assert launcher_for(here, "openmpi").command == "mpirun"
    assert (tmp_path / "opt" / "asked").read_text() == "asked\n"
    assert (tmp_path / "loaded").read_text() == "load openmpi/5\n"


def test_one_that_fails_is_asked_once_too(tmp_path: Path) -> None:
    """Each image would wait for a launcher that hangs."""
    path = program(tmp_path, "mpirun", "no such library\n", "exit 127")
    for _ in range(3):
        with pytest.raises(LauncherError, match="fails where jobs are submitted"):
            launcher_for(site(path), "openmpi")
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_it_is_asked_with_what_a_job_has_of_the_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A setting of the user's own, which no job gets, neither breaks it nor mends it."""
    monkeypatch.setenv("OMPI_MCA_mca_base_param_files", "/nowhere")
    monkeypatch.setenv("UCX_TLS", "tcp")
    monkeypatch.setenv("FINE", "1")
    path = program(tmp_path, "mpirun", OPENMPI, f"env >{tmp_path}/had")
    launcher_for(site(path, variables=["UCX_TLS"]), "openmpi")
    had = {line.partition("=")[0] for line in (tmp_path / "had").read_text().splitlines()}
    assert {"UCX_TLS", "FINE", "PATH"} <= had and "OMPI_MCA_mca_base_param_files" not in had


@pytest.mark.parametrize(
    ("said", "version", "other"), [(OLDER, "5.0.11", "4"), (OPENMPI, "4.1.8", "5")]
)
def test_another_major_version_of_open_mpi_is_refused(
    tmp_path: Path, said: str, version: str, other: str
) -> None:
    path = program(tmp_path, "mpirun", said)
    with pytest.raises(LauncherError) as refused:
        launcher_for(site(path), "openmpi", version)
    sentence = str(refused.value)
    assert f"({path}) cannot start images of Open MPI {version}" in sentence
    assert f"name a launcher of Open MPI {version[0]} in `launcher` of site_configs" in sentence
    assert launcher_for(site(path), "openmpi", f"{other}.9.9").family == "openmpi"
    # Of an image without a version, such as one that was packed from elsewhere, nothing is known.
    assert launcher_for(site(path), "openmpi", "main").family == "openmpi"


def test_an_mpich_that_speaks_pmix_alone_is_refused(tmp_path: Path) -> None:
    path = program(tmp_path, "mpiexec", MPICH)
    with pytest.raises(LauncherError, match=r"whose ranks ask PMIx, and it speaks PMI 1 and 2"):
        launcher_for(site(path), "mpich", "4.2", "pmix")
    assert launcher_for(site(path), "mpich", "4.2", "pmi2").family == "mpich"
