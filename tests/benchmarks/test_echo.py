"""echo by hand, with two MPIs: every way, verified bytes, faulty networks, errors in a sentence."""

import subprocess
from pathlib import Path

import pytest

from records.communication import Communication
from records.program_output import ProgramOutput, read_program_output
from tests.benchmarks.conftest import UNSHARE, Built, Sanitized
from tests.benchmarks.test_programs import read

pytestmark = pytest.mark.real
SIZES = [0, 7, 8, 1472, 65507]
# Stands between the program and the network: doubles, delays or loses some datagrams, by FAULT.
FAULTY_NETWORK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
ssize_t send(int to, const void *bytes, size_t count, int flags)
{
    static long sent;
    ssize_t (*send_soundly)(int, const void *, size_t, int) =
        (ssize_t (*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    struct sockaddr_storage own;
    socklen_t size = sizeof own, type_size = sizeof(int);
    int type = 0;
    getsockopt(to, SOL_SOCKET, SO_TYPE, &type, &type_size);
    getsockname(to, (struct sockaddr *)&own, &size);
    if (type != SOCK_DGRAM || own.ss_family != AF_INET || ++sent % atol(getenv("EVERY")))
        return send_soundly(to, bytes, count, flags);
    switch (*getenv("FAULT")) {
    case 'd':
        send_soundly(to, bytes, count, flags);
        return send_soundly(to, bytes, count, flags);
    case 'l':
        if (fork() == 0) {
            usleep(600000);
            send_soundly(to, bytes, count, flags);
            _exit(0);
        }
    }
    return (ssize_t)count;
}
"""


def echoes(output: ProgramOutput) -> list[tuple[str, int]]:
    """Return way and size of every result, having checked what all have in common."""
    for result in output.communications():
        assert (result.operation, result.group, result.ranks) == ("echo", "pair", 2)
        assert result.moved_bytes == result.verified_bytes == 2 * result.message_bytes
        assert isinstance(result.median_by_rank_s, list) and len(result.median_by_rank_s) == 2
    return [(result.method, result.message_bytes) for result in output.communications()]


def run(built: Built, path: Path, *arguments: str) -> tuple[ProgramOutput, str]:
    """Return the output of a sound launch, checked against the schema, and its stderr."""
    done = built.run("echo", *arguments)
    assert done.returncode == 0, done.stderr
    read(done.stdout, path)
    return read_program_output(path), done.stderr


def test_every_way(built: Built, tmp_path: Path) -> None:
    sizes = [word for size in SIZES for word in ("--sizes", str(size))]
    arguments = ["--via", "all", *sizes, "--iterations", "20", "--warmup", "3", "--raw-by-rank"]
    output, said = run(built, tmp_path / "out", *arguments)
    assert echoes(output) == [
        (way, size)
        for way in ("udp", "tcp", "memory")
        for size in SIZES
        if (way, size) != ("tcp", 0)
    ]
    assert "left out: tcp, 0 bytes: a stream has no empty message" in said
    assert "rank 0 is at " in said
    for result, series in zip(output.communications(), output.iterations, strict=True):
        assert len(series.time_s) == 20
        # The times are rank 0's own, though rank 1's may be longer.
        assert isinstance(result.median_by_rank_s, list)
        assert result.median_by_rank_s[0] == pytest.approx(result.time_s.median, rel=1e-6)


@pytest.mark.parametrize("synchronisation", ["barrier", "window", "none"])
def test_every_synchronisation(built: Built, synchronisation: str, tmp_path: Path) -> None:
    arguments = ["--via", "all", "--sizes", "3000", "--synchronisation", synchronisation]
    output, _ = run(built, tmp_path / "out", *arguments, "--iterations", "30")
    assert echoes(output) == [("udp", 3000), ("tcp", 3000), ("memory", 3000)]


def test_long_messages(built: Built, tmp_path: Path) -> None:
    """Longer than the buffers of a socket, so that a stream goes in pieces."""
    arguments = ["--via", "tcp", "--via", "memory", "--sizes", "10000001", "--iterations", "3"]
    output, _ = run(built, tmp_path / "out", *arguments)
    assert echoes(output) == [("tcp", 10000001), ("memory", 10000001)]
    for result in output.results:
        assert isinstance(result, Communication)
        assert 1e7 < 2 * result.message_bytes / result.time_s.median < 1e12


def test_nothing_stays_behind(built: Built, tmp_path: Path) -> None:
    run(built, tmp_path / "out", "--via", "memory", "--iterations", "1")
    assert not list(Path("/dev/shm").glob("wyeast-echo-*"))


@pytest.fixture(scope="session")
def faulty_network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library that stands between a program and the network."""
    source = tmp_path_factory.mktemp("faulty") / "faulty.c"
    source.write_text(FAULTY_NETWORK)
    library = source.with_suffix(".so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.mark.parametrize("fault", ["missing", "late"])
@pytest.mark.parametrize("size", [0, 7, 8, 4000])
def test_lost_datagrams_are_sent_again(
    one: Built, faulty_network: Path, fault: str, size: int, tmp_path: Path
) -> None:
    arguments = ["--sizes", str(size), "--iterations", "300", "--warmup", "0"]
    done = one.run(
        "echo", *arguments, LD_PRELOAD=str(faulty_network), EVERY="200", FAULT=fault
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    read(done.stdout, tmp_path / "out")
    output = read_program_output(tmp_path / "out")
    assert echoes(output) == [("udp", size)]
    assert "had to be sent again, as no echo came in 0.5 s" in done.stderr
    [result] = output.communications()
    # The loss is in the time of its own iteration, and of no other.
    assert result.time_s.max > 0.4 and result.time_s.quartile3 < 0.1


@pytest.mark.parametrize(
    ("fault", "every", "size", "sentence"),
    [
        ("missing", "40", "100", "had to be sent again"),
        ("missing", "3", "100", "lost more than 1% of its datagrams"),
        ("doubled", "50", "4", "the network duplicated datagrams"),
    ],
)
def test_too_faulty_network(
    one: Built, faulty_network: Path, fault: str, every: str, size: str, sentence: str
) -> None:
    arguments = ["--sizes", size, "--iterations", "100", "--warmup", "0"]
    done = one.run("echo", *arguments, LD_PRELOAD=str(faulty_network), EVERY=every, FAULT=fault)
    assert done.returncode != 0 and '"end"' not in done.stdout
    assert sentence in done.stderr


def test_doubled_datagrams_are_recognised_by_their_number(
    one: Built, faulty_network: Path, tmp_path: Path
) -> None:
    done = one.run(
        "echo", "--sizes", "8", "--sizes", "4000",
        LD_PRELOAD=str(faulty_network), EVERY="3", FAULT="doubled",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    read(done.stdout, tmp_path / "out")
    assert echoes(read_program_output(tmp_path / "out")) == [("udp", 8), ("udp", 4000)]


def test_memory_of_two_hosts_is_left_out(built: Built) -> None:
    command = f"hostname $(cat /proc/sys/kernel/random/uuid) && exec {built.build}/bin/echo"
    alone = built.run_command([*UNSHARE, "--uts", "sh", "-c", f"{command} --via memory"])
    assert alone.returncode == 1 and "none of what was requested can be measured" in alone.stderr
    assert "left out: memory: the ranks are on different hosts" in alone.stderr


@pytest.mark.each_library
def test_memory_of_two_containers_is_left_out(built: Built) -> None:
    command = f"mount -t tmpfs none /dev/shm && exec {built.build}/bin/echo --via memory"
    # The library's own shared memory is gone too, so that it has to go without.
    done = built.run_command(
        [*UNSHARE, "--mount", "sh", "-c", command],
        OMPI_MCA_btl="self,tcp", MPIR_CVAR_CH4_SHM_POSIX_EAGER="", MPIR_CVAR_NOLOCAL="1",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "left out: memory: the ranks do not share /dev/shm" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "ranks", "sentence"),
    [
        (["--sizes", "70000"], 2, "--sizes 70000: a udp datagram has at most 65507 bytes"),
        (["--via", "all", "--sizes", "65508"], 2, "--sizes 65508: a udp datagram has at most"),
        (["--via", "pigeon"], 2, "--via pigeon: "),
        ([], 1, "the world has 1 rank(s), and an echo needs exactly 2"),
        ([], 3, "the world has 3 rank(s), and an echo needs exactly 2"),
        (["--sizes", "-1"], 2, "--sizes -1: must be from 0"),
        (["--synchronisation", "rank0"], 2, "--synchronisation rank0: "),
    ],
)
def test_bad_arguments_are_one_sentence(
    one: Built, arguments: list[str], ranks: int, sentence: str
) -> None:
    assert one.refuse("echo", arguments, ranks, sentence).stdout == ""


def test_sanitizers_find_nothing(sanitized: Sanitized) -> None:
    sizes = ["--sizes", "0:65507:9358", "--sizes", "65507", "--sizes", "5"]
    for arguments, code in [
        (["--via", "all", *sizes, "--iterations=5", "--raw"], 0),
        (["--via", "all", *sizes, "--iterations=5", "--synchronisation", "window"], 0),
        (["--via", "tcp", "--via", "memory", "--sizes", "3000000", "--iterations=3"], 0),
        (["--via", "all", "--estimate"], 0),
        (["--via", "x" * 100000], 2),
    ]:
        sanitized.check("echo", *arguments, code=code)
