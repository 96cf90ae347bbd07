"""emulator by hand, with two MPIs: graphs, drawn times, bytes, and files that users write."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.emulation import EmulationIterations, EmulationResult
from records.program_output import ProgramOutput, read_program_output
from tests.benchmarks.conftest import PROJECT, Built, Sanitized
from tests.benchmarks.test_programs import read

pytestmark = pytest.mark.real

SHORT = ["--steps", "3", "--iterations", "2", "--warmup", "1", "--compute-mean", "0.0002"]
GRAPH = """\
# A producer, two filters and a consumer.
ranks 4
compute 0 0
compute 3 0.0005
edge 0 1 8
edge 0 2 8

edge 1 3 65536
edge 2 3 1   # the other filter says only whether it found something
"""


def emulate(built: Built, path: Path, *arguments: str, ranks: int = 4) -> ProgramOutput:
    """Run the emulator; check its output against the schema and the strict reader."""
    done = built.run("emulator", *SHORT, *arguments, ranks=ranks)
    assert done.returncode == 0, done.stderr
    read(done.stdout, path)
    return read_program_output(path)


def results(output: ProgramOutput) -> list[EmulationResult]:
    found = [result for result in output.results if isinstance(result, EmulationResult)]
    assert len(found) == len(output.results)
    return found


@pytest.mark.parametrize(
    ("graph", "ranks", "edges", "computing"),
    [
        ("client-server", 4, 6, [True, True, True, True]),
        ("farm", 4, 6, [False, True, True, True]),
        ("ring", 4, 5, [False, True, True, True]),
        ("pipeline", 4, 4, [False, True, True, True]),
        ("stencil", 5, 10, [False, True, True, True, True]),
        ("client-server", 2, 2, [True, True]),
        ("ring", 3, 4, [False, True, True]),
    ],
)
def test_graphs(
    built: Built, graph: str, ranks: int, edges: int, computing: list[bool], tmp_path: Path
) -> None:
    output = emulate(
        built, tmp_path / "out", "--application", graph, "--message-bytes", "5000", "--raw",
        ranks=ranks,
    )  # fmt: skip
    [result] = results(output)
    assert (result.ranks, result.edges, result.step_bytes) == (ranks, edges, 5000 * edges)
    assert result.world_ranks == list(range(ranks))
    assert [seconds > 0 for seconds in result.drawn_by_rank_s] == computing
    assert sum(result.sent_by_rank_bytes) == 5000 * edges * 3 * 2 * 3
    assert result.alone_s.min >= max(result.drawn_by_rank_s) * (1 - 1e-6)
    assert result.computing_s.min >= max(result.drawn_by_rank_s) * (1 - 1e-6)
    raw = {(series.situation, len(series.time_s)) for series in output.iterations
           if isinstance(series, EmulationIterations)}  # fmt: skip
    assert raw == {(name, 2) for name in ("alone", "together", "messages", "computing")}
    alone, together, messages, _ = (series.time_s for series in output.iterations)
    ratios = sorted(b / a for a, b in zip(alone, together, strict=True))
    assert result.slowdown.min == pytest.approx(ratios[0], rel=1e-6)
    assert result.slowdown.max == pytest.approx(ratios[-1], rel=1e-6)
    assert result.messages_s.mean == pytest.approx(sum(messages) / 2, rel=1e-6)


@pytest.mark.parametrize(
    ("placement", "world"),
    [("consecutive", [[0, 1], [2, 3, 4]]), ("cyclic", [[0, 2], [1, 3, 4]])],
)
def test_applications_have_ranks_of_their_own(
    built: Built, placement: str, world: list[list[int]], tmp_path: Path
) -> None:
    output = emulate(
        built, tmp_path / "out", "--application", "farm:2", "--application", "ring",
        "--placement", placement, ranks=5,
    )  # fmt: skip
    assert [result.world_ranks for result in results(output)] == world
    assert output.header.parameters["application"] == ["farm:2", "ring"]


def test_equal_shares_of_the_world(built: Built, tmp_path: Path) -> None:
    words = ["--application", "farm", "--application", "pipeline"]
    output = emulate(built, tmp_path / "out", *words, ranks=5)
    assert [result.ranks for result in results(output)] == [3, 2]


def test_messages_without_bytes(built: Built, tmp_path: Path) -> None:
    [result] = results(emulate(built, tmp_path / "out", "--message-bytes", "0"))
    assert result.step_bytes == 0 == sum(result.sent_by_rank_bytes)


DISTRIBUTIONS = [
    ("exponential", []),
    ("normal", ["--compute-deviation", "0.3"]),
    ("uniform", ["--compute-deviation", "0.5"]),
    ("lognormal", ["--compute-deviation", "1"]),
]


@pytest.mark.parametrize(("distribution", "more"), DISTRIBUTIONS)
def test_drawn_times_follow_from_the_seed(
    one: Built, distribution: str, more: list[str], tmp_path: Path
) -> None:
    words = ["--distribution", distribution, *more, "--application", "farm:2"]
    first = results(emulate(one, tmp_path / "1", *words, ranks=2))[0].drawn_by_rank_s
    again = results(emulate(one, tmp_path / "2", *words, ranks=2))[0].drawn_by_rank_s
    beside = results(
        emulate(one, tmp_path / "3", *words, "--application", "ring:3", ranks=5)
    )[0].drawn_by_rank_s  # fmt: skip
    other = results(emulate(one, tmp_path / "4", *words, "--seed", "2", ranks=2))
    larger = results(emulate(one, tmp_path / "5", *words[:-1], "farm:4"))[0].drawn_by_rank_s
    assert first == again == beside == larger[:2]
    assert other[0].drawn_by_rank_s != first and len(set(larger)) == 4


@pytest.mark.parametrize(("distribution", "more"), [("constant", []), *DISTRIBUTIONS])
def test_drawn_times_have_the_mean(
    one: Built, distribution: str, more: list[str], tmp_path: Path
) -> None:
    """Of 60000 times of at most the standard deviation of the mean, the mean is off by 2%."""
    # One way, so that no step waits for the other rank: on a busy machine that takes its turn.
    graph = tmp_path / "graph"
    graph.write_text("ranks 2\nedge 0 1 0\n")
    words = ["--distribution", distribution, *more, "--compute-mean", "1e-6"]
    words += ["--application", f"file={graph}", "--steps", "30000"]
    words += ["--iterations", "2", "--warmup", "0"]
    [result] = results(emulate(one, tmp_path / "out", *words, ranks=2))
    for seconds in result.drawn_by_rank_s:
        assert seconds == pytest.approx(30000e-6, rel=0.03)


@pytest.mark.measures
def test_sleeping_takes_no_processor(built: Built, tmp_path: Path) -> None:
    """Ranks that sleep take their time side by side, however few the processors."""
    shortest: list[float] = []
    # Again where something else had the processors meanwhile.
    while len(shortest) < 5 and not any(seconds < 0.3 for seconds in shortest):
        [result] = results(
            emulate(built, tmp_path / "out", "--application", "farm", "--compute", "sleep",
                    "--compute-mean", "0.02", "--steps", "5")
        )  # fmt: skip
        shortest.append(result.alone_s.min)
        assert shortest[-1] >= 0.1
    assert any(seconds < 0.3 for seconds in shortest), shortest


def test_graph_of_a_file(built: Built, tmp_path: Path) -> None:
    (tmp_path / "graph").write_text(GRAPH)
    words = ["--application", f"file={tmp_path / 'graph'}", "--application", "farm:2"]
    first, second = results(emulate(built, tmp_path / "out", *words, ranks=6))
    assert (first.ranks, first.edges, first.step_bytes) == (4, 4, 65536 + 17)
    assert first.drawn_by_rank_s == pytest.approx([0, 0.0006, 0.0006, 0.0015])
    runs = 3 * 2 * 3
    assert first.sent_by_rank_bytes == [16 * runs, 65536 * runs, runs, 0]
    assert first.received_by_rank_bytes == [0, 8 * runs, 8 * runs, 65537 * runs]
    assert second.world_ranks == [4, 5]


BAD_FILES = [
    ("", "1: the file has no line: ranks NUMBER"),
    ("\n# nothing\n\n", "3: the file has no line: ranks NUMBER"),
    ("ranks 2\n", "1: the file has no edge"),
    ("ranks\n", "1: write: ranks NUMBER"),
    ("ranks 2 3\n", "1: write: ranks NUMBER"),
    ("ranks -2\n", "1: ranks -2: must be from 2 to 100000"),
    ("ranks 1\n", "1: ranks 1: must be from 2 to 100000"),
    ("ranks 99999999999999999999\n", "1: ranks 99999999999999999999: must be from 2"),
    ("ranks two\n", "1: ranks two: not a whole number"),
    ("ranks 2\nranks 2\n", "2: ranks is given for the second time"),
    ("edge 0 1 8\nranks 2\n", "1: the first line must be: ranks NUMBER"),
    ("compute 0 1\n", "1: the first line must be: ranks NUMBER"),
    ("ranks 2\nnode 0\n", "2: a line must begin with ranks, compute or edge"),
    ("ranks 2\nedge 0 1\n", "2: write: edge FROM TO BYTES"),
    ("ranks 2\nedge 0 1 2 3\n", "2: write: edge FROM TO BYTES"),
    ("ranks 2\nedge 0 1 2 3 4 5 6\n", "2: write: edge FROM TO BYTES"),
    ("ranks 2\nedge -1 1 8\n", "2: rank -1: must be from 0 to 1"),
    ("ranks 2\nedge 0 2 8\n", "2: rank 2: must be from 0 to 1"),
    ("ranks 2\nedge 1 1 8\n", "2: an edge from a rank to itself"),
    ("ranks 2\nedge 0 1 -8\n", "2: bytes -8: must be from 0 to 2147483647"),
    ("ranks 2\nedge 0 1 2147483648\n", "2: bytes 2147483648: must be from 0 to 2147483647"),
    ("ranks 2\nedge 0 1 8\n\nedge 0 1 8\n", "4: an earlier line has this edge"),
    ("ranks 2\ncompute 0\n", "2: write: compute RANK SECONDS"),
    ("ranks 2\ncompute 2 1\n", "2: rank 2: must be from 0 to 1"),
    ("ranks 2\ncompute 0 -1\n", "2: seconds -1: must be greater than 0"),
    ("ranks 2\ncompute 0 nan\n", "2: seconds nan: must be greater than 0"),
    ("ranks 2\ncompute 0 1e99\n", "2: seconds 1e99: must be greater than 0 and at most 3600"),
    ("ranks 2\ncompute 0 soon\n", "2: seconds soon: not a number"),
    ("ranks 2\ncompute 0 1\ncompute 0 1\n", "3: an earlier line has this rank's computing time"),
    ("ranks 2\n#" + "x" * 200 + "\n", "2: the line is longer than 200 characters"),
    ("ranks 2\nedge 0 1\0 8\n", "2: the line is not text"),
]


@pytest.fixture(scope="module")
def parser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program that parses a graph from stdin, watched by the sanitizers."""
    folder = tmp_path_factory.mktemp("parser")
    (folder / "main.c").write_text(
        '#include <stdio.h>\n#include <stdlib.h>\n#include "emulator/graph.h"\n'
        "int main(void) {\n"
        "  char *text = malloc(1 << 20); graph parsed; complaint about;\n"
        "  size_t length = fread(text, 1, 1 << 20, stdin);\n"
        "  char *exact = malloc(length ? length : 1);\n"
        "  for (size_t i = 0; i < length; i++) exact[i] = text[i];\n"
        "  free(text);\n"
        '  int failed = parse_graph("graph", exact, length, 0.25, &parsed, &about);\n'
        "  free(exact);\n"
        '  if (failed) { puts(about.text); return 2; }\n'
        '  printf("%d %zu %llu\\n", parsed.ranks, parsed.edge_count, step_bytes(&parsed));\n'
        "  free_graph(&parsed);\n"
        "  return 0; }\n"
    )  # fmt: skip
    benchmarks = PROJECT / "benchmarks"
    sources = [benchmarks / name for name in
               ("emulator/graph.c", "emulator/graph_file.c", "common/arguments.c")]  # fmt: skip
    subprocess.run(
        ["gcc", "-std=c11", "-D_DEFAULT_SOURCE", "-D_POSIX_C_SOURCE=200809L", "-g", "-O1",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{benchmarks}",
         "-o", folder / "parser", folder / "main.c", *sources],
        check=True, timeout=600,
    )  # fmt: skip
    return folder / "parser"


