"""A report's tables and figures next to today's, ready for any output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from markupsafe import Markup

from analysis.figures.lines import Line, Point, legend_mark, line_figure
from analysis.studies.declaration import DrawnFigure, Exhibit, NotMeasuredError
from analysis.studies.one_number import OneNumber, digits, number_text
from analysis.studies.relations import (
    Report,
    TableSource,
    TodaysTables,
    after,
    expression,
    naming,
    table_of,
)
from inference.intervals import Interval, median, median_interval

#: Rows from which on a table is folded.
LONG = 30


@dataclass(frozen=True)
class ShownCell:
    """A number of a table; `about` says how it was obtained, if it was measured."""

    text: str = "–"
    about: str = ""
    today: bool = False
    number: OneNumber | None = None


@dataclass(frozen=True)
class ExhibitColumn:
    """What a column's numbers are: which value, of what `across`, the report's or today's."""

    value: str
    unit: str
    side: str
    today: bool


@dataclass
class Drawn:
    """A figure: the report's, and today's, if there is one."""

    label: str
    report: Markup | None
    today: Markup | None
    legend: list[tuple[str, Markup]]
    figure: DrawnFigure
    #: The lines of both.
    lines: tuple[list[Line], list[Line]]


@dataclass
class Shown:
    """An exhibit with its rows and figures."""

    exhibit: Exhibit
    keys: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    #: As many as `columns`.
    about: list[ExhibitColumn] = field(default_factory=list)
    rows: list[tuple[list[str], list[ShownCell]]] = field(default_factory=list)
    figures: list[Drawn] = field(default_factory=list)
    measured: bool = False

    @property
    def long(self) -> bool:
        """Return whether the table is better folded."""
        return len(self.rows) > LONG


def of_report(source: TableSource, exhibit: Exhibit) -> pl.DataFrame:
    """Return the rows of an exhibit from one source."""
    frame = table_of(source, str(exhibit.table))
    return after(source, frame, exhibit.steps, f"study.yaml: exhibits, {exhibit.number}")


def of_campaign(measured: TodaysTables, exhibit: Exhibit) -> pl.DataFrame:
    """Return the rows of an exhibit from all rounds; empty where nothing like it was measured."""
    frames = []
    for number in sorted({launch.record.round for launch in measured.campaign.sound()}):
        try:
            frame = of_report(measured.in_round(number), exhibit)
        except NotMeasuredError:
            return pl.DataFrame()
        if not frame.is_empty():
            frames.append(frame)
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()


def key_of(row: dict[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """Return the values of a row's columns as words; a column that it lacks is empty."""
    return tuple("" if row.get(name) is None else digits_of(row[name]) for name in names)


def digits_of(value: Any) -> str:
    """Return any value of a table as text."""
    if isinstance(value, bool) or value is None:
        return str(value)
    return digits(float(value)) if isinstance(value, int | float) else str(value)


Values = dict[tuple[str, ...], dict[tuple[str, str], list[float]]]


def values_by_key(frame: pl.DataFrame, exhibit: Exhibit) -> Values:
    """Return rows' key -> (value's column, value of `across`) -> numbers, one a round."""
    found: Values = {}
    for row in frame.iter_rows(named=True):
        of_row = found.setdefault(key_of(row, exhibit.rows), {})
        side = digits_of(row.get(exhibit.across)) if exhibit.across else ""
        for name in exhibit.values:
            if row.get(name) is not None:
                of_row.setdefault((name, side), []).append(float(row[name]))
    return found


def over_rounds(values: Sequence[float]) -> tuple[float, Interval | None]:
    """Return the median over rounds and its interval, if there is more than one round."""
    return median(values), median_interval(values) if len(values) > 1 else None


def show(exhibit: Exhibit, report: Report, measured: TodaysTables | None) -> Shown:
    """Return an exhibit with the report's numbers and today's."""
    if exhibit.absent is not None:
        return Shown(exhibit)
    then = of_report(report, exhibit)
    now = of_campaign(measured, exhibit) if measured else pl.DataFrame()
    printed, today = values_by_key(then, exhibit), values_by_key(now, exhibit)
    sides = list(
        dict.fromkeys(side for row in (*printed.values(), *today.values()) for _, side in row)
    )
    shown = Shown(exhibit, [name.replace("_", " ") for name in exhibit.rows], measured=bool(today))
    for name, unit in exhibit.values.items():
        for side in sides:
            words = " ".join(word for word in (side, unit or name.replace("_", " ")) if word)
            for whose in ("report", "today") if measured else ("report",):
                shown.columns.append(f"{words}, {whose}")
                shown.about.append(ExhibitColumn(name, unit, side, whose == "today"))
    for key in dict.fromkeys([*printed, *today]):
        cells = []
        for name in exhibit.values:
            for side in sides:
                numbers = printed.get(key, {}).get((name, side))
                # As it is printed, not rounded.
                cells.append(
                    ShownCell(f"{numbers[0]:.10g}", number=OneNumber(numbers[0]))
                    if numbers
                    else ShownCell()
                )
                if measured:
                    cells.append(cell_of(today.get(key, {}).get((name, side), [])))
        shown.rows.append((list(key), cells))
    shown.figures = [draw(figure, exhibit, then, now) for figure in exhibit.figures]
    return shown


def cell_of(values: list[float]) -> ShownCell:
    """Return today's number, the median over rounds."""
    if not values:
        return ShownCell(today=True)
    middle, interval = over_rounds(values)
    number = OneNumber(middle, interval, len(values))
    return ShownCell(digits(middle), number_text(number), True, number)


def draw(figure: DrawnFigure, exhibit: Exhibit, then: pl.DataFrame, now: pl.DataFrame) -> Drawn:
    """Return a figure of the report and today's."""
    where = f"study.yaml: exhibits, {exhibit.number}, figures, {figure.label}"
    sides: list[Markup | None] = []
    drawn: list[list[Line]] = []
    styles: dict[str, int] = {}
    for frame, whose in ((then, "the report's"), (now, "today's")):
        lines = lines_of(figure, frame, where, styles)
        drawn.append(lines)
        title = f"{figure.label}, {whose}"
        sides.append(line_figure(title, lines, figure.across) if lines else None)
    legend = [(name, legend_mark(style)) for name, style in styles.items()]
    return Drawn(
        figure.label, sides[0], sides[1], legend if len(legend) > 1 else [], figure,
        (drawn[0], drawn[1]),
    )  # fmt: skip


def lines_of(
    figure: DrawnFigure, frame: pl.DataFrame, where: str, styles: dict[str, int]
) -> list[Line]:
    """Return a figure's lines; only what is above zero can be drawn on logarithmic axes.

    A line of the same name has the same style as in `styles`, to which new ones are added.
    """
    if frame.is_empty() or not {figure.across, figure.up} <= set(frame.columns):
        return []
    with naming(where):
        if figure.where:
            frame = frame.filter(expression(figure.where))
    found: dict[str, dict[float, list[float]]] = {}
    for row in frame.iter_rows(named=True):
        across, up = row[figure.across], row[figure.up]
        if across is None or up is None or across <= 0 or up <= 0:
            continue
        name = " ".join(word for word in key_of(row, figure.lines) if word)
        found.setdefault(name, {}).setdefault(float(across), []).append(float(up))
    lines = []
    for name, points in found.items():
        of_line = []
        for across, values in sorted(points.items()):
            middle, interval = over_rounds(values)
            low, high = (interval.low, interval.high) if interval else (middle, middle)
            of_line.append(Point(across, middle, low, high))
        lines.append(Line(name, styles.setdefault(name, len(styles)), of_line))
    return lines
