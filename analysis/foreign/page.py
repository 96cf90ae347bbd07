"""A judgement as Markdown, and as an HTML page that runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from analysis.tables.csv import plain
from analysis.tables.markdown import markdown_cell, markdown_table
from analysis.tables.pages import page_environment
from analysis.tables.table import Table
from records.counting import how_many


@dataclass(frozen=True)
class ToldJudgement:
    """All that is told of a judgement: `sets` are what each is called, its path and its runs."""

    table: Table
    sets: Sequence[tuple[str, str, int]]
    answer: Sequence[str]
    changes: Sequence[str] = field(default_factory=list)
    left_out: Sequence[str] = field(default_factory=list)


def html(told: ToldJudgement) -> str:
    """Return the page."""
    return page_environment(__file__).get_template("judgement.html").render(
        table=told.table,
        sets=[(side, plain(path), count) for side, path, count in told.sets],
        answer=list(map(plain, told.answer)),
        changes=list(map(plain, told.changes)),
        left_out=list(map(plain, told.left_out)),
    )  # fmt: skip


def markdown(told: ToldJudgement) -> str:
    """Return the same for a merge request."""
    lines = [f"# {markdown_cell(told.table.title)}", ""]
    lines += [
        f"- {side}: {markdown_cell(path)}, {how_many(count, 'run')}"
        for side, path, count in told.sets
    ]
    lines += ["", *(f"- {markdown_cell(sentence)}" for sentence in told.answer), ""]
    lines += markdown_table(told.table)
    for title, sentences in (("Changes of level", told.changes), ("Left out", told.left_out)):
        if sentences:
            lines += ["", f"## {title}", "", *(f"- {markdown_cell(one)}" for one in sentences)]
    lines += ["", *(markdown_cell(note) for note in told.table.notes)]
    return "\n".join(lines) + "\n"
