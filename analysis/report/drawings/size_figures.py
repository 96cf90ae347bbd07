"""The report's figures over message size for every experiment, as far as there is room."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from analysis.comparison.metrics import metrics
from analysis.comparison.ratio_curves import RatioPoint, ratio_curve
from analysis.comparison.result import Cell, Comparison, curve_title
from analysis.figures.over_size import Curve, Limit, bandwidth_figure, limit_points
from analysis.report.drawings.ratio_figure import ratio_figure
from records.campaign import Campaign
from records.communication import Communication, PingPong
from records.experiments import compared
from records.launch import RANGE
from records.program_output import ProgramOutput

#: What all of these figures together may take of a report, in characters.
ROOM = 1_200_000
COPY, LINK = "plain copy in memory", "link between the nodes"
#: Operations whose stated bytes move between only two ranks.
POINT_TO_POINT = ("pairs", "put", "get", "accumulate", "echo")


@dataclass(frozen=True)
class Figure:
    """A curve of every implementation, with its cells and the limit drawn in it."""

    caption: str
    cells: list[Cell]
    svg: Markup
    ratio: Markup | None
    limit: str | None

    @property
    def characters(self) -> int:
        """Return its length in the report."""
        return len(self.svg) + len(self.ratio or "")


class RatioCurves:
    """The ratios to the base over message size, each computed once."""

    def __init__(self, base: str) -> None:
        """Begin with none."""
        self.base = base
        self._known: dict[tuple[str, str], list[RatioPoint]] = {}

    def of(self, cell: Cell, implementation: str) -> list[RatioPoint]:
        """Return those of a cell and an implementation."""
        key = (cell.name, implementation)
        if key not in self._known:
            self._known[key] = ratio_curve(cell, implementation, self.base)
        return self._known[key]


@dataclass
class Figures:
    """An experiment's figures; `left` is how many did not fit."""

    drawn: list[Figure] = field(default_factory=list)
    left: int = 0


def copy_limit(campaign: Campaign) -> Limit:
    """Return the best plain copy in memory of any launch on one node, as (message bytes, B/s)."""
    best: dict[int, float] = defaultdict(float)
    for launch in campaign.sound():
        if launch.record.nodes == 1 and isinstance(launch.output, ProgramOutput):
            for result in launch.output.results:
                if isinstance(result, PingPong) and result.memory_copy_s > 0:
                    rate = result.message_bytes / result.memory_copy_s
                    best[result.message_bytes] = max(best[result.message_bytes], rate)
    return Limit(COPY, tuple(sorted(best.items())))


def link_rate(campaign: Campaign) -> float | None:
    """Return the site's one-way rate of a link between its nodes, in B/s."""
    rate = (campaign.manifest.site_data or {}).get("link_bytes_per_s")
    if not isinstance(rate, (int, float)) or not math.isfinite(rate) or rate <= 0:
        return None
    return float(rate)


def link_limit(campaign: Campaign, sizes: list[int]) -> Limit:
    """Return the rate of a link between the nodes at all sizes; empty if unknown."""
    rate = link_rate(campaign)
    return Limit(LINK, tuple((size, rate) for size in sizes) if rate else ())


def one_after_another(result: Communication) -> float:
    """Return how many bytes of an iteration between two ranks pass a link one after another.

    A round trip's messages wait for each other; those of an exchange pass both ways at once.
    """
    return result.moved_bytes / (2 if result.method.split(" ")[0] == "exchange" else 1)


def link_times(campaign: Campaign) -> dict[str, dict[int, float]]:
    """Return the link's minimum time for a point-to-point operation, in s.

    By the cell's name and message size, of what two ranks on a node each measured.
    """
    rate = link_rate(campaign)
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for launch in campaign.sound() if rate else ():
        record = launch.record
        if (record.ranks, record.nodes) != (2, 2) or not isinstance(launch.output, ProgramOutput):
            continue
        for result in launch.output.results:
            if isinstance(result, Communication) and result.operation in POINT_TO_POINT:
                name = f"{record.cell} {result.series}".rstrip()
                found[name][result.message_bytes] = one_after_another(result) / (rate or 1.0)
    return found


def caption_of(cell: Cell) -> str:
    """Return the name of a cell's curve: the parameter that its entry names, if any."""
    entry = compared()[cell.experiment]
    if not entry.caption:
        return marked(curve_title(cell), [cell])
    named = (entry.caption, RANGE, *entry.apart)
    words = [f"{name}={value}" for name, value in cell.parameters.items() if name not in named]
    apart = [f"{name} {value}" for name, value in entry.unusual(cell.parameters).items()]
    said = ", ".join([" ".join([str(cell.parameters[entry.caption]), *words]), *apart])
    return marked(said, [cell])


