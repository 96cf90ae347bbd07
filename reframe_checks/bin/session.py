"""A round of a campaign in this ReFrame process: what is left of it runs, and each step is noted.

The journal says what is left, and each launch is planned, intended, submitted and recorded in it
(records.schedule). An attempt that a disk or a folder spoils is lost, and ends the session: the
campaign starts another one.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import reframe.core.exceptions as errors
import reframe.frontend.dependencies as dependencies
from reframe.frontend.executors import TaskEventListener

from records import files
from records import launch as launches
from records.base import CampaignError, NotKept
from records.budget import experiment_of
from records.causes import of_command, one_line
from records.experiments import experiments
from records.fold import State
from records.journal import Begun, NotStarted, PlannedLaunch
from records.kept import has_launches
from records.once import came_to_nothing, is_without
from records.processes import MARK, end_what_is_left, named
from records.schedule import Schedule, held
from reframe_checks.bin.bounds import cut
from reframe_checks.bin.telling import INSTEAD, LEFT, ONCE, OVER, TOLD, is_over
from reframe_checks.bin.waiting import WaitedTooLong
from reframe_checks.mixins import recording
from reframe_checks.mixins.recording import RecordedCheck

#: The errors of a job that was cancelled in the queue: it ran nothing that could have failed.
NEVER_RAN = (WaitedTooLong, errors.JobBlockedError)
#: The errors of a submission after which it is unknown whether the scheduler has the job.
UNANSWERED = (errors.SpawnedProcessError, errors.JobSchedulerError)


def is_of_the_disk(error: BaseException | None) -> bool:
    """Return whether an error, or its cause, concerns files and not what was measured."""
    while error is not None:
        if isinstance(error, OSError | NotKept):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def never_ran(error: BaseException | None) -> bool:
    """Return whether a job was cancelled in the queue: nothing in it can have failed."""
    # The second are ReFrame's words for PBS jobs.
    return isinstance(error, NEVER_RAN) or (
        isinstance(error, errors.JobError) and "maximum pending time exceeded" in str(error)
    )


class NothingLeft(CampaignError):
    """Every launch of a round is settled."""


class Told(TaskEventListener):  # type: ignore[misc]
    """Records in the journal what happens to the launches of a session."""

    def __init__(self, schedule: Schedule, proven: set[str], unproven: dict[str, str]) -> None:
        self.schedule = schedule
        #: What passed in this session, and what failed or was skipped and why: ReFrame's names.
        self.proven = proven
        self.unproven = unproven

    def on_task_success(self, task: Any) -> None:
        """Note that this need not run again for its dependents; keep what is not kept yet."""
        self.keep_judged(task)
        self.proven.add(task.check.unique_name)
        self.unproven.pop(task.check.unique_name, None)

    def is_unproven(self, task: Any, said: str) -> None:
        """Note that those that wait for this are not measured, and why."""
        self.proven.discard(task.check.unique_name)
        self.unproven[task.check.unique_name] = said

    def name_of(self, task: Any) -> str | None:
        """Return the name of a task's launch if it still has to be settled."""
        name = task.check.launch_name() if isinstance(task.check, RecordedCheck) else None
        one = self.schedule.state.launches.get(name or "")
        return name if one and one.is_open else None

    def on_task_setup(self, task: Any) -> None:
        """End the session before a launch that another job is to begin."""
        if self.name_of(task) and is_over():
            raise errors.FailureLimitError("the time for starting launches is over")

    def on_task_run(self, task: Any) -> None:
        """Record the scheduler's name of the launch."""
        name = self.name_of(task)
        if name and self.schedule.state.launches[name].status == "intended":
            job = task.check.job
            is_here = job.scheduler.is_local
            self.schedule.submitted(name, named(job.jobid) if is_here else str(job.jobid))

    def on_task_exit(self, task: Any) -> None:
        """End what the job left running here: none of it may disturb the next launch."""
        recording.left_running = 0
        job = task.check.job
        if job is None or not job.scheduler.is_local:
            return
        if left := end_what_is_left(
            Path(os.environ.get(MARK) or self.schedule.campaign), job.jobid
        ):
            recording.left_running = len(left)
            names = ", ".join(dict.fromkeys(map(one_line, left)))
            print(
                f"{LEFT}{task.check.display_name} left {len(left)} process(es) running, which "
                f"were ended: {names}", flush=True,
            )  # fmt: skip

    def on_task_failure(self, task: Any) -> None:
        """Say what failed, and end the session if all launches fail for the same reason."""
        self.tell_failure(task)
        if circuit := self.schedule.state.circuit():
            raise errors.FailureLimitError(circuit)

    def tell_failure(self, task: Any) -> None:
        """Record that a launch failed before it was judged, or that an attempt was lost."""
        if not is_of_the_disk(task.exc_info[1]):
            self.keep_judged(task)
        if task.failed_stage in ("run_complete", "run_wait"):
            # It was killed and did not end by itself.
            self.on_task_exit(task)
        reason = errors.what(*task.exc_info) or "the launch was lost"
        reason = of_command(reason, getattr(task.exc_info[1], "stderr", None) or "")
        said = one_line(f"{task.failed_stage}: {reason}")
        self.is_unproven(task, said)
        is_lost = is_of_the_disk(task.exc_info[1]) or never_ran(task.exc_info[1])
        name = self.name_of(task)
        if not name:
            if is_lost and task.check.is_fixture():
                raise errors.FailureLimitError(f"{task.check.display_name} proves nothing: {said}")
            return
        status = self.schedule.state.launches[name].status
        if is_lost or (status == "intended" and isinstance(task.exc_info[1], UNANSWERED)):
            if not self.schedule.state.launches[name].in_flight:
                self.schedule.intend(name)
            self.lose(name, said)
        if not self.schedule.state.launches[name].in_flight and task.check.wanted:
            # It failed before it was submitted: that is an attempt, too, and is kept.
            self.schedule.intend(name)
        if self.schedule.state.launches[name].in_flight:
            self.keep_failed(task, said)
        else:
            self.schedule.add(NotStarted(launch=name, why="failed", cause=said))

    def keep_judged(self, task: Any) -> None:
        """Keep a launch that was judged sound and whose metrics were not or could not be read."""
        name = self.name_of(task)
        if name and task.check.is_sound:
            try:
                task.check.keep(self.schedule, "sound", None)
            except (CampaignError, OSError) as error:
                self.lose(name, str(error))

    def lose(self, name: str, said: str) -> NoReturn:
        """Record that an attempt was lost, unless it turns out to be recorded; end the session."""
        self.schedule.lost(name, said)
        is_kept = self.schedule.state.launches[name].status == "recorded"
        what = "is recorded, and the session ends" if is_kept else "is lost"
        raise errors.FailureLimitError(f"{name} {what}: {said}")

    def keep_failed(self, task: Any, sentence: str) -> None:
        """Keep what is left of a launch that ended before it could be judged.

        Its time was over or its job vanished.
        """
        check = task.check
        stage = Path(check.stagedir)
        try:
            asked = check.wanted or check.asked()
        except CampaignError as error:
            self.lose(check.launch_name(), str(error))
        record = launches.finished_launch(
            # It was not timed, and a clock may have been set meanwhile.
            asked, position=None, ended_utc=max(asked.started_utc, files.utc_now()), wall_s=None,
            exit_code=None, outcome="failed", sentence=sentence,
        )  # fmt: skip
        for stream in ("stdout", "stderr"):
            cut(check.output_path(stream))
        kept = {
            "stdout": check.output_path("stdout"), "stderr": check.output_path("stderr"),
            "job.sh": stage / "rfm_job.sh",
        }  # fmt: skip
        try:
            self.schedule.keep(record, kept)
        except NotKept as error:
            self.lose(asked.launch, str(error))

    def on_task_skip(self, task: Any) -> None:
        """Record that no attempt is made at a launch, and whether that may change another time.

        What waits for a launch that failed is failed with it. What waits for anything else, such as
        an image that cannot be opened now, is missing.
        """
        self.is_unproven(task, said_by(task))
        name = self.name_of(task)
        if not name:
            return
        waited_for = [case.check for case in task.testcase.deps
                      if case.check.unique_name in self.unproven]  # fmt: skip
        if not waited_for:
            self.schedule.add(NotStarted(launch=name, why="skipped", cause=said_by(task)))
            return
        found = [self.schedule.state.launches.get(check.launch_name())
                 if isinstance(check, RecordedCheck) else None for check in waited_for]  # fmt: skip
        failed = all(
            one and (one.status == "failed" or one.outcome in ("suspect", "failed"))
            for one in found
        )
        skipped = all(one and one.status == "skipped" for one in found)
        cause = said_by(task)
        if not skipped:
            first = waited_for[0]
            reason = self.unproven[first.unique_name]
            cause = f"it waits for {first.display_name}, which failed: {reason}"
        why = "failed" if failed else "skipped" if skipped else "missing"
        event = {"launch": name, "why": why, "cause": one_line(cause)}
        self.schedule.add(NotStarted.model_validate(event))

    def nothing(self, task: Any) -> None:
        """Ignore what says nothing about a launch."""

    on_task_compile = on_task_compile_exit = nothing
    on_task_xfailure = on_task_xsuccess = on_task_abort = nothing


