"""Largest differences first: the order of differences, and of tables that are shortened."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from analysis.comparison.result import Cell, Comparison
from analysis.comparison.verdict import Verdict

#: How many rows a table of the report has at most: the rest is on a page beside it.
MOST_ROWS = 100
#: So many differences are not folded; and so many rows of a table that is below its picture.
MOST_OPEN, MOST_BELOW = 12, 4
What = TypeVar("What")


def distance(verdict: Verdict) -> float:
    """Return how far a ratio is from 1, as a logarithm; 0 where there is none."""
    value = verdict.ratio.value
    return 0.0 if math.isnan(value) else abs(math.log(value))


def difference(cell: Cell, implementation: str | None = None) -> tuple[bool, float]:
    """Return how much a cell differs: differences that are shown rank before others.

    With an implementation how much that one does; the base stands beside the one that differs most.
    """
    own = cell.verdicts.get(implementation or "")
    return max(
        ((one.is_different, distance(one)) for one in ([own] if own else cell.verdicts.values())),
        default=(False, 0.0),
    )


def shown_differences(comparison: Comparison) -> list[tuple[Cell, Verdict]]:
    """Return the cells with a difference that is shown, the largest first."""
    found = [
        (cell, verdict)
        for one in comparison.pairs
        for cell in one.cells
        for verdict in cell.verdicts.values()
        if verdict.is_different
    ]
    return sorted(found, key=lambda one: -distance(one[1]))


def foremost(
    every: Sequence[What],
    subject: Callable[[What], tuple[Cell, str | None]],
    most: int = MOST_ROWS,
) -> Sequence[What]:
    """Return a table's rows in order if they fit; else those that differ most, first.

    A row's `subject` is its cell and, where the row is of one implementation, that.
    """
    if len(every) <= most:
        return every
    return sorted(every, key=lambda one: difference(*subject(one)), reverse=True)[:most]
