"""A campaign's answers in Markdown, short enough for a merge request."""

from __future__ import annotations

import re

from analysis.comparison import Comparison
from analysis.data_tables import digests
from analysis.exports import plain
from analysis.ranking import ranked
from analysis.report import answer, tally


def markdown_cell(value: object) -> str:
    """Return a value as text in a cell of a Markdown table."""
    text = " ".join(plain(value).split())
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", text)


def markdown_table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [
        f"| {' | '.join(map(markdown_cell, columns))} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(map(markdown_cell, row))} |" for row in rows),
    ]


def markdown(comparison: Comparison) -> str:
    """Return the summary for a merge request: answers, ranks, what was left out."""
    campaign = comparison.campaign
    manifest = campaign.manifest
    lines = [f"# Which MPI is faster on {markdown_cell(manifest['site'])}?", ""]
    none = ["Nothing can be compared: fewer than two implementations have sound launches."]
    lines += [f"- {markdown_cell(sentence)}" for sentence in answer(comparison) or none]
    columns = (
        "rank", "implementation", "cells", f"ratio to {comparison.base}", "95% interval", "verdict",
    )  # fmt: skip
    for group in comparison.groups:
        lines += ["", f"## {markdown_cell(group.name)}", ""]
        lines += markdown_table(columns, ranked(group, comparison.base))
    if sentences := tally(comparison):
        lines += ["", "## Cell by cell", "", *(f"- {markdown_cell(one)}" for one in sentences)]
    lines += ["", "## Left out", ""]
    lines += [
        f"- {markdown_cell(one.where)}: {markdown_cell(one.sentence)}" for one in campaign.problems
    ] or ["Nothing: every launch was sound and readable."]
    lines += ["", f"Campaign {markdown_cell(campaign.path.name)}. Images:", ""]
    lines += [f"- {markdown_cell(name)}: sha256 {one}" for name, one in digests(campaign).items()]
    return "\n".join(lines) + "\n"
