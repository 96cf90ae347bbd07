"""Whether a campaign is worse than another, or than its history: for people, for CI, as JUnit."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from analysis.campaign_comparison import Row
from analysis.lost_cells import Untold
from analysis.report import interval_text
from analysis.verdict import ALPHA, Verdict, correct, percent
from analysis.whole_file import write_whole

Outcome = Literal["regression", "none shown", "cannot be told"]


@dataclass(frozen=True)
class Tested:
    """A row with what was found; `margin` is by how much worse, as a share, is too much."""

    row: Row
    outcome: Outcome
    margin: float

    @property
    def sentence(self) -> str:
        """Return what was found, in words."""
        verdict = self.row.verdict
        if self.outcome == "cannot be told":
            return f"{verdict.words}, against {verdict.base}"
        return (
            f"ratio {verdict.ratio.value:.3f} to {verdict.base}, 95% interval "
            f"{interval_text(verdict.ratio.interval)}, p = {verdict.adjusted_p:.2g} corrected, "
            f"{verdict.ratio.counted}; {verdict.words}; worse by more than "
            f"{percent(self.margin)} would be a regression"
        )


def tested(rows: Sequence[Row], margin: float | None, level: float = ALPHA) -> list[Tested]:
    """Return what is worse: by more than the margin, and shown after Holm's correction over all.

    `margin` None is each metric's own (metrics.yaml); `level` is the chance of any false one.
    """
    correct([row.verdict for row in rows])
    return [
        Tested(row, outcome(row.verdict, allowed, level), allowed)
        for row in rows
        for allowed in [row.verdict.margin if margin is None else margin]
    ]


def outcome(verdict: Verdict, margin: float, level: float = ALPHA) -> Outcome:
    """Return what a verdict whose ratio is above 1 where the new one is better says."""
    if verdict.adjusted_p is None:
        return "cannot be told"
    if verdict.adjusted_p < level and verdict.ratio.value < 1 / (1 + margin):
        return "regression"
    return "none shown" if verdict.is_told else "cannot be told"


def without_control(text: str) -> str:
    """Return a text without the characters that XML does not have, whoever wrote them."""
    return "".join(character if character.isprintable() else "?" for character in text)


def write_junit(
    path: Path, name: str, found: Sequence[Tested],
    refused: Sequence[Untold] = (), lost: Sequence[Untold] = (),
) -> None:  # fmt: skip
    """Write a JUnit file: a case for each cell and implementation; raises OSError.

    What is refused is skipped, with all its reasons in one case; what is lost is an error.
    """
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in refused:
        reasons[one.cell, f"{one.experiment}.{one.implementation}"].append(one.sentence)
    write_cases(
        path, name,
        [
            *(Case(one.row.cell, f"{one.row.experiment}.{one.row.verdict.implementation}",
                   TAGS[one.outcome], one.sentence) for one in found),
            *(Case(cell, group, "skipped", f"not compared: {'; '.join(said)}")
              for (cell, group), said in reasons.items()),
            *(Case(one.cell, f"{one.experiment}.{one.implementation}", "error",
                   f"not measured: {one.sentence}") for one in lost),
        ],
    )  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A case of a JUnit file: passed with words, or failed, broken or skipped with them."""

    name: str
    group: str
    tag: Literal["failure", "error", "skipped", "system-out"]
    words: str


TAGS: dict[Outcome, Literal["failure", "skipped", "system-out"]] = {
    "regression": "failure", "cannot be told": "skipped", "none shown": "system-out",
}  # fmt: skip


def write_cases(path: Path, name: str, cases: Sequence[Case]) -> None:
    """Write cases as a JUnit file; raises OSError."""
    counted = {tag: str(sum(case.tag == tag for case in cases))
               for tag in ("failure", "skipped", "error")}  # fmt: skip
    suite = ElementTree.Element(
        "testsuite", name=without_control(name), tests=str(len(cases)),
        failures=counted["failure"], skipped=counted["skipped"], errors=counted["error"],
    )  # fmt: skip
    for case in cases:
        words = without_control(case.words)
        element = ElementTree.SubElement(
            suite, "testcase", classname=without_control(case.group),
            name=without_control(case.name),
        )  # fmt: skip
        if case.tag == "system-out":
            ElementTree.SubElement(element, case.tag).text = words
        else:
            ElementTree.SubElement(element, case.tag, message=words)
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode")
    write_whole(path, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n')
