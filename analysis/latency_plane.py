"""The plane of latency and bandwidth: the machines of 1996 and what a campaign measured.

ORNL 1996, Figure 2.5; `literature/ornl1996/study.yaml` says what is drawn, and from which records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from analysis.campaign import Campaign
from analysis.statistics import median
from analysis.studies.drawing import Line, Point, legend_mark, line_figure
from analysis.studies.exhibits import lines_of, of_campaign, of_report, over_rounds
from analysis.studies.reading import read_paper
from analysis.studies.tables import Measured, Report
from analysis.text_table import TextTable

PAPER, NUMBER = "ornl1996", "Figure 2.5"
POINTS = "Latency and bandwidth by name"
THEN = "machines of 1996, each with its name"


@dataclass(frozen=True)
class Plane:
    """The figure, what its marks are, and its points by name."""

    label: str
    today: Markup
    legend: list[tuple[str, Markup]]
    points: TextTable


def latency_plane(campaign: Campaign, implementations: Sequence[str], root: Path) -> Plane | None:
    """Return the figure, in which an implementation's style is its place in `implementations`.

    Each point is a machine of the report (ORNL 1996, Table 2.1) or an implementation: latency in
    µs, bandwidth at the largest message in MB/s, medians over its launches. None where the campaign
    has no echo test. Raises StudyError where the study cannot be read.
    """
    paper = read_paper(root, PAPER)
    [exhibit] = [one for one in paper.study.exhibits if one.number == NUMBER]
    [figure] = exhibit.figures
    measured = of_campaign(Measured(paper, campaign), exhibit)
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
    return Plane(
        figure.label, drawn, [*legend, (THEN, legend_mark(of_then))], points_of([*today, *then])
    )


def points_of(lines: Sequence[Line]) -> TextTable:
    """Return the points with their names, today's with the interval of the bandwidth."""
    rows: list[tuple[str, ...]] = [
        (
            line.name,
            f"{point.across:.3g}",
            f"{point.up:.4g}",
            f"{point.low:.4g} – {point.high:.4g}" if point.high > point.low else "–",
        )
        for line in lines
        for point in line.points
    ]
    columns = ("implementation or machine", "latency, µs", "bandwidth, MB/s", "interval")
    note = (
        "Today's are medians over the launches of EchoTest: half the round trip of the smallest "
        "message, and the bandwidth at the largest. The machines are those of ORNL 1996, Table 2.1."
    )
    return TextTable(POINTS, columns, rows, 1, [note])


def over_launches(line: Line) -> Line:
    """Return one point for those of all launches, whose order by latency means nothing."""
    middle, interval = over_rounds([point.up for point in line.points])
    low, high = (interval.low, interval.high) if interval else (middle, middle)
    across = median([point.across for point in line.points])
    return replace(line, points=[Point(across, middle, low, high)])
