"""How much one launch differs from the next: NASA's listing of single runs (2003)."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.comparison.result import Cell, Comparison
from inference.intervals import median


@dataclass(frozen=True)
class Variability:
    """The launches of one cell and implementation at one message size, in order of rounds.

    `spread` is the largest value over the smallest, `relative_deviation` the median absolute
    deviation from the median over the median.
    """

    cell: str
    implementation: str
    message_bytes: int
    values: tuple[float, ...]
    spread: float
    relative_deviation: float


def of_cell(cell: Cell) -> list[Variability]:
    """Return the variability of a cell's launches, at the largest message of each."""
    rows = []
    for implementation, estimates in cell.estimates.items():
        last = estimates[-1]
        values = last.launches
        deviation = median([abs(value - last.median) for value in values]) / last.median
        rows.append(
            Variability(
                cell.name, implementation, last.message_bytes, values,
                max(values) / min(values), deviation,
            )
        )  # fmt: skip
    return rows


def variability(comparison: Comparison) -> list[Variability]:
    """Return the variability of every cell and implementation, the largest spread first."""
    rows = [row for cell in comparison.cells for row in of_cell(cell)]
    return sorted(rows, key=lambda row: -row.spread)