def parse(parser: Path, text: str) -> tuple[int, str]:
    done = subprocess.run([parser], input=text.encode(), capture_output=True, timeout=300)
    assert not done.stderr, done.stderr.decode()
    return done.returncode, done.stdout.decode().strip()


@pytest.mark.parametrize(("text", "sentence"), BAD_FILES)
def test_bad_files_are_one_sentence_with_the_line(parser: Path, text: str, sentence: str) -> None:
    code, said = parse(parser, text)
    assert code == 2 and said.startswith(f"graph:{sentence}"), said


def test_good_files_are_read(parser: Path) -> None:
    assert parse(parser, GRAPH) == (0, f"4 4 {65536 + 17}")
    assert parse(parser, "ranks 2\r\n\tedge 1 0 2147483647") == (0, "2 1 2147483647")
    many = "ranks 200\n" + "".join(f"edge {n} {n + 1} {n}\n" for n in reversed(range(199)))
    assert parse(parser, many) == (0, f"200 199 {sum(range(199))}")


NUMBERS = st.sampled_from(["0", "1", "2", "3", "4", "-1", "8", "2147483648", "x", "", "0.5", "1e3"])
LINES = st.one_of(
    st.tuples(st.just("edge"), NUMBERS, NUMBERS, NUMBERS).map(" ".join),
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 99)).map(
        lambda edge: f"edge {edge[0]} {edge[1]} {edge[2]}"
    ),
    st.tuples(st.just("compute"), NUMBERS, NUMBERS).map("  ".join),
    st.sampled_from(["ranks 4", "", "#", " # edge", "ranks", "edge", "compute 1 0.5 # half"]),
    st.text(max_size=12),
)


