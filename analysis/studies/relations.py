"""Tables of a report and of a campaign, changed by the same steps (docs/how-to/study.md).

Expressions are those of polars' SQL: they compute with columns and reach nothing else.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Protocol

import polars as pl

from analysis.studies.declaration import (
    NotMeasuredError,
    Quantity,
    Relation,
    Step,
    Study,
    StudyError,
)
from analysis.studies.reading import Paper
from analysis.tables.parquet import LAUNCHES, RESULTS, launch_row, result_rows
from records.campaign import Campaign

#: A value that an expression gave; None if the table has nothing to compute it from.
CellValue = float | str | None
#: A cell's name -> its numbers.
Cells = dict[str, tuple[float, ...]]


class TableSource(Protocol):
    """Where the rows of a table with a file come from."""

    #: The declared tables after their steps, as far as they were asked for.
    derived: dict[str, pl.DataFrame]

    @property
    def study(self) -> Study:
        """Return the study that declares the tables."""

    def base(self, name: str, table: Relation) -> pl.DataFrame:
        """Return a declared table's rows before its steps."""


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Turn polars' message about an expression into a sentence that says where it is."""
    try:
        yield
    except pl.exceptions.PolarsError as error:
        what = str(error).splitlines()[0]
        raise StudyError(f"{where}: {what}") from None


@cache
def expression(text: str) -> pl.Expr:
    """Return an expression of polars' SQL."""
    return pl.sql_expr(text)


@dataclass
class Report:
    """The report's own tables: the CSV files of its folder."""

    paper: Paper
    read: dict[str, pl.DataFrame] = field(default_factory=dict)
    derived: dict[str, pl.DataFrame] = field(default_factory=dict)

    @property
    def study(self) -> Study:
        """Return the study that declares the tables."""
        return self.paper.study

    def base(self, name: str, table: Relation) -> pl.DataFrame:
        """Return a CSV file, or the declared columns of it."""
        if table.file is None:
            return pl.DataFrame()
        if name not in self.read:
            path = self.paper.folder / table.file
            try:
                frame = pl.read_csv(path, infer_schema_length=None)
            except (OSError, pl.exceptions.PolarsError) as error:
                what = str(error).splitlines()[0]
                raise StudyError(f"{path}: cannot be read as a table: {what}") from None
            if table.columns:
                with naming(f"{self.paper.folder / 'study.yaml'}: tables.{name}.columns"):
                    frame = frame.select(
                        expression(text).alias(column) for column, text in table.columns.items()
                    )
            self.read[name] = frame
        return self.read[name]


def implementation_for(patterns: list[str], measured: list[str]) -> str | None:
    """Return the first implementation of a campaign that fits the first pattern that any fits."""
    for pattern in patterns:
        for name in sorted(measured, reverse=True):
            if fnmatch.fnmatchcase(name, pattern):
                return name
    return None


def families(study: Study, measured: list[str]) -> dict[str, str]:
    """Return which implementation of a campaign stands for which of the report's."""
    found = {
        family: implementation_for(standing.implementations, measured)
        for family, standing in study.stands_for.items()
    }
    return {family: name for family, name in found.items() if name}


def campaign_frame(campaign: Campaign, check: str) -> pl.DataFrame:
    """Return every result of a check's sound launches, a row each.

    Columns are those of docs/reference/tables.md, the launch's wall time as `launch_wall_s`, and
    each parameter of the check as `parameter_NAME`.
    """
    rows: list[dict[str, Any]] = []
    for launch in campaign.sound():
        if launch.record.experiment != check:
            continue
        of_launch = launch_row(launch)
        of_launch["launch_wall_s"] = of_launch.pop("wall_s")
        parameters = {f"parameter_{k}": v for k, v in launch.record.parameters.items()}
        rows += [of_launch | parameters | row for row in result_rows(launch)]
    schema: dict[str, Any] = {**LAUNCHES, **RESULTS, "launch_wall_s": pl.Float64}
    others = {key: None for row in rows for key in row if key not in schema}
    schema |= {key: pl.DataFrame({"x": [r.get(key) for r in rows]}).schema["x"] for key in others}
    return pl.DataFrame(rows, schema)


