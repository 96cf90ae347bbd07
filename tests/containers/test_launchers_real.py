"""LAM's and PVM's launchers in their images: daemons of their own, which end with the launch."""

import os
import subprocess
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from containers import images
from containers.apptainer import apptainer_command, exec_options
from containers.table import load_table
from tests.containers.built_images import LAM, PROJECT, PVM, PVM_ECHO, inside, records

pytestmark = pytest.mark.real


@pytest.mark.parametrize("variant", list(load_table(PROJECT).resolve(LAM).variants))
def test_every_variant_of_lam_moves_messages(lam: Path, variant: str) -> None:
    assert images.verify(PROJECT, f"{LAM}+{variant}") == lam
    variables = images.variants_of(images.labels(lam))[variant]
    command = ["lam_ranks", "--pinned", "-n", "2"]
    sizes = ["--sizes", "0:1000000:500000", "--iterations", "10"]
    found = records(inside(lam, *command, "pingpong", *sizes, **variables))
    assert [record["message_bytes"] for record in found if record["record"] == "result"] == [
        0, 500000, 1000000,
    ]  # fmt: skip


def processes_with(marker: str) -> list[int]:
    """Return the processes in whose environment a text stands, daemons included."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if marker.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("implementation", "launcher", "program"),
    [(LAM, "lam_ranks", "pingpong"), (PVM, "pvm_ranks", "pvm_echo")],
)
def test_an_interrupted_launch_leaves_no_daemon(
    _built: None, implementation: str, launcher: str, program: str
) -> None:
    marker = uuid.uuid4().hex
    command = [launcher, "-n", "2", program, "--sizes", "1:1:1", "--iterations", "10000000"]
    image = images.verify(PROJECT, implementation)
    launch = subprocess.Popen(
        [str(apptainer_command()), "exec", *exec_options(), str(image), *command],
        env={**os.environ, "APPTAINERENV_WYEAST_MARKER": marker},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    for _ in range(100):
        names = [Path(f"/proc/{pid}/comm") for pid in processes_with(marker)]
        if sum(path.exists() and path.read_text() == f"{program}\n" for path in names) == 2:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the ranks did not start")
    launch.terminate()
    assert launch.wait(60) == 128 + 15
    assert processes_with(marker) == []


def test_two_launches_of_lam_do_not_meet_and_failures_are_passed_on(lam: Path) -> None:
    launch = ["lam_ranks", "-n", "2", "preflight", "--ranks", "2"]
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: inside(lam, *launch), range(2)))
    assert [records(done)[0]["ranks"] for done in both] == [2, 2]
    assert inside(lam, "lam_ranks", "-n", "2", "no-such-program").returncode != 0
    assert inside(lam, "lam_ranks", "-n", "0", "preflight").returncode == 2


def test_the_variables_of_a_variant_reach_the_ranks_of_lam(lam: Path) -> None:
    launch = ["lam_ranks", "-n", "2", "preflight", "--ranks", "2"]
    assert '"record":"end"' not in inside(lam, *launch, LAM_MPI_SSI_rpi="no-such").stdout


@pytest.mark.parametrize("route", ["direct", "daemon"])
def test_tasks_of_pvm_echo_every_byte_each_on_its_core(pvm: Path, route: str) -> None:
    header, *results, end = records(
        inside(pvm, "pvm_ranks", "--pinned", "-n", "2", *PVM_ECHO, "--route", route)
    )
    assert (header["library"], header["mpi_standard"]) == ("PVM 3.4.6", "none")
    assert header["processors"] in ([[0], [1]], [[1], [0]])
    assert [(r["method"], r["message_bytes"], r["verified_bytes"]) for r in results] == [
        (f"{method}/{route}", size, 2 * size)
        for method in ("pvm_send", "pvm_send-in-place", "pvm_psend")
        for size in (0, 100000)
    ]
    assert end["results"] == len(results)


def test_two_launches_of_pvm_do_not_meet_and_failures_are_passed_on(
    pvm: Path, tmp_path: Path
) -> None:
    launch = ["pvm_ranks", "-n", "2", *PVM_ECHO]
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: inside(pvm, *launch), range(2)))
    assert [records(done)[0]["ranks"] for done in both] == [2, 2]
    missing = inside(pvm, "pvm_ranks", "-n", "2", "no-such-program")
    assert (missing.returncode, missing.stderr.splitlines()[-1]) == (
        127, "pvm_ranks: no-such-program: there is no such program in the image",
    )  # fmt: skip
    three = inside(pvm, "pvm_ranks", "-n", "3", "pvm_echo")
    assert three.returncode == 2 and "pvm_echo: the echo test is of 2 tasks" in three.stderr
    # The second task fails where only a task that PVM has started does.
    other = tmp_path / "pvm_echo"
    other.write_text(
        '#!/bin/sh\n[ -z "${PVMEPID:-}" ] || { echo pvm_echo: from the other >&2; exit 3; }\n'
        'exec /opt/wyeast/bin/pvm_echo "$@"\n'
    )
    other.chmod(0o755)
    done = inside(pvm, "pvm_ranks", "-n", "2", str(other), "--sizes", "1")
    assert done.returncode == 1 and '"record":"end"' not in done.stdout
    assert "pvm_echo: the other task has ended before its time\n" in done.stderr
    assert done.stderr.endswith("pvm_echo: from the other\n")
    assert inside(pvm, "pvm_echo").returncode == 1, "there is no daemon to join"


def test_a_daemon_of_pvm_that_is_slow_to_start_is_waited_for(pvm: Path, tmp_path: Path) -> None:
    slow = tmp_path / "pvmd"
    slow.write_text('#!/bin/sh\nsleep 1\nexec /usr/bin/pvmd "$@"\n')
    slow.chmod(0o755)
    done = inside(pvm, "pvm_ranks", "-n", "2", *PVM_ECHO, PREPEND_PATH=str(tmp_path))
    assert records(done)[0]["ranks"] == 2
