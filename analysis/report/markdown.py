"""A campaign's answers in Markdown, short enough for a merge request."""

from __future__ import annotations

from analysis.comparison.answer import answer, tally
from analysis.comparison.ranking import ranked
from analysis.comparison.result import Comparison
from analysis.tables.markdown import markdown_cell, markdown_table
from analysis.tables.table import digests


def markdown(comparison: Comparison) -> str:
    """Return the summary for a merge request: answers, ranks, what was left out."""
    campaign = comparison.campaign
    manifest = campaign.manifest
    lines = [f"# Which MPI is faster on {markdown_cell(manifest.site)}?", ""]
    none = ["Nothing can be compared: fewer than two implementations have sound launches."]
    lines += [f"- {markdown_cell(sentence)}" for sentence in answer(comparison) or none]
    for group in comparison.groups:
        lines += ["", f"## {markdown_cell(group.name)}", ""]
        lines += markdown_table(ranked(group, comparison.base))
    if sentences := tally(comparison):
        lines += ["", "## Cell by cell", "", *(f"- {markdown_cell(one)}" for one in sentences)]
    lines += ["", "## Left out", ""]
    lines += [
        f"- {markdown_cell(one.where)}: {markdown_cell(one.sentence)}" for one in campaign.problems
    ] or ["Nothing: every launch was sound and readable."]
    lines += ["", f"Campaign {markdown_cell(campaign.path.name)}. Images:", ""]
    lines += [f"- {markdown_cell(name)}: sha256 {one}" for name, one in digests(campaign).items()]
    return "\n".join(lines) + "\n"