@dataclass
class TodaysTables:
    """A campaign's tables of one study."""

    paper: Paper
    campaign: Campaign
    frames: dict[str, pl.DataFrame] = field(default_factory=dict)
    #: For each table of `frames` the launches that its rows come from.
    launches: dict[str, list[str]] = field(default_factory=dict)
    rounds: dict[tuple[int, str | None], OneRound] = field(default_factory=dict)

    @property
    def study(self) -> Study:
        """Return the study that declares the tables."""
        return self.paper.study

    def implementations(self, check: str) -> list[str]:
        """Return the implementations that a check has sound launches of."""
        return sorted(
            {
                launch.record.implementation
                for launch in self.campaign.sound()
                if launch.record.experiment == check
            }
        )

    def launched(self, check: str) -> pl.DataFrame:
        """Return every result of a check's sound launches, a row each."""
        return campaign_frame(self.campaign, check)

    @cached_property
    def completed(self) -> Completed:
        """Return the same with stand-ins for launches that an implementation never managed."""
        return Completed(self.paper, self.campaign)

    def base(self, name: str, table: Relation) -> pl.DataFrame:
        """Return all rounds of a table, with the columns `round`, `implementation` and `cell`.

        Where the study says what stands for what, the column `mpi` has the report's name and
        implementations that stand for nothing are left out. Raises NotMeasuredError where
        Wyeast measures nothing like the table.
        """
        if table.today is None:
            raise NotMeasuredError(f"nothing measured gives the table {name}")
        if name in self.frames:
            return self.frames[name]
        check = self.study.experiments[table.today.experiment].check
        frame = self.launched(check)
        with naming(f"{self.paper.folder / 'study.yaml'}: tables.{name}.today"):
            if self.study.stands_for:
                found = families(self.study, self.implementations(check))
                names = {name: family for family, name in found.items()}
                frame = frame.with_columns(
                    pl.col("implementation")
                    .replace_strict(names, default=None, return_dtype=pl.String)
                    .alias("mpi")
                ).filter(pl.col("mpi").is_not_null())
            if not frame.is_empty():
                if table.today.where:
                    frame = frame.filter(expression(table.today.where))
                self.launches[name] = frame["launch"].unique(maintain_order=True).to_list()
                frame = frame.select(
                    "round",
                    "implementation",
                    "cell",
                    *(expression(text).alias(key) for key, text in table.today.columns.items()),
                )
        self.frames[name] = frame
        return frame

    def in_round(self, number: int, implementation: str | None = None) -> OneRound:
        """Return the tables of a round, derived once for all statements and exhibits."""
        key = (number, implementation)
        if key not in self.rounds:
            self.rounds[key] = OneRound(self, number, implementation)
        return self.rounds[key]

    def cells(self, name: str) -> pl.DataFrame:
        """Return a base table without the columns of what was measured: its cells, by round.

        The check's own cell is among them, so that a launch that is missing shows also where the
        table has no column for what told it from the others.
        """
        frame = self.base(name, self.study.tables[name])
        return frame.select(
            [column for column, kind in frame.schema.items() if not kind.is_float()]
        )


class Completed(TodaysTables):
    """A campaign's tables as if each implementation had every cell that another one has.

    Where it has no sound launch of a cell in any round, the other's results stand in. They are no
    measurement: they tell which numbers there would be, and never what they are.
    """

    def launched(self, check: str) -> pl.DataFrame:
        """Return every result of a check's sound launches, and those that stand in."""
        frame = super().launched(check)
        pairs = frame.select("implementation", "cell").unique(maintain_order=True)
        donors = pairs.group_by("cell", maintain_order=True).first()
        lacking = (
            pairs.select("implementation").unique(maintain_order=True)
            .join(donors.rename({"implementation": "donor"}), how="cross")
            .join(pairs, on=["implementation", "cell"], how="anti")
        )  # fmt: skip
        parts = [
            frame.filter(
                pl.col("cell") == cell, pl.col("implementation") == donor
            ).with_columns(pl.lit(implementation).alias("implementation"))
            for implementation, cell, donor in lacking.select(
                "implementation", "cell", "donor"
            ).iter_rows()
        ]  # fmt: skip
        return pl.concat([frame, *parts])


@dataclass
class OneRound:
    """A campaign's tables of one round, of all implementations or of one."""

    measured: TodaysTables
    number: int
    implementation: str | None = None
    derived: dict[str, pl.DataFrame] = field(default_factory=dict)

    @property
    def study(self) -> Study:
        """Return the study that declares the tables."""
        return self.measured.study

    def base(self, name: str, table: Relation) -> pl.DataFrame:
        """Return a table's rows of the round."""
        frame = self.measured.base(name, table)
        if frame.is_empty():
            return frame
        frame = frame.filter(pl.col("round") == self.number)
        if self.implementation:
            frame = frame.filter(pl.col("implementation") == self.implementation)
        steps = table.today.steps if table.today else []
        frame = frame.drop("round", "implementation", "cell")
        return after(self, frame, steps, f"study.yaml: tables.{name}.today")


def table_of(source: TableSource, name: str) -> pl.DataFrame:
    """Return a declared table after its steps, which are taken once for all that ask for it."""
    if name not in source.derived:
        table = source.study.tables[name]
        frame = table_of(source, table.of) if table.of else source.base(name, table)
        source.derived[name] = after(source, frame, table.steps, f"study.yaml: tables.{name}")
    return source.derived[name]


