"""The programs of communications, with two MPIs: every byte proved, errors by the sentence."""

import json
import statistics
import subprocess
from pathlib import Path

import pytest

from records.communication import Communication
from records.limits.links import drawn_messages
from records.program_output import ProgramOutput, read_program_output
from tests.benchmarks.conftest import PROJECT, Built
from tests.benchmarks.test_programs import SCHEMA

pytestmark = pytest.mark.real
PROGRAMS = ["collective", "neighbours", "node_pairs", "pairs", "some_to_some", "halo", "one_sided"]
TINY = ["--iterations", "3", "--warmup", "1"]


def measured(
    built: Built, path: Path, program: str, *arguments: str, ranks: int = 2
) -> ProgramOutput:
    """Run a program and return its records, each checked against the schema."""
    done = built.run(program, *arguments, ranks=ranks)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        SCHEMA.validate(json.loads(line))
    path.write_text(done.stdout)
    return read_program_output(path)


def moved(results: list[Communication]) -> dict[tuple[str, str], int]:
    return {(r.operation, r.group): r.moved_bytes for r in results}


def test_collectives_on_world_and_halves(built: Built, tmp_path: Path) -> None:
    output = measured(
        built, tmp_path / "out", "collective", "--group", "all", "--sizes", "800", "--raw", *TINY,
        ranks=4,
    )  # fmt: skip
    results = output.communications()
    assert len(results) == 40 == len(output.iterations)
    # By the definitions in FORMAT.md, for 4 ranks and for 2 times 2 ranks. Unequal blocks of 800
    # bytes are 320, 640, 960 and 1280 of 4 ranks, and 533 and 1066 of 2.
    assert moved(results) == {
        ("barrier", "world"): 0, ("barrier", "halves"): 0,
        ("bcast", "world"): 2400, ("bcast", "halves"): 1600,
        ("gather", "world"): 2400, ("gather", "halves"): 1600,
        ("scatter", "world"): 2400, ("scatter", "halves"): 1600,
        ("allgather", "world"): 9600, ("allgather", "halves"): 3200,
        ("alltoall", "world"): 9600, ("alltoall", "halves"): 3200,
        ("reduce-min", "world"): 800, ("reduce-min", "halves"): 1600,
        ("reduce-sum", "world"): 800, ("reduce-sum", "halves"): 1600,
        ("allreduce-min", "world"): 3200, ("allreduce-min", "halves"): 3200,
        ("allreduce-sum", "world"): 3200, ("allreduce-sum", "halves"): 3200,
        ("reduce-scatter-block-sum", "world"): 3200, ("reduce-scatter-block-sum", "halves"): 3200,
        ("reduce-scatter-sum", "world"): 3200, ("reduce-scatter-sum", "halves"): 2 * (528 + 1064),
        ("scan-sum", "world"): 2400, ("scan-sum", "halves"): 1600,
        ("exscan-sum", "world"): 2400, ("exscan-sum", "halves"): 1600,
        ("gatherv", "world"): 2880, ("gatherv", "halves"): 2 * 1066,
        ("scatterv", "world"): 2880, ("scatterv", "halves"): 2 * 1066,
        ("allgatherv", "world"): 9600, ("allgatherv", "halves"): 2 * (533 + 1066),
        ("alltoallv", "world"): 4 * 3200 - 2 * (320 + 960),
        ("alltoallv", "halves"): 2 * 2 * 1066,
        ("alltoallw", "world"): 4 * 3200 - 2 * (320 + 960),
        ("alltoallw", "halves"): 2 * 2 * 1066,
        ("dissemination-barrier", "world"): 0, ("dissemination-barrier", "halves"): 0,
    }  # fmt: skip
    assert {r.ranks for r in results if r.group == "halves"} == {2}
    assert all(
        isinstance(r.median_by_rank_s, list) and len(r.median_by_rank_s) == 4 for r in results
    )


