"""How long messages between nodes are, and how many rounds their output has room for."""

import pytest

from reframe_checks.node_pairs import LARGEST_BYTES, MOST_WAYS, bytes_for, most_rounds


def test_a_slow_link_has_shorter_messages() -> None:
    assert bytes_for(None) == bytes_for(1e12) == LARGEST_BYTES
    assert bytes_for(12.5e6) == 131072
    assert bytes_for(1.0) == 1024


@pytest.mark.parametrize("nodes", [2, 4, 250, 251, 1000, 4096, 100_000])
def test_of_many_nodes_each_meets_some_others(nodes: int) -> None:
    rounds = most_rounds(nodes, 8)
    assert rounds >= 3
    assert rounds == 3 or nodes * rounds * 8 * 2 <= MOST_WAYS
    if nodes <= 250:
        assert rounds >= nodes - 1