def after(source: TableSource, frame: pl.DataFrame, steps: list[Step], where: str) -> pl.DataFrame:
    """Return a table after steps; raise StudyError that begins with `where`."""
    for number, step in enumerate(steps, 1):
        with naming(f"{where}.steps, the {number}. step"):
            if not frame.is_empty():
                frame = one_step(source, frame, step)
    return frame


def refuse_several(frame: pl.DataFrame, key: list[str]) -> None:
    """Raise DuplicateError if several rows would go into one place of a table side by side."""
    several = frame.filter(frame.select(key).is_duplicated())
    if not several.is_empty():
        place = ", ".join(f"{name} {several[name][0]}" for name in key)
        raise pl.exceptions.DuplicateError(
            f"side_by_side: several rows have {place}; name the column that tells them apart in "
            "rows, or keep one of them by where"
        )


def one_step(source: TableSource, frame: pl.DataFrame, step: Step) -> pl.DataFrame:
    """Return a table after one step."""
    if step.where:
        return frame.filter(expression(step.where))
    if step.derive:
        # One after the other, so that a column may use the one before it.
        for name, text in step.derive.items():
            frame = frame.with_columns(expression(text).alias(name))
        return frame
    if step.side_by_side:
        of = step.side_by_side
        refuse_several(frame, [*of.rows, of.by])
        return frame.pivot(
            of.by, index=of.rows, values=of.of, aggregate_function="first", maintain_order=True
        )
    if step.group:
        aggregates = [expression(text).alias(name) for name, text in step.group.of.items()]
        if not step.group.by:
            return frame.select(aggregates)
        return frame.group_by(step.group.by, maintain_order=True).agg(aggregates)
    if step.join:
        other = table_of(source, step.join.table)
        if other.is_empty():
            return frame.clear()
        return frame.join(other, on=step.join.match, suffix="_joined", maintain_order="left")
    if step.fill_down:
        return frame.with_columns(pl.col(step.fill_down).forward_fill())
    names = [part.strip() for part in str(step.sort).split(",")]
    return frame.sort(
        [expression(name.removesuffix(" desc")) for name in names],
        descending=[name.endswith(" desc") for name in names],
        nulls_last=True,
        maintain_order=True,
    )


def rows_for(
    source: TableSource, frame: pl.DataFrame, quantity: Quantity, where: str
) -> pl.DataFrame:
    """Return the rows that a quantity is computed from."""
    if quantity.where and not frame.is_empty():
        with naming(f"{where}.where"):
            frame = frame.filter(expression(quantity.where))
    return after(source, frame, quantity.steps, where)


def quantity_of(
    source: TableSource, quantity: Quantity, known: Mapping[str, CellValue], where: str
) -> CellValue:
    """Return a quantity's value; `known` has the quantities before it.

    None means that the table has nothing to compute it of. Raises StudyError that begins with
    `where` for an expression that cannot be computed at all.
    """
    if quantity.from_ is not None:
        if any(known[name] is None for name in quantity.from_):
            return None
        frame = pl.DataFrame({name: [known[name]] for name in quantity.from_})
    else:
        frame = table_of(source, str(quantity.of))
    frame = rows_for(source, frame, quantity, where)
    if frame.is_empty():
        return None
    with naming(f"{where}.value"):
        found = frame.select(expression(str(quantity.value)).alias("value"))["value"]
    if len(found) != 1:
        raise StudyError(f"{where}.value: gives {len(found)} values, not one: {quantity.value}")
    value = found[0]
    if value is None or isinstance(value, str):
        return value
    number = float(value)
    return None if number != number or abs(number) == float("inf") else number


def cells_of(source: TableSource, quantity: Quantity, where: str) -> Cells:
    """Return the numbers of a quantity of many cells; a cell that lacks one is left out.

    Raises StudyError that begins with `where` for an expression that cannot be computed, or that
    gives several numbers for one cell.
    """
    by = quantity.each or []
    frame = rows_for(source, table_of(source, str(quantity.of)), quantity, where)
    if frame.is_empty():
        return {}
    names = [f"value {number}" for number in range(len(quantity.expressions()))]
    values = [
        expression(text).alias(name)
        for name, text in zip(names, quantity.expressions(), strict=True)
    ]
    with naming(f"{where}.value"):
        grouped = frame.group_by(by, maintain_order=True).agg(values)
    found: Cells = {}
    for row in grouped.iter_rows(named=True):
        cell = ", ".join(f"{name} {row[name]}" for name in by)
        # An expression that is no aggregate gives a list, of one number where a cell is one row.
        several = [row[name] if isinstance(row[name], list) else [row[name]] for name in names]
        if any(len(one) != 1 for one in several):
            raise StudyError(f"{where}.value: gives several values for {cell}; each lacks a column")
        numbers = [one[0] for one in several]
        if all(number is not None and math.isfinite(number) for number in numbers):
            found[cell] = tuple(float(number) for number in numbers)
    return found