def said_by(task: Any) -> str:
    """Return why a task was skipped."""
    return one_line(str(task.exc_info[1]))


def planned(case: Any) -> PlannedLaunch:
    """Return the launch of a test case, before ReFrame has set it up."""
    check = case.check
    check.place_on(case.partition)
    return PlannedLaunch(
        launch=check.launch_name(), cell=check.cell(), implementation=check.implementation()
    )


def nodes_to_prove(cases: list[Any]) -> dict[str, int]:
    """Return on how many nodes at most what waits for a check is started, by the check's name."""
    most: dict[str, int] = {}
    for case in cases:
        if isinstance(case.check, RecordedCheck):
            case.check.place_on(case.partition)
            for dep in case.deps:
                name = dep.check.unique_name
                most[name] = max(most.get(name, 0), case.check.nodes)
    return most


def with_what_they_wait_for(cases: list[Any], wanted: list[Any]) -> list[Any]:
    """Return the wanted test cases and all that they depend on, in the order of all."""
    found, left = set(wanted), list(wanted)
    while left:
        new = [case for case in left.pop().deps if case not in found]
        found.update(new)
        left += new
    return [case for case in cases if case in found]


def told_rounds() -> Iterator[int]:
    """Yield the rounds that the campaign names one by one; tell it when one is over.

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


def in_blocks(cases: list[Any], seed: str, number: int) -> list[Any]:
    """Return test cases in blocks: each cell with all its implementations, one after the other.

    Blocks, and implementations in each, are in an order that is drawn by seed, round and cell. What
    others wait for stands before them, in its own blocks. In the first round the more important
    blocks come first, since a budget may not have room for all.
    """
    blocks: dict[str, list[Any]] = {}
    for case in sorted(cases, key=lambda case: (case.check.display_name, str(case.partition))):
        is_launch = isinstance(case.check, RecordedCheck)
        cell = case.check.cell() if is_launch else type(case.check).__name__
        blocks.setdefault(cell, []).append(case)
    order = sorted(blocks)
    random.Random(f"{seed} {number}").shuffle(order)
    if number == 1:
        order.sort(key=importance)
    for cell, block in blocks.items():
        random.Random(f"{seed} {number} {cell}").shuffle(block)
    ordered = [case for cell in order for case in blocks[cell]]
    awaited = {dep for case in ordered for dep in case.deps}
    while more := {dep for case in awaited for dep in case.deps} - awaited:
        awaited |= more
    # Among dependencies, those that wait for nothing come first.
    first = sorted(
        (case for case in ordered if case in awaited),
        key=lambda case: len(with_what_they_wait_for(ordered, [case])),
    )
    return first + [case for case in ordered if case not in awaited]


def importance(cell: str) -> int:
    """Return a cell's rank for a budget that has no room for all; fixtures come first."""
    entry = experiments().get(experiment_of(cell))
    return entry.importance if entry else 0


def measured_once(
    of_launches: dict[Any, PlannedLaunch], state: State, number: int, images: list[str]
) -> set[Any]:
    """Return the test cases of a round that are left out, since a campaign needs them only once.

    They are of experiments that compare nothing: only the first round has them, of each image or of
    the first one alone that could measure them. What was planned stays planned.
    """
    first: dict[str, str] = {}
    for one in sorted(of_launches.values(), key=lambda one: images.index(one.implementation)):
        if not came_to_nothing(state.launches.get(one.launch)):
            first.setdefault(one.cell, one.implementation)
    found = set()
    for case, one in of_launches.items():
        entry = experiments().get(experiment_of(one.cell))
        once = entry.once if entry else None
        is_needed = number == 1 and (once == "image" or first.get(one.cell) == one.implementation)
        if once and not is_needed and one.launch not in state.launches:
            found.add(case)
    return found


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
            with held(self.campaign) as schedule:
                if schedule.state.campaign is None:
                    # ReFrame was given the campaign by hand.
                    converted = has_launches(self.campaign)
                    schedule.add(Begun(campaign=self.campaign.name, converted=converted))
                schedule.settle()
                wanted = self.left_of(schedule, number)
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
