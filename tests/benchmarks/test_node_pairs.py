"""Pairs of nodes: everybody meets everybody, at once or in turns, and every byte is proved."""

from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import pytest

from records.node_pairs import NodePairsRound
from tests.benchmarks.conftest import Built
from tests.benchmarks.test_communication import measured
from tests.benchmarks.test_faulty_libraries import library, refused

pytestmark = pytest.mark.real
TINY = ["--bandwidth-bytes", "800", "--round-trips", "3", "--windows", "2"]


def rounds_of(built: Built, path: Path, *arguments: str, ranks: int) -> list[NodePairsRound]:
    output = measured(built, path, "node_pairs", *TINY, *arguments, ranks=ranks)
    found = [one for one in output.results if isinstance(one, NodePairsRound)]
    assert len(found) == len(output.results)
    return found


@pytest.mark.parametrize("ranks", [2, 4, 5])
def test_all_meet_once_in_each_sweep(one: Built, tmp_path: Path, ranks: int) -> None:
    found = rounds_of(one, tmp_path / "out", "--sweeps", "2", ranks=ranks)
    for sweep in (0, 1):
        for measure in ("latency", "bandwidth"):
            ways = Counter(
                way
                for round_ in found
                if (round_.sweep, round_.measure) == (sweep, measure)
                for way in zip(round_.source, round_.to, strict=True)
            )
            both = [way for a, b in combinations(range(ranks), 2) for way in ((a, b), (b, a))]
            assert ways == Counter(both)
    assert all(
        low <= mean <= high
        for o in found
        for low, mean, high in zip(o.min_s, o.means_s, o.max_s, strict=True)
    )
    assert all(o.mean_s is not None for o in found)
    assert {(o.rounds, o.at_once) for o in found} == {(ranks - 1 + ranks % 2, ranks // 2)}


def test_in_turns_and_in_another_order(one: Built, tmp_path: Path) -> None:
    together = rounds_of(one, tmp_path / "a", "--sweeps", "1", ranks=4)
    alone = rounds_of(one, tmp_path / "b", "--sweeps", "1", "--alone", "--seed", "2", ranks=4)
    assert {one.at_once for one in alone} == {1}
    orders = [[one.round for one in found] for found in (together, alone)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])


#: Tells when each message is sent, which takes long, and when ranks begin to gather the times.
TELLING = """
#include <stdio.h>
#include <time.h>
static void tell(char what)
{
    int rank;
    struct timespec now;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    clock_gettime(CLOCK_MONOTONIC, &now);
    fprintf(stderr, "told %d %c %lld\\n", rank, what, now.tv_sec * 1000000000LL + now.tv_nsec);
}
int MPI_Isend(const void *b, int n, MPI_Datatype t, int to, int g, MPI_Comm c, MPI_Request *r)
{
    if (n > 0) {
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        tell('s');
    }
    return PMPI_Isend(b, n, t, to, g, c, r);
}
int MPI_Gather(const void *b, int n, MPI_Datatype t, void *a, int m, MPI_Datatype u, int root,
               MPI_Comm c)
{ tell('g'); return PMPI_Gather(b, n, t, a, m, u, root, c); }
"""


def test_nobody_waits_for_the_times_while_the_last_pair_has_its_turn(
    one: Built, tmp_path: Path
) -> None:
    words = [*TINY, "--sweeps", "1", "--alone"]
    done = one.run("node_pairs", *words, ranks=4, LD_PRELOAD=library(one, tmp_path, TELLING))
    assert done.returncode == 0, done.stderr
    sent: dict[int, int] = defaultdict(int)
    gathering: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for line in done.stderr.splitlines():
        if line.startswith("told "):
            _, rank, what, when = line.split()
            if what == "s":
                sent[int(rank)] = int(when)
            elif sent[int(rank)]:
                gathering[int(rank)].append((int(when), sent[int(rank)]))
    # Three rounds of two measures, and what is gathered at the end.
    assert len(gathering) == 4 and min(map(len, gathering.values())) >= 6
    for of_ranks in zip(*gathering.values(), strict=True):
        assert min(began for began, _ in of_ranks) > max(last for _, last in of_ranks)


def test_pairs_in_turns_let_others_use_their_cores_while_they_wait(
    one: Built, tmp_path: Path
) -> None:
    source = """
    #include <stdio.h>
    int MPI_Waitall(int n, MPI_Request *r, MPI_Status *s)
    { fputs("polls\\n", stderr); return PMPI_Waitall(n, r, s); }"""
    polling = library(one, tmp_path, source)
    words = [*TINY, "--sweeps", "1"]
    said = [
        one.run("node_pairs", *words, *alone, ranks=4, LD_PRELOAD=polling).stderr
        for alone in ([], ["--alone"])
    ]
    assert ["polls" in each for each in said] == [True, False]


def test_where_time_is_short_all_sweeps_have_the_first_one_s_rounds(
    one: Built, tmp_path: Path
) -> None:
    """A microsecond is spent in any round, and three are the least."""
    words = ["--sweeps", "3", "--seconds", "0.000001"]
    found = rounds_of(one, tmp_path / "out", *words, ranks=5)
    sweeps = [[one.round for one in found if one.sweep == sweep] for sweep in range(3)]
    assert sweeps[0] == sweeps[1] == sweeps[2] and len(set(sweeps[0])) == 3


def test_no_more_rounds_than_asked_for(one: Built, tmp_path: Path) -> None:
    found = rounds_of(one, tmp_path / "out", "--sweeps", "2", "--most-rounds", "2", ranks=5)
    sweeps = [{one.round for one in found if one.sweep == sweep} for sweep in range(2)]
    assert sweeps[0] == sweeps[1] and len(sweeps[0]) == 2


def test_what_was_not_sent_is_found(one: Built, tmp_path: Path) -> None:
    source = """
    int MPI_Isend(const void *b, int n, MPI_Datatype t, int to, int g, MPI_Comm c, MPI_Request *r)
    { static char other[800]; return PMPI_Isend(n == 800 ? other : b, n, t, to, g, c, r); }"""
    said = refused(one, library(one, tmp_path, source), "node_pairs", *TINY)
    assert "800 bytes: rank 0 has rank 1's data wrong from byte " in said


def test_a_world_without_a_pair(one: Built) -> None:
    one.refuse("node_pairs", [], 1, "the world has one rank, and a pair needs two")
