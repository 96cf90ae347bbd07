"""The programs by hand, with two MPIs: every line by the schema, every bad argument a sentence."""

import json
import subprocess
from pathlib import Path

import numpy
import pytest
from jsonschema import Draft202012Validator

from analysis.hpl_output import read_hpl_output
from analysis.records import read_program_output
from tests.benchmarks.conftest import PROJECT, Built

pytestmark = pytest.mark.real
PAIRS = ["Send/Recv", "Send/Irecv", "Isend/Recv", "Isend/Irecv",
         "Ssend/Recv", "Ssend/Irecv", "Issend/Recv", "Issend/Irecv"]  # fmt: skip
SCHEMA = Draft202012Validator(json.loads((PROJECT / "benchmarks/format.schema.json").read_text()))


def read(text: str, path: Path) -> list[dict[str, object]]:
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
        found = result.time_s
        assert [found.min, found.quartile1, found.median, found.quartile3, found.max, found.mean
                ] == pytest.approx(expected, rel=1e-6)  # fmt: skip


def test_preflight_describes_the_world(built: Built, tmp_path: Path) -> None:
    done = built.run("preflight", "--ranks", "2", "--hosts", "1")
    assert done.returncode == 0, done.stderr
    records = read(done.stdout, tmp_path / "out")
    version = built.implementation.split("-")[1]
    assert version in str(records[0]["library"])
    transport = next(r for r in records if r.get("operation") == "transport")
    assert transport["transport"] == "shared memory", transport["evidence"]


def test_preflight_refuses_another_world(built: Built) -> None:
    done = built.run("preflight", "--ranks", "3")
    assert done.returncode == 1 and "2 rank(s) formed a world, 3 were asked for" in done.stderr
    done = built.run("preflight", "--hosts", "2")
    assert done.returncode == 1 and "on 1 host(s), 2 were asked for" in done.stderr


def test_independent_singletons_are_refused(built: Built) -> None:
    command = [str(built.build / "bin/preflight"), "--ranks", "2"]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1 and "1 rank(s) formed a world, 2 were asked" in done.stderr


@pytest.mark.parametrize(
    ("program", "arguments", "ranks", "sentence"),
    [
        ("pingpong", ["--sizes", "-1"], 2, "--sizes -1: must be from 0"),
        ("pingpong", ["--sizes", "4:2:1"], 2, "the range is empty"),
        ("pingpong", ["--sizes", "1:2"], 2, "write SIZE or FIRST:LAST:STEP"),
        ("pingpong", ["--sizes", "1:2:3:4"], 2, "write SIZE or FIRST:LAST:STEP"),
        ("pingpong", ["--sizes", "1:9:0"], 2, "--sizes 0: must be from 1"),
        ("pingpong", ["--sizes", "99999999999999999999"], 2, "must be from 0"),
        ("pingpong", ["--sizes", "0:2147483647:1"], 2, "more than 100000 message sizes"),
        ("pingpong", ["--sizes", "12x"], 2, "not a whole number"),
        ("pingpong", ["--sizes", ""], 2, "not a whole number"),
        ("pingpong", ["--iterations", "0"], 2, "--iterations 0: must be from 1"),
        ("pingpong", ["--warmup", "1e3"], 2, "not a whole number"),
        ("pingpong", ["--pair", "Bsend/Recv"], 2, "no such pair"),
        ("pingpong", ["--order", "new"], 2, "modified or original"),
        ("pingpong", ["--nonsense"], 2, "unknown option"),
        ("pingpong", ["--sizes"], 2, "missing value"),
        ("pingpong", ["300"], 2, "unexpected argument"),
        ("pingpong", [], 1, "exactly 2"),
        ("pingpong", [], 3, "exactly 2"),
        ("preflight", ["--ranks", "0"], 2, "--ranks 0: must be from 1"),
        ("preflight", ["--iterations", "x"], 2, "not a whole number"),
    ],
)
def test_bad_arguments_are_one_sentence(
    built: Built, program: str, arguments: list[str], ranks: int, sentence: str
) -> None:
    done = built.run(program, *arguments, ranks=ranks)
    said = [line for line in done.stderr.splitlines() if line.startswith(f"{program}: ")]
    assert len(said) == 1 and sentence in said[0], done.stderr
    assert done.returncode == 2 and done.stdout == ""


@pytest.mark.parametrize("program", ["pingpong", "preflight"])
def test_help_and_version(built: Built, program: str) -> None:
    shown = built.run(program, "--help")
    assert shown.returncode == 0 and "usage:" in shown.stdout and "example:" in shown.stdout
    assert built.run(program, "--version").stdout == f"{program} 1.0.0\n"


def test_corrupted_data_is_found(built: Built, tmp_path: Path) -> None:
    """A library that flips one byte of a long message stands between program and MPI."""
    source = tmp_path / "corrupt.c"
    source.write_text(
        "#include <mpi.h>\n"
        "int MPI_Recv(void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Status *u)\n"
        "{ int code = PMPI_Recv(b, n, t, s, g, c, u);\n"
        "  if (n == 1000) ((unsigned char *)b)[417] ^= 1;\n"
        "  return code; }\n"
    )
    library = tmp_path / "corrupt.so"
    subprocess.run(
        [built.prefix / "bin/mpicc", "-shared", "-fPIC", "-o", library, source], check=True
    )
    done = built.run("pingpong", "--sizes", "1000", LD_PRELOAD=str(library))
    assert done.returncode != 0
    assert "Send/Recv, 1000 bytes: rank 0 received wrong data from byte 417 on" in done.stderr
    assert built.run("pingpong", "--sizes", "999", LD_PRELOAD=str(library)).returncode == 0


