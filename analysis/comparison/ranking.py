"""Implementations in order, the best first in each group of cells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from analysis.comparison.metrics import metrics
from analysis.comparison.result import Comparison, Group
from analysis.comparison.tables import INTERVAL_OF_VERDICT, of_verdict, verdict_value
from analysis.tables.table import (
    COUNT,
    RATIO,
    Column,
    Kind,
    Row,
    Table,
    file_name,
    interval,
)

#: Rank, name, of how many of the group's cells, ratio, its interval and the verdict.
RANKS = (
    Column("rank", "rank", COUNT), Column("implementation", "implementation"),
    Column("cells", "cells", Kind(lambda of, _: f"{of[0]} of {of[1]}"),
           fields=("cells (1)", "cells_of_group (1)")),
    Column("ratio", "ratio", RATIO, "1"), interval("ratio", INTERVAL_OF_VERDICT, "1"),
    Column("verdict", "verdict"),
)  # fmt: skip


def ranked(group: Group, base: str) -> Table:
    """Return a group's implementations, the best ratio to the base first.

    Ranks compare ratios over the same cells: an implementation that lacks one in which the base can
    be compared has none, since it may lack just the cell that it is slow in. It comes below, and
    one that no round compares comes last.
    """
    every = len(group.cells)
    comparable = len({cell.name for name in group.verdicts for cell in group.judged(name)})
    whole: list[tuple[Any, ...]] = [
        (base, sum(base in cell.estimates for cell in group.cells), 1.0, None, "base")
    ]
    lacking, last = [], []
    for name, verdict in group.verdicts.items():
        count = verdict.cells
        row = (name, count, *of_verdict(verdict))
        if not verdict.ratio.pairs:
            last.append((name, count, None, None, verdict_value(verdict)))
        elif count < comparable:
            lacking.append(row)
        else:
            whole.append(row)
    # Alone, the base is first and last.
    has_ranks = len(whole) > 1
    places = [
        *((place if has_ranks else None, row) for place, row in enumerate(best_first(whole), 1)),
        *((None, row) for row in (*best_first(lacking), *last)),
    ]
    cells = tuple(cell.launch_cell for cell in group.cells)
    rows = [
        Row((place, name, (count, every), *rest), name, cells)
        for place, (name, count, *rest) in places
    ]
    headings = {"ratio": f"ratio to {base}"}
    columns = tuple(
        replace(column, heading=headings.get(column.name, column.heading)) for column in RANKS
    )
    return Table(f"ranks-{file_name(group.name)}", group.name, columns, rows)


def best_first(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows by their ratio, the largest first."""
    return sorted(rows, key=lambda row: -row[2])


def by_experiment(comparison: Comparison) -> list[tuple[str, list[Group]]]:
    """Return each experiment that has an answer with its groups, in the order of tables."""
    found = {name: [g for g in comparison.groups if g.experiment == name] for name in metrics()}
    return [
        (name, groups)
        for name, of in found.items()
        if (groups := [group for group in of if group.verdicts])
    ]