@given(st.lists(LINES, max_size=8), st.booleans())
@settings(max_examples=150)
def test_any_text_is_read_or_refused_with_a_line(
    parser: Path, lines: list[str], begins_well: bool
) -> None:
    text = "\n".join(["ranks 4", *lines] if begins_well else lines)
    code, said = parse(parser, text)
    if code == 0:
        ranks, edges, _ = map(int, said.split())
        assert ranks in (2, 3, 4, 8, 1000) and 0 < edges <= len(lines)
        return
    assert code == 2
    name, line, sentence = said.split(":", 2)
    assert name == "graph" and sentence
    assert 1 <= int(line) <= max(1, len(text.encode().split(b"\n")))


@pytest.mark.parametrize(
    ("arguments", "ranks", "sentence"),
    [
        (["--application", "torus"], 2, "--application torus: there is no such graph"),
        (["--application", "client"], 2, "--application client: there is no such graph"),
        (["--application", ""], 2, "--application : there is no such graph"),
        (["--application", "x" * 5000], 2, "there is no such graph"),
        (["--application", "farm:"], 2, "not a whole number"),
        (["--application", "farm:1"], 2, "--application: ranks 1: must be from 2"),
        (["--application", "ring:2"], 2, "--application: ranks 2: must be from 3"),
        (["--application", "farm:99999999999999999999"], 2, "must be from 2 to 100000"),
        (["--application", "farm:3"], 2, "the applications need 3 ranks, and the world has 2"),
        (["--application", "farm:2"], 3, "the applications need 2 ranks, and the world has 3"),
        (["--application", "farm", "--application", "farm"], 3,
         "1 of the world's 3 ranks are left for it, and it needs 2"),
        (["--application", "stencil"], 2, "2 of the world's 2 ranks are left"),
        ([], 1, "1 of the world's 1 ranks are left for it, and it needs 2"),
        (["--application", "file=/nonexistent/graph"], 2, "/nonexistent/graph: No such file"),
        (["--application", "file=/"], 2, "/: not a regular file"),
        (["--application", "file="], 2, "No such file"),
        (["--message-bytes", "-1"], 2, "--message-bytes -1: must be from 0"),
        (["--message-bytes", "2147483648"], 2, "--message-bytes 2147483648: must be from 0"),
        (["--steps", "0"], 2, "--steps 0: must be from 1"),
        (["--steps", "1000000", "--iterations", "1000000", "--message-bytes", "2147483647"], 2,
         "are too many to count"),
        (["--iterations", "0"], 2, "--iterations 0: must be from 1"),
        (["--compute-mean", "-1"], 2, "--compute-mean -1: must be greater than 0"),
        (["--compute-mean", "nan"], 2, "--compute-mean nan: must be greater than 0"),
        (["--distribution", "poisson"], 2, "must be one of: constant, exponential"),
        (["--distribution", "normal"], 2, "must be greater than 0 and at most 0.5"),
        (["--distribution", "uniform", "--compute-deviation", "0.6"], 2, "at most 0.57735"),
        (["--compute-deviation", "0.1"], 2, "the distribution constant has its own"),
        (["--seed", "-1"], 2, "--seed -1: must be from 0"),
        (["--compute", "never"], 2, "must be one of: busy, sleep"),
        (["ring"], 2, "ring: unexpected argument"),
    ],
)  # fmt: skip
def test_bad_arguments_are_one_sentence(
    one: Built, arguments: list[str], ranks: int, sentence: str
) -> None:
    assert one.refuse("emulator", arguments, ranks, sentence).stdout == ""