#: Without those that have no such form: a broadcast has one buffer, and a barrier none.
IN_PLACE = [
    "gather", "scatter", "allgather", "alltoall", "reduce-min", "reduce-sum", "allreduce-min",
    "allreduce-sum", "reduce-scatter-block-sum", "reduce-scatter-sum", "scan-sum", "exscan-sum",
    "gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw",
]  # fmt: skip
FORMS = {
    "in-place": IN_PLACE, "persistent": ["barrier", "bcast", *IN_PLACE],
    "non-blocking": ["barrier", "bcast", *IN_PLACE],
}  # fmt: skip


@pytest.mark.each_library
@pytest.mark.parametrize("form", FORMS)
def test_collectives_in_other_forms(built: Built, tmp_path: Path, form: str) -> None:
    """Each moves what it moves in a blocking call; that each byte is right, the program proves."""
    # The ranks of the other MPI wait for a processor each, of which there may be two.
    ranks = 3 if "openmpi" in built.implementation else 2
    operations = [word for name in FORMS[form] for word in ("--operation", name)]
    words = [*operations, "--sizes", "800", *TINY]
    called = measured(
        built, tmp_path / "out", "collective", "--form", form, *words, ranks=ranks
    ).communications()
    blocking = measured(built, tmp_path / "out", "collective", *words, ranks=ranks).communications()
    methods = [f"{form}{which}" for which in ("", " overlapped", " computing")]
    of_each = methods if form == "non-blocking" else methods[:1]
    assert [(r.operation, r.method) for r in called] == [
        (name, method) for name in FORMS[form] for method in of_each
    ]
    assert {(r.operation, r.method): r.moved_bytes for r in called} == {
        (r.operation, method): 0 if method.endswith("computing") else r.moved_bytes
        for r in blocking
        for method in of_each
    }


@pytest.mark.parametrize("synchronisation", ["barrier", "dissemination", "window", "none"])
def test_synchronisation(built: Built, tmp_path: Path, synchronisation: str) -> None:
    output = measured(
        built, tmp_path / "out", "collective", "--operation", "alltoall", "--sizes", "1024",
        "--iterations", "200", "--synchronisation", synchronisation,
    )  # fmt: skip
    [result] = output.communications()
    assert result.synchronisation == synchronisation
    if synchronisation == "window":
        # As many as were late are timed again, in wider windows.
        assert result.iterations <= 200 <= result.iterations + result.discarded
    else:
        assert (result.iterations, result.discarded) == (200, 0)
    assert (result.clock_error_s > 0) == (synchronisation == "window")


