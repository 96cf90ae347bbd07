"""The plane of latency and bandwidth: the machines of 1996 and what a campaign measured.

ORNL 1996, Figure 2.5; `literature/ornl1996/study.yaml` says what is drawn, and from which records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup

from analysis.campaign import Campaign
from analysis.statistics import median
from analysis.studies.drawing import Line, Point, legend_mark, line_figure
from analysis.studies.exhibits import Drawn, lines_of, of_campaign, of_report, over_rounds
from analysis.studies.reading import read_paper
from analysis.studies.tables import Measured, Report

PAPER, NUMBER = "ornl1996", "Figure 2.5"
THEN = "machines of 1996, each with its name"


def latency_plane(campaign: Campaign, implementations: Sequence[str], root: Path) -> Drawn | None:
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
    drawn: Markup = line_figure(figure.label, [*then, *today], "latency (µs)")
    return Drawn(figure.label, None, drawn, [*legend, (THEN, legend_mark(of_then))])


def over_launches(line: Line) -> Line:
    """Return one point for those of all launches, whose order by latency means nothing."""
    middle, interval = over_rounds([point.up for point in line.points])
    low, high = (interval.low, interval.high) if interval else (middle, middle)
    across = median([point.across for point in line.points])
    return replace(line, points=[Point(across, middle, low, high)])
