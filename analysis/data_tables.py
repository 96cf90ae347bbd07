"""The report's tables as data: units in the headers, in each row where its number is from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from analysis.campaign import Campaign
from analysis.comparison import Comparison
from analysis.launch_names import cell_name
from analysis.metrics import metrics
from analysis.row_launches import RowLaunches
from analysis.text_table import TextTable, file_name
from analysis.verdict import Verdict


@dataclass(frozen=True)
class DataTable:
    """A table by name; a column's unit stands in its header, None is an empty field.

    `cells` are those that each row was measured in, of tables that have no column of it.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    cells: list[tuple[str, ...]] = field(default_factory=list)


#: How much of a digest tells images apart where people read it.
DIGEST_SIGNS = 12


def digests(campaign: Campaign) -> dict[str, str]:
    """Return the images' digests by implementation."""
    images: dict[str, dict[str, str]] = campaign.manifest["images"]
    return {name: image.get("sha256", "") for name, image in images.items()}


def median_table(comparison: Comparison, experiment: str) -> DataTable:
    """Return the medians of an experiment's cells at every message size."""
    about = metrics()[experiment]
    unit, digest = about["unit"], digests(comparison.campaign)
    names = comparison.launch_names
    columns = ("campaign", "cell", "series", "oversubscribed", "implementation", "image_sha256",
               "message_bytes (B)", f"median_{about['metric']} ({unit})", f"interval_low ({unit})",
               f"interval_high ({unit})", "interval_coverage (1)", "launches (1)",
               "launch_names", "formula")  # fmt: skip
    rows = [
        (
            comparison.campaign.path.name, cell_name(cell), cell.series, cell.oversubscribed, name,
            digest.get(name), one.message_bytes, one.median, one.interval.low, one.interval.high,
            one.interval.coverage, len(one.launches), names.of_size(cell, name, one.message_bytes),
            f"median over launches of: {about['formula']}",
        )
        for cell in comparison.experiment(experiment)
        for name, estimates in cell.estimates.items()
        for one in estimates
    ]  # fmt: skip
    return DataTable(f"medians-{experiment}", f"{experiment}: {about['label']}", columns, rows)


VERDICT = ("ratio (1)", "interval_low (1)", "interval_high (1)", "p (1)", "p_adjusted (1)",
           "margin (1)", "p_equivalence_adjusted (1)", "paired_rounds (1)",
           "verdict", "formula")  # fmt: skip
LAUNCHES = ("launch_names", "base_launch_names")
FORMULA = "geometric mean over paired rounds of the ratio to the base, averaged over message sizes"


def verdict_fields(verdict: Verdict) -> tuple[Any, ...]:
    """Return a verdict's fields, as the columns of VERDICT."""
    ratio = verdict.ratio
    low, high = (ratio.interval.low, ratio.interval.high) if ratio.interval else (None, None)
    return (
        ratio.value if ratio.pairs else None, low, high, ratio.p_value, verdict.adjusted_p,
        verdict.margin, verdict.adjusted_equivalence_p, ratio.pairs, verdict.words,
        f"{FORMULA}; above 1 is better",
    )  # fmt: skip


def ratio_table(comparison: Comparison, experiment: str) -> DataTable:
    """Return the ratios to the base, and the verdicts, of an experiment's cells."""
    digest, names = digests(comparison.campaign), comparison.launch_names
    columns = ("campaign", "cell", "series", "oversubscribed", "implementation", "image_sha256",
               "base", "base_image_sha256", *LAUNCHES, *VERDICT)  # fmt: skip
    rows = [
        (
            comparison.campaign.path.name, cell_name(cell), cell.series, cell.oversubscribed,
            name, digest.get(name), verdict.base, digest.get(verdict.base),
            *(names.of(cell, of, cell.log_ratios[name]) for of in (name, verdict.base)),
            *verdict_fields(verdict),
        )
        for cell in comparison.experiment(experiment)
        for name, verdict in cell.verdicts.items()
    ]  # fmt: skip
    title = f"{experiment}: ratios to {comparison.base}"
    return DataTable(f"ratios-{experiment}", title, columns, rows)


