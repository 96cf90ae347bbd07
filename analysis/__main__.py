"""`python -m analysis`: from a campaign's launches to tables, answers and the report."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Annotated

try:
    import typer
except ModuleNotFoundError:
    # Of the system's Python, say.
    sys.exit(
        f"analysis: {sys.executable} does not have the project's packages; type this first, in the "
        "checkout: . ./activate"
    )

from analysis.commands import (
    audit,
    cells,
    conclude,
    export,
    history,
    judge,
    models,
    nights,
    precision,
    raw,
    references,
    study,
)
from analysis.commands.campaigns import (
    ROOT,
    BaseOption,
    CampaignArgument,
    PagerOption,
    campaign_of,
    comparison_of,
    fail,
    folder_of,
    not_written,
)
from analysis.commands.groups import Grouped
from records.acting_user import act_for
from records.files import only_owner_writes
from records.terminal_encoding import open_streams, suit_terminal

app = typer.Typer(
    cls=Grouped,
    help=__doc__,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for family in (
    cells, precision, history, judge, audit, nights, references, models, study, export, raw,
    conclude,
):  # fmt: skip
    app.add_typer(family.app)


@app.command()
def ingest(campaign: CampaignArgument) -> None:
    """Write the campaign's tables (Parquet) from its launches."""
    from analysis.history.campaign_rows import stamp_of
    from records.campaign import read_campaign

    folder = folder_of(campaign)
    stamp = stamp_of(folder)
    conclude.make_tables(read_campaign(folder), stamp)


@app.command()
def table(
    campaign: CampaignArgument,
    experiment: Annotated[str | None, typer.Option(help="only this experiment")] = None,
    base: BaseOption = None,
    pager: PagerOption = True,
) -> None:
    """Print medians, ratios with intervals, and verdicts."""
    from analysis.comparison.answer import answer
    from analysis.comparison.tables import one_below_the_other, side_by_side
    from analysis.tables.terminal import console, fits, paged, print_table

    comparison = comparison_of(campaign, base)
    names = list(dict.fromkeys(cell.experiment for cell in comparison.cells))
    if experiment and experiment not in names:
        fail(f"{experiment} was not measured; measured were: {', '.join(names)}")
    with paged(console(140), pager) as screen:
        for name in [experiment] if experiment else names:
            series = [cell for cell in comparison.experiment(name) if cell.series]
            if series and not experiment:
                screen.print(
                    f"{name}: {len(series)} series, listed with --experiment {name}",
                    soft_wrap=True,
                )
            if experiment or len(series) < len(comparison.experiment(name)):
                found = side_by_side(comparison, name, bool(experiment))
                if not fits(found, screen.width):
                    found = one_below_the_other(comparison, name, bool(experiment))
                print_table(screen, found)
        for sentence in answer(comparison):
            screen.print(f"- {sentence}", highlight=False, markup=False, soft_wrap=True)


@app.command()
def variability(
    campaign: CampaignArgument,
    most: Annotated[int, typer.Option(help="how many rows, the largest spread first")] = 40,
    pager: PagerOption = True,
) -> None:
    """List the single launches of each cell, as NASA (2003) did, to show how much runs differ."""
    from analysis.comparison.metrics import metrics
    from analysis.precision import variability as listing
    from analysis.tables.table import COUNT, PERCENT, Column, Kind, Row, Table, formatted
    from analysis.tables.terminal import show
    from analysis.tables.units import prefixed

    comparison = comparison_of(campaign, None)
    units = {cell.name: metrics()[cell.experiment]["unit"] for cell in comparison.cells}
    rows = listing.variability(comparison)
    shown = [
        Row(
            (
                row.cell, row.implementation, row.values, units[row.cell], row.message_bytes,
                row.spread, row.relative_deviation,
            ),
            row.implementation,
        )
        for row in rows[:most]
    ]  # fmt: skip
    of_rounds = Kind(lambda of, unit: ", ".join(prefixed(one, unit) for one in of), False)
    columns = (
        Column("cell", "cell"), Column("implementation", "implementation"),
        Column("launches", "launches", of_rounds, "unit"), Column("unit"),
        Column("message_bytes", "bytes", COUNT, "B"),
        Column("spread", "largest / smallest", formatted(".2f"), "1"),
        Column("deviation", "deviation", PERCENT, "1"),
    )  # fmt: skip
    title = f"Launches of {comparison.campaign.path.name}, in order of rounds"
    note = f"{len(shown)} of {len(rows)} rows"
    show(Table("variability", title, columns, shown, [note]), pager)


@app.command()
def linpack(campaign: CampaignArgument = "latest", pager: PagerOption = True) -> None:
    """Print HPL's rates with spread, speedup and fraction of DGEMM, and nodes' own rates."""
    from analysis.models.linpack import hpl_in, hpl_table
    from analysis.models.nodes.rates import node_table, rates_in
    from analysis.tables.terminal import show

    found = campaign_of(campaign)
    found.leave_out_unreadable()
    tables = [
        table
        for table in (hpl_table(found, hpl_in(found)), node_table(found, rates_in(found)))
        if table
    ]
    if not tables:
        fail(
            f"{found.path.name} has no sound launch of HPL, DGEMM or STREAM; measure with: "
            "make run CHECKS='Linpack|Dgemm|Stream'"
        )
    show(tables, pager)


@app.command()
def cycles(campaign: CampaignArgument = "latest", pager: PagerOption = True) -> None:
    """Print Linpack 100 and 1000 and the latency in cycles, next to ORNL's table of 1996."""
    from analysis.models.nodes.rates import cycles_table, rates_in
    from analysis.models.one_way_times import one_way_times
    from analysis.tables.terminal import show

    found = campaign_of(campaign)
    found.leave_out_unreadable()
    table = cycles_table(found, rates_in(found), one_way_times(found), ROOT)
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
    from analysis.models.profile import profile_tables, profiled_cells
    from analysis.tables.terminal import show
    from records.campaign import read_campaign

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
    from analysis.report.report import write_report
    from records.manifest import read_manifest

    folder = folder_of(campaign)
    if output is None and not read_manifest(folder).finished_utc:
        fail(
            f"{folder.name} is not finished, and nothing is written into a campaign that may still "
            f"be measuring: resume it (make run RESUME={folder.name}), or name another file for "
            "the report (python -m analysis report ... --output FILE)"
        )
    try:
        print(f"report: {write_report(folder, base, output)}")
    except ValueError as error:
        fail(str(error))
    except OSError as error:
        fail(not_written(error))


if __name__ == "__main__":
    # What is read stays until the end: to look through all of it for cycles again and again takes
    # a tenth of the time.
    gc.set_threshold(50_000, 20, 100)
    act_for(ROOT)
    only_owner_writes()
    open_streams()
    suit_terminal()
    app()
