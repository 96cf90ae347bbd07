"""A check whose launch measures many series of communications, each over message sizes."""

import re
from collections.abc import Iterable
from typing import NamedTuple

import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import SanityError

from records.communication import (
    BESIDE,
    COMPUTING,
    Communication,
    CommunicationIterations,
)
from records.counting import how_many
from records.limits.links import Message
from records.limits.plausibility import communication_above_link
from records.program_output import ProgramOutput
from reframe_checks.mixins import node_memory
from reframe_checks.mixins.cores import nodes_of_site, ranks_up_to
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.recording import Suspect
from reframe_checks.mixins.tiers import TIER

LEFT_OUT = re.compile(r"^(?P<program>\w+): left out: (?P<what>[^:]+): (?P<reason>.+)$", re.M)


class AskedPoint(NamedTuple):
    """One measured communication: what, by which calls, by which ranks, of which size in bytes."""

    operation: str
    method: str
    group: str
    message_bytes: int


def point_of(result: Communication | CommunicationIterations) -> AskedPoint:
    """Return the point that a result, or a series of iterations, belongs to."""
    return AskedPoint(result.operation, result.method, result.group, result.message_bytes)


class Communicating(Experiment):
    """The results are exactly the requested points, and none is faster than the link.

    A check defines `arguments()`, `iterations_wanted()` and `asked_points()`; the program says on
    stderr what the implementation lacks, and only that may be missing.
    """

    spread = True
    #: Whether the output also has each rank's time for every iteration, which is as many times
    #: more as there are ranks: `make run RAW_BY_RANK=1`.
    raw_by_rank = variable(bool, value=False)

    # Values without references are judged by the program's own proofs; see references.yaml for
    # those that a site has.
    require_reference = False

    def ranks_wanted(self) -> int:
        """Return how many ranks the report had."""
        return 2

    def ranks_on_a_node(self) -> int | None:
        """Return how many ranks the report used on each node, if it varied that."""
        return None

    def ranks_wanted_on_a_node(self) -> int:
        """Return the report's number of ranks per node, or one."""
        return self.number_on_a_node() or super().ranks_wanted_on_a_node()

    def number_of_ranks(self) -> int:
        """Return how many ranks there are: the report's, as far as the site has cores for them."""
        most, on_a_node = self.ranks_wanted(), self.number_on_a_node()
        if on_a_node:
            most = min(most, on_a_node * nodes_of_site())
        return max(2, most) if self.fills_site() else ranks_up_to(most)

    def number_on_a_node(self) -> int | None:
        """Return how many ranks each node has, if that is fixed."""
        return self.ranks_on_a_node()

    def fills_site(self) -> bool:
        """Return whether the ranks follow the site and not a report."""
        return False

    def bytes_of_a_rank(self) -> int:
        """Return the size of one rank's buffers if they may not fit into memory."""
        return 0

    def arguments(self) -> list[str]:
        """Return the program's arguments, except those that all programs share."""
        raise NotImplementedError

    def iterations_wanted(self) -> int:
        """Return how often each point is timed."""
        raise NotImplementedError

    @run_after("init")
    def set_ranks(self) -> None:
        """Start as many ranks as the report used, or as many as the site has cores for."""
        self.num_tasks = self.number_of_ranks()
        if TIER == "paper":
            self.time_limit = "2h"

    @run_after("setup")
    def leave_out_what_the_site_lacks(self) -> None:
        """Leave out cells that need more ranks on a node than this site can place there."""
        wanted, found = self.number_on_a_node(), self.world().ranks_per_node
        self.skip_if(
            bool(wanted) and wanted != found,
            f"{self.num_tasks} ranks would be {found} per node on this site, not {wanted}",
        )

    @run_after("setup")
    def leave_out_what_does_not_fit(self) -> None:
        """Leave out cells whose buffers, of all ranks of a node, exceed its memory."""
        on_a_node = self.world().ranks_per_node
        sentence = node_memory.too_large(
            " ".join(f"{name}={value}" for name, value in self.cell_parameters().items()),
            f"the buffers of {how_many(on_a_node, 'rank')} on a "
            "node", on_a_node * self.bytes_of_a_rank(),
            1, self.site()["memory_bytes_per_node"],
        )  # fmt: skip
        self.skip_if(bool(sentence), str(sentence))

    @run_after("setup")
    def describe_communication(self) -> None:
        """Pass the points to the program, and ask for every iteration's time."""
        iterations = str(self.iterations_wanted())
        raw = "--raw-by-rank" if self.raw_by_rank else "--raw"
        self.program_arguments = [*self.arguments(), "--iterations", iterations, raw]

    def cell_parameters(self) -> dict[str, str | int]:
        """Return what identifies the cell; a check of several suites has them as a parameter."""
        suite = getattr(self, "suite", None)
        return ({"suite": suite} if suite else {}) | {"ranks": self.num_tasks}

    def asked_points(self) -> Iterable[AskedPoint]:
        """Return the points that the launch must have measured."""
        raise NotImplementedError

    def messages_of(self, result: Communication) -> list[Message] | None:
        """Return the messages of one iteration, if the record does not contain them."""
        return None

    def left_out(self) -> dict[str, str]:
        """Return what the program left out, and why."""
        text = self.output_path("stderr").read_text(errors="replace")
        return {
            found["what"]: found["reason"]
            for found in LEFT_OUT.finditer(text)
            if found["program"] == self.program
        }

    def examine(self) -> None:
        """Refuse points other than the requested ones, unverified data and impossible times."""
        output = self.read_records()
        found = output.communications()
        if len(found) != len(output.results):
            raise SanityError("the output has results that are not communications")
        lacks = self.left_out()
        asked = [
            p
            for p in self.asked_points()
            if p.operation not in lacks and p.method.split(" ")[0] not in lacks
        ]
        if not asked:
            raise SanityError(
                "nothing is left to measure: the implementation lacks "
                + "; ".join(f"{what} ({reason})" for what, reason in lacks.items())
            )
        measured = [point_of(result) for result in found]
        if measured != asked:
            missing = [point for point in asked if point not in measured]
            strange = [point for point in measured if point not in asked]
            raise SanityError(
                f"the output has {len(measured)} results, not the {len(asked)} requested; "
                + (f"missing: {missing[0]}" if missing
                   else f"not requested: {strange[0]}" if strange
                   else "some appear twice or in a different order")
            )  # fmt: skip
        self.refuse_other_iterations(output)
        link = self.site()["link_bytes_per_s"] if self.nodes > 1 else None
        for result in found:
            sentence = link and communication_above_link(
                result, output.header.hosts, link, oversubscribed=self.oversubscribed(),
                messages=self.messages_of(result),
            )  # fmt: skip
            if sentence:
                raise Suspect(sentence)
        self.measured = found

    def refuse_other_iterations(self, output: ProgramOutput) -> None:
        """Refuse results with more or fewer iterations than requested, or without each one's time.

        No check asks for `--relative-width`, with which the number would follow from the times.
        With windows it does: as many as began late are timed again, if there is time for them.
        """
        asked = self.iterations_wanted()
        results = output.communications()
        for result in results:
            timed = result.iterations + result.discarded
            by_window = result.synchronisation == "window"
            if result.iterations > asked if by_window else timed != asked:
                raise SanityError(
                    f"{result.series}, {result.message_bytes} bytes: {result.iterations} "
                    f"iterations and {result.discarded} discarded, not the {asked} requested"
                )
        # Each series stands after its result and is as long (records/program_output.py).
        series = [one for one in output.iterations if isinstance(one, CommunicationIterations)]
        if [*map(point_of, series)] != [*map(point_of, results)]:
            raise SanityError("the output lacks the times of single iterations")
        if self.raw_by_rank and not output.rank_iterations:
            raise SanityError("the output lacks each rank's time for every iteration")

    @run_before("performance")
    def report_series(self) -> None:
        """Report each series' time at its largest message."""
        largest: dict[str, Communication] = {}
        for result in getattr(self, "measured", []):
            if result.method in (BESIDE, COMPUTING):
                continue
            if result.message_bytes >= getattr(largest.get(result.series), "message_bytes", -1):
                largest[result.series] = result
        for series, result in largest.items():
            name = re.sub(r"\W+", "_", f"{series} {result.message_bytes}").strip("_")
            self.perf_variables[name] = sn.make_performance_function(
                sn.defer(result.time_s.median), "s"
            )
