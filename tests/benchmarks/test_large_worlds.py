"""What programs need and print where there are more ranks than a machine at hand has."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from records.base import TimeSummary
from records.communication import Communication, Latency, World
from records.profile import Profile, impossible_time, lost_message, read_profile
from records.program_output import ProgramOutput, program_output
from reframe_checks.preflight import trips_told
from tests.benchmarks.conftest import AS_BUILT, PROJECT, SANITIZERS, Built, of_all_workers
from tests.benchmarks.test_programs import SCHEMA

pytestmark = pytest.mark.real
BENCHMARKS, PROGRAMS = PROJECT / "benchmarks", PROJECT / "tests/benchmarks/programs"
RANKS, OF_NODE = 128_000, 128
NODES = RANKS // OF_NODE
MEGABYTE = 10**6
#: What large_worlds.c asks a collective operation for, in bytes.
MESSAGE = 8192
Said = Callable[..., str]


def compiled(one: Built, program: Path, *words: str | Path) -> Path:
    subprocess.run(
        [one.prefix / "bin/mpicc", "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror",
         "-o", program, PROGRAMS / f"{program.name.removesuffix('.so')}.c", *words, "-lm"],
        check=True,
    )  # fmt: skip
    return program


@pytest.fixture(scope="module")
def large(one: Built, tmp_path_factory: pytest.TempPathFactory) -> Said:
    """Return what runs large_worlds.c, linked with the programs' own functions."""
    parts = ("collective/layout", "collective/calls", "common/clock", "common/communication_record",
             "common/dissemination", "common/ranks_alike", "common/record_pieces", "common/summary",
             "common/written",
             "preflight/trips", "some_to_some/interfaces")  # fmt: skip
    program = compiled(
        one, tmp_path_factory.mktemp("large") / "large_worlds", *SANITIZERS.split(),
        *(BENCHMARKS / f"{part}.c" for part in parts),
    )  # fmt: skip

    def run(*words: object) -> str:
        done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def sizes(large: Said) -> dict[str, Any]:
    return dict(json.loads(large("sizes", RANKS, OF_NODE)))


def test_collective_operations_reserve_what_each_one_needs(sizes: dict[str, Any]) -> None:
    of_every_rank = {"gather", "scatter", "gatherv", "scatterv"}
    of_all = {"allgather", "alltoall", "allgatherv", "alltoallv", "alltoallw",
              "reduce-scatter-block-sum", "reduce-scatter-sum"}  # fmt: skip
    unequal = {"gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw", "reduce-scatter-sum"}
    for name, found in sizes["collectives"].items():
        if name not in of_all:
            assert found["other"] <= 3 * MESSAGE, name
        if name not in of_all | of_every_rank:
            assert found["root"] <= 2 * MESSAGE, name
        assert (found["layout"] > 0) == (name in unequal), name
    # The root of a gather and any rank of an all-to-all cannot do with less than a block for each.
    assert sizes["collectives"]["gather"]["root"] == (RANKS + 1) * MESSAGE
    assert sizes["collectives"]["alltoall"]["other"] == 2 * RANKS * MESSAGE


def test_a_rank_of_an_exchange_keeps_its_own_messages_alone(
    sizes: dict[str, Any], large: Said
) -> None:
    found, small = sizes["exchange"], json.loads(large("sizes", 128, 128))["exchange"]
    assert found["of_all"] == 2 * 6 * RANKS and small["of_all"] == 2 * 6 * 128
    # Twelve are sent and twelve received on average, however many ranks there are.
    assert 8 <= small["own"] <= 60 and 8 <= found["own"] <= 60
    assert OF_NODE * found["list_bytes"] < MEGABYTE


def test_a_barrier_is_proved_by_messages_that_are_linear_in_the_ranks(
    sizes: dict[str, Any], large: Said
) -> None:
    late = sizes["late"]
    assert (late[0], late[-1], len(set(late))) == (0, RANKS - 1, 64) and late == sorted(late)
    assert json.loads(large("sizes", 2, 2))["late"] == [0, 1]
    assert json.loads(large("sizes", 5, 5))["late"] == [0, 1, 2, 3, 4]
    assert json.loads(large("sizes", 64, 8))["late"] == list(range(64))


