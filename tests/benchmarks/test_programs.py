"""pingpong and preflight by hand, with two MPIs: lines by the schema, errors by the sentence."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pytest
from jsonschema import Draft202012Validator

from records.communication import PingPong
from records.program_output import read_program_output
from tests.benchmarks.conftest import PROJECT, UNSHARE, Built, Sanitized

pytestmark = pytest.mark.real
PAIRS = ["Send/Recv", "Send/Irecv", "Isend/Recv", "Isend/Irecv",
         "Ssend/Recv", "Ssend/Irecv", "Issend/Recv", "Issend/Irecv"]  # fmt: skip
SCHEMA = Draft202012Validator(json.loads((PROJECT / "benchmarks/format.schema.json").read_text()))


def read(text: str, path: Path) -> list[dict[str, Any]]:
    """Check every line against the schema and the whole against the strict reader."""
    path.write_text(text)
    read_program_output(path)
    records = [json.loads(line) for line in text.splitlines()]
    for record in records:
        SCHEMA.validate(record)
    return records


@pytest.mark.parametrize("order", ["modified", "original"])
def test_eight_pairs(built: Built, order: str, tmp_path: Path) -> None:
    done = built.run(
        "pingpong", "--pair", "all", "--order", order, "--sizes", "0:200000:100000",
        "--sizes", "7", "--iterations", "5", "--warmup", "1", "--raw",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    records = read(done.stdout, tmp_path / "out")
    results = [r for r in records if r["record"] == "result"]
    sizes = [0, 100000, 200000, 7]
    assert [(r["pair"], r["message_bytes"]) for r in results] == [
        (pair, size) for pair in PAIRS for size in sizes
    ]
    for result in results:
        assert result["order"] == order
        assert result["verified_bytes"] == 2 * int(str(result["message_bytes"]))
        assert (result["memory_copy_s"] == 0) == (result["message_bytes"] == 0)
    raw = [r for r in records if r["record"] == "iterations"]
    assert all(len(r["time_s"]) == 5 for r in raw) and len(raw) == len(results)


def test_statistics_are_those_of_the_iterations(built: Built, tmp_path: Path) -> None:
    done = built.run("pingpong", "--sizes", "100:900:100", "--iterations", "37", "--raw")
    output_path = tmp_path / "out"
    read(done.stdout, output_path)
    output = read_program_output(output_path)
    for result, series in zip(output.results, output.iterations, strict=True):
        times = numpy.array(series.time_s)
        expected = [*numpy.quantile(times, [0, 0.25, 0.5, 0.75, 1]), times.mean()]
        assert isinstance(result, PingPong)
        found = result.time_s
        assert [found.min, found.quartile1, found.median, found.quartile3, found.max, found.mean
                ] == pytest.approx(expected, rel=1e-6)  # fmt: skip


@pytest.mark.each_library
def test_preflight_describes_the_world(built: Built, tmp_path: Path) -> None:
    version = built.implementation.split("-")[1]
    # Where both ranks never have a processor at once, no round trip shows what carried it: of many,
    # and where a whole launch is disturbed of another launch, the best is undisturbed.
    for _ in range(10):
        done = built.run("preflight", "--ranks", "2", "--hosts", "1", "--iterations", "2000")
        assert done.returncode == 0, done.stderr
        records = read(done.stdout, tmp_path / "out")
        assert version in str(records[0]["library"])
        transport = next(r for r in records if r.get("operation") == "transport")
        if transport["transport"] != "unknown":
            break
    assert transport["transport"] == "shared memory", transport["evidence"]


#: What is set for a library, and what it calls that.
LIMITS = {
    "openmpi": ("OMPI_MCA_btl_sm_eager_limit", "btl_sm_eager_limit"),
    "mpich": ("MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE", "MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE"),
}
#: What is as long as a list can be, and what no program has room for.
LONG, CUT = (",".join(map(str, range(0, most, 2))) for most in (1024, 4096))
#: A kernel's files on two processors that are one core, and a third.
KERNEL = {
    "cpu/cpu3/topology/core_siblings_list": LONG, "cpu/cpu4/topology/core_siblings_list": CUT,
    "cpu/cpu0/topology/thread_siblings_list": "0-1", "cpu/cpu0/topology/core_siblings_list": "0-2",
    "cpu/cpu1/topology/thread_siblings_list": "0-1", "cpu/cpu2/topology/thread_siblings_list": "2",
    "cpu/cpu0/cache/index0/level": "1", "cpu/cpu0/cache/index0/type": "Data",
    "cpu/cpu0/cache/index0/shared_cpu_list": "0-1", "cpu/cpu0/cache/index1/level": "1",
    "cpu/cpu0/cache/index1/type": "Instruction", "cpu/cpu0/cache/index1/shared_cpu_list": "0-2",
    "cpu/cpu2/cache/index2/level": "3", "cpu/cpu2/cache/index2/type": "Unified",
    "cpu/cpu2/cache/index2/shared_cpu_list": "0-2", "node/node1/cpulist": "2",
    "node/node0/cpulist": "0-1",
}  # fmt: skip


@pytest.mark.each_library
def test_preflight_asks_the_library_and_the_kernel(built: Built, tmp_path: Path) -> None:
    for name, text in KERNEL.items():
        file = tmp_path / "devices/system" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    variable, name = LIMITS[built.implementation.split("-")[0]]
    limit: dict[str, Any] = {variable: "23456"}
    done = built.run("preflight", "--sys", str(tmp_path), **limit)
    assert done.returncode == 0, done.stderr
    records = {str(r.get("operation")): r for r in read(done.stdout, tmp_path / "out")}
    said = records["control_variables"]["variables"]
    assert said[name] == "23456", said
    # Of what is left to the library nothing is said.
    assert not {"", "auto", "ignore"} & {*said.values()}, said
    counted = records["performance_variables"]["variables"]
    assert all(after >= before for before, after in counted.values()), counted
    found = {one["kind"]: one["processors"] for one in records["topology"]["objects"]}
    assert found == {
        "core": ["0-1", "2"], "L1 cache": ["0-1"], "L3 cache": ["0-2"],
        "NUMA node": ["0-1", "2"], "package": ["0-2", LONG],
    }  # fmt: skip


def libraries(text: str, path: Path) -> list[tuple[str, object]]:
    """Return the files that preflight says its ranks have MPI from, with how many have each."""
    records = read(text, path)
    found = [r for r in records if r.get("operation") == "library"]
    return [(str(Path(str(r["path"])).resolve()), r["ranks"]) for r in found]


@pytest.mark.each_library
def test_preflight_tells_two_builds_of_one_version_apart(built: Built, tmp_path: Path) -> None:
    name = next((built.prefix / "lib").glob("libmpi.so.[0-9][0-9]"))
    copy = tmp_path / "other" / name.name
    copy.parent.mkdir()
    # What it loads lies beside it.
    for other in (path for path in name.parent.iterdir() if path != name):
        (copy.parent / other.name).symlink_to(other)
    shutil.copy(name, copy)
    own = name.resolve()
    done = built.run("preflight", "--ranks", "2")
    assert libraries(done.stdout, tmp_path / "out") == [(str(own), 2)]
    program = f"{built.build}/bin/preflight --ranks 2"
    second = f"LD_LIBRARY_PATH={copy.parent} {program}"
    done = built.run_command(["sh", "-c", second])
    assert libraries(done.stdout, tmp_path / "out") == [(str(copy), 2)]
    mixed = (
        f"[ ${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}} = 0 ] && exec {program}; "
        f"export LD_LIBRARY_PATH={copy.parent}; exec {program}"
    )
    done = built.run_command(["sh", "-c", mixed])
    assert libraries(done.stdout, tmp_path / "out") == [(str(own), 1), (str(copy), 1)]


def test_an_mpi_that_is_linked_into_the_program_is_in_no_library(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(
        '#include "loaded_library.h"\n#include <stdio.h>\n'
        "int MPI_Init(int *count, char ***words) { return !count + !words; }\n"
        "int main(int argc, char **argv) {\n    char path[64];\n    MPI_Init(&argc, &argv);\n"
        '    find_mpi_library(path, sizeof path);\n    printf("[%s]", path);\n}\n'
    )
    folder = PROJECT / "benchmarks/preflight"
    subprocess.run(
        ["gcc", f"-I{folder}", "-o", tmp_path / "main", tmp_path / "main.c",
         folder / "loaded_library.c", "-ldl"],
        check=True,
    )  # fmt: skip
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[]")


def test_preflight_refuses_another_world(built: Built) -> None:
    done = built.run("preflight", "--ranks", "3")
    assert done.returncode == 1 and "2 rank(s) formed a world, not 3" in done.stderr
    done = built.run("preflight", "--hosts", "2")
    assert done.returncode == 1 and "on 1 host(s), not 2" in done.stderr


@pytest.mark.each_library
def test_independent_singletons_are_refused(built: Built) -> None:
    command = [str(built.build / "bin/preflight"), "--ranks", "2"]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 1 and "1 rank(s) formed a world, not 2" in done.stderr


@pytest.mark.parametrize(
    ("program", "arguments", "ranks", "sentence"),
    [
        ("pingpong", ["--sizes", "-1"], 2, "--sizes -1: must be from 0"),
        ("pingpong", ["--sizes", "4:2:1"], 2, "the range is empty"),
        ("pingpong", ["--sizes", "1:2"], 2, "write one number or FIRST:LAST:STEP"),
        ("pairs", ["--pairs", "1:2"], 2, "--pairs 1:2: write one number or FIRST:LAST:STEP"),
        ("pingpong", ["--sizes", "1:2:3:4"], 2, "write one number or FIRST:LAST:STEP"),
        ("pingpong", ["--sizes", "1:9:0"], 2, "--sizes 0: must be from 1"),
        ("pingpong", ["--sizes", "99999999999999999999"], 2, "must be from 0"),
        ("pingpong", ["--sizes", "0:2147483647:1"], 2, "--sizes: more than 100000 values"),
        ("pingpong", ["--sizes", "12x"], 2, "not a whole number"),
        ("pingpong", ["--sizes", ""], 2, "not a whole number"),
        ("pingpong", ["--iterations", "0"], 2, "--iterations 0: must be from 1"),
        ("pingpong", ["--warmup", "1e3"], 2, "not a whole number"),
        ("pingpong", ["--pair", "Bsend/Recv"], 2, "must be one of: Send/Recv"),
        ("pingpong", ["--order", "new"], 2, "must be one of: modified, original"),
        ("pingpong", ["--nonsense"], 2, "unknown option"),
        ("pingpong", ["--sizes"], 2, "missing value"),
        ("pingpong", ["-xy"], 2, "-xy: unknown option"),
        ("pingpong", ["300"], 2, "300: unexpected argument"),
        ("pingpong", [], 1, "exactly 2"),
        ("pingpong", [], 3, "exactly 2"),
        ("preflight", ["--ranks", "0"], 2, "--ranks 0: must be from 1"),
        ("preflight", ["--iterations", "x"], 2, "not a whole number"),
        ("startup", ["--since", "0"], 2, "--since 0: must be greater than 0"),
        ("startup", ["--since", "yesterday"], 2, "not a number"),
        ("startup", ["--since", "nan"], 2, "must be greater than 0"),
        ("startup", ["--since", "99999999999"], 2, "is later than the last integer"),
        ("startup", ["--since"], 2, "missing value"),
        ("startup", ["now"], 2, "now: unexpected argument"),
        ("startup", [], 1, "the world has 1 rank,"),
    ],
)
def test_bad_arguments_are_one_sentence(
    one: Built, program: str, arguments: list[str], ranks: int, sentence: str
) -> None:
    done = one.refuse(program, arguments, ranks, sentence)
    assert done.stdout == ""


@pytest.mark.each_library
@pytest.mark.parametrize("program", ["pingpong", "startup"])
def test_sentence_and_code_pass_every_launcher(built: Built, program: str) -> None:
    built.refuse(program, ["--nonsense"], 2, "unknown option")


@pytest.mark.parametrize("program", ["pingpong", "preflight", "startup"])
def test_help_and_version(one: Built, program: str) -> None:
    shown = one.run(program, "--help")
    assert shown.returncode == 0 and "usage:" in shown.stdout and "example:" in shown.stdout
    assert one.run(program, "--version").stdout == f"{program} 1.0.0\n"


@pytest.mark.parametrize(
    ("size", "damage", "sentence"),
    [
        ("1000", "if (rank == 0) bytes[417] ^= 1", "rank 0 received wrong data from byte 417 on"),
        ("1000", "if (rank == 1) bytes[999] ^= 128", "rank 1 received wrong data from byte 999 on"),
        # Two pieces of a library's pipeline in the wrong order.
        ("262144", "memcpy(piece, bytes, 65536); memcpy(bytes, bytes + 131072, 65536);"
         "memcpy(bytes + 131072, piece, 65536)", "rank 0 received wrong data from byte 0 on"),
        # The data of the message before.
        ("4096", "memcpy(piece + 8192, bytes, 4096); if (calls++) memcpy(bytes, piece, 4096);"
         "memcpy(piece, piece + 8192, 4096)", "Isend/Recv, 4096 bytes: rank 0 received wrong"),
    ],
    ids=["from rank 1", "from rank 0", "order of pieces", "stale"],
)  # fmt: skip
def test_corrupted_data_is_found(
    one: Built, size: str, damage: str, sentence: str, tmp_path: Path
) -> None:
    """A library that damages messages of one size stands between program and MPI."""
    source = tmp_path / "corrupt.c"
    source.write_text(
        "#include <mpi.h>\n#include <string.h>\n"
        "static unsigned char piece[65536];\nstatic int calls;\n"
        "int MPI_Recv(void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Status *u)\n"
        "{ int code = PMPI_Recv(b, n, t, s, g, c, u), rank;\n"
        "  unsigned char *bytes = b;\n"
        "  (void)piece, (void)calls;\n"
        "  PMPI_Comm_rank(c, &rank);\n"
        f"  if (n == {size}) {{ {damage}; }}\n"
        "  return code; }\n"
    )
    library = tmp_path / "corrupt.so"
    subprocess.run(
        [one.prefix / "bin/mpicc", "-shared", "-fPIC", "-o", library, source], check=True
    )
    pairs = ["--pair", "Send/Recv", "--pair", "Isend/Recv", "--iterations", "1", "--warmup", "0"]
    done = one.run("pingpong", *pairs, "--sizes", size, LD_PRELOAD=str(library))
    assert done.returncode == 1
    assert sentence in done.stderr and '"end"' not in done.stdout
    done = one.run("pingpong", *pairs, "--sizes", "999", LD_PRELOAD=str(library))
    assert done.returncode == 0


#: Programs that print in different ways.
HPL_DAT = ["hpl_dat", "--p", "1", "--q", "1", "--n", "64", "--nb", "8"]
PRINTING = [
    ["preflight"], ["nas_ep", "--class", "S"], HPL_DAT, ["startup", "--help"],
    ["collective", "--version"],
]  # fmt: skip


@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_full_disk_is_an_error_with_its_reason(built: Built, words: list[str]) -> None:
    """The launcher may swallow a write error, so the program runs by itself, as a singleton."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [built.build / "bin" / words[0], *words[1:]], stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=300, check=False,
        )  # fmt: skip
    said = f"{words[0]}: standard output could not be written: No space left on device"
    assert done.returncode == 1 and said in done.stderr.splitlines(), done.stderr


