"""JUnit's XML, for what reads the results of tests."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from analysis.tables.csv import plain
from records.files import write_whole


@dataclass(frozen=True)
class Case:
    """A case of a JUnit file: passed with words, or failed, broken or skipped with them."""

    name: str
    group: str
    tag: Literal["failure", "error", "skipped", "system-out"]
    words: str


def write_cases(path: Path, name: str, cases: Sequence[Case]) -> None:
    """Write cases as a JUnit file; raises OSError."""
    counted = {tag: str(sum(case.tag == tag for case in cases))
               for tag in ("failure", "skipped", "error")}  # fmt: skip
    suite = ElementTree.Element(
        "testsuite", name=plain(name), tests=str(len(cases)),
        failures=counted["failure"], skipped=counted["skipped"], errors=counted["error"],
    )  # fmt: skip
    for case in cases:
        words = plain(case.words)
        element = ElementTree.SubElement(
            suite, "testcase", classname=plain(case.group),
            name=plain(case.name),
        )  # fmt: skip
        if case.tag == "system-out":
            ElementTree.SubElement(element, case.tag).text = words
        else:
            ElementTree.SubElement(element, case.tag, message=words)
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode")
    write_whole(path, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n')