@pytest.mark.parametrize("synchronisation", ["barrier", "window", "none"])
def test_what_each_rank_took(built: Built, tmp_path: Path, synchronisation: str) -> None:
    """The reader proves that the ranks' times make the iterations'; of halves and of a pair too."""
    output = measured(
        built, tmp_path / "out", "collective", "--operation", "bcast", "--operation", "alltoall",
        "--group", "all", "--sizes", "8", "--sizes", "4096", "--raw-by-rank", "--synchronisation",
        synchronisation, *TINY, ranks=4,
    )  # fmt: skip
    results = output.communications()
    assert len(results) == 8 == len(output.iterations)
    assert [series.rank for series in output.rank_iterations] == [0, 1, 2, 3] * 8
    for place, series in enumerate(output.rank_iterations):
        medians = results[place // 4].median_by_rank_s
        assert isinstance(medians, list)
        median = medians[place % 4]
        assert statistics.median(series.time_s) == pytest.approx(median, rel=1e-8)


def test_batches_until_the_interval_is_narrow(built: Built, tmp_path: Path) -> None:
    wanted = ["--iterations", "50", "--most-iterations", "5000", "--relative-width", "0.2"]
    output = measured(
        built, tmp_path / "out", "collective", "--operation", "bcast", "--sizes", "8", *wanted
    )
    [result] = output.communications()
    assert result.iterations % 50 == 0 and 50 <= result.iterations <= 5000
    # Not of the shortest: of times that are a few ticks of the clock many are the same.
    [impossible] = measured(
        built, tmp_path / "out", "collective", "--operation", "bcast", "--sizes", "200000",
        "--iterations", "50", "--most-iterations", "120", "--relative-width", "0.000001",
    ).communications()  # fmt: skip
    assert impossible.iterations == 120


@pytest.mark.parametrize("partner", ["near", "bisection", "every"])
def test_pairs(built: Built, tmp_path: Path, partner: str) -> None:
    numbers = [] if partner == "every" else ["--pairs", "1", "--pairs", "2"]
    output = measured(
        built, tmp_path / "out", "pairs", "--method", "send-recv", "--method", "irecv-send",
        "--method", "exchange", "--method", "window", "--method", "persistent",
        "--partner", partner, *numbers,
        "--window", "8", "--sizes", "0", "--sizes", "4096", *TINY, ranks=4,
    )  # fmt: skip
    by_key = {(r.method, r.group, r.message_bytes): r.moved_bytes for r in output.communications()}
    groups = {group for _, group, _ in by_key}
    if partner == "every":
        assert groups == {"ranks 0 and 1", "ranks 0 and 2", "ranks 0 and 3"}
        assert by_key["window of 8", "ranks 0 and 3", 4096] == 8 * 4096
    else:
        assert groups == {f"1 {partner} pair", f"2 {partner} pairs"}
        assert by_key["exchange", f"2 {partner} pairs", 4096] == 4 * 4096
        assert by_key["persistent", f"1 {partner} pair", 4096] == 2 * 4096


@pytest.mark.parametrize("ranks", [2, 4])
def test_partitioned(built: Built, tmp_path: Path, ranks: int) -> None:
    output = measured(
        built, tmp_path / "out", "pairs", "--method", "partitioned", "--sizes", "0",
        "--sizes", "4096", *TINY, ranks=ranks,
    )  # fmt: skip
    assert [r.moved_bytes for r in output.communications()] == [0, ranks * 4096]


def test_some_to_some_is_the_same_exchange_everywhere(built: Built, tmp_path: Path) -> None:
    options = ["--style", "all", "--sided", "all", "--most-bytes", "5000", "--seed", "7", *TINY]
    output = measured(built, tmp_path / "out", "some_to_some", *options, ranks=4)
    single, double = (
        {(r.moved_bytes, r.message_bytes) for r in output.communications() if side in r.method}
        for side in ("single", "double")
    )
    for measured_ones, sides in ((single, False), (double, True)):
        sizes = [message.size_bytes for message in drawn_messages(7, 4, 6, 5000, double=sides)]
        assert measured_ones == {(sum(sizes), sum(sizes) // len(sizes))}


@pytest.mark.parametrize("periodic", [[], ["--periodic"]])
def test_halo_in_every_dimension(built: Built, tmp_path: Path, periodic: list[str]) -> None:
    output = measured(
        built, tmp_path / "out", "halo", "--dimensions", "1:4:1", "--extent", "4",
        "--method", "all", *periodic, *TINY, ranks=4,
    )  # fmt: skip
    by_group: dict[str, set[int]] = {}
    made: set[tuple[str, str, bool]] = set()
    for result in output.communications():
        group = result.group.removesuffix(" periodic")
        if result.operation == "halo":
            by_group.setdefault(group, set()).add(result.moved_bytes)
        else:
            assert result.moved_bytes == 0
            made.add((result.method, group, result.message_bytes > 0))
    # Faces between ranks, each sent both ways; a periodic grid of two has two between two ranks.
    faces = {"4": (6, 8), "2x2": (8, 16), "2x2x1": (8, 16), "2x2x1x1": (8, 16)}
    for dimensions, (group, (open_ends, around)) in enumerate(faces.items()):
        points = 4**dimensions
        assert by_group[group] == {(around if periodic else open_ends) * points * 8}, group
    # The grid, which has no bytes, and the datatypes of the faces.
    assert made == {(m, g, m == "datatypes") for g in faces for m in ("create", "datatypes")}


@pytest.mark.each_library
def test_neighbours(built: Built, tmp_path: Path) -> None:
    """On three ranks a ring is complete; of a drawn graph each rank has one edge."""
    output = measured(
        built, tmp_path / "out", "neighbours", "--graph", "all", "--degree", "1", "--sizes", "800",
        *TINY, ranks=3 if "openmpi" in built.implementation else 2,
    )  # fmt: skip
    results = output.communications()
    edges = {"ring": 6, "complete": 6, "drawn 1 by seed 1": 3}
    if output.header.ranks == 2:
        edges = dict.fromkeys(edges, 2)
    methods = ["", "-non-blocking", "-persistent"]
    assert [(r.group, r.method, r.operation) for r in results] == [
        (graph, method, f"neighbour-{operation}")
        for graph in edges
        for method in ("isend-irecv", *(f"neighbourhood{form}" for form in methods))
        for operation in ("allgather", "alltoall")
    ]
    assert all(r.moved_bytes == 800 * edges[r.group] for r in results)


def test_one_sided(built: Built, tmp_path: Path) -> None:
    output = measured(built, tmp_path / "out", "one_sided", "--sizes", "8", "--sizes", "800", *TINY)
    assert {(r.operation, r.method) for r in output.communications()} == {
        (operation, completion)
        for operation in ("put", "get", "accumulate")
        for completion in ("fence", "lock", "post-start")
    }
    assert all(r.moved_bytes == r.message_bytes for r in output.communications())


#: Of benchmarks/common/windows.c; a machine on which an access takes longer has longer ones.
SHORTEST_WINDOW_S = 50e-6


@pytest.mark.each_library
@pytest.mark.measures
def test_a_lock_comes_to_its_end_while_the_target_waits_for_a_window(
    built: Built, tmp_path: Path
) -> None:
    """An MPI may need the target's help, which a rank that looks at its clock alone does not give.

    Without it each access takes as long as all windows of a batch; that is tried again where
    something else had the processors meanwhile.
    """
    iterations = 40
    tried: list[tuple[float, float]] = []
    while len(tried) < 5 and not any(shortest < most for shortest, most in tried):
        barrier, window = (
            measured(
                built, tmp_path / "out", "one_sided", "--operation", "put", "--completion", "lock",
                "--iterations", str(iterations), "--synchronisation", synchronisation,
            ).communications()[0].time_s
            for synchronisation in ("barrier", "window")
        )  # fmt: skip
        all_windows = iterations * max(SHORTEST_WINDOW_S, barrier.median)
        tried.append((window.min, all_windows / 2))
    assert any(shortest < most for shortest, most in tried), tried


@pytest.mark.parametrize(
    ("program", "arguments", "ranks", "sentence"),
    [
        ("collective", ["--operation", "gossip"], 2, "must be one of: barrier"),
        ("collective", ["--group", "halves"], 2, "2 ranks have no two equal halves"),
        ("collective", ["--group", "halves"], 3, "3 ranks have no two equal halves"),
        ("collective", ["--sizes", "9"], 2, "the sizes must be multiples of 8 bytes"),
        ("collective", ["--sizes", "-8"], 2, "must be from 0"),
        ("collective", ["--scrub-bytes", "x"], 2, "not a whole number"),
        ("collective", ["--page-offset", "12"], 2, "so it must be a multiple of 8 bytes"),
        ("collective", ["--page-offset", "4096"], 2, "--page-offset"),
        (
            "collective",
            ["--synchronisation", "prayer"],
            2,
            "must be one of: barrier, dissemination, window, none",
        ),
        (
            "collective",
            ["--form", "in-place", "--operation", "bcast"],
            2,
            "bcast has no two buffers to make one of",
        ),
        (
            "collective",
            ["--form", "persistent", "--operation", "dissemination-barrier"],
            2,
            "dissemination-barrier is no call of MPI, and blocks",
        ),
        (
            "collective",
            ["--operation", "alltoallv", "--sizes", "2000000000"],
            2,
            "alltoallv has the places of 2 ranks' blocks in an int",
        ),
        ("collective", ["--relative-width", "nan"], 2, "must be greater than 0"),
        ("collective", [], 1, "needs at least 2"),
        ("neighbours", [], 1, "neighbours are at least 2"),
        ("neighbours", ["--sizes", "2000000000"], 2, "2 ranks' blocks must be in an int"),
        ("neighbours", ["--graph", "star"], 2, "must be one of: ring, complete, drawn"),
        ("pairs", [], 3, "the world has 3 rank(s), and pairs need an even number"),
        ("pairs", ["--pairs", "2"], 2, "2 ranks have 1 pairs"),
        ("pairs", ["--method", "partitioned", "--sizes", "6"], 2, "not a multiple of 4 partitions"),
        ("pairs", ["--method", "partitioned", "--pairs", "1"], 4, "only with all ranks in pairs"),
        ("pairs", ["--window", "0"], 2, "must be from 1"),
        ("pairs", ["--sizes", "2147483648"], 2, "must be from 0 to 2147483647"),
        ("some_to_some", ["--least-bytes", "9", "--most-bytes", "8"], 2, "less than --least-bytes"),
        ("some_to_some", ["--seed", "-1"], 2, "must be from 0"),
        ("some_to_some", [], 1, "needs at least 2"),
        ("halo", ["--dimensions", "5"], 2, "--dimensions 5: must be from 1 to 4"),
        ("halo", ["--extent", "1", "--whole"], 2, "have 0 points each"),
        ("halo", ["--extent", "2147483647", "--dimensions", "4"], 2, "points"),
        ("halo", ["--extent", "8", "--extent", "2147483647"], 2, "--extent 2147483647"),
        ("halo", ["--extent", "1000", "--whole", "--dimensions", "1"], 3, "give a multiple of 3"),
        ("one_sided", [], 3, "exactly 2"),
        ("one_sided", ["--sizes", "4"], 2, "multiples of 8 bytes"),
        ("pingpong", ["--stride-bytes", "12"], 2, "not a multiple of 8 bytes"),
        ("pingpong", ["--stride-bytes", "16", "--sizes", "12"], 2, "sends doubles"),
        ("pingpong", ["--refine", "0.1", "--sizes", "9", "--sizes", "8"], 2, "must ascend"),
    ],
)
def test_bad_arguments_are_one_sentence(
    one: Built, program: str, arguments: list[str], ranks: int, sentence: str
) -> None:
    done = one.refuse(program, arguments, ranks, sentence)
    assert '"result"' not in done.stdout


def test_a_lattice_larger_than_memory_is_a_failure_and_no_bad_argument(one: Built) -> None:
    """More than any address has room for."""
    done = one.run("halo", "--extent", "8", "--extent", "10000000", *TINY)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert "halo: no memory for 100000040000004 points a rank\n" in done.stderr
    assert done.stdout.count('"result"') == 1 and '"end"' not in done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_and_version(one: Built, program: str) -> None:
    shown = one.run(program, "--help")
    assert shown.returncode == 0 and "usage:" in shown.stdout and "example:" in shown.stdout
    assert one.run(program, "--version").stdout == f"{program} 1.0.0\n"


@pytest.mark.parametrize(
    ("call", "program", "arguments"),
    [
        ("MPI_Alltoall(const void *s, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, "
         "MPI_Comm c)|PMPI_Alltoall(s, n, t, b, m, u, c)", "collective",
         ["--operation", "alltoall", "--sizes", "64"]),
        ("MPI_Allreduce(const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)|"
         "PMPI_Allreduce(s, b, n, t, o, c)", "collective",
         ["--operation", "allreduce-sum", "--sizes", "64"]),
        ("MPI_Recv(void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Status *u)|"
         "PMPI_Recv(b, n, t, s, g, c, u)", "pairs", ["--sizes", "64"]),
    ],
    ids=["alltoall", "allreduce", "pairs"],
)  # fmt: skip
def test_corrupted_data_is_found(
    one: Built, tmp_path: Path, call: str, program: str, arguments: list[str]
) -> None:
    """A library that changes one byte of 64 stands between program and MPI."""
    signature, original = call.split("|")
    size = "n == 64 || (n == 8 && t == MPI_DOUBLE)"
    source = tmp_path / "corrupt.c"
    source.write_text(
        f"#include <mpi.h>\nint {signature}\n{{ int code = {original};\n"
        f"  if ({size}) ((unsigned char *)b)[7] ^= 1;\n  return code; }}\n"
    )
    library = tmp_path / "corrupt.so"
    subprocess.run(
        [one.prefix / "bin/mpicc", "-shared", "-fPIC", "-o", library, source], check=True
    )
    done = one.run(program, *arguments, *TINY, LD_PRELOAD=str(library))
    assert done.returncode == 1, done.stdout
    assert f"{program}: " in done.stderr and '"end"' not in done.stdout


def test_refinement_finds_a_protocol_switch(built: Built, tmp_path: Path) -> None:
    """The curve of a library that asks before it sends bends where it begins to ask."""
    output = measured(
        built, tmp_path / "out", "pingpong", "--sizes", "0", "--sizes", "100000",
        "--refine", "0.1", "--iterations", "100",
    )  # fmt: skip
    sizes = [result.message_bytes for result in output.results]  # type: ignore[union-attr]
    assert sizes[:2] == [0, 100000] and 50000 in sizes
    assert len(set(sizes)) == len(sizes) and all(size % 4 == 0 for size in sizes)


@pytest.mark.parametrize(
    "options", [["--cache-bytes", "1000000"], ["--stride-bytes", "1024"]], ids=["cache", "stride"]
)
def test_messages_out_of_cache_and_strided(
    built: Built, tmp_path: Path, options: list[str]
) -> None:
    output = measured(
        built, tmp_path / "out", "pingpong", "--pair", "all", "--sizes", "0", "--sizes", "4096",
        "--iterations", "30", *options,
    )  # fmt: skip
    assert len(output.results) == 16


HARNESS = PROJECT / "tests" / "benchmarks" / "programs" / "fuzz_options.c"


def test_option_parsing_survives_anything(one: Built, tmp_path: Path) -> None:
    """Thousands of random command lines under the address and undefined-behaviour sanitizers."""
    import random

    program = tmp_path / "fuzz"
    common = PROJECT / "benchmarks" / "common"
    parts = ("arguments", "options", "record_pieces", "summary", "written")
    sources = [common / f"{name}.c" for name in parts]
    subprocess.run(
        [one.prefix / "bin/mpicc", "-std=c11", "-D_DEFAULT_SOURCE", "-g",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wall", "-Wextra", "-Werror",
         "-o", program, HARNESS, *sources, "-lm"],
        check=True,
    )  # fmt: skip
    generator = random.Random(20030601)
    pieces = ["--sizes", "--number", "--fraction", "--choice", "--choices", "--text", "--flag",
              "--sizes=1:9:2", "1:2:3", "-1", "0", "99999999999999999999", "1e400", "nan", "0x10",
              "all", "one", "two", "", "--", "-", "=", "--=", "--number=", ":", "::", "1:",
              "9" * 400,
              "\u00e9\u00df", "%s%n", "--help", "--version"]  # fmt: skip
    cases = [
        [
            generator.choice(pieces)
            if generator.random() < 0.8
            else "".join(chr(generator.randrange(1, 256)) for _ in range(generator.randrange(9)))
            for _ in range(generator.randrange(6))
        ]
        for _ in range(2000)
    ]
    # As many sizes as there may be, and one more: under the sanitizers each is a copy of all.
    cases += [["--sizes", "1:2147483647:1"], ["--sizes=1:2147483647:1", "--flag"]]
    text = "\n".join("\x1f".join(case).replace("\n", " ") for case in cases) + "\n"
    done = subprocess.run(
        [program], input=text.encode("utf-8", "replace"), capture_output=True, timeout=1500,
        check=False, env={"ASAN_OPTIONS": "detect_leaks=1", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    answers = done.stdout.decode(errors="replace").split("\n")[:-1]
    assert len(answers) == len(cases)
    assert {answer.split(" ")[0] for answer in answers} == {"parsed", "refused"}
    assert all(len(answer) > len("refused ") for answer in answers)
