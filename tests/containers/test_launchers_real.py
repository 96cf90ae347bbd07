"""LAM's and PVM's launchers in their images: daemons of their own, which end with the launch."""

import os
import re
import signal
import subprocess
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from containers import bases, build, images
from containers.apptainer import apptainer_command, exec_options
from containers.commands import BuildProgress
from containers.table import load_table
from tests.containers.built_images import (
    LAM,
    NAMES,
    PROJECT,
    PVM,
    PVM_ECHO,
    inside,
    inside_one,
    records,
)
from tests.progress import assert_progress

pytestmark = pytest.mark.real


@pytest.mark.parametrize("variant", list(load_table(PROJECT).resolve(LAM).variants))
def test_every_variant_of_lam_moves_messages(lam: Path, variant: str) -> None:
    assert images.verify(PROJECT, f"{LAM}+{variant}") == lam
    variables = images.read_labels(images.labels(lam), lam.name).variants[variant]
    command = ["lam_ranks", "--pinned", "-n", "2"]
    sizes = ["--sizes", "0:1000000:500000", "--iterations", "10"]
    found = records(inside(lam, *command, "pingpong", *sizes, **variables))
    assert [record["message_bytes"] for record in found if record["record"] == "result"] == [
        0, 500000, 1000000,
    ]  # fmt: skip


def test_lam_begins_whatever_is_on_the_stack(lam: Path, tmp_path: Path) -> None:
    """Without what lam_ranks preloads, most of these launches fail on some processors."""
    programs = (["pingpong", "--sizes", "0", "--iterations", "5"], ["nas_mg", "--class", "S"])
    launches = [["lam_ranks", "--pinned", "-n", "2", *program] for program in 3 * programs]
    for done in inside_one(lam, tmp_path, launches, at_once=2):
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["tcp", "lamd", "usysv"])
def test_lam_hears_no_network_where_all_ranks_are_on_one_node(lam: Path, module: str) -> None:
    """Its daemons and ranks took what came to any address of the machine."""
    # In a network of its own there are no sockets but those of this launch.
    look = "cat /proc/net/tcp /proc/net/udp >&2; exec startup"
    words = [apptainer_command(), "exec", *exec_options(), "--env", f"LAM_MPI_SSI_rpi={module}",
             lam, "lam_ranks", "-n", "2", "sh", "-c", look]  # fmt: skip
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", "sh", "-c",
         'ip link set lo up && exec "$@"', "sh", *map(str, words)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # Local address and state: LISTEN, and what a datagram's socket without a peer is in.
    line = r"(?m)^ *\d+: ([0-9A-F]{8}):\w{4} \w{8}:0000 (?:0A|07) "
    seen = re.findall(line, done.stderr)
    assert seen and set(seen) == {"0100007F"}, done.stderr


#: A launch on one node of each family, and where it listens meanwhile: on loopback, or everywhere.
LOOPBACK, EVERYWHERE = "loopback", "everywhere"
LISTENS = {
    "openmpi": (["mpiexec", "--allow-run-as-root", "--oversubscribe", "-n", "2"], {EVERYWHERE}),
    "mpich": (["mpiexec", "-n", "2"], {EVERYWHERE}),
    "intel": (["mpiexec", "-n", "2"], {EVERYWHERE}),
    "lam": (["lam_ranks", "-n", "2"], {LOOPBACK}),
    "pvm": (["pvm_ranks", "-n", "2"], {LOOPBACK}),
}


def sockets_of(pid: int) -> set[str]:
    """Return where the sockets of a process' network take what comes, without a peer."""
    found = set()
    for kind in ("tcp", "udp", "tcp6", "udp6"):
        with suppress(OSError):
            text = Path(f"/proc/{pid}/net/{kind}").read_text()
            found |= set(re.findall(r"(?m)^ *\d+: ([0-9A-F]+):\w{4} \w+:0000 (?:0A|07) ", text))
    loopback = {"0100007F", "0" * 24 + "01000000"}
    return {LOOPBACK if address in loopback else EVERYWHERE for address in found}


