"""The implementations in order: in each group of cells the best first."""

from __future__ import annotations

from analysis.comparison import Comparison, Group
from analysis.metrics import metrics
from analysis.statistics import Interval


def within(interval: Interval | None) -> str:
    """Return an interval of ratios for people."""
    return f"{interval.low:.3f} – {interval.high:.3f}" if interval else "–"


def ranked(group: Group, base: str) -> list[tuple[str, ...]]:
    """Return a group's implementations, the best ratio to the base first: the columns of a table.

    They are rank, name, of how many of the group's cells, ratio, its interval and the verdict.

    A rank is of ratios over the same cells: what lacks one of those in which the base can be
    compared has none, since it may lack just the cell that it is slow in. It stands below, and
    what no round compares last.
    """
    comparable = sum(any(cell.log_ratios.values()) for cell in group.cells)

    def of_cells(count: int) -> str:
        return f"{count} of {len(group.cells)}"

    rows = [(1.0, base, of_cells(sum(base in c.estimates for c in group.cells)), "–", "base")]
    lacking, last = [], []
    for name, verdict in group.verdicts.items():
        count = verdict.cells or 0
        row = (
            verdict.ratio.value, name, of_cells(count), within(verdict.ratio.interval),
            verdict.words,
        )  # fmt: skip
        if not verdict.ratio.pairs:
            last.append(("–", name, of_cells(count), "–", "–", verdict.words))
        elif count < comparable:
            lacking.append(row)
        else:
            rows.append(row)
    # Alone, the base is first and last.
    has_ranks = len(rows) > 1
    return [
        *(
            (str(place) if has_ranks else "–", name, cells, f"{ratio:.3f}", interval, words)
            for place, (ratio, name, cells, interval, words) in enumerate(best_first(rows), 1)
        ),
        *(
            ("–", name, cells, f"{ratio:.3f}", interval, words)
            for ratio, name, cells, interval, words in best_first(lacking)
        ),
        *last,
    ]


def best_first(
    rows: list[tuple[float, str, str, str, str]],
) -> list[tuple[float, str, str, str, str]]:
    """Return rows that begin with a ratio, the largest first."""
    return sorted(rows, key=lambda row: -row[0])


def by_experiment(comparison: Comparison) -> list[tuple[str, list[Group]]]:
    """Return each experiment that has an answer with its groups, in the order of metrics.yaml."""
    found = {name: [g for g in comparison.groups if g.experiment == name] for name in metrics()}
    return [
        (name, groups)
        for name, of in found.items()
        if (groups := [group for group in of if group.verdicts])
    ]
