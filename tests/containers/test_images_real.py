"""The images as built: what is in them, and that they open and run for root and for others."""

import json
import os
import pwd
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers import build, images, staging
from containers.apptainer import apptainer_command, exec_options
from containers.table import load_table

pytestmark = pytest.mark.real
PROJECT = Path(__file__).resolve().parents[2]
NAMES = load_table(PROJECT).defaults()


@pytest.fixture(scope="module")
def _built() -> None:
    build.build(PROJECT, NAMES, "mmdebstrap", force=False)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest, _built: None) -> str:
    return str(request.param)


@pytest.fixture
def image(name: str) -> Path:
    return images.verify(PROJECT, name)


def inside(image: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(apptainer_command()), "exec", *exec_options(), str(image), *command],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "OMPI_MCA_pml": "no-such", "MPIR_CVAR_CH4_NETMOD": "no-such"},
    )  # fmt: skip


def records(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_labels_in_the_image_are_those_of_table_and_lock(name: str, image: Path) -> None:
    done = subprocess.run(
        [str(apptainer_command()), "inspect", "--json", "--labels", str(image)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)["data"]["attributes"]["labels"]
    wanted = load_table(PROJECT).resolve(name).labels()
    assert wanted.items() <= found.items()
    assert images.labels(image) == found


def test_no_compiler_and_no_headers(image: Path) -> None:
    programs = "gcc cc c++ g++ cpp as ld make clang tcc mpicc mpicxx"
    done = inside(image, "sh", "-c", f"for p in {programs}; do command -v $p; done; true")
    assert done.returncode == 0 and done.stdout == ""
    done = inside(image, "find", "/usr/lib", "/opt", "-name", "cc1*", "-o", "-name", "*.[ah]")
    assert done.stdout == ""


def test_size(image: Path) -> None:
    assert image.stat().st_size < 150e6


def test_manifest(name: str, image: Path) -> None:
    said = json.loads(inside(image, "cat", "/opt/wyeast/manifest.json").stdout)
    lock = images.load_lock(PROJECT)["images"][name]
    assert said["implementation"] == name
    assert said["inputs_sha256"] == lock["inputs_sha256"]
    assert said["benchmarks_sha256"] == staging.benchmarks_sha256(PROJECT)
    assert said["built_utc"] == lock["built_utc"]
    assert said["compiler"]["version"].startswith("gcc")
    assert said["compiler"]["flags"] == staging.FLAGS
    installed = inside(image, "dpkg-query", "-W", "-f", "${binary:Package} ${Version}\n").stdout
    assert said["debian_packages"] == dict(line.split(" ") for line in installed.splitlines())


def test_two_ranks_form_one_world_in_shared_memory_and_in_silence(name: str, image: Path) -> None:
    options = images.labels(image)
    command = [options["org.wyeast.mpiexec"], *options["org.wyeast.mpiexec.pinned"].split()]
    done = inside(image, *command, "-n", "2", "preflight", "--ranks", "2", "--hosts", "1")
    found = records(done)
    assert found[0]["ranks"] == 2
    assert found[0]["processors"] in ([[0], [1]], [[1], [0]])
    assert [record["transport"] for record in found if "transport" in record] == ["shared memory"]
    complaints = [line for line in done.stderr.splitlines() if not line.startswith("INFO:")]
    assert complaints == []


def test_more_ranks_than_cores(image: Path) -> None:
    options = images.labels(image)
    command = [options["org.wyeast.mpiexec"], *options["org.wyeast.mpiexec.oversubscribed"].split()]
    ranks = str(2 * (os.cpu_count() or 1))
    found = records(inside(image, *command, "-n", ranks, "preflight", "--ranks", ranks))
    assert found[0]["ranks"] == int(ranks)


def test_linpack_is_solved(image: Path, tmp_path: Path) -> None:
    options = images.labels(image)
    command = [options["org.wyeast.mpiexec"], *options["org.wyeast.mpiexec.pinned"].split()]
    run = " ".join([*command, "-n", "2", "xhpl"])
    script = f"cd {tmp_path} && hpl_dat --p 1 --q 2 --n 500 --nb 64 > HPL.dat && {run}"
    done = inside(image, "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert "PASSED" in done.stdout and "1 tests completed and passed" in done.stdout


def test_a_tampered_image_is_refused(name: str, image: Path, tmp_path: Path) -> None:
    (tmp_path / "containers").mkdir()
    shutil.copy(PROJECT / images.LOCK, tmp_path / images.LOCK)
    copy = images.folder(tmp_path) / image.name
    copy.parent.mkdir(parents=True)
    shutil.copy(image, copy)
    assert images.verify(tmp_path, name) == copy
    with copy.open("r+b") as file:
        file.seek(copy.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(images.ImageError, match="has sha256"):
        images.verify(tmp_path, name)


@pytest.fixture
def user() -> Iterator[str]:
    """An ordinary user, made for the test if root runs it, who may open /dev/fuse."""
    if os.geteuid() != 0:
        yield pwd.getpwuid(os.geteuid()).pw_name
        return
    name = f"wyeast-{uuid.uuid4().hex[:8]}"
    fuse = Path("/dev/fuse")
    mode = fuse.stat().st_mode & 0o777
    subprocess.run(["useradd", "--create-home", name], check=True)
    try:
        fuse.chmod(0o666)
        yield name
    finally:
        fuse.chmod(mode)
        subprocess.run(["userdel", "--remove", name], check=True, capture_output=True)


def test_an_ordinary_user_can_run_it(user: str, image: Path) -> None:
    labels = images.labels(image)
    command = [
        str(apptainer_command()), "exec", *(o for o in exec_options() if o != "--userns"),
        str(image), labels["org.wyeast.mpiexec"], "-n", "2", "preflight", "--ranks", "2",
    ]  # fmt: skip
    if os.geteuid() == 0:
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups",
                   "--reset-env", *command]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd="/tmp")
    found = records(done)
    assert found[0]["ranks"] == 2