def test_bad_file_ends_every_rank(one: Built, tmp_path: Path) -> None:
    (tmp_path / "graph").write_text("ranks 3\nedge 0 3 8\n")
    done = one.run("emulator", "--application", f"file={tmp_path / 'graph'}", ranks=3)
    assert done.returncode == 2 and done.stdout == ""
    assert f"emulator: {tmp_path / 'graph'}:2: rank 3: must be from 0 to 2" in done.stderr


@pytest.mark.parametrize(
    ("path", "sentence"),
    [("/proc/self/mem", "cannot be read"), ("/proc", "not a regular file")],
)
def test_file_that_cannot_be_read(one: Built, path: str, sentence: str) -> None:
    done = one.run("emulator", "--application", f"file={path}")
    assert done.returncode == 2 and f"emulator: {path}: {sentence}" in done.stderr


def between(built: Built, folder: Path, body: str) -> str:
    """Return a library that stands between the program and MPI."""
    (folder / "between.c").write_text(f"#include <mpi.h>\n{body}\n")
    library = folder / "between.so"
    compile_it = [str(built.prefix / "bin/mpicc"), "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*compile_it, folder / "between.c"], check=True)
    return str(library)


STEPS = ["--steps", "3", "--iterations", "2", "--warmup", "1"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        # The last byte of what is sent is another one.
        ("int MPI_Isend(const void *b, int n, MPI_Datatype t, int d, int g, MPI_Comm c,\n"
         "              MPI_Request *r)\n"
         "{ ((unsigned char *)b)[n - 1] ^= 1; return PMPI_Isend(b, n, t, d, g, c, r); }",
         "data wrong from byte"),
        # Less arrives than was sent.
        ("int MPI_Get_count(const MPI_Status *s, MPI_Datatype t, int *n)\n"
         "{ int code = PMPI_Get_count(s, t, n); *n -= 1; return code; }",
         "and 147456 were sent to it"),
    ],
    ids=["damaged", "lost"],
)  # fmt: skip
def test_faults_are_found(one: Built, body: str, sentence: str, tmp_path: Path) -> None:
    done = one.run("emulator", *STEPS, LD_PRELOAD=between(one, tmp_path, body))
    assert done.returncode == 1, done.stdout
    assert sentence in done.stderr and '"end"' not in done.stdout