@pytest.mark.parametrize("file", ["/dev/full", "/missing/HPL.dat"])
def test_a_file_that_cannot_be_written_is_named_with_the_reason(built: Built, file: str) -> None:
    words = [str(built.build / "bin" / HPL_DAT[0]), *HPL_DAT[1:], "--output", file]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    reason = "No space left on device" if file == "/dev/full" else "No such file or directory"
    assert file in done.stderr and done.stderr.strip().endswith(f"written: {reason}")


def test_memory_copy_is_made(built: Built) -> None:
    """A copy that the compiler left out would be faster than any memory."""
    done = built.run("pingpong", "--sizes", "64", "--sizes", "4000000", "--iterations", "1")
    small, large = (
        record["memory_copy_s"] for record in map(json.loads, done.stdout.splitlines())
        if record["record"] == "result"
    )  # fmt: skip
    assert 1e8 < 4_000_000 / large < 1e12
    assert 1e-11 < small < 1e-5


@pytest.mark.parametrize("key", ["library", "pair", "verified_bytes", "results"])
def test_schema_refuses_what_it_must(one: Built, key: str) -> None:
    records = [
        json.loads(line)
        for line in one.run("pingpong", "--sizes", "1", "--iterations", "1").stdout.splitlines()
    ]
    [record] = [record for record in records if key in record]
    assert SCHEMA.is_valid(record)
    assert not SCHEMA.is_valid({name: record[name] for name in record if name != key})
    assert not SCHEMA.is_valid({**record, "unknown": 1})