def group_table(comparison: Comparison) -> DataTable:
    """Return the answers: one verdict over the cells of each group."""
    digest, names = digests(comparison.campaign), comparison.launch_names
    columns = ("campaign", "group", "cells (1)", "implementation", "image_sha256", "base",
               "base_image_sha256", *LAUNCHES, *VERDICT)  # fmt: skip
    rows = [
        (
            comparison.campaign.path.name, group.name, verdict.cells, name, digest.get(name),
            verdict.base, digest.get(verdict.base),
            *(names.of_group(group.cells, name, of) for of in (name, verdict.base)),
            *verdict_fields(verdict),
        )
        for group in comparison.groups
        for name, verdict in group.verdicts.items()
    ]  # fmt: skip
    return DataTable("answers", f"Answers: against {comparison.base}", columns, rows)


def launch_table(campaign: Campaign) -> DataTable:
    """Return the launches: what ran, in which round, with which image, and what came of it."""
    columns = ("campaign", "launch", "round", "experiment", "cell", "implementation",
               "image_sha256", "ranks (1)", "nodes (1)", "oversubscribed", "started_utc",
               "wall (s)", "outcome", "sentence")  # fmt: skip
    rows = [
        (
            campaign.path.name, r.launch, r.round, r.experiment, r.cell, r.implementation,
            r.image_sha256, r.ranks, r.nodes, r.oversubscribed, r.started_utc, r.wall_s,
            r.outcome, r.sentence,
        )
        for r in (launch.record for launch in campaign.launches)
    ]  # fmt: skip
    return DataTable("launches", "Launches", columns, rows)


def problem_table(campaign: Campaign) -> DataTable:
    """Return what was left out, and why."""
    rows = [(campaign.path.name, one.where, one.sentence) for one in campaign.problems]
    return DataTable("left-out", "Left out", ("campaign", "where", "sentence"), rows)


def place_of_implementation(columns: Sequence[str]) -> int | None:
    """Return which column names the implementation; a report's machines may be in it, too."""
    return next((n for n, name in enumerate(columns) if name.startswith("implementation")), None)


def of_words(table: TextTable, campaign: Campaign) -> DataTable:
    """Return a table of words with its campaign, and the digests of the implementations in it."""
    columns = [column.strip() for column in table.columns]
    # What two columns are called alike belongs to the number before each.
    for number, column in enumerate(columns):
        if columns.count(column) > 1 and number:
            columns[number] = f"{column} of {columns[number - 1]}"
    place = place_of_implementation(columns)
    digest, formula = digests(campaign), " ".join(table.notes)
    rows = [
        (
            campaign.path.name,
            *(None if word == "–" else word for word in row),
            digest.get(row[place]) if place is not None else None,
            formula,
        )
        for row in table.rows
    ]
    heads = ("campaign", *columns, "image_sha256", "formula")
    return DataTable(file_name(table.title), table.title, heads, rows, table.cells)


def data_tables(
    comparison: Comparison, words: Sequence[TextTable] = (), others: Sequence[DataTable] = ()
) -> list[DataTable]:
    """Return every table that is not empty: of `words` those that `others` have no numbers of."""
    campaign = comparison.campaign
    experiments = [name for name in metrics() if comparison.experiment(name)]
    known = {table.name for table in others}
    tables = [
        group_table(comparison),
        *(ratio_table(comparison, name) for name in experiments),
        *(median_table(comparison, name) for name in experiments),
        *others,
        *(of_words(table, campaign) for table in words if file_name(table.title) not in known),
        launch_table(campaign),
        problem_table(campaign),
    ]
    rows = RowLaunches(comparison.launch_names)
    return [with_launches(table, rows) for table in tables if table.rows]


def with_launches(table: DataTable, rows: RowLaunches) -> DataTable:
    """Return a table with the launches of each row, where rows have cells and an implementation.

    One that has them already, or whose rows are launches, is the same.
    """
    columns = list(table.columns)
    of = place_of_implementation(columns)
    named = bool(table.cells) or "cell" in columns
    if not named or of is None or "image_sha256" not in columns:
        return table
    if {"launch", "launch_names"} & set(columns):
        return table
    at = columns.index("image_sha256") + 1
    cells = table.cells or [(str(row[columns.index("cell")] or ""),) for row in table.rows]
    return DataTable(
        table.name, table.title, (*columns[:at], "launch_names", *columns[at:]),
        [
            (*row[:at], " ".join(rows.of_cells(own, row[of])) or None, *row[at:])
            for row, own in zip(table.rows, cells, strict=True)
        ],
    )  # fmt: skip
