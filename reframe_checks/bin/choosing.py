"""Which test cases of a campaign run in a round, and in which order."""

from __future__ import annotations

import random
from typing import Any

from records.budget import experiment_of
from records.events import PlannedLaunch
from records.experiments import experiments
from records.fold import State
from records.once import came_to_nothing
from reframe_checks.mixins.recording import RecordedCheck


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
