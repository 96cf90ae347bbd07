"""Everything about one cell on the terminal: medians, ratios, its launches, and where they are."""

from __future__ import annotations

from analysis.clock_limited import limited_table
from analysis.comparison import Cell, Comparison
from analysis.data_tables import DIGEST_SIGNS, FORMULA, digests
from analysis.figures import prefixed
from analysis.launch_names import cell_name
from analysis.metrics import metrics
from analysis.report import interval_text, p_text
from analysis.text_table import TextTable


def median_table(cell: Cell) -> TextTable:
    """Return the median of every implementation at every message size."""
    about = metrics()[cell.experiment]
    rows: list[tuple[str, ...]] = [
        (
            name, str(one.message_bytes), prefixed(one.median, about["unit"]),
            interval_text(one.interval, about["unit"]), f"{one.interval.coverage:.1%}",
            str(len(one.launches)),
        )
        for name, estimates in cell.estimates.items()
        for one in estimates
    ]  # fmt: skip
    columns = ("implementation", "bytes", about["metric"], "interval", "it covers", "launches")
    notes = [f"Median over launches of: {about['formula']}. Better is {about['better']}."]
    if cell.oversubscribed:
        notes.append("More ranks than processors: this cell is in no answer.")
    return TextTable(f"{cell.name}: medians", columns, rows, 1, notes)


def ratio_table(cell: Cell) -> TextTable:
    """Return the ratio of every implementation to the base, with its p values and verdict."""
    rows: list[tuple[str, ...]] = [
        (
            f"{name} / {verdict.base}", verdict.words, verdict.ratio.words,
            interval_text(verdict.ratio.interval), p_text(verdict.ratio.p_value),
            p_text(verdict.adjusted_p), f"{verdict.margin:.3g}",
            p_text(verdict.adjusted_equivalence_p), str(verdict.ratio.pairs),
        )
        for name, verdict in cell.verdicts.items()
    ]  # fmt: skip
    columns = ("implementations", "verdict", "ratio", "95% interval", "p", "corrected", "margin",
               "equivalence p, corrected", "paired rounds")  # fmt: skip
    notes = [f"{FORMULA}; above 1 is better. Corrected for all cells of {cell.experiment}."]
    return TextTable(f"{cell.name}: ratios", columns, rows, 2, notes)


def launch_table(comparison: Comparison, cell: Cell) -> TextTable:
    """Return the launches of a cell in order of rounds, those that were left out too."""
    campaign, unit = comparison.campaign, metrics()[cell.experiment]["unit"]
    rows: list[tuple[str, ...]] = []
    own = [one for one in campaign.launches if one.record.cell == cell_name(cell)]
    for one in sorted(own, key=lambda one: (one.record.round, one.record.implementation)):
        record = one.record
        values = cell.values.get(record.implementation, {}).get(record.round, {})
        value = prefixed(values[max(values)], unit) if values and one.output else "–"
        rows.append((
            record.implementation, record.launch, record.outcome, record.started_utc,
            record.image_sha256[:DIGEST_SIGNS], str(record.round), value,
        ))  # fmt: skip
    columns = ("implementation", "launch", "outcome", "started", "image sha256", "round", "value")
    images = {name for name in cell.estimates if name in digests(campaign)}
    notes = [
        f"Each in {campaign.path / 'launches'}: what it printed is `stdout`, how it ran "
        "`launch.json`. The value of several message sizes is that of the largest.",
        *(f"{name}: sha256 {digests(campaign)[name]}" for name in sorted(images)),
        *(f"{one.record.launch}: {one.record.sentence}" for one in own if one.record.sentence),
    ]
    return TextTable(f"{cell.name}: launches", columns, rows, 5, notes)


def cell_tables(comparison: Comparison, cell: Cell) -> list[TextTable]:
    """Return the tables of a cell: medians, ratios and limited points if any, and launches."""
    ratios = [ratio_table(cell)] if cell.verdicts else []
    limited = [table] if (table := limited_table(comparison, cell.name)) else []
    return [median_table(cell), *ratios, *limited, launch_table(comparison, cell)]