@pytest.mark.parametrize("name", NAMES)
def test_who_listens_where_is_what_the_page_on_security_says(_built: None, name: str) -> None:
    """The page names those that listen everywhere although all ranks are on one node."""
    launcher, expected = LISTENS[name.partition("-")[0]]
    program = ["pvm_echo", "--sizes", "0", "--iterations", "2000"]
    if name != PVM:
        program = ["pingpong", "--sizes", "0", "--iterations", "2000"]
    words = [apptainer_command(), "exec", *exec_options(), images.verify(PROJECT, name),
             *launcher, *program]  # fmt: skip
    # An address beside loopback, which a launcher may choose.
    ready = 'ip link set lo up && ip addr add 10.9.9.9/32 dev lo && exec "$@"'
    seen = set[str]()
    with subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", ready, "sh",
         *map(str, words)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as launch:  # fmt: skip
        while launch.poll() is None:
            # Before it is in its own network it is in the machine's.
            if is_apart(launch.pid):
                seen |= sockets_of(launch.pid)
            # What listens does so for as long as the ranks run.
            time.sleep(0.005)
        said = launch.stderr.read() if launch.stderr else ""
    assert launch.returncode == 0, said
    assert seen - {LOOPBACK} == expected - {LOOPBACK} and seen, said
    page = (PROJECT / "SECURITY.md").read_text()
    told = {"openmpi": "Open MPI", "mpich": "MPICH", "intel": "Intel MPI", "lam": "LAM",
            "pvm": "PVM"}[name.partition("-")[0]]  # fmt: skip
    [sentence] = re.findall(r"While a launch runs, [^.]*\.", page.replace("\n", " "))
    assert (told in sentence) == (EVERYWHERE in expected)


def is_apart(pid: int) -> bool:
    """Tell whether a process has another network than this one."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
    except OSError:
        return False


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


def name_of(pid: int) -> str:
    """Return the name of a process, or nothing where it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


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
    try:
        while [name_of(pid) for pid in processes_with(marker)].count(program) < 2:
            assert launch.poll() is None, "the launch ended before its ranks had started"
            time.sleep(0.1)
        launch.terminate()
        assert launch.wait(300) == 128 + 15
        assert processes_with(marker) == []
    finally:
        # Ranks that are left look for messages without rest: they would starve what comes after.
        for pid in processes_with(marker):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        launch.wait(300)


def test_two_launches_of_lam_do_not_meet_and_failures_are_passed_on(lam: Path) -> None:
    launch = ["lam_ranks", "-n", "2", "preflight", "--ranks", "2"]
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: inside(lam, *launch), range(2)))
    assert [records(done)[0]["ranks"] for done in both] == [2, 2]
    assert inside(lam, "lam_ranks", "-n", "2", "no-such-program").returncode != 0
    # A world that is not as asked is known after MPI_Init, and LAM's own mpirun would say 0.
    wrong = ["preflight", "--ranks", "3"]
    assert inside(lam, "lam_ranks", "--pinned", "-n", "2", *wrong).returncode == 1
    assert inside(lam, "lam_ranks", "-n", "0", "preflight").returncode == 2


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("exit 0", 0),
        ("exit 0; fi; exit 3", 3),
        ("exit 5; fi; exit 3", 5),
        ("exit 0; fi; kill -SEGV $$", 128 + 11),
        # Another rank was ended by a signal because one had failed.
        ("exit 4; fi; kill -KILL $$", 4),
    ],
)
def test_the_highest_status_of_ranks_is_lam_s(
    lam: Path, tmp_path: Path, ending: str, status: int
) -> None:
    """Each rank ends soundly for LAM, after MPI_Finalize, and then as it is told."""
    rank = tmp_path / "rank"
    # LAM ends all ranks when one fails: the second one goes on when the first has left its status.
    after = 'fi; until [ -e "$LAM_MPI_SESSION_PREFIX/status.0" ]; do sleep 0.1; done;'
    first = f"if [ $LAMRANK = 0 ]; then {ending}".replace("fi;", after)
    if "fi;" not in ending:
        first += "; fi"
    rank.write_text(f"#!/bin/sh\npreflight --ranks 2 >/dev/null || exit 9\n{first}\n")
    rank.chmod(0o755)
    done = inside(lam, "lam_ranks", "-n", "2", str(rank))
    assert done.returncode == status, done.stderr


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
    assert three.returncode == 2 and "pvm_echo: the echo test needs 2 tasks" in three.stderr
    # The second task fails where only a task that PVM has started does.
    other = tmp_path / "pvm_echo"
    other.write_text(
        '#!/bin/sh\n[ -z "${PVMEPID:-}" ] || { echo pvm_echo: from the other >&2; exit 3; }\n'
        'exec /opt/wyeast/bin/pvm_echo "$@"\n'
    )
    other.chmod(0o755)
    done = inside(pvm, "pvm_ranks", "-n", "2", str(other), "--sizes", "1")
    assert done.returncode == 1 and '"record":"end"' not in done.stdout
    assert "pvm_echo: the other task ended too early\n" in done.stderr
    assert done.stderr.endswith("pvm_echo: from the other\n")
    assert inside(pvm, "pvm_echo").returncode == 1, "there is no daemon to join"


def test_a_daemon_of_pvm_that_is_slow_to_start_is_waited_for(pvm: Path, tmp_path: Path) -> None:
    slow = tmp_path / "pvmd"
    slow.write_text('#!/bin/sh\nsleep 1\nexec /usr/bin/pvmd "$@"\n')
    slow.chmod(0o755)
    done = inside(pvm, "pvm_ranks", "-n", "2", *PVM_ECHO, PREPEND_PATH=str(tmp_path))
    assert records(done)[0]["ranks"] == 2


