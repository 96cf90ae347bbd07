"""The time of a campaign with a budget: what is used of it, and what its first round has room for.

Nobody knows beforehand what a first campaign on a machine takes. So its first round takes the cells
in their order of importance (records/experiments.yaml), and no more of the budget than leaves room
for as many such rounds as every cell begins with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from records.events import Entry, Resumed, Wave, WaveRound
from records.experiments import compared, proving
from records.fold import LaunchState, State

#: Why a launch of a first round is not made.
BEYOND = "the budget has no room for it"


def spent_s(entries: Sequence[Entry]) -> float:
    """Return the seconds that a campaign has spent measuring, by the monotonic clock.

    What passed until somebody went on with it does not count, nor does a machine's restart.
    """
    return math.fsum(
        max(0.0, after.monotonic_s - before.monotonic_s)
        for before, after in pairwise(entries)
        if not isinstance(after.event, Resumed) and before.boot == after.boot
    )


def experiment_of(cell: str) -> str:
    """Return the experiment that a cell is of."""
    return cell.partition(" ")[0]


def is_beyond(state: State, entries: Sequence[Entry], name: str) -> bool:
    """Return whether a launch of the first round is left out, since its share of time is used up.

    A block that was begun is finished, what proves an image runs in any case, and some cell is
    measured however small the budget is.
    """
    one = state.launches[name]
    cell = one.planned.cell
    if state.design is None or state.design.repeats or one.round != 1 or len(state.waves) != 1:
        return False
    proofs = proving("image")
    if experiment_of(cell) in proofs:
        return False
    begun = {other.planned.cell for other in state.of(1) if other.attempts}
    if cell in begun or not any(experiment_of(other) not in proofs for other in begun):
        return False
    return spent_s(entries) >= state.design.budget_s / state.design.begin


def left_out(state: State) -> list[str]:
    """Return the compared cells for which the first round had no room, in its order."""
    cells = [one.planned.cell for one in state.of(1) if is_left_out(one)]
    return [cell for cell in dict.fromkeys(cells) if experiment_of(cell) in compared()]


def is_left_out(one: LaunchState) -> bool:
    """Return whether there was no room for a launch."""
    return one.status == "skipped" and one.cause == BEYOND


def awaits_test(state: State) -> bool:
    """Return whether nothing of a campaign with a budget is to be judged yet.

    What is measured so far may be part of what is tested once, at the end, with the whole level:
    a test before that would be one more.
    """
    if state.design is None or state.design.once is False:
        return False
    if state.ended is not None and state.ended.why != "interrupted":
        return False
    return not any(wave.why == "chosen" for wave in state.waves) or state.design.once is True


def begun_cells(state: State) -> tuple[str, ...]:
    """Return the compared cells that the first round measured, or tried to, sorted."""
    cells = {one.planned.cell for one in state.of(1) if one.status != "skipped"}
    return tuple(sorted(cell for cell in cells if experiment_of(cell) in compared()))


def schedule_of(state: State) -> tuple[Wave, ...]:
    """Return the waves that repeat a campaign's schedule, however long they take.

    The first round then names the cells that there was room for. Their predictions are left out.
    """
    found = []
    for wave in state.waves:
        rounds = wave.rounds
        if wave.number == 1 and any(is_left_out(one) for one in state.of(1)):
            cells = {one.planned.cell for one in state.of(1) if not is_left_out(one)}
            rounds = (WaveRound(round=1, cells=tuple(sorted(cells))),)
        changed = {"rounds": rounds, "predicted_s": None, "spent_s": 0.0}
        found.append(wave.model_copy(update=changed))
    return tuple(found)