def test_full_disk_is_an_error(built: Built) -> None:
    """The launcher may swallow a write error, so the program runs by itself, as a singleton."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [built.build / "bin/preflight"], stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1 and "could not be written" in done.stderr


def test_hpl_dat_refuses_what_does_not_fit(built: Built, tmp_path: Path) -> None:
    command = [str(built.build / "bin/hpl_dat"), "--p", "1", "--q", "2", "--nb", "64", "--n"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *more], capture_output=True, text=True, check=False)

    too_large = run("2000,9000000")
    assert too_large.returncode == 1 and too_large.stdout == ""
    assert "N=9000000 needs 648000.00 GB" in too_large.stderr
    # 8 N^2 = 512 MB at N = 8000: exactly at the limit fits, one more does not.
    limit = ["--memory-bytes-per-node", "640000000"]
    assert run("8000", *limit).returncode == 0
    assert run("8001", *limit).returncode == 1
    assert run("8001", *limit, "--nodes", "2").returncode == 0
    for bad in (["0"], ["10,"], ["x"], ["5", "--p", "0"], ["5", "--memory-fraction", "1.5"]):
        done = run(*bad)
        assert done.returncode == 2 and done.stderr.startswith("hpl_dat: ")
        assert len(done.stderr.splitlines()) == 1


def test_hpl_dat_is_the_thesis_appendix(built: Built) -> None:
    rows = (PROJECT / "literature/kearns2003_hpl_dat.csv").read_text().splitlines()[1:]
    labels = {"swap", "depth", "bcast", "rfact", "ndiv", "nbmin", "pfact", "threshold"}
    values = {
        name: value for name, _, value, *_ in (row.split(",") for row in rows) if name in labels
    }
    command = [built.build / "bin/hpl_dat", "--p", "4", "--q", "6", "--n", "2000", "--nb", "150"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    marks = {
        "swap": "SWAP", "depth": "DEPTHs", "bcast": "BCASTs", "rfact": "RFACTs", "ndiv": "NDIVs",
        "nbmin": "NBMINs", "pfact": "PFACTs", "threshold": "threshold",
    }  # fmt: skip
    for name, value in values.items():
        [line] = [
            line for line in text.splitlines()
            if marks[name] in line.split() and not line.startswith("80")
        ]  # fmt: skip
        assert line.split()[0] == value, name
    assert "swapping threshold" in text and set(values) == labels


@pytest.fixture(scope="session")
def hpcc_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return HPL's source, unpacked from the archive that sources.lock pins."""
    import tarfile

    from containers.sources import fetch_archive

    archive = fetch_archive(PROJECT, "hpcc-1.5.0")
    folder = tmp_path_factory.mktemp("hpcc")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / "hpcc-1.5.0"


def test_hpl_solves_and_checks(built: Built, hpcc_source: Path, tmp_path: Path) -> None:
    done = built.make("-j2", f"HPL_SOURCE={hpcc_source}", "xhpl")
    assert done.returncode == 0, done.stderr
    missing = built.run("xhpl", folder=tmp_path)
    assert missing.returncode == 1 and "HPL.dat cannot be read" in missing.stderr
    subprocess.run(
        [built.build / "bin/hpl_dat", "--p", "1", "--q", "2", "--n", "100,200", "--nb", "32",
         "--output", "HPL.dat"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    done = built.run("xhpl", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "out").write_text(done.stdout)
    runs = read_hpl_output(tmp_path / "out")
    assert [(run.n, run.nb, run.p, run.q, run.passed) for run in runs] == [
        (100, 32, 1, 2, True), (200, 32, 1, 2, True),
    ]  # fmt: skip
    (tmp_path / "HPL.dat").write_text((tmp_path / "HPL.dat").read_text().replace("100 ", "-7 "))
    done = built.run("xhpl", folder=tmp_path)
    assert done.returncode != 0 and "illegal value" in done.stderr


def test_sanitizers_find_nothing(built: Built, tmp_path: Path) -> None:
    build = f"BUILD={tmp_path}"
    flags = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
    assert built.make(build, f"CFLAGS={flags}").returncode == 0
    sanitized = Built(built.implementation, built.prefix, tmp_path)
    # The MPI libraries keep what they allocate until the process ends; leaks are not ours to judge.
    quiet = {"ASAN_OPTIONS": "detect_leaks=0"}
    for program, arguments in [
        ("pingpong", ["--pair", "all", "--sizes", "0:70000:35000", "--iterations", "3", "--raw"]),
        ("preflight", ["--ranks", "2"]),
        ("hpl_dat", ["--p", "1", "--q", "1", "--n", "1,2,3", "--nb", "4"]),
    ]:
        done = sanitized.run(program, *arguments, **quiet)
        assert done.returncode == 0, done.stderr
        assert "runtime error" not in done.stderr and "Sanitizer" not in done.stderr
