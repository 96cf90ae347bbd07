"""A round of a campaign in this ReFrame process: what is left of it runs, and each step is noted.

The journal says what is left, and each launch is planned, intended, submitted and recorded in it
(records.schedule).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import reframe.core.exceptions as errors
import reframe.frontend.dependencies as dependencies

from records.base import CampaignError
from records.events import Begun
from records.kept import has_launches
from records.once import is_without
from records.schedule import Schedule, held
from reframe_checks.bin.choosing import (
    in_blocks,
    measured_once,
    nodes_to_prove,
    planned,
    with_what_they_wait_for,
)
from reframe_checks.bin.noting import Told
from reframe_checks.bin.telling import INSTEAD, ONCE, OVER, TOLD
from reframe_checks.mixins import recording
from reframe_checks.mixins.recording import RecordedCheck


class NothingLeft(CampaignError):
    """Every launch of a round is settled."""


def told_rounds() -> Iterator[int]:
    """Yield the rounds that the campaign names, one by one; report when each is over.

    It has the journal meanwhile. There are none where nobody tells, as in a shell.
    """
    number = os.environ.get(TOLD)
    if not number:
        return
    # No launch may inherit it.
    os.set_inheritable(int(number), False)
    with os.fdopen(int(number)) as told:
        while True:
            print(OVER.format(recording.current_round), flush=True)
            line = told.readline()
            if not line:
                return
            yield int(line)


class Rounds:
    """The rounds of a campaign that this process measures, with checks that were loaded once."""

    def __init__(self, campaign: Path, cases: list[Any], policy: Any) -> None:
        self.campaign = campaign
        self.policy = policy
        #: Each test case as it ran last, or as it was loaded.
        self.latest: dict[Any, Any] = {case: case for case in cases}
        #: The round that this process was started for.
        self.first = recording.current_round
        self.is_first = True
        #: What passed in this session, and what failed or was skipped and why.
        self.proven: set[str] = set()
        self.unproven: dict[str, str] = {}
        #: Of each check, the nodes of the largest launch that waits for it.
        self.nodes = nodes_to_prove(cases)

    def place(self, cases: list[Any]) -> None:
        """Have preflights run on all nodes that they are to prove."""
        for case in cases:
            nodes = self.nodes.get(case.check.unique_name)
            if nodes and isinstance(case.check, RecordedCheck):
                case.check.prove_nodes(nodes)

    @contextmanager
    def measured(self, number: int) -> Iterator[list[Any]]:
        """Yield the test cases that are left of a round; record in the journal what they do.

        Those of no experiment are left as they are. In a later round what the others wait for runs
        only where it is not proven. Raises ReframeError where the journal cannot be used, or the
        round has nothing left.
        """
        recording.current_round = number
        try:
            with held(self.campaign, begins=True) as schedule:
                if schedule.state.campaign is None:
                    # ReFrame was given the campaign by hand.
                    converted = has_launches(self.campaign)
                    schedule.add(Begun(campaign=self.campaign.name, converted=converted))
                schedule.settle()
                try:
                    wanted = self.left_of(schedule, number)
                except NothingLeft:
                    # By this the campaign knows it from a process that could not even ask.
                    schedule.begin_session(number)
                    raise
                schedule.begin_session(number)
                told = Told(schedule, self.proven, self.unproven)
                self.policy.task_listeners.append(told)
                recording.SCHEDULES.append(schedule)
                try:
                    yield wanted
                finally:
                    recording.SCHEDULES.clear()
                    self.policy.task_listeners.remove(told)
                    schedule.journal.sync()
        except (CampaignError, OSError) as error:
            raise errors.ReframeError(str(error)) from error

    def instead(self, number: int) -> Iterator[list[Any]]:
        """Yield what other images measure instead of those that could not, until one could.

        Only of what one image of a campaign measures; the round is being measured.
        """
        [schedule] = recording.SCHEDULES
        while os.environ.get(ONCE) and is_without(schedule.state, number):
            try:
                yield self.left_of(schedule, number)
            except NothingLeft:
                return

    def left_of(self, schedule: Schedule, number: int) -> list[Any]:
        """Plan a round; return the test cases that are left of it, with those they wait for.

        Raises NothingLeft if there are none, and CampaignError.
        """
        cases, by_waves = list(self.latest.values()), bool(os.environ.get(TOLD))
        if not self.is_first:
            cases = [case.clone() for case in cases]
            dependencies.build_deps(cases)
        self.place(cases)
        if by_waves:
            cases = in_blocks(cases, os.environ["WYEAST_ORDER_SEED"], number)
        of_launches = {case: planned(case) for case in cases
                       if isinstance(case.check, RecordedCheck)}  # fmt: skip
        cells = schedule.state.cells_of(number)
        if cells is not None:
            of_launches = {case: one for case, one in of_launches.items() if one.cell in cells}
        if os.environ.get(ONCE):
            names = os.environ["WYEAST_IMAGES"].split(",")
            repeated = measured_once(of_launches, schedule.state, number, names)
            of_launches = {case: one for case, one in of_launches.items() if case not in repeated}
            cases = [case for case in cases if case not in repeated]
        known = set(schedule.state.launches)
        instead = is_without(schedule.state, number) if os.environ.get(ONCE) else []
        schedule.plan(number, list(of_launches.values()))
        for one in schedule.state.of(number) if instead else ():
            if one.name not in known and one.planned.cell in instead:
                print(
                    f"{INSTEAD}{one.planned.implementation} measures {one.planned.cell}: no "
                    "image before it could", flush=True,
                )  # fmt: skip
        left = {one.name for one in schedule.state.open(number)}
        wanted = [
            case for case in cases if case in of_launches and of_launches[case].launch in left
        ] if cells is not None else [
            case for case in cases if not case.check.is_fixture() and (
                case not in of_launches or of_launches[case].launch in left)]  # fmt: skip
        if cases and not wanted:
            raise NothingLeft(
                f"every launch of round {number} is in the campaign already, so nothing was "
                "measured"
            )
        named = {case.check.unique_name for case in wanted}
        running = [case for case in with_what_they_wait_for(cases, wanted)
                   if case.check.unique_name in named
                   or case.check.unique_name not in self.proven]  # fmt: skip
        if not self.is_first:
            # Again, for those alone: what was proven remains so.
            running = [case.clone() for case in running]
            dependencies.build_deps(running, list(self.latest.values()))
            self.place(running)
        self.latest.update({case: case for case in running})
        self.is_first = False
        return running
