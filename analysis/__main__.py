"""`python -m analysis`: from a campaign's launches to tables, answers and the report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.commands import cells, export, history, models, nights, precision, references, study
from analysis.commands.campaigns import (
    ROOT,
    BaseOption,
    CampaignArgument,
    PagerOption,
    comparison_of,
    fail,
    folder_of,
)

if TYPE_CHECKING:
    from rich.table import Table

    from analysis.comparison import Comparison

app = typer.Typer(
    help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
for family in (cells, precision, history, nights, references, models, study, export):
    app.add_typer(family.app)


@app.command()
def ingest(campaign: CampaignArgument) -> None:
    """Write the campaign's tables (Parquet) from its launches."""
    from analysis.campaign import CampaignError, read_campaign
    from analysis.history_index import keep_rows, stamp_of
    from analysis.tables import write_tables

    folder = folder_of(campaign)
    stamp = stamp_of(folder)
    found = read_campaign(folder)
    if removed := found.manifest.get("raw_removed_utc"):
        fail(f"{folder.name}: its raw output was removed {removed}; its tables are what is left")
    rows = write_tables(found)
    try:
        keep_rows(found, stamp)
    except (CampaignError, ValueError, ArithmeticError) as error:
        # The tables are whole without it; a history leaves the campaign out with the sentence.
        print(f"left out of histories: {error}", file=sys.stderr)
    counted = ", ".join(f"{count} {name}" for name, count in rows.items())
    print(f"tables: {found.path / 'tables'} ({counted})")


def rich_table(comparison: Comparison, experiment: str, with_series: bool) -> Table:
    """Return the table of an experiment for the terminal; series only where they are wanted."""
    from rich.markup import escape
    from rich.table import Table

    from analysis.figures import prefixed
    from analysis.metrics import metrics
    from analysis.report import interval_text

    unit = metrics()[experiment]["unit"]
    others = [name for name in comparison.implementations if name != comparison.base]
    table = Table(title=f"{experiment}: {metrics()[experiment]['label']}, medians over launches")
    table.add_column("cell")
    for name in comparison.implementations:
        table.add_column(name, justify="right")
    for name in others:
        table.add_column(f"{name} /\n{comparison.base}", justify="right")
        table.add_column("95% interval", justify="right")
        table.add_column("verdict")
    for cell in comparison.experiment(experiment):
        if cell.series and not with_series:
            continue
        named = [*map(str, cell.parameters.values()), cell.series]
        row = [escape(" ".join(named).rstrip())]
        for name in comparison.implementations:
            estimates = cell.estimates.get(name)
            # Of a range of sizes, the largest message: the others are in the report's figures.
            row.append(prefixed(estimates[-1].median, unit) if estimates else "–")
        for name in others:
            verdict = cell.verdicts.get(name)
            row += (
                [
                    verdict.ratio.words,
                    interval_text(verdict.ratio.interval),
                    verdict.words,
                ]
                if verdict
                else ["–", "–", "not measured"]
            )
        table.add_row(*row)
    return table


@app.command()
def table(
    campaign: CampaignArgument,
    experiment: Annotated[str | None, typer.Option(help="only this experiment")] = None,
    base: BaseOption = None,
    pager: PagerOption = True,
) -> None:
    """Print medians, ratios with intervals, and verdicts."""
    from analysis.report import answer
    from analysis.terminal import console, paged

    comparison = comparison_of(campaign, base)
    names = list(dict.fromkeys(cell.experiment for cell in comparison.cells))
    if experiment and experiment not in names:
        fail(f"{experiment} was not measured; there is: {', '.join(names)}")
    with paged(console(140), pager) as screen:
        for name in [experiment] if experiment else names:
            series = [cell for cell in comparison.experiment(name) if cell.series]
            if series and not experiment:
                screen.print(f"{name}: {len(series)} series, listed with --experiment {name}")
            if experiment or len(series) < len(comparison.experiment(name)):
                screen.print(rich_table(comparison, name, with_series=bool(experiment)))
        screen.print(
            "For a range of message sizes the median is that of the largest message, "
            "the ratio that of all sizes."
        )
        for sentence in answer(comparison):
            screen.print(f"- {sentence}", highlight=False, markup=False)


