"""A campaign as JUnit's XML, which continuous integration shows: what ran, and what failed."""

from __future__ import annotations

from collections import defaultdict
from xml.etree import ElementTree

from analysis.tables.csv import plain
from records.campaign import Campaign


def junit(campaign: Campaign) -> str:
    """Return JUnit's XML: a suite for each experiment, a case for each launch.

    A failed or suspect launch is a failure with its sentence; what could not be read is an error of
    a suite of its own.
    """
    known = {launch.record.launch for launch in campaign.launches}
    suites: dict[str, list[ElementTree.Element]] = defaultdict(list)
    for record in (launch.record for launch in campaign.launches):
        case = ElementTree.Element(
            "testcase", name=plain(f"{record.cell}, round {record.round}"),
            classname=plain(f"{record.experiment}.{record.implementation}"),
            time=f"{record.wall_s or 0.0:.3f}",
        )  # fmt: skip
        if record.outcome != "sound":
            said = plain(record.sentence or "no reason was recorded")
            failure = ElementTree.SubElement(case, "failure", message=said, type=record.outcome)
            failure.text = f"{record.outcome}: {said}"
        suites[record.experiment].append(case)
    for problem in campaign.problems:
        if problem.where not in known:
            case = ElementTree.Element(
                "testcase", name=plain(problem.where), classname="unreadable", time="0.000"
            )
            said = plain(problem.sentence)
            ElementTree.SubElement(case, "error", message=said, type="unreadable").text = said
            suites["what could not be read"].append(case)
    root = ElementTree.Element("testsuites", name=plain(campaign.path.name))
    for name, cases in suites.items():
        counted = {tag: sum(case.find(tag) is not None for case in cases)
                   for tag in ("failure", "error")}  # fmt: skip
        seconds = sum(float(case.get("time", 0)) for case in cases)
        suite = ElementTree.SubElement(
            root, "testsuite", name=plain(name), tests=str(len(cases)),
            failures=str(counted["failure"]), errors=str(counted["error"]), skipped="0",
            time=f"{seconds:.3f}",
        )  # fmt: skip
        suite.extend(cases)
    for name, of in (("tests", "tests"), ("failures", "failures"), ("errors", "errors")):
        root.set(name, str(sum(int(suite.get(of, 0)) for suite in root)))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
