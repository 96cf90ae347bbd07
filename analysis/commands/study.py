"""`python -m analysis study`: a report's tables and claims, beside a campaign's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.commands.campaigns import ROOT, PagerOption, campaign_of, fail, not_written

if TYPE_CHECKING:
    from analysis.studies.verdicts import Evaluated
    from records.campaign import Campaign

app = typer.Typer()


@app.command()
def study(
    paper: Annotated[str, typer.Argument(help="a folder of literature/ with a study.yaml")],
    campaign: Annotated[
        str | None, typer.Argument(help="a campaign's folder, its name in runs/, or `latest`")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="write the page there")] = None,
    page: Annotated[
        bool, typer.Option("--page", help="write study.html and study.md into the campaign")
    ] = False,
    tables: Annotated[bool, typer.Option(help="print the tables too, not only the claims")] = True,
    pager: PagerOption = True,
) -> None:
    """Print a report's tables next to today's, and three verdicts on each of its claims.

    Whether a claim follows from the report's own tables; whether it holds in the campaign; what a
    test would need.
    """
    if page and campaign is None:
        fail("--page writes into a campaign's folder; name the campaign")
    measured = None if campaign is None else campaign_of(campaign, with_outputs=True)
    print_study(paper, measured, html, page, tables, pager)


def print_study(
    paper: str, campaign: Campaign | None, html: Path | None = None, page: bool = False,
    tables: bool = True, pager: bool = False,
) -> None:  # fmt: skip
    """Do what `study` does for a campaign that was read; end with a sentence if it cannot."""
    from analysis.studies.declaration import StudyError
    from analysis.studies.page import exhibit_tables, tally, write_pages
    from analysis.studies.reading import read_paper
    from analysis.studies.relations import TodaysTables
    from analysis.studies.verdicts import evaluate
    from analysis.tables.terminal import console, paged, print_line, print_table

    try:
        found = read_paper(ROOT, paper)
        measured = None if campaign is None else TodaysTables(found, campaign)
        evaluated = evaluate(found, measured)
        with paged(console(), pager) as screen:
            # The summary comes first: who pages needs to see no more.
            for line in [f"{found.study.title} ({found.study.source})", *tally(evaluated), ""]:
                print_line(screen, line)
            for table in exhibit_tables(found, measured) if tables else ():
                print_table(screen, table)
            for one in evaluated:
                for line in lines_of(one):
                    print_line(screen, line)
            print_line(screen, "")
        pages = {html: "study.html"} if html else {}
        if page and measured:
            folder = measured.campaign.path
            pages |= {folder / "study.html": "study.html", folder / "study.md": "study.md"}
        if pages:
            write_pages(found, measured, evaluated, pages)
            print(f"study: {', '.join(map(str, pages))}")
    except StudyError as error:
        fail(str(error))
    except OSError as error:
        fail(not_written(error))


def lines_of(one: Evaluated) -> list[str]:
    """Return what is printed of a claim: its words, and each verdict with its reasons."""
    lines = ["", f"{one.claim.id}, {one.claim.source}: {one.claim.claim}"]
    answers = [("by the report's tables", one.report), ("here", one.here)]
    for whose, answer in [*answers, ("to test it", one.needed)]:
        if answer is not None:
            lines.append(f"  {whose}: {answer.verdict}")
            lines += [f"    {sentence}" for sentence in answer.sentences]
    return lines
