"""Whether a campaign is worse than another, or than its history: for people, for CI, as JUnit."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from analysis.campaign_comparison import Row
from analysis.comparison import Verdict, correct, percent
from analysis.report import interval_text

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


def tested(rows: Sequence[Row], margin: float | None) -> list[Tested]:
    """Return what is worse: by more than the margin, and shown after Holm's correction over all.

    `margin` None is each metric's own (metrics.yaml).
    """
    correct([row.verdict for row in rows])
    return [
        Tested(row, outcome(row.verdict, allowed), allowed)
        for row in rows
        for allowed in [row.verdict.margin if margin is None else margin]
    ]


def outcome(verdict: Verdict, margin: float) -> Outcome:
    """Return what a verdict whose ratio is above 1 where the new one is better says."""
    if verdict.adjusted_p is None:
        return "cannot be told"
    worse = verdict.ratio.value < 1 / (1 + margin)
    return "regression" if verdict.is_different and worse else "none shown"


def without_control(text: str) -> str:
    """Return a text without the characters that XML does not have, whoever wrote them."""
    return "".join(character if character.isprintable() else "?" for character in text)


def write_junit(path: Path, name: str, found: Sequence[Tested]) -> None:
    """Write a JUnit file: a case for each cell and implementation; raises OSError."""
    failures = sum(one.outcome == "regression" for one in found)
    skipped = sum(one.outcome == "cannot be told" for one in found)
    suite = ElementTree.Element(
        "testsuite", name=without_control(name), tests=str(len(found)), failures=str(failures),
        skipped=str(skipped), errors="0",
    )  # fmt: skip
    for one in found:
        words = without_control(one.sentence)
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"{one.row.experiment}.{one.row.verdict.implementation}",
            name=without_control(one.row.cell),
        )  # fmt: skip
        if one.outcome == "regression":
            ElementTree.SubElement(case, "failure", message=words)
        elif one.outcome == "cannot be told":
            ElementTree.SubElement(case, "skipped", message=words)
        else:
            ElementTree.SubElement(case, "system-out").text = words
    ElementTree.indent(suite)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