def test_hosts_that_one_machine_plays(built: Built, tmp_path: Path) -> None:
    """Each rank has a host name of its own, and the machine is still seen to be one."""
    command = f"hostname $(cat /proc/sys/kernel/random/uuid) && exec {built.build}/bin/preflight"
    done = built.run_command([*UNSHARE, "--uts", "sh", "-c", f"{command} --hosts 2"])
    assert done.returncode == 0, done.stderr
    records = read(done.stdout, tmp_path / "out")
    of = {record["operation"]: record for record in records if record["record"] == "result"}
    world, transport = of["world"], of["transport"]
    assert world["distinct_hosts"] == 2 == len(set(records[0]["hosts"]))
    assert "two hosts that one machine plays" in str(transport["evidence"])


def test_make_installs_two_builds_side_by_side(built: Built, tmp_path: Path) -> None:
    assert built.make("install", f"DESTDIR={tmp_path}", "PREFIX=/opt/wyeast").returncode == 0
    installed = {path.name for path in (tmp_path / "opt/wyeast/bin").iterdir()}
    assert installed == {
        "pingpong", "preflight", "startup", "hpl_dat", "collective", "pairs", "some_to_some",
        "halo", "neighbours", "node_pairs", "one_sided", "passive_target", "layouts", "threads",
        "big_counts", "files", "echo", "emulator", "stream", "su3",
        "profiled", "nas_ep", "nas_is", "nas_cg", "nas_mg", "nas_ft",
        "nas_lu", "nas_sp", "nas_bt", "nas_dt",
    }  # fmt: skip
    assert not (PROJECT / "benchmarks/bin").exists()
    (tmp_path / "b").mkdir()
    other = Built(built.implementation, built.prefix, tmp_path / "b")
    absent = other.make(f"HPL_SOURCE={tmp_path}/absent", "xhpl")
    assert absent.returncode != 0 and "no hpl/src there" in absent.stderr


def test_sanitizers_find_nothing(sanitized: Sanitized) -> None:
    for program, arguments, code in [
        ("pingpong", ["--pair", "all", "--sizes", "0:70000:35000", "--iterations=3", "--raw"], 0),
        ("pingpong", ["--pair", "all", "--sizes", "0:99:9", "--sizes", "5:4:1"], 2),
        ("pingpong", ["--pair", "x" * 100000], 2),
        ("pingpong", ["--sizes", "9" * 100000], 2),
        ("preflight", ["--ranks", "2"], 0),
        ("preflight", ["--ranks", "3"], 1),
        ("hpl_dat", ["--p", "1", "--q", "1", "--n", "1,2,3", "--nb", "4"], 0),
        ("hpl_dat", ["--p", "1", "--q", "1", "--n", ",".join("1" * 21), "--nb", "4"], 2),
        ("hpl_dat", ["--p", "2147483647", "--q", "2147483647", "--n", "1", "--nb", "4"], 2),
    ]:
        sanitized.check(program, *arguments, code=code)
