"""What a campaign measures once: what compares nothing, by each image or by one that can."""

from __future__ import annotations

from collections.abc import Collection

from records.budget import experiment_of
from records.experiments import experiments
from records.fold import LaunchState, State


def came_to_nothing(one: LaunchState | None) -> bool:
    """Return whether an image could not measure what another one may: it failed, or is missing.

    What a site leaves out, it leaves out of every image.
    """
    return one is not None and (
        one.status in ("failed", "missing") or one.outcome in ("suspect", "failed")
    )


def is_without(state: State, number: int) -> list[str]:
    """Return the cells that one image is enough for, and none of those asked could measure."""
    found = []
    for (_, cell), block in state.blocks(number).items():
        entry = experiments().get(experiment_of(cell))
        if entry and entry.once == "campaign" and all(map(came_to_nothing, block)):
            found.append(cell)
    return found


def left_to_others(state: State, number: int, images: Collection[str]) -> list[str]:
    """Return the cells of `is_without` that not all of a campaign's images were asked to measure.

    Whether another one has such a check, only ReFrame can tell.
    """
    return [
        cell for cell in is_without(state, number)
        if set(images) - {one.planned.implementation for one in state.blocks(number)[number, cell]}
    ]  # fmt: skip