def test_a_clock_that_goes_back_is_found(one: Built, changed_clock: str) -> None:
    """By ten seconds after one, which is amid the runs: their ranks sleep for 3.6."""
    lasting = [*STEPS, "--compute", "sleep", "--compute-mean", "0.2"]
    done = one.run("emulator", *lasting, LD_PRELOAD=changed_clock, CHANGED_CLOCK_BACK_AFTER="1")
    assert done.returncode == 1, done.stdout
    assert "went backwards" in done.stderr and '"end"' not in done.stdout


def test_help_and_version(one: Built) -> None:
    shown = one.run("emulator", "--help")
    assert shown.returncode == 0 and "usage:" in shown.stdout and "example:" in shown.stdout
    assert one.run("emulator", "--version").stdout == "emulator 1.0.0\n"


@pytest.mark.parametrize("ranks", [2, 4])
def test_sanitizers_find_nothing(sanitized: Sanitized, ranks: int, tmp_path: Path) -> None:
    (tmp_path / "graph").write_text(GRAPH if ranks == 4 else "ranks 2\nedge 1 0 70000\n")
    (tmp_path / "bad").write_text("ranks 2\nedge 0 1 8\nedge 0 1 8\n")
    two = ["--application", "farm:2"] * (ranks // 2)
    for arguments, code in [
        ([*two, "--raw", "--distribution", "exponential"], 0),
        (["--application", f"file={tmp_path / 'graph'}", "--message-bytes", "0"], 0),
        (["--application", "pipeline", "--compute", "sleep", "--message-bytes", "300000"], 0),
        (["--application", f"file={tmp_path / 'bad'}"], 2),
        (["--application", "x" * 100000], 2),
        (["--application", "file=" + "x" * 100000], 2),
        (["--application", "farm:1000"], 2),
    ]:
        sanitized.check("emulator", *SHORT, *arguments, ranks=ranks, code=code)