def test_a_preflight_takes_as_long_as_a_node_and_the_logarithm_of_the_nodes(
    sizes: dict[str, Any],
) -> None:
    found = sizes["preflight"]
    # Of each pair a beginning, and two ways of 100 + 10 round trips and two to warm up for each.
    assert found["messages_of_leader"] == (OF_NODE - 1 + 10) * (1 + 2 * (102 + 12))
    assert found["told"] == 2 * NODES and trips_told([str(n // 128) for n in range(RANKS)]) == 1999
    assert found["leader_bytes"] < MEGABYTE and found["rank_0_bytes"] < 2 * MEGABYTE
    # Rank 0 alone has a place for each rank.
    assert sizes["header_bytes"] < 50 * MEGABYTE


def output_of(text: str) -> ProgramOutput:
    return program_output(text, Path("out"))


@pytest.mark.parametrize("ranks", [1000, 1001, RANKS])
def test_an_output_says_where_every_rank_was_in_little_room(large: Said, ranks: int) -> None:
    text = large("records", ranks, OF_NODE)
    output = output_of(text)
    hosts = [f"node{rank // OF_NODE:05d}" for rank in range(ranks)]
    assert output.header.hosts == hosts
    [result] = output.results
    assert isinstance(result, Communication)
    header, told = (len(line) for line in text.splitlines()[:2])
    if ranks == 1000:
        assert isinstance(result.median_by_rank_s, list) and len(result.median_by_rank_s) == ranks
        assert output.header.processors[-1] == list(range(OF_NODE))
        return
    assert isinstance(result.median_by_rank_s, TimeSummary) and told < 1000
    assert result.median_by_rank_s.max == pytest.approx(1e-6 * ranks)
    last = ranks - (ranks - 1) // OF_NODE * OF_NODE
    assert output.header.processors[-1] == ["0-127", last] and header < 14 * ranks


@pytest.mark.parametrize(
    ("hosts", "processors", "words"),
    [
        ([["a", 3]], [["0-3", 2]], "do not have one entry for each rank"),
        ([["a", 10**9]], [["0-3", 10**9]], "hosts are of more than 10000000 ranks"),
        (["a", ["b", 1]], [[0], [1]], "hosts are names, or each a name and a number of ranks"),
        ([["a", 2]], [["0-3", 2, 1]], "or ranges of them and a number of ranks"),
        ([["a", 2]], [["3-", 2]], "processors.0.0"),
    ],
)
def test_invalid_runs_are_refused(
    large: Said, hosts: list[object], processors: list[object], words: str
) -> None:
    first, *others = large("records", 2, 2).splitlines()
    header = json.loads(first) | {"hosts": hosts, "processors": processors}
    with pytest.raises(ValueError, match=words):
        output_of("\n".join([json.dumps(header), *others]))


@pytest.mark.parametrize(
    ("texts", "groups"),
    [
        (["a", "a", "a", "a"], [4, 4, 4, 4]), (["a", "b", "a", "c"], [2, 1, 2, 1]),
        # Two texts of one number each, by FNV-1a.
        (["node288824", "node678140", "node288824", "node678140"], [2, 2, 2, 2]),
    ],
)  # fmt: skip
def test_ranks_that_say_the_same_find_each_other(
    one: Built, tmp_path: Path, texts: list[str], groups: list[int]
) -> None:
    program = compiled(one, tmp_path / "ranks_alike", BENCHMARKS / "common/ranks_alike.c")
    done = one.run_command([str(program), *texts], ranks=len(texts))
    assert done.returncode == 0, done.stderr
    found = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    different = list(dict.fromkeys(texts))
    leaders = [different.index(text) if texts.index(text) == rank else -1
               for rank, text in enumerate(texts)]  # fmt: skip
    assert found == [
        (size, leader, len(different)) for size, leader in zip(groups, leaders, strict=True)
    ]


@pytest.fixture(scope="module")
def played_hosts(one: Built, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return played_hosts.c as a library to load before a program."""
    folder = tmp_path_factory.mktemp("played_hosts")
    return str(compiled(one, folder / "played_hosts.so", "-shared", "-fPIC"))


def on_hosts(
    built: Built, played_hosts: str, ranks_of_host: int, program: str, *arguments: str, ranks: int
) -> subprocess.CompletedProcess[str]:
    """Start ranks of a program, so many in a row on each host; the launcher is where it is."""
    words = ["env", f"LD_PRELOAD={played_hosts}", f"HOST_RANKS={ranks_of_host}"]
    return built.run_command([*words, str(built.build / "bin" / program), *arguments], ranks)


def trips_of(output: ProgramOutput) -> list[tuple[int, int]]:
    found = [(one.source, one.to) for one in output.results if isinstance(one, Latency)]
    assert found[::2] == found[1::2], "with short messages and with long ones"
    return found[::2]


def test_a_preflight_is_a_tree_of_hosts(one: Built, played_hosts: str) -> None:
    words = ["--ranks", "8", "--hosts", "4", "--iterations", "2"]
    done = on_hosts(one, played_hosts, 2, "preflight", *words, ranks=8)
    assert done.returncode == 0, done.stderr
    # Each host's second rank with its first, and the hosts' first ranks in a binomial tree.
    trips = trips_of(output_of(done.stdout))
    assert trips == [(0, 1), (0, 2), (2, 3), (0, 4), (4, 5), (2, 6), (6, 7)]


def summed_by_host(profile: Profile, of_host: int) -> Counter[tuple[object, ...]]:
    """Return what a profile's records add up to by the hosts of their ranks."""

    def host(rank: int) -> int:
        return rank // of_host * of_host

    found: Counter[tuple[object, ...]] = Counter()
    for one in profile.functions:
        key = host(one.rank), one.function
        found[*key, "calls"] += one.calls
        found[*key, "sent"] += one.sent_bytes
        found[*key, "received"] += one.received_bytes
    for entry in profile.matrix:
        between = entry.kind, entry.counted, host(entry.from_), host(entry.to)
        found[*between, "messages"] += entry.messages
        found[*between, "bytes"] += entry.bytes
    for sizes in profile.sizes:
        for size, count in zip(sizes.at_least_bytes, sizes.messages, strict=True):
            found[host(sizes.rank), sizes.function, size] += count
    return found


@pytest.fixture(scope="module")
def few(one: Built, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return a profile to which more than four ranks are many, and what loads it."""
    folder = of_all_workers(tmp_path_factory, "few_ranks_listed")
    found = Built(one.implementation, one.prefix, folder, f"{AS_BUILT} -DMOST_RANKS_LISTED=4")
    found.has(f"{folder}/lib/libwyeast_profile.so", f"{folder}/bin/profiled")
    return found


@pytest.mark.parametrize("of_host", [2, 3])
def test_a_profile_of_many_ranks_is_what_each_host_s_ranks_counted(
    one: Built, few: Built, played_hosts: str, tmp_path: Path, of_host: int
) -> None:
    """By a library to which more than four ranks are many, and by the one that lists them all."""
    profiles = []
    for library in (one, few):
        path = tmp_path / f"{library.build.name}.jsonl"
        words = ["--output", str(path), str(one.build / "bin/some_to_some"), "--most-bytes", "100",
                 "--iterations", "2", "--warmup", "1"]  # fmt: skip
        done = on_hosts(library, played_hosts, of_host, "profiled", *words, ranks=8)
        assert done.returncode == 0, done.stderr
        for line in path.read_text().splitlines():
            SCHEMA.validate(json.loads(line))
        profiles.append(read_profile(path))
    of_ranks, by_node = profiles
    assert not of_ranks.is_by_node and by_node.is_by_node
    assert [rank.rank for rank in by_node.ranks] == list(range(0, 8, of_host))
    assert sum(rank.ranks or 0 for rank in by_node.ranks) == 8
    assert summed_by_host(by_node, of_host) == summed_by_host(of_ranks, of_host)
    assert impossible_time(by_node) is None and lost_message(by_node) is None
    assert max(rank.slowest_s for rank in by_node.ranks) < sum(
        rank.wall_s for rank in by_node.ranks
    )


@pytest.mark.long
def test_a_preflight_of_256_ranks_on_what_is_there(yielding: Built, played_hosts: str) -> None:
    """On two processors: tiny, and by an MPI whose ranks wait without one."""
    words = ["--ranks", "256", "--hosts", "16", "--iterations", "1"]
    done = on_hosts(yielding, played_hosts, 16, "preflight", *words, ranks=256)
    assert done.returncode == 0, done.stderr
    output = output_of(done.stdout)
    [world] = [one for one in output.results if isinstance(one, World)]
    assert (world.ranks, world.distinct_hosts) == (256, 16)
    assert [to for _, to in trips_of(output)] == list(range(1, 256))


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        "collective --operation barrier --operation bcast", "collective --operation allreduce-sum",
        "collective --operation alltoall --operation gatherv",
        "some_to_some --most-bytes 100 --style all --sided all",
        "stream --kernel triad --array-bytes 8000",
    ],
)  # fmt: skip
def test_256_ranks_on_what_is_there(yielding: Built, played_hosts: str, words: str) -> None:
    program, *arguments = words.split()
    tiny = ["--iterations", "1", "--warmup", "0"]
    done = on_hosts(yielding, played_hosts, 16, program, *arguments, *tiny, ranks=256)
    assert done.returncode == 0, done.stderr
    output = output_of(done.stdout)
    assert output.header.ranks == 256 and output.results
