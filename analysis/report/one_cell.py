"""Everything about one cell on the terminal: medians, ratios, its launches, and where they are."""

from __future__ import annotations

from dataclasses import replace

from analysis.comparison.caveats.limited import limited_tables
from analysis.comparison.metrics import metrics
from analysis.comparison.result import Cell, Comparison
from analysis.comparison.tables import FORMULA, median_table, ratio_table
from analysis.tables.table import (
    COUNT,
    DIGEST_CHARACTERS,
    PREFIXED,
    Column,
    Row,
    Table,
    digests,
)


def medians_of(comparison: Comparison, cell: Cell) -> Table:
    """Return the median of every implementation at every message size."""
    about = metrics()[cell.experiment]
    notes = [f"Median over launches of: {about['formula']}. Better is {about['better']}."]
    if cell.oversubscribed:
        notes.append("More ranks than processors: this cell is excluded from all answers.")
    table = median_table(comparison, cell.experiment, [cell])
    return replace(table, title=f"{cell.name}: medians", notes=notes)


def ratios_of(comparison: Comparison, cell: Cell) -> Table:
    """Return the ratio of every implementation to the base, with its p values and verdict."""
    notes = [
        f"{FORMULA}; above 1 is better. The verdict and the simultaneous interval are corrected "
        f"for all cells and groups of {cell.experiment}; the ratio's own is not."
    ]
    table = ratio_table(comparison, cell.experiment, [cell]).view(
        "implementations", "verdict", "ratio", "ratio_interval", "own_interval", "p",
        "p_adjusted", "margin", "p_equivalence_adjusted", "paired_rounds",
    )  # fmt: skip
    return replace(table, title=f"{cell.name}: ratios", notes=notes)


def launches_of(comparison: Comparison, cell: Cell) -> Table:
    """Return the launches of a cell in order of rounds, including those left out."""
    campaign, unit = comparison.campaign, metrics()[cell.experiment]["unit"]
    rows = []
    own = [one for one in campaign.launches if one.record.cell == cell.launch_cell]
    for one in sorted(own, key=lambda one: (one.record.round, one.record.implementation)):
        record = one.record
        values = cell.values.get(record.implementation, {}).get(record.round, {})
        value = values[max(values)] if values and one.output else None
        shown = (
            record.implementation, record.launch, record.outcome, record.started_utc,
            record.image_sha256[:DIGEST_CHARACTERS], record.round, value,
        )  # fmt: skip
        rows.append(Row(shown, record.implementation, (record.cell,)))
    columns = (
        Column("implementation", "implementation"), Column("launch", "launch"),
        Column("outcome", "outcome"), Column("started_utc", "started"),
        Column("image", "image sha256"), Column("round", "round", COUNT),
        Column("value", "value", PREFIXED, unit),
    )  # fmt: skip
    images = {name for name in cell.estimates if name in digests(campaign)}
    notes = [
        f"What one printed: python -m analysis raw {campaign.path.name} <launch>; how it ran: the "
        "same with launch.json at the end. For several message sizes the value is that of the "
        "largest.",
        *(f"{name}: sha256 {digests(campaign)[name]}" for name in sorted(images)),
        *(f"{one.record.launch}: {one.record.sentence}" for one in own if one.record.sentence),
    ]
    return Table("launches-of-a-cell", f"{cell.name}: launches", columns, rows, notes)


def cell_tables(comparison: Comparison, cell: Cell) -> list[Table]:
    """Return the tables of a cell: medians, ratios and limited points if any, and launches."""
    ratios = [ratios_of(comparison, cell)] if cell.verdicts else []
    return [
        medians_of(comparison, cell),
        *ratios,
        *limited_tables(comparison, cell.name),
        launches_of(comparison, cell),
    ]