@app.command()
def variability(
    campaign: CampaignArgument,
    most: Annotated[int, typer.Option(help="how many rows, the largest spread first")] = 40,
    pager: PagerOption = True,
) -> None:
    """List the single launches of each cell, as NASA (2003) did: how much runs differ."""
    from analysis import variability as listing
    from analysis.figures import prefixed
    from analysis.metrics import metrics
    from analysis.terminal import show
    from analysis.text_table import TextTable

    comparison = comparison_of(campaign, None)
    units = {cell.name: metrics()[cell.experiment]["unit"] for cell in comparison.cells}
    rows = listing.variability(comparison)
    shown: list[tuple[str, ...]] = [
        (
            row.cell, row.implementation,
            ", ".join(prefixed(value, units[row.cell]) for value in row.values),
            str(row.message_bytes), f"{row.spread:.2f}", f"{100 * row.relative_deviation:.1f}%",
        )
        for row in rows[:most]
    ]  # fmt: skip
    columns = ("cell", "implementation", "launches", "bytes", "largest / smallest", "deviation")
    title = f"Launches of {comparison.campaign.path.name}, in order of rounds"
    note = f"{len(shown)} of {len(rows)} rows"
    show(TextTable(title, columns, shown, 3, [note]), pager)


@app.command()
def linpack(campaign: CampaignArgument = "latest", pager: PagerOption = True) -> None:
    """Print HPL's rates with their spread, speedup and part of DGEMM, and what nodes do alone."""
    from analysis.campaign import read_campaign
    from analysis.linpack_tables import hpl_table
    from analysis.node_rates import node_table
    from analysis.terminal import show

    found = read_campaign(folder_of(campaign))
    tables = [table for table in (hpl_table(found), node_table(found)) if table]
    if not tables:
        fail(
            f"{found.path.name} has no sound launch of HPL, DGEMM or STREAM; measure with: "
            "make run CHECKS='Linpack|Dgemm|Stream'"
        )
    show(tables, pager)


@app.command()
def cycles(campaign: CampaignArgument = "latest", pager: PagerOption = True) -> None:
    """Print Linpack 100 and 1000 and the latency in cycles, beside ORNL's table of 1996."""
    from analysis.campaign import read_campaign
    from analysis.node_rates import cycles_table
    from analysis.terminal import show

    found = read_campaign(folder_of(campaign))
    table = cycles_table(found, ROOT)
    if not table:
        fail(
            f"{found.path.name} has no sound launch of SerialLinpack; measure with: "
            "make run CHECKS='SerialLinpack|EchoTest'"
        )
    show(table, pager)


@app.command()
def profile(
    campaign: CampaignArgument = "latest",
    most: Annotated[int, typer.Option(help="how many functions and message sizes of each")] = 8,
    pager: PagerOption = True,
) -> None:
    """Print where profiled programs spend their time (Kearns 2003, Figure 14 and Table 8)."""
    from analysis.campaign import read_campaign
    from analysis.profile import profiled_cells
    from analysis.profile_tables import profile_tables
    from analysis.terminal import show

    found = read_campaign(folder_of(campaign))
    cells, problems = profiled_cells(found)
    for problem in [*found.problems, *problems]:
        print(f"left out: {problem.where}: {problem.sentence}", file=sys.stderr)
    if not cells:
        fail(f"{found.path.name} has no sound profile; measure one with: make run CHECKS=Profile")
    show(profile_tables(cells, most), pager)


@app.command()
def report(
    campaign: CampaignArgument,
    base: BaseOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="another file")] = None,
) -> None:
    """Write the report, one HTML file, into the campaign's folder."""
    from analysis.report import write_report

    try:
        print(f"report: {write_report(folder_of(campaign), base, output)}")
    except (ValueError, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    app()
