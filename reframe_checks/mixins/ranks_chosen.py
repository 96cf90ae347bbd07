"""Communications whose numbers of ranks, and of ranks a node, a campaign may choose."""

import os

from reframe.core.builtins import parameter, run_after

from records.counting import how_many
from reframe_checks.mixins.communicating import Communicating


def numbers_in(name: str) -> tuple[int, ...]:
    """Return the numbers of a variable of the environment; none where it has none.

    Ends the program for anything else.
    """
    words = [word for word in os.environ.get(name, "").split(",") if word]
    if not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise SystemExit(f"{name}={os.environ[name]}: give numbers, separated by commas")
    return tuple(dict.fromkeys(map(int, words)))


#: What `make run RANKS=2,4,8 RANKS_PER_NODE=1,2` asks for.
RANKS, RANKS_PER_NODE = numbers_in("WYEAST_RANKS"), numbers_in("WYEAST_RANKS_PER_NODE")


class RanksChosen(Communicating):
    """A check that is measured with each number of ranks, and of ranks a node, that is asked for.

    Without any it has the ranks of its suite, and no parameter more.
    """

    if RANKS:
        ranks_asked = parameter(RANKS, loggable=True)
    if RANKS_PER_NODE:
        on_a_node_asked = parameter(RANKS_PER_NODE, loggable=True)

    def number_of_ranks(self) -> int:
        """Return how many ranks are asked for, or those of the suite."""
        return int(getattr(self, "ranks_asked", 0)) or super().number_of_ranks()

    def number_on_a_node(self) -> int | None:
        """Return how many ranks of a node are asked for, or those of the suite."""
        return int(getattr(self, "on_a_node_asked", 0)) or super().number_on_a_node()

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell, with the ranks of a node where these are chosen."""
        chosen = {"ranks_per_node": self.on_a_node_asked} if RANKS_PER_NODE else {}
        return super().cell_parameters() | chosen

    @run_after("init")
    def leave_out_what_is_asked_twice(self) -> None:
        """Leave out suites whose own ranks are what they are for, where others are asked for."""
        self.skip_if(
            bool(RANKS and self.fills_site()),
            "its number of ranks follows from the site, and RANKS requests others",
        )
        own = self.ranks_on_a_node()
        self.skip_if(
            bool(RANKS_PER_NODE and own),
            f"its suite has {how_many(own or 0, 'rank')} per node, and RANKS_PER_NODE requests "
            "others",
        )

    @run_after("setup")
    def leave_out_what_cannot_start(self) -> None:
        """Leave out more ranks than a scheduler gives cores."""
        site = self.site()
        on_a_node = self.world().ranks_per_node
        self.skip_if(
            bool(RANKS or RANKS_PER_NODE)
            and site["launch"] != "mpiexec"
            and on_a_node > site["cores_per_node"],
            f"{self.num_tasks} ranks would be {on_a_node} per node on this site, whose nodes have "
            f"{how_many(site['cores_per_node'], 'core')}",
        )
