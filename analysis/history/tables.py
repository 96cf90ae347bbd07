"""The tables of campaigns compared with each other and over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from analysis.comparison.answer import in_words, without
from analysis.comparison.metrics import metrics
from analysis.comparison.tables import INTERVAL_OF_VERDICT, of_verdict, verdict_value
from analysis.history.series import Change, Series, what_changed
from analysis.history.two_campaigns import CampaignComparison, ComparedCell
from analysis.tables import table as tables
from analysis.tables.table import (
    COUNT,
    JOINED,
    PREFIXED,
    RATIO,
    Column,
    Table,
    interval,
)
from analysis.tables.units import percent

BARS = "▁▂▃▄▅▆▇█"
MOST_BARS = 24


def comparison_table(found: CampaignComparison) -> Table:
    """Return the ratios of every cell of two campaigns."""
    columns = (
        Column("cell", "cell"), Column("implementation", "implementation"),
        Column("ratio", "ratio", RATIO, "1"), interval("ratio", INTERVAL_OF_VERDICT, "1"),
        Column("launches", "launches"), Column("verdict", "verdict"),
    )  # fmt: skip
    rows = [
        tables.Row(
            (
                row.cell, row.verdict.implementation, *of_verdict(row.verdict)[:2],
                row.verdict.ratio.counted, verdict_value(row.verdict),
            ),
            row.verdict.implementation,
        )
        for row in found.rows
    ]  # fmt: skip
    title = f"{found.after.path.name} over {found.before.path.name}"
    notes = ["Above 1: the campaign named last is better. Verdicts and their intervals are "
             "for all cells and groups of an experiment together. These ratios include "
             "variation from day to day, which python -m analysis history shows."]  # fmt: skip
    return Table("two-campaigns", title, columns, rows, notes)


def group_sentences(found: CampaignComparison) -> list[str]:
    """Return the answer in words, a sentence for each group of cells and implementation."""
    return [group_sentence(row) for row in found.groups]


def group_sentence(row: ComparedCell) -> str:
    """Return the answer for a group of cells."""
    verdict = row.verdict
    cells = "1 cell" if row.cells == 1 else f"{row.cells} cells"
    cells += f", {without(row.left_out)}" if row.left_out else ""
    told = verdict.is_different or verdict.is_equivalent
    return (
        f"{row.cell} ({cells}): {verdict.implementation}{' is' if told else ':'} "
        f"{in_words(verdict)}"
    )


def bars(levels: np.ndarray) -> str:
    """Return the last values of a series as bars, from the least to the largest."""
    last = levels[-MOST_BARS:]
    low, reach = float(last.min()), float(np.ptp(last))
    if reach == 0:
        return BARS[3] * len(last)
    return "".join(BARS[min(7, int(8 * (value - low) / reach))] for value in last)


def history_table(series: Sequence[Series], most: int) -> Table:
    """Return a row for each series, those that changed first: its length, level and change."""
    columns = (
        Column("site", "site", JOINED, fields=("site", "tier")), Column("cell", "cell"),
        Column("implementation", "implementation"), Column("clock", "clock"),
        Column("campaigns", "campaigns", COUNT, "1"),
        Column("unproven", "unproven", COUNT, "1"),
        Column("median", "median since", PREFIXED, "unit"), Column("unit"),
        Column("levels", "last ones"), Column("change", "last change"),
    )  # fmt: skip
    rows: list[tables.Row] = []
    ordered = sorted(series, key=lambda one: (not one.changes, -len(one.levels)))
    for one in ordered[:most]:
        last = one.changes[-1] if one.changes else None
        values = (
            (one.site, one.tier), one.cell, one.implementation, one.clock, len(one.levels),
            one.unproven,
            one.median, metrics()[one.experiment]["unit"], bars(one.levels),
            f"{better_or_worse(last.ratio)} from {last.since}" if last else "none shown"
            if one.can_show else "too few to judge",
        )  # fmt: skip
        rows.append(tables.Row(values, one.implementation))
    short = sum(not one.can_show for one in series)
    notes = [
        "A series is one cell, implementation and clock at one site and tier, in order of time; "
        f"bars are its last {MOST_BARS} campaigns, scaled from the smallest to the largest. "
        f"{len(rows)} of {len(series)} series are shown."
    ]
    if any(one.unproven for one in series):
        notes.append(
            "An unproven campaign may have lost or mixed up launches; make audit says which "
            "these are, and why"
        )
    if short:
        notes.append(
            f"{short} of {len(series)} series are too short to show any change at all, however "
            "large. Narrow the question with --site, "
            "--experiment or --cell, or measure more campaigns."
        )
    return Table("history", f"History of {len(series)} series", columns, rows, notes)


def better_or_worse(ratio: float) -> str:
    """Return a change of level in words."""
    return f"{'better' if ratio > 1 else 'worse'} by {percent(max(ratio, 1 / ratio) - 1)}"


def chance_words(change: Change) -> str:
    """Return how likely a change is by chance.

    Below what is drawn p is a bound for normal values, of which the size of the exponent says
    nothing.
    """
    return f"p = {change.p_value:.1g}" if change.p_value >= 1e-4 else "p below 0.0001"


def change_sentences(runs: Path, series: Sequence[Series], least: float) -> list[str]:
    """Return every change of at least that size, as a fraction, with what else changed then."""
    sentences = []
    for one in series:
        for change in one.changes:
            if max(change.ratio, 1 / change.ratio) - 1 < least:
                continue
            also = what_changed(runs, change, one.implementation)
            sentences.append(
                f"{one.cell}, {one.implementation} ({one.site} {one.tier}): "
                f"{better_or_worse(change.ratio)} from {change.since} on, "
                f"{chance_words(change)}; between it and {change.before} changed: "
                f"{', '.join(also) if also else 'nothing that the manifests record'}"
            )
    return sentences
