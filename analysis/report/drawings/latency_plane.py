"""The plane of latency and bandwidth: the machines of 1996 and what a campaign measured.

ORNL 1996, Figure 2.5; `literature/ornl1996/study.yaml` says what is drawn, and from which records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from analysis.figures.lines import Line, Point, legend_mark, line_figure
from analysis.studies.exhibits import lines_of, of_campaign, of_report, over_rounds
from analysis.studies.reading import read_paper
from analysis.studies.relations import Report, TodaysTables
from analysis.tables.table import Column, Kind, Row, Table, interval, scaled
from inference.intervals import median
from records.campaign import Campaign
from records.experiments import serves, serving

PAPER, NUMBER = "ornl1996", "Figure 2.5"
THEN = "machines of 1996, by name"
#: The report's units, which the figure has, in seconds and in bytes per second.
MICRO, MEGA = 1e-6, 1e6


@dataclass(frozen=True)
class Plane:
    """The figure, what its marks are, and its points by name."""

    label: str
    today: Markup
    legend: list[tuple[str, Markup]]
    points: Table


def latency_plane(campaign: Campaign, implementations: Sequence[str], root: Path) -> Plane | None:
    """Return the figure, in which an implementation's style is its place in `implementations`.

    Each point is a machine of the report (ORNL 1996, Table 2.1) or an implementation: latency in
    µs, bandwidth at the largest message in MB/s, medians over its launches. None where the campaign
    has no echo test. Raises StudyError where the study cannot be read.
    """
    paper = read_paper(root, PAPER)
    [exhibit] = [one for one in paper.study.exhibits if one.number == NUMBER]
    [figure] = exhibit.figures
    measured = of_campaign(TodaysTables(paper, campaign), exhibit)
    styles = {name: style for style, name in enumerate(implementations)}
    today = [over_launches(line) for line in lines_of(figure, measured, NUMBER, styles)]
    if not today:
        return None
    of_then = len(styles)
    # Machines are no line: each is one of its own, in the same style.
    then = [
        replace(line, style=of_then)
        for line in lines_of(figure, of_report(Report(paper), exhibit), NUMBER, {})
    ]
    legend = [(line.name, legend_mark(line.style)) for line in today]
    drawn = line_figure(figure.label, [*then, *today], "latency (µs)")
    points = points_of([*today, *then], echoes_in(campaign))
    return Plane(figure.label, drawn, [*legend, (THEN, legend_mark(of_then))], points)


def echoes_in(campaign: Campaign) -> dict[str, tuple[str, ...]]:
    """Return the cells of the echo test by implementation."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for record in (launch.record for launch in campaign.sound()):
        if serves("latency", record.experiment, record.parameters):
            found[record.implementation][record.cell] = None
    return {name: tuple(cells) for name, cells in found.items()}


def points_of(lines: Sequence[Line], cells: Mapping[str, tuple[str, ...]]) -> Table:
    """Return the points with their names, today's with the interval of the bandwidth.

    The table's values are in s and B/s.
    """
    rows = [
        Row(
            (
                line.name, times(point.across, MICRO), times(point.up, MEGA),
                (times(point.low, MEGA), times(point.high, MEGA))
                if point.high > point.low else None,
            ),
            line.name if line.name in cells else None,
            cells.get(line.name, ()),
        )
        for line in lines
        for point in line.points
    ]  # fmt: skip
    columns = (
        Column("implementation_or_machine", "implementation or machine"),
        Column("latency", "latency, µs", scaled(MICRO, ".3g"), "s"),
        Column("bandwidth", "bandwidth, MB/s", scaled(MEGA, ".4g"), "B/s"),
        interval("bandwidth", "interval", "B/s",
                 Kind(lambda of, _: f"{of[0] / MEGA:.4g} – {of[1] / MEGA:.4g}")),
    )  # fmt: skip
    note = (
        f"Today's are medians over the launches of {' and '.join(serving('latency'))}: half the "
        "round trip of the smallest message, and the bandwidth at the largest. The machines are "
        "those of ORNL 1996, Table 2.1."
    )
    title = "Latency and bandwidth by name"
    return Table("latency-and-bandwidth-by-name", title, columns, rows, [note])


def times(value: float, unit: float) -> float:
    """Return a number in a unit without a prefix, without the noise of its last binary digit."""
    return float(f"{value * unit:.15g}")


def over_launches(line: Line) -> Line:
    """Return one point for those of all launches, whose order by latency means nothing."""
    middle, interval = over_rounds([point.up for point in line.points])
    low, high = (interval.low, interval.high) if interval else (middle, middle)
    across = median([point.across for point in line.points])
    return replace(line, points=[Point(across, middle, low, high)])
