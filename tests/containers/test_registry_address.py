"""Which addresses of registries are taken: none that Apptainer would ask another host for."""

from pathlib import Path

import pytest

from containers.registry_connection import (
    SPARE_BYTES,
    Registry,
    RegistryError,
    check_address,
    transfer,
)
from containers.sharing.registry import is_missing


@pytest.mark.parametrize("host", ["harbor", "localhost", "-x", ".", "..", "harbor."])
@pytest.mark.parametrize("path", ["", "/site/images"])
def test_a_host_that_apptainer_takes_for_a_name_of_docker_hub_is_refused(
    host: str, path: str
) -> None:
    with pytest.raises(RegistryError, match=f"oras://{host}:443"):
        check_address(f"oras://{host}{path}")


@pytest.mark.parametrize(
    "host", ["harbor:443", "localhost:5000", "registry.example.org", "10.0.0.1", "registry.local"]
)
def test_every_other_host_is_taken(host: str) -> None:
    assert check_address(f"oras://{host}/site/images/") == f"oras://{host}/site/images"


@pytest.mark.parametrize(
    "address", ["oras://[fd00::1]:5000/x", "oras://fd00::1/x", "oras://h.org:/x", "http://h.org/x",
                "oras://h.org/x?y", "oras://h.org//x", "oras://h.org/../x", "oras://H.org/x"]
)  # fmt: skip
def test_what_is_not_an_address_is_refused(address: str) -> None:
    with pytest.raises(RegistryError, match="write oras://host"):
        check_address(address)


#: A registry's answers as Apptainer tells them, and what is to be done.
ANSWERS = {
    "while creating file: write /tmp/x: no space left on device\nFATAL: pull failed": "full: make",
    "FATAL: write x: Disk quota exceeded": "the disk is full: make room",
    "FATAL: UNAUTHORIZED": "log in: apptainer registry login",
    "FATAL: dial tcp: connection refused": "check the address and the network",
}


@pytest.fixture
def apptainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a program that stands for Apptainer; the test writes it."""
    program = tmp_path / "apptainer"
    monkeypatch.setattr(
        "containers.apptainer.command", lambda *words: [str(program), *map(str, words)]
    )
    return program


def played(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize("said", ANSWERS)
def test_what_to_do_follows_from_what_apptainer_said(said: str, apptainer: Path) -> None:
    played(apptainer, f"cat >&2 <<'END'\n{said}\nEND\nexit 255")
    with pytest.raises(RegistryError) as error:
        transfer("pull", Registry("oras://h.org/x"), "a.sif", "oras://h.org/x/a:1")
    assert ANSWERS[said] in str(error.value) and "\n" not in str(error.value)


def test_a_registry_that_never_answers_is_not_waited_for(
    apptainer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("containers.registry_connection.PATIENCE_S", 0.5)
    played(apptainer, "exec sleep 600")
    with pytest.raises(RegistryError, match="`apptainer pull` has not ended within 1 s") as error:
        transfer("pull", Registry("oras://h.org/x"), "a.sif", size_bytes=50_000)
    assert "check the address and the network" in str(error.value)


@pytest.mark.parametrize("insecure", [False, True])
def test_a_registry_that_sends_more_than_the_lock_says_fills_no_disk(
    insecure: bool, apptainer: Path, tmp_path: Path
) -> None:
    file = tmp_path / "a.sif"
    # As a program of Go ends by it, and as it says where the kernel copies.
    fails = "{ echo 'SIGXFSZ: file size limit exceeded' >&2; echo goroutine 1 >&2; exit 2; }"
    played(apptainer, f"head -c 3000000 /dev/zero >'{file}' || {fails}")
    registry = Registry("oras://h.org/x", insecure)
    transfer("pull", registry, file, size_bytes=3_000_000)
    transfer("push", registry, file, size_bytes=10)
    for said in (fails, f"{{ echo 'FATAL: write {'x' * 400}: file too large' >&2; exit 255; }}"):
        played(apptainer, f"head -c 3000000 /dev/zero >'{file}' || {said}")
        with pytest.raises(RegistryError, match="; the registry sends more than the lock says"):
            transfer("pull", registry, file, size_bytes=50_000)
        assert file.stat().st_size == 50_000 + SPARE_BYTES


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("GET https://h.org/v2/x/manifests/lock: MANIFEST_UNKNOWN: manifest unknown", True),
        ("GET https://h.org/v2/x/manifests/lock: NAME_UNKNOWN: repository name not known", True),
        # Harbor's own.
        ("GET https://h.org/v2/x/manifests/lock: NOT_FOUND: artifact x:lock not found", True),
        ("GET https://h.org/v2/x/manifests/lock: UNAUTHORIZED: project x not found", False),
        ("dial tcp: lookup h.org: no such host", False),
        ("/tmp/lock.sif not found", False),
    ],
)
def test_what_a_registry_does_not_have_is_no_fault_of_it(said: str, missing: bool) -> None:
    assert is_missing(RegistryError(f"FATAL: {said}; check the address")) == missing
