"""Commands that export results: files, and curves for the terminal."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.commands.campaigns import (
    ROOT,
    BaseOption,
    CampaignArgument,
    PagerOption,
    campaign_of,
    comparison_of,
    fail,
    folder_of,
)
from records import layout

if TYPE_CHECKING:
    from records.campaign import Campaign

app = typer.Typer()


class Format(StrEnum):
    """The format of an export."""

    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"
    JUNIT = "junit"
    OPENMETRICS = "openmetrics"
    BENCHER = "bencher"
    APPENDIX = "appendix"


FormatOption = Annotated[
    Format,
    typer.Option(
        "--format", "-f",
        help="csv: every table of the report, one file each; markdown: a summary for a merge "
        "request; latex: the tables; junit: the launches, for continuous integration; "
        "openmetrics: medians for Prometheus; bencher: the same for Bencher; appendix: a paper's "
        "artifact description and evaluation, in LaTeX and Markdown",
    ),
]  # fmt: skip


@app.command()
def export(
    campaign: CampaignArgument,
    format_: FormatOption = Format.CSV,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="a folder, or - for standard output (default: the campaign's folder)",
        ),
    ] = None,
    base: BaseOption = None,
    repository: Annotated[
        str | None,
        typer.Option(
            help="for an appendix: where to get the program (default: what "
            "CITATION.cff or git's remote says, as in a bundle)"
        ),
    ] = None,
) -> None:
    """Write the results as CSV, Markdown, LaTeX, JUnit's XML and more, for other programs."""
    from records.files import write_whole

    found = campaign_of(campaign, with_outputs=True)
    try:
        files = exported(found, format_, base, repository)
    except ValueError as error:
        fail(str(error))
    if output == "-":
        for name, text in files.items():
            # Of several tables in one stream each needs its name.
            typer.echo(f"# {name}\n{text}" if len(files) > 1 else text, nl=len(files) > 1)
        return
    folder = layout.meant(output) if output else folder_of(campaign) / "export"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_whole(folder / name, text)
    except FileExistsError:
        fail(f"{folder} is a file; name a folder")
    except OSError as error:
        fail(f"{folder} cannot be written: {error.strerror}; choose another folder")
    for name in files:
        print(folder / name)


def exported(
    found: Campaign, format_: Format, base: str | None, repository: str | None = None
) -> dict[str, str]:
    """Return the files of an export by name; raise ValueError if there is nothing to export."""
    from analysis.comparison.compare import compare
    from analysis.models.all_tables import Models
    from analysis.report.all_tables import compared_tables, tables_of
    from analysis.report.appendix import appendix_of, in_latex, in_markdown
    from analysis.report.junit import junit
    from analysis.report.markdown import markdown
    from analysis.report.watchers import bencher, openmetrics
    from analysis.tables.csv import csv_text
    from analysis.tables.latex import latex
    from analysis.tables.table import for_people
    from records.campaign import manifest_of_nodes
    from records.causes import harmless
    from records.program import program_of, public_address

    if format_ is Format.JUNIT:
        if not (found.launches or found.problems):
            raise ValueError(f"{found.path.name} has no launch; measure with: make run")
        return {"junit.xml": junit(found)}
    comparison = compare(found, base)
    if format_ in (Format.OPENMETRICS, Format.BENCHER, Format.APPENDIX):
        if not comparison.cells:
            raise ValueError(f"{found.path.name} has nothing that is compared; measure: make run")
        if format_ is Format.OPENMETRICS:
            return {"wyeast.prom": openmetrics(comparison)}
        if format_ is Format.BENCHER:
            return {"bencher.json": bencher(comparison)}
        if repository and not public_address(repository):
            raise ValueError(
                f"{harmless(repository)} is not an address that others can use; give one such as "
                "https://host/path"
            )
        commit = manifest_of_nodes(found).commit
        appendix = appendix_of(comparison, program_of(ROOT, commit, repository).repository)
        return {"appendix.tex": in_latex(appendix), "appendix.md": in_markdown(appendix)}
    if format_ is Format.MARKDOWN:
        return {"summary.md": markdown(comparison)}
    if format_ is Format.LATEX:
        # For people: the words of models, not their numbers.
        models = Models(found, ROOT)
        shown = for_people([*models.rates, *models.derived])
        return {"tables.tex": latex(compared_tables(comparison), shown, found)}
    tables = tables_of(comparison, ROOT)
    if not tables:
        raise ValueError(f"{found.path.name} has no launch; measure with: make run")
    return {f"{table.name}.csv": csv_text(table) for table in tables}


@app.command()
def plot(
    campaign: CampaignArgument,
    experiment: Annotated[str, typer.Option("--experiment", "-e", help="such as PointToPoint")],
    cell: Annotated[str, typer.Option(help="only curves whose name contains this")] = "",
    base: BaseOption = None,
    pager: PagerOption = True,
) -> None:
    """Draw curves over message size in the terminal, with a symbol for each implementation."""
    from analysis.comparison.metrics import metrics
    from analysis.report.drawings.terminal_plot import curves_of, drawing
    from analysis.tables.terminal import console, paged

    comparison = comparison_of(campaign, base)
    names = list(dict.fromkeys(one.experiment for one in comparison.cells))
    if experiment not in names:
        fail(f"{experiment} was not measured; there is: {', '.join(names)}")
    curves = {title: of for title, of in curves_of(comparison, experiment).items() if cell in title}
    if not curves:
        fail(
            f"{experiment} has no curve over message size"
            f"{f' with {cell!r} in its name' if cell else ''}; its numbers: "
            f"python -m analysis table {campaign} --experiment {experiment}"
        )
    about = metrics()[experiment]
    with paged(console(100), pager) as screen:
        for title, of in curves.items():
            heading = f"{title}: {about['label']}, medians over launches; both axes logarithmic"
            # A drawing fits the screen, without the line that the prompt needs.
            text = drawing(heading, of, about["unit"], screen.width, min(screen.height - 1, 30))
            screen.print(text, markup=False, highlight=False, overflow="ignore", crop=False)
            screen.print()