@pytest.mark.measures
def test_an_estimate_of_pvm_is_what_a_run_takes(pvm: Path) -> None:
    sweep = ["pvm_echo", "--sizes", "0", "--sizes", "1000000", "--iterations", "50"]
    launch = ["pvm_ranks", "--pinned", "-n", "2", *sweep]
    ratios: list[float] = []
    # Side by side, and again where something else took the processors meanwhile.
    while len(ratios) < 6 and not any(1 / 5 < ratio < 5 for ratio in ratios):
        _, estimate, end = records(inside(pvm, *launch, "--estimate"))
        assert (estimate["record"], estimate["points"], end["results"]) == ("estimate", 6, 0)
        assert estimate["at_most_s"] == estimate["estimated_s"]
        results = [one for one in records(inside(pvm, *launch)) if one["record"] == "result"]
        # 50 iterations and 10 before them.
        taken = sum(60 * one["time_s"]["mean"] for one in results)  # type: ignore[index]
        ratios.append(float(str(estimate["estimated_s"])) / taken)
    print(f"estimated over taken: {', '.join(f'{ratio:.2f}' for ratio in ratios)}")
    assert any(1 / 5 < ratio < 5 for ratio in ratios), ratios


def test_a_long_echo_of_pvm_says_how_far_it_is(pvm: Path, tmp_path: Path) -> None:
    """The first task has a clock that is a thousand times too fast."""
    source = tmp_path / "fast.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <sys/syscall.h>\n#include <time.h>\n#include <unistd.h>\n"
        "int clock_gettime(clockid_t clock, struct timespec *time)\n"
        "{ int code = (int)syscall(SYS_clock_gettime, clock, time);\n"
        "  if (clock == CLOCK_MONOTONIC) time->tv_sec = time->tv_nsec / 1000000\n"
        "      + time->tv_sec % 1000000 * 1000; return code; }\n"
    )
    library = tmp_path / "fast.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    hurried = tmp_path / "pvm_echo"
    hurried.write_text(
        f'#!/bin/sh\n[ -n "${{PVMEPID:-}}" ] || export LD_PRELOAD={library}\n'
        'exec /opt/wyeast/bin/pvm_echo "$@"\n'
    )
    hurried.chmod(0o755)
    sweep = ["--sizes", "100000:1000000:100000", "--iterations", "20"]
    done = inside(pvm, "pvm_ranks", "-n", "2", str(hurried), *sweep)
    assert done.returncode == 0, done.stderr
    assert_progress(done.stderr, "pvm_echo", "points", 30)


@pytest.fixture
def sanitized_echo(_built: None, tmp_path: Path) -> Path:
    """Return pvm_echo with the sanitizers, built where the image's own is: on its build base."""
    recipe = build.recipe_of(PROJECT, PVM, "mmdebstrap")
    bases.ensure_bases(recipe.bases[:1], PROJECT, BuildProgress())
    flags = (
        "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -static-libasan "
        "-static-libubsan"
    )
    made = subprocess.run(
        [str(apptainer_command()), "exec", *exec_options(), "--bind", str(PROJECT / "benchmarks"),
         str(recipe.bases[0].path(PROJECT / ".wyeast")), "make", "-C", str(PROJECT / "benchmarks"),
         "pvm", "CC=gcc", f"CFLAGS={flags}", f"BUILD={tmp_path / 'build'}"],
        capture_output=True, text=True, timeout=1500,
    )  # fmt: skip
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    # The task that PVM starts must have the options, too. PVM's library keeps what it allocates.
    program = tmp_path / "pvm_echo"
    program.write_text(
        "#!/bin/sh\nexport ASAN_OPTIONS=detect_leaks=0\n"
        f'exec {tmp_path / "build" / "bin" / "pvm_echo"} "$@"\n'
    )
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--sizes", "0:100000:50000", "--sizes", "7", "--raw", "--iterations", "3"], 0),
        (["--route", "daemon", "--sizes", "100000", "--iterations", "3", "--warmup", "0"], 0),
        (["--estimate", "--sizes", "0", "--sizes", "100000"], 0),
        (["--method", "x" * 10000], 2),
    ],
)
def test_sanitizers_find_nothing_in_the_echo_of_pvm(
    pvm: Path, sanitized_echo: Path, arguments: list[str], status: int
) -> None:
    done = inside(pvm, "pvm_ranks", "-n", "2", str(sanitized_echo), *arguments)
    assert done.returncode == status, done.stderr
    assert "runtime error" not in done.stderr and "Sanitizer" not in done.stderr
