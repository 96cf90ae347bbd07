"""Communications with the numbers of ranks, and of ranks a node, that a campaign asks for."""

from campaign.reframe_session import worlds
from tests.reframe_checks.conftest import StandIn
from tests.whole_records import manifest

ONLY = "Neighbours"


def test_each_number_of_ranks_is_a_cell_of_its_own(stand_in: StandIn) -> None:
    two_cores = stand_in.settings(
        lambda text: text.replace("cores_per_node: detect", "cores_per_node: 2")
    )
    stand_in.write("nothing\n")
    stand_in.variables |= {"WYEAST_RANKS": "2,8"}
    outcome = stand_in.run("-C", two_cores, only=ONLY)
    assert {(one["cell"], one["ranks"], one["oversubscribed"]) for one in outcome.launches} == {
        ("Neighbours ranks=2", 2, False), ("Neighbours ranks=8", 8, True),
    }  # fmt: skip
    # The site has one node, on which two of four ranks cannot be.
    stand_in.variables |= {"WYEAST_RANKS": "2,4", "WYEAST_RANKS_PER_NODE": "2"}
    outcome = stand_in.run("-C", two_cores, only=ONLY)
    new = {one["cell"] for one in outcome.launches} - {"Neighbours ranks=2", "Neighbours ranks=8"}
    assert new == {"Neighbours ranks=2 ranks_per_node=2"}
    assert "4 ranks would be 4 per node on this site, not 2" in outcome.text


def test_a_session_gets_what_the_manifest_declares() -> None:
    chosen = worlds(manifest(ranks=[2, 4], ranks_per_node=[1, 2]))
    assert chosen == {"WYEAST_RANKS": [2, 4], "WYEAST_RANKS_PER_NODE": [1, 2]}
    assert worlds(manifest()) == {}
