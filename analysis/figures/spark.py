"""A series as a line in a table's row, with the places where its level changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

WIDTH, HEIGHT, EDGE = 240, 40, 4
#: A longer series has the least and the largest of each of so many parts: no value of it that
#: stands out is lost.
PARTS = 80


@dataclass(frozen=True)
class Mark:
    """A place from which on a series has another level; `is_better` decides its colour."""

    place: int
    is_better: bool


def drawn_places(values: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Return the places of a series that are drawn, in order."""
    count = len(values)
    if count <= 2 * PARTS:
        return np.arange(count)
    edges = np.linspace(0, count, PARTS + 1).astype(int)
    found = [
        start + at
        for start, end in pairwise(edges)
        for at in {int(values[start:end].argmin()), int(values[start:end].argmax())}
    ]
    return np.array(sorted(found))


def spark(values: npt.NDArray[np.float64], marks: Sequence[Mark], label: str) -> Markup:
    """Return the drawing of a series in order, larger values above; `label` says what it is.

    Each level has a line at its median.
    """
    count = len(values)
    low, reach = float(values.min()), float(np.ptp(values))
    across = (WIDTH - 2 * EDGE) / max(1, count - 1)
    down = (HEIGHT - 2 * EDGE) / reach if reach else 0.0

    def x(place: float) -> int:
        return round(EDGE + across * place)

    def y(value: float) -> int:
        return round(HEIGHT - EDGE - down * (value - low)) if reach else HEIGHT // 2

    places = drawn_places(values)
    points = np.array([(x(place), y(values[place])) for place in places])
    steps = np.diff(points, axis=0)
    line = f"M{points[0][0]} {points[0][1]}" + "".join(
        f"l{dx} {dy}".replace(" -", "-") for dx, dy in steps
    )
    edges = [0, *(mark.place for mark in marks), count]
    levels = [
        (x(start), x(end - 1), y(float(np.median(values[start:end]))))
        for start, end in pairwise(edges)
    ]
    medians = "".join(f"M{start} {at}H{end}" for start, end, at in levels)
    changes = "".join(
        f'<circle class="{"faster" if mark.is_better else "slower"}" cx="{start}" cy="{at}" r="4"/>'
        for mark, (start, _, at) in zip(marks, levels[1:], strict=True)
    )
    single = f'<circle cx="{x(0)}" cy="{y(low)}" r="2"/>' if count == 1 else ""
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(label)}</title>'
        f'<path d="{line}"/><path class="level" d="{medians}"/>{single}{changes}</svg>'
    )
