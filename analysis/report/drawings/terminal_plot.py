"""Curves over message size as text: logarithmic axes, a symbol for each implementation."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence

from analysis.comparison.result import Comparison, curve_title
from analysis.figures.axes import Axis
from analysis.figures.over_size import segments
from analysis.tables.units import prefixed
from inference.estimates import Estimate

SIGNS = "ox+*#@%&"
#: Where several implementations meet, and what joins two sizes of one.
SEVERAL, BETWEEN = "=", "·"
LABELS = 11
LEAST_WIDTH, LEAST_HEIGHT = 40, 8

Curves = Mapping[str, Sequence[Estimate]]


def curves_of(comparison: Comparison, experiment: str) -> dict[str, dict[str, list[Estimate]]]:
    """Return an experiment's estimates by name of the curve and implementation.

    Ranges of sizes form one curve. Cells without sizes have none.
    """
    found: dict[str, dict[str, list[Estimate]]] = defaultdict(lambda: defaultdict(list))
    for cell in comparison.experiment(experiment):
        title = curve_title(cell)
        for name, estimates in cell.estimates.items():
            found[title][name] += [one for one in estimates if one.message_bytes > 0]
    return {
        title: {
            name: sorted(estimates, key=lambda one: one.message_bytes)
            for name, estimates in by_name.items()
        }
        for title, by_name in found.items()
        if len({one.message_bytes for of in by_name.values() for one in of}) > 1
    }


def spread(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis with some room, wide enough to have a middle."""
    return low / 1.2, max(high, low * 1.01) * 1.2


def grid_of(curves: Curves, across: Axis, up: Axis, width: int, height: int) -> list[list[str]]:
    """Return the symbols of the drawing, row by row from the top."""
    grid = [[" "] * width for _ in range(height)]
    for sign, estimates in zip(signs(len(curves)), curves.values(), strict=True):
        places = [
            [(round(across.place(e.message_bytes)), round(up.place(e.median))) for e in run]
            for run in segments(estimates)
        ]
        for run in places:
            for (x, y), (next_x, next_y) in itertools.pairwise(run):
                for step in range(x + 1, next_x):
                    row = round(y + (next_y - y) * (step - x) / (next_x - x))
                    if grid[row][step] == " ":
                        grid[row][step] = BETWEEN
        for x, y in (place for run in places for place in run):
            taken = grid[y][x] not in (" ", BETWEEN, sign)
            grid[y][x] = SEVERAL if taken else sign
    return grid


def signs(count: int) -> list[str]:
    """Return a symbol for each curve; beyond eight they are letters."""
    letters = "abcdefghijklmnpqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return list((SIGNS + letters)[:count])


def drawing(title: str, curves: Curves, unit: str, width: int, height: int) -> str:
    """Return curves as lines of text, at most `width` characters wide and `height` lines high."""
    curves = {name: estimates for name, estimates in curves.items() if estimates}
    width, height = max(width, LEAST_WIDTH) - LABELS - 2, max(height, LEAST_HEIGHT) - 5
    sizes = [one.message_bytes for of in curves.values() for one in of]
    values = [one.median for of in curves.values() for one in of]
    across = Axis(*spread(min(sizes), max(sizes)), 0, width - 1)
    up = Axis(*spread(min(values), max(values)), height - 1, 0)
    labels = {round(up.place(tick)): prefixed(tick, unit) for tick in up.ticks()}
    lines = [title]
    for row, signs_of_row in enumerate(grid_of(curves, across, up, width, height)):
        label = labels.get(row, "")
        lines.append(f"{label:>{LABELS}} {'┤' if label else '│'}{''.join(signs_of_row).rstrip()}")
    marks, words = ["─"] * width, [" "] * width
    for tick in across.ticks():
        place, text = round(across.place(tick)), prefixed(tick, "B")
        begin = max(0, min(width - len(text), place - len(text) // 2))
        if all(sign == " " for sign in words[max(0, begin - 1) : begin + len(text) + 1]):
            marks[place] = "┴"
            words[begin : begin + len(text)] = text
    lines += [f"{'':>{LABELS}} └{''.join(marks)}", f"{'':>{LABELS}}  {''.join(words).rstrip()}"]
    legend = [f"{sign} {name}" for sign, name in zip(signs(len(curves)), curves, strict=True)]
    lines.append("   ".join([*legend, f"{SEVERAL} several"]))
    return "\n".join(lines)
