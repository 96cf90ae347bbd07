"""The profile against the truth: every function that is counted, every byte, with two MPIs."""

import json
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from records.profile import Profile, impossible_time, lost_message, read_profile
from tests.benchmarks.conftest import PROJECT, Built
from tests.benchmarks.test_programs import SCHEMA

pytestmark = pytest.mark.real
HERE = Path(__file__).parent / "programs"
SOURCES = [HERE / "profiled_calls.c", HERE / "profiled_messages.c"]
PROFILE = PROJECT / "benchmarks" / "profile"
#: Of a rank's function: calls (below 0: any), messages and bytes sent, messages and bytes received.
Truth = dict[tuple[int, str], list[int]]


def compile_calls(built: Built, program: Path, *more: object) -> None:
    """Compile the program with known counts."""
    subprocess.run(
        [built.prefix / "bin/mpicc", "-std=c11", "-D_DEFAULT_SOURCE", "-g", "-O1", "-Wall",
         "-Wextra", "-Werror", "-Wno-stringop-overread", "-pthread", "-o", program, *SOURCES,
         *map(str, more)],
        check=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def program(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp(f"calls-{built.implementation}") / "profiled_calls"
    compile_calls(built, path)
    return path


def profiled(built: Built, path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command's two ranks with the profile in them."""
    launcher = [str(built.build / "bin" / "profiled"), "--output", str(path)]
    return built.run_command([*launcher, *command])


def truth_of(text: str) -> Truth:
    """Return what the program says that it has called."""
    truth: Truth = defaultdict(lambda: [0] * 5)
    for line in text.splitlines():
        rank, function, *counts = line.split()
        entry = truth[int(rank), function]
        for place, count in enumerate(map(int, counts)):
            entry[place] = -1 if count < 0 or entry[place] < 0 else entry[place] + count
    return {key: counts for key, counts in truth.items() if counts[0]}


def counted(profile: Profile, truth: Truth) -> Truth:
    """Return what the profile says, with any number of calls where the truth has any."""
    return {
        (f.rank, f.function): [
            -1 if truth.get((f.rank, f.function), [0])[0] < 0 else f.calls,
            f.sent_messages, f.sent_bytes, f.received_messages, f.received_bytes,
        ]
        for f in profile.functions
    }  # fmt: skip


def functions_of(library: Path) -> set[str]:
    """Return the functions that the library stands in for."""
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    found = set(re.findall(r" T (\w+)$", listing, re.M))
    # Of the large counts the test below calls some.
    return {one for one in found if not one.endswith("_c")} - {
        "MPI_Init", "MPI_Init_thread", "MPI_Finalize",
    }  # fmt: skip


@pytest.mark.each_library
def test_every_function_is_counted_exactly(built: Built, program: Path, tmp_path: Path) -> None:
    path = tmp_path / "profile.jsonl"
    done = profiled(built, path, str(program), "all")
    assert done.returncode == 0, done.stderr
    for line in path.read_text().splitlines():
        SCHEMA.validate(json.loads(line))
    profile, truth = read_profile(path), truth_of(done.stdout)
    assert counted(profile, truth) == truth
    # Who calls MPI_Abort has no profile to be counted in.
    exported = functions_of(built.build / "lib/libwyeast_profile.so")
    assert {name for _, name in truth} == exported - {"MPI_Abort"}
    assert profile.header.program == "profiled_calls"
    assert profile.header.parameters == {"arguments": ["all"]}
    assert not list(tmp_path.glob("*.new"))
    assert impossible_time(profile) is None and lost_message(profile) is None
    # One freed request and, where there are, two combined ones; all messages are of the world.
    unseen = 3 if "MPI_Isendrecv" in {name for _, name in truth} else 1
    assert {(rank.unseen_receives, rank.outside_messages) for rank in profile.ranks} == {
        (unseen, 0)
    }
    check_matrix(profile, unseen)


def check_matrix(profile: Profile, unseen: int) -> None:
    """The ranks of every communicator are translated to those of the world."""
    found = {(m.kind, m.from_, m.to, m.counted): (m.messages, m.bytes) for m in profile.matrix}
    for rank, other in ((0, 1), (1, 0)):
        functions = [one for one in profile.functions if one.rank == rank]
        one_sided = {"MPI_Put", "MPI_Accumulate", "MPI_Rput", "MPI_Raccumulate", "MPI_Fetch_and_op",
                     "MPI_Rget_accumulate", "MPI_Compare_and_swap", "MPI_Get", "MPI_Rget",
                     "MPI_Get_accumulate"}  # fmt: skip
        windows = [one for one in functions if one.function in one_sided]
        sends = [one for one in functions if re.match(
            r"MPI_(I?[bsr]?send|Start|Sendrecv|Isendrecv)", one.function, re.I)]  # fmt: skip
        starts = [one for one in sends if one.function == "MPI_Start"]
        # MPI_Start starts persistent collectives, too, which are in no matrix.
        messages = found["message", rank, other, "sent"]
        assert messages[0] <= sum(one.sent_messages for one in sends)
        assert messages[0] >= sum(one.sent_messages for one in sends if one not in starts)
        assert ("message", rank, rank, "sent") not in found
        received = found["message", other, rank, "received"]
        sent = found["message", other, rank, "sent"]
        assert sent[0] - received[0] == unseen and sent[1] - received[1] == 8 * unseen
        assert found["one-sided", rank, other, "sent"] == (
            sum(one.sent_messages for one in windows), sum(one.sent_bytes for one in windows),
        )  # fmt: skip
        assert found["one-sided", other, rank, "received"] == (
            sum(one.received_messages for one in windows),
            sum(one.received_bytes for one in windows),
        )
    assert all(kind != "collective" or end == "sent" for kind, _, _, end in found)


def test_several_threads(built: Built, program: Path, tmp_path: Path) -> None:
    done = profiled(built, tmp_path / "profile.jsonl", str(program), "threads")
    assert done.returncode == 0, done.stderr
    profile, truth = read_profile(tmp_path / "profile.jsonl"), truth_of(done.stdout)
    assert counted(profile, truth) == truth and (0, "MPI_Irecv") in truth
    assert [rank.threads for rank in profile.ranks] == [5, 5]
    assert impossible_time(profile) is None and lost_message(profile) is None


def test_large_counts(one: Built, tmp_path: Path) -> None:
    """Open MPI 5.0 has no functions with them."""
    compile_calls(one, tmp_path / "calls")
    done = profiled(one, tmp_path / "profile.jsonl", str(tmp_path / "calls"), "large")
    profile, truth = read_profile(tmp_path / "profile.jsonl"), truth_of(done.stdout)
    assert counted(profile, truth) == truth and (1, "MPI_Alltoallv_c") in truth
    entries = {(m.from_, m.to): m.bytes for m in profile.matrix if m.kind == "collective"}
    assert entries == {(0, 0): 8, (0, 1): 8, (1, 0): 8, (1, 1): 8}


def test_the_span_ends_where_finalize_begins(built: Built, program: Path, tmp_path: Path) -> None:
    """A rank that is there early waits for the others' profiles: not a time of the program's."""
    done = profiled(built, tmp_path / "profile.jsonl", str(program), "late")
    assert done.returncode == 0, done.stderr
    early, late = read_profile(tmp_path / "profile.jsonl").ranks
    assert late.wall_s >= 2 and early.wall_s < late.wall_s - 1
    # It waits by looking again and again.
    assert early.cpu_s < 1


@pytest.mark.each_library
@pytest.mark.parametrize("how", ["abort", "abort-unseen", "kill"])
def test_a_program_that_dies_leaves_no_profile(
    built: Built, program: Path, tmp_path: Path, how: str
) -> None:
    done = profiled(built, tmp_path / "profile.jsonl", str(program), how)
    assert done.returncode != 0
    # What rank 0 had begun to write aside may be there.
    assert not (tmp_path / "profile.jsonl").exists()


def test_a_path_that_cannot_be_written_leaves_the_program_alone(
    built: Built, program: Path, tmp_path: Path
) -> None:
    for path, sentence in (
        (tmp_path / "no" / "folder", "folder cannot be written, so there is no profile: No such"),
        (Path("/dev/full/x"), "cannot be written, so there is no profile: Not a directory"),
    ):
        done = profiled(built, path, str(program), "large")
        said = [one for one in done.stderr.splitlines() if one.startswith("wyeast_profile: ")]
        assert done.returncode == 0 and len(said) == 1 and sentence in said[0], done.stderr
        assert truth_of(done.stdout)
    # A folder cannot be replaced by a file: found only at the end.
    (tmp_path / "taken").mkdir()
    done = profiled(built, tmp_path / "taken", str(program), "large")
    assert done.returncode == 0 and "taken could not be written" in done.stderr
    assert not list(tmp_path.glob("*.new"))


def test_without_a_path_there_is_a_sentence_and_no_file(
    built: Built, program: Path, tmp_path: Path
) -> None:
    launcher = str(built.build / "bin/profiled")
    done = built.run_command([launcher, str(program), "large"], folder=tmp_path)
    assert done.returncode == 0 and not list(tmp_path.iterdir())
    assert done.stderr.count("wyeast_profile: WYEAST_PROFILE names no file") == 1
    named = built.run_command(
        [launcher, str(program), "large"], WYEAST_PROFILE=str(tmp_path / "named")
    )
    assert named.returncode == 0 and read_profile(tmp_path / "named")


def test_the_launcher_s_own_errors(built: Built, tmp_path: Path) -> None:
    launcher = built.build / "bin" / "profiled"

    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run([launcher, *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr + done.stdout

    assert run()[0] == run("--output", "x")[0] == run("--bad", "x")[0] == 2
    assert run("--help")[0] == 0 and "example:" in run("--help")[1]
    code, said = run("no-such-program")
    assert code == 127 and said.startswith("profiled: no-such-program: ")
    assert run("printenv", "LD_PRELOAD")[1].endswith("lib/libwyeast_profile.so\n")
    alone = tmp_path / "bin" / "profiled"
    alone.parent.mkdir()
    shutil.copy(launcher, alone)
    done = subprocess.run([alone, "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "libwyeast_profile.so cannot be read" in done.stderr


OWN_SOURCES = [
    *sorted(path for path in PROFILE.glob("*.c") if path.name != "profiled.c"),
    PROJECT / "benchmarks/common/clock.c",
    PROJECT / "benchmarks/common/ranks_alike.c",
    PROJECT / "benchmarks/common/records.c",
    PROJECT / "benchmarks/common/record_pieces.c",
    PROJECT / "benchmarks/common/written.c",
    PROJECT / "benchmarks/common/summary.c",
]


def test_sanitizers_find_nothing(built: Built, tmp_path: Path) -> None:
    """The library is a part of the program here: a sanitizer wants to be loaded first."""
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    compile_calls(built, tmp_path / "calls", *flags, *OWN_SOURCES)
    for what in ("all", "threads"):
        path = tmp_path / what
        done = built.run_command(
            [str(tmp_path / "calls"), what],
            ASAN_OPTIONS="detect_leaks=0", WYEAST_PROFILE=str(path),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "runtime error" not in done.stderr and "Sanitizer" not in done.stderr
        truth = truth_of(done.stdout)
        assert counted(read_profile(path), truth) == truth


def test_valgrind_finds_nothing(one: Built, tmp_path: Path) -> None:
    compile_calls(one, tmp_path / "calls")
    done = profiled(
        one, tmp_path / "profile", "valgrind", "-q", "--error-exitcode=9",
        "--undef-value-errors=no",
        f"--suppressions={PROJECT}/tests/benchmarks/valgrind.supp", str(tmp_path / "calls"), "all",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    truth = truth_of(done.stdout)
    assert counted(read_profile(tmp_path / "profile"), truth) == truth


@pytest.mark.parametrize("constant", ["", "const"])
def test_either_declaration_of_the_list_of_partitions(tmp_path: Path, constant: str) -> None:
    (tmp_path / "mpi.h").write_text(
        "#define MPI_VERSION 4\ntypedef int MPI_Request;\n"
        + "".join(
            f"int {name}(int count, {constant} int list[], MPI_Request request);\n"
            for name in ("MPI_Pready_list", "PMPI_Pready_list")
        )
    )
    (tmp_path / "wrapper.c").write_text(
        '#include "interface.h"\n'
        "int MPI_Pready_list(int count, PARTITIONS list, MPI_Request request)\n"
        "{\n    return PMPI_Pready_list(count, list, request);\n}\n"
    )
    subprocess.run(
        ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{tmp_path}",
         f"-I{PROFILE}", "-c", "-o", tmp_path / "wrapper.o", tmp_path / "wrapper.c"],
        check=True,
    )  # fmt: skip
