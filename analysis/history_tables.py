"""The tables of campaigns against each other and in time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from analysis.campaign_comparison import CampaignComparison, Row
from analysis.figures import prefixed
from analysis.history import Series, what_changed
from analysis.metrics import metrics
from analysis.report import in_words, interval_text
from analysis.text_table import TextTable
from analysis.verdict import percent

BARS = "▁▂▃▄▅▆▇█"
MOST_BARS = 24


def comparison_table(found: CampaignComparison) -> TextTable:
    """Return the ratios of every cell of two campaigns."""
    columns = ("cell", "implementation", "ratio", "95% interval", "launches", "verdict")
    rows: list[tuple[str, ...]] = [
        (
            row.cell, row.verdict.implementation, row.verdict.ratio.words,
            interval_text(row.verdict.ratio.interval), row.verdict.ratio.counted, row.verdict.words,
        )
        for row in found.rows
    ]  # fmt: skip
    title = f"{found.after.path.name} over {found.before.path.name}"
    notes = ["Above 1: the later named campaign is better. Verdicts are corrected for all cells "
             "of an experiment, the intervals are not. What differs from one day to the next is "
             "in these ratios: python -m analysis history."]  # fmt: skip
    return TextTable(title, columns, rows, 2, notes)


def group_sentences(found: CampaignComparison) -> list[str]:
    """Return the answer in words, a sentence for each group of cells and implementation."""
    return [group_sentence(row) for row in found.groups]


def group_sentence(row: Row) -> str:
    """Return what a group of cells says."""
    verdict = row.verdict
    cells = "1 cell" if row.cells == 1 else f"{row.cells} cells"
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


def history_table(series: Sequence[Series], most: int) -> TextTable:
    """Return a row for each series, those that changed first: its length, level and change."""
    columns = (
        "site",
        "cell",
        "implementation",
        "campaigns",
        "median since",
        "last ones",
        "last change",
    )
    rows: list[tuple[str, ...]] = []
    ordered = sorted(series, key=lambda one: (not one.changes, -len(one.levels)))
    for one in ordered[:most]:
        metric = metrics()[one.experiment]
        last = one.changes[-1] if one.changes else None
        rows.append((
            f"{one.site} {one.tier}", one.cell, one.implementation, str(len(one.levels)),
            prefixed(one.median, metric["unit"]), bars(one.levels),
            f"{better_or_worse(last.ratio)} from {last.since}" if last else "none shown"
            if one.can_show else "too few to tell",
        ))  # fmt: skip
    short = sum(not one.can_show for one in series)
    notes = [
        "A series is one cell and implementation at one site and tier, in order of time; bars are "
        f"its last {MOST_BARS} campaigns, from the least to the largest. "
        f"{len(rows)} of {len(series)} series are shown."
    ]
    if short:
        notes.append(
            f"{short} of {len(series)} series are too short to show any change at all, however "
            "large. Narrow the question with --site, "
            "--experiment or --cell, or measure more campaigns."
        )
    return TextTable(f"History of {len(series)} series", columns, rows, 3, notes)


def better_or_worse(ratio: float) -> str:
    """Return a change of level in words."""
    return f"{'better' if ratio > 1 else 'worse'} by {percent(max(ratio, 1 / ratio) - 1)}"


def change_sentences(runs: Path, series: Sequence[Series], least: float) -> list[str]:
    """Return every change of at least that size, as a share, with what else changed there."""
    sentences = []
    for one in series:
        for change in one.changes:
            if max(change.ratio, 1 / change.ratio) - 1 < least:
                continue
            # Below what is drawn by chance p is a bound for normal values, of which the size of
            # the exponent says nothing.
            chance = f"p = {change.p_value:.1g}" if change.p_value >= 1e-4 else "p below 0.0001"
            also = what_changed(runs, change, one.implementation)
            sentences.append(
                f"{one.cell}, {one.implementation} ({one.site} {one.tier}): "
                f"{better_or_worse(change.ratio)} from {change.since} on, "
                f"{chance}; between it and {change.before} changed: "
                f"{', '.join(also) if also else 'nothing that the manifests tell'}"
            )
    return sentences
