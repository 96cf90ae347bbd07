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

    They are rank, name, ratio, its interval and the verdict.

    What no round compares has no rank, and stands last.
    """
    rows = [(1.0, base, "–", "base")]
    last = []
    for name, verdict in group.verdicts.items():
        if verdict.ratio.pairs:
            rows.append((verdict.ratio.value, name, within(verdict.ratio.interval), verdict.words))
        else:
            last.append(("–", name, "–", "–", verdict.words))
    ordered = sorted(rows, key=lambda row: -row[0])
    return [
        *(
            (str(place), name, f"{ratio:.3f}", interval, words)
            for place, (ratio, name, interval, words) in enumerate(ordered, 1)
        ),
        *last,
    ]


def by_experiment(comparison: Comparison) -> list[tuple[str, list[Group]]]:
    """Return each experiment that has an answer with its groups, in the order of metrics.yaml."""
    found = {name: [g for g in comparison.groups if g.experiment == name] for name in metrics()}
    return [
        (name, groups)
        for name, of in found.items()
        if (groups := [group for group in of if group.verdicts])
    ]
