"""A study as one HTML page, as Markdown, and as tables for the terminal."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from analysis.studies.exhibits import Shown, show
from analysis.studies.one_number import FAILS, HOLDS, IN_PART, UNTOLD
from analysis.studies.origins import Origins, study_tables
from analysis.studies.reading import Paper
from analysis.studies.relations import Report, TodaysTables, families
from analysis.studies.verdicts import Evaluated
from analysis.tables.csv import downloads_of
from analysis.tables.pages import page_environment
from analysis.tables.table import PREFIXED, Column, Printed, Row, Table, file_name
from records.campaign import manifest_of_nodes
from records.counting import how_many
from records.files import write_whole

#: What is said of a claim with each verdict, and of several.
IN_WORDS = {
    HOLDS: ("holds", "hold"),
    IN_PART: ("holds in part", "hold in part"),
    FAILS: ("does not hold", "do not hold"),
    UNTOLD: ("is inconclusive", "are inconclusive"),
}
#: The class of the sign before each verdict; what a test needs has none.
CLASSES = {HOLDS: "holds", IN_PART: "in-part", FAILS: "fails", UNTOLD: "inconclusive"}
SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#])")


def markdown(text: object) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    return SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def tally(evaluated: list[Evaluated]) -> list[str]:
    """Return how many claims have each verdict, a sentence for each source."""
    sentences = []
    answers = {
        "By the report's own tables": [one.report for one in evaluated],
        "Here": [one.here for one in evaluated if one.here],
    }
    for whose, found in answers.items():
        count = Counter(answer.verdict for answer in found)
        if found:
            told = [how_many(count[verdict], *words) for verdict, words in IN_WORDS.items()]
            claims = how_many(len(found), "claim")
            sentences.append(f"{whose}: {claims}, of which {', '.join(told)}.")
    return sentences


def standing(paper: Paper, measured: TodaysTables | None) -> list[tuple[str, str, str]]:
    """Return what stands for what: the report's name, today's implementation, and why."""
    return [
        (family, standing_for(family, measured) if measured else "–", one.because)
        for family, one in paper.study.stands_for.items()
    ]


def standing_for(family: str, measured: TodaysTables) -> str:
    """Return what the verdicts take for an implementation of the report, with the checks.

    An image of the campaign may have no sound launch of a check, and then another stands there.
    """
    checks: dict[str, list[str]] = {}
    for check in dict.fromkeys(one.check for one in measured.study.experiments.values()):
        images = measured.implementations(check)
        if images:
            name = families(measured.study, images).get(family, "nothing")
            checks.setdefault(name, []).append(check)
    if not checks or list(checks) == ["nothing"]:
        return "nothing in this campaign"
    if len(checks) == 1:
        return next(iter(checks))
    return "; ".join(f"{name} ({', '.join(of)})" for name, of in checks.items())


def write_pages(
    paper: Paper, measured: TodaysTables | None, evaluated: list[Evaluated], pages: dict[Path, str]
) -> None:
    """Write a study by templates: path -> name of the template."""
    report = Report(paper)
    shown = [show(exhibit, report, measured) for exhibit in paper.study.exhibits]
    manifest = manifest_of_nodes(measured.campaign) if measured else None
    origins = Origins(measured) if measured else None
    downloads = downloads_of(study_tables(paper, shown, origins))
    environment = page_environment(__file__, markdown=markdown)
    for path, template in pages.items():
        text = environment.get_template(template).render(
            paper=paper,
            study=paper.study,
            campaign=measured.campaign if measured else None,
            manifest=manifest,
            rounds=len({x.record.round for x in measured.campaign.sound()}) if measured else 0,
            evaluated=evaluated,
            classes=CLASSES,
            tally=tally(evaluated),
            exhibits=shown,
            standing=standing(paper, measured),
            traces=origins,
            downloads=downloads,
            file_name=file_name,
        )
        write_whole(path, text)


def exhibit_tables(paper: Paper, measured: TodaysTables | None) -> list[Table]:
    """Return a study's tables and figures for the terminal, the figures as their numbers."""
    report = Report(paper)
    return [shown_table(show(exhibit, report, measured)) for exhibit in paper.study.exhibits]


def shown_table(shown: Shown) -> Table:
    """Return an exhibit as the report has it, a column for each of the report's."""
    exhibit = shown.exhibit
    notes = [note for note in (exhibit.note, exhibit.absent) if note]
    rows = [
        Row((*key, *(Printed(cell.number and cell.number.value, cell.text) for cell in cells)))
        for key, cells in shown.rows
    ]
    columns = (
        *(Column(file_name(name), name) for name in shown.keys),
        *(Column(file_name(name), name, PREFIXED) for name in shown.columns),
    )
    title = f"{exhibit.number}: {exhibit.title}"
    none = (Column("not-shown", "not shown", PREFIXED),)
    return Table(file_name(exhibit.number), title, columns or none, rows, notes)