def marked(words: str, cells: Sequence[Cell]) -> str:
    """Return the name of cells, which mentions if one of them is oversubscribed."""
    is_over = any(cell.oversubscribed for cell in cells)
    return f"{words} (oversubscribed)" if is_over else words


def cells_of_curves(comparison: Comparison, experiment: str) -> dict[str, list[Cell]]:
    """Return an experiment's cells by their curve, if it has several sizes."""
    by_title: dict[str, list[Cell]] = defaultdict(list)
    for cell in comparison.experiment(experiment):
        by_title[curve_title(cell)].append(cell)
    return {
        title: cells
        for title, cells in by_title.items()
        if len({size for cell in cells for size in cell.message_sizes() if size > 0}) > 1
    }


def figures_of(
    comparison: Comparison, room: int = ROOM, ratios: RatioCurves | None = None
) -> dict[str, Figures]:
    """Return the figures of each experiment that has any, each with its share of the room."""
    ratios = ratios or RatioCurves(comparison.base)
    found = {experiment: cells_of_curves(comparison, experiment) for experiment in metrics()}
    found = {experiment: by_title for experiment, by_title in found.items() if by_title}
    copy = copy_limit(comparison.campaign)
    nodes = {launch.record.cell: launch.record.nodes for launch in comparison.campaign.sound()}

    times = link_times(comparison.campaign)

    def limit_of(cells: list[Cell]) -> Limit | None:
        if metrics()[cells[0].experiment]["unit"] == "s":
            points = {at: time for cell in cells for at, time in times.get(cell.name, {}).items()}
            return Limit(LINK, tuple(sorted(points.items())), is_least=True)
        are_far = {nodes[cell.launch_cell] > 1 for cell in cells}
        # There is no limit for a curve partly through memory and partly over a link.
        if metrics()[cells[0].experiment]["unit"] != "B/s" or len(are_far) != 1:
            return None
        if are_far == {False}:
            return copy
        sizes = sorted({size for cell in cells for size in cell.message_sizes() if size > 0})
        return link_limit(comparison.campaign, sizes)

    drawn = {}
    for number, (experiment, by_title) in enumerate(found.items()):
        share = room // (len(found) - number)
        drawn[experiment] = Figures()
        for cells in by_title.values():
            # Those after the first without room are not drawn in vain.
            if drawn[experiment].left:
                drawn[experiment].left += 1
                continue
            one = figure_of(comparison, cells, limit_of(cells), ratios)
            if one.characters > share:
                drawn[experiment].left += 1
                continue
            share -= one.characters
            room -= one.characters
            drawn[experiment].drawn.append(one)
    return drawn


def curves_of(comparison: Comparison, cells: list[Cell]) -> list[Curve]:
    """Return the curve of each implementation for some cells."""
    curves = []
    for style, name in enumerate(comparison.implementations):
        estimates = sorted(
            (e for cell in cells for e in cell.estimates.get(name, []) if e.message_bytes > 0),
            key=lambda estimate: estimate.message_bytes,
        )
        if estimates:
            curves.append(Curve(name, style, estimates))
    return curves


def figure_of(
    comparison: Comparison, cells: list[Cell], limit: Limit | None, ratios: RatioCurves
) -> Figure:
    """Return the figure of cells that are one curve, and that of its ratio to the base."""
    about = metrics()[cells[0].experiment]
    curves = curves_of(comparison, cells)
    others = [one for one in enumerate(comparison.implementations) if one[1] != comparison.base]
    of_ratios = [
        (name, style, curve)
        for style, name in others
        for cell in cells
        if (curve := ratios.of(cell, name))
    ]
    caption = caption_of(cells[0])
    words = f"over message size, {caption}"
    label = str(about["label"])
    return Figure(
        caption,
        cells,
        bandwidth_figure(f"{label.capitalize()} {words}", curves, limit, about["unit"], label),
        ratio_figure(f"Ratio {words}", of_ratios),
        limit.name if limit and limit_points(curves, limit) else None,
    )


def without(figures: dict[str, Figures], characters: int) -> tuple[dict[str, Figures], int]:
    """Drop figures until so many characters are saved; return the rest, and the excess left.

    An experiment's figures are left out in turn, so that each keeps its first as long as it can.
    """
    kept = {name: Figures(list(of.drawn), of.left) for name, of in figures.items()}
    while characters > 0 and any(of.drawn for of in kept.values()):
        longest = max(kept.values(), key=lambda of: len(of.drawn))
        characters -= longest.drawn.pop().characters
        longest.left += 1
    return kept, characters
