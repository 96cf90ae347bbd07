"""What a placement comes to, and that which nodes and cores a launch got makes no difference."""

import pytest

from records.ending import RankPlaces
from records.placed import pattern, placed


def placement(*ranks: tuple[str, str, str, str, str]) -> RankPlaces:
    """Return the placement of ranks: host, processors, cores, sockets, NUMA nodes."""
    names = ("hosts", "processors", "cores", "sockets", "numa_nodes")
    runs = {name: [[one, 1] for one in own] for name, own in zip(names, zip(*ranks, strict=True),
                                                                 strict=True)}  # fmt: skip
    return RankPlaces.model_validate(runs)


#: Two ranks of a node with two sockets, each bound to a core with two hyper-threads.
BOUND = (("a", "0,64", "0", "0", "0"), ("a", "1,65", "1", "0", "0"))


def test_it_is_said_in_words() -> None:
    found = placed(placement(*BOUND, ("b", "0-127", "0-63", "0-1", "0-3")))
    assert (found.ranks, found.nodes, found.of_a_node) == (3, 2, (1, 2))
    assert found.words == (
        "1 to 2 ranks on 2 nodes, each may run on 1 to 64 cores, 1 to 2 sockets of a "
        "node, 1 to 4 NUMA nodes of a node"
    )
    assert placed(placement(("a", "", "", "", ""))).words == "1 rank on 1 node"


@pytest.mark.parametrize(
    ("ranks", "crowded"),
    [
        (BOUND, 0),
        # Two hyper-threads of one core, which are two processors.
        ((("a", "0", "0", "0", "0"), ("a", "64", "0", "0", "0")), 2),
        # One of them may go elsewhere; then three, for whom two cores are too few.
        ((("a", "0", "0", "0", "0"), ("a", "0-1", "0-1", "0", "0")), 0),
        ((("a", "0", "0", "0", "0"), *[("a", "0-1", "0-1", "0", "0")] * 2), 3),
        # On another node it is another core.
        ((("a", "0", "0", "0", "0"), ("b", "0", "0", "0", "0")), 0),
    ],
)
def test_ranks_that_share_cores_are_counted(
    ranks: tuple[tuple[str, str, str, str, str], ...], crowded: int
) -> None:
    assert placed(placement(*ranks)).crowded == crowded


def test_other_nodes_and_cores_are_the_same_place_and_another_socket_is_not() -> None:
    here = pattern(placement(*BOUND))
    elsewhere = (("b", "3,67", "3", "0", "0"), ("b", "9,73", "9", "0", "0"))
    assert pattern(placement(*elsewhere)) == here
    for other in (
        ("b", "3,67", "3", "1", "1"), ("b", "9", "9", "0", "0"), ("c", "9,73", "9", "0", "0"),
        ("b", "3,67", "3", "0", "0"), ("b", "0-127", "0-63", "0-1", "0-3"),
    ):  # fmt: skip
        assert pattern(placement(elsewhere[0], other)) != here
    # Neighbours on one node, or every second one.
    block, cyclic = ([(host, "0", "0", "0", "0") for host in hosts] for hosts in ("aabb", "abab"))
    assert pattern(placement(*block)) != pattern(placement(*cyclic))
