"""The report: a self-contained HTML file; long tables continue in pages beside it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from markupsafe import Markup

from analysis.comparison.answer import sentences_of, tally
from analysis.comparison.caveats.image_caveats import image_caveats
from analysis.comparison.caveats.limited import LIMITS
from analysis.comparison.caveats.placement import NAME as PLACEMENT
from analysis.comparison.compare import compare, looks_of
from analysis.comparison.metrics import metrics
from analysis.comparison.option_effects import NAME as OPTIONS
from analysis.comparison.ranking import by_experiment, ranked
from analysis.comparison.result import Cell, Comparison, Group
from analysis.comparison.verdict import Verdict
from analysis.comparison.winners import NAME as WINNERS
from analysis.figures.axes import legend_mark
from analysis.models.all_tables import Models
from analysis.models.linpack import NAME as HPL
from analysis.models.over_ranks import NAME as OVER_RANKS
from analysis.models.profile import SHARES, ProfiledCell, profiled_cells, shares_beside_names
from analysis.models.start_up import parts_of, start_up_rows, start_up_table
from analysis.report.all_tables import all_tables
from analysis.report.differences import (
    MOST_BELOW,
    MOST_OPEN,
    MOST_ROWS,
    foremost,
    shown_differences,
)
from analysis.report.drawings.forest import Forest, forest
from analysis.report.drawings.heat_map import heat_maps
from analysis.report.drawings.latency_plane import latency_plane
from analysis.report.drawings.pair_map import pair_maps
from analysis.report.drawings.profile_figures import matrix_figure, share_figure
from analysis.report.drawings.size_figures import Figures, RatioCurves, figures_of, without
from analysis.report.first_screen import first_curves, warnings
from analysis.report.headline import headlines
from analysis.report.more_rows import MorePages
from analysis.report.traces import Traces
from analysis.tables.csv import Download, downloads_of
from analysis.tables.pages import page_environment
from analysis.tables.table import Table, for_people
from analysis.tables.units import covering, interval_text, p_text, prefixed
from records.campaign import Campaign, manifest_of_nodes, read_campaign
from records.experiments import COMMON, compared
from records.files import write_whole
from records.nodes import fact_text
from records.start_up import of_the_thesis

#: How large the file may be, in bytes: if it is larger, it has fewer figures, then fewer files.
MOST_BYTES = 5_000_000
#: What the figures of profiles together may take, in characters.
PROFILE_ROOM = 400_000
#: So many implementations have their medians beside each other; of more each has its own rows.
MOST_BESIDE = 4
#: So many implementations have a sentence that is not folded: their picture follows it.
MOST_HEADLINES = 3
ROOT = Path(__file__).resolve().parents[2]


def communications(comparison: Comparison) -> list[tuple[str, list[Cell]]]:
    """Return the experiments that have no section of their own, each with its cells."""
    return [
        (name, cells)
        for name, entry in compared().items()
        if entry.section == COMMON and (cells := comparison.experiment(name))
    ]


def row_names(comparison: Comparison) -> dict[str, str]:
    """Return the label of each cell's row, by the cell's name: its series if that is enough.

    Cells that measure a series of the same name have their parameters before it.
    """
    count = Counter((cell.experiment, cell.series) for cell in comparison.cells)
    return {
        cell.name: cell.series
        if cell.series and count[cell.experiment, cell.series] == 1
        else cell.name.removeprefix(f"{cell.experiment} ")
        for cell in comparison.cells
    }


def verdicts_on(comparison: Comparison, cells: list[Cell]) -> list[tuple[Cell, str]]:
    """Return some cells with each implementation that has a verdict, of every pair compared."""
    names = {cell.name for cell in cells}
    return [
        (cell, other)
        for one in comparison.pairs
        for cell in one.cells
        if cell.name in names
        for other in cell.verdicts
    ]


def answers_in(comparison: Comparison) -> list[tuple[Group, Verdict]]:
    """Return every group with each of its verdicts; pairs of a group follow one another."""
    return [
        (group, verdict)
        for group in comparison.groups_of_pairs
        for verdict in group.verdicts.values()
    ]


def median_rows(cells: list[Cell], names: list[str]) -> list[tuple[Cell, int, list[str]]]:
    """Return each cell with each of its message sizes, and the implementations of its row.

    These are all, beside each other as long as a page is wide enough, and then each by itself.
    """
    beside = [names] if len(names) <= MOST_BESIDE else [[name] for name in names]
    return [
        (cell, size, of)
        for cell in cells
        for size in cell.message_sizes()
        for of in beside
        if len(of) > 1 or cell.estimate(of[0], size)
    ]


def subject_of_medians(row: tuple[Cell, int, list[str]]) -> tuple[Cell, str | None]:
    """Return what a row of medians is about: a cell, and one implementation where it has one."""
    cell, _, names = row
    return cell, names[0] if len(names) == 1 else None


def names_of(table: Table) -> int:
    """Return how many of a table's first columns identify each row uniquely.

    1 if no few of them do.
    """
    rows = [table.words(row) for row in table.rows]
    for count in range(1, min(4, len(table.shown)) + 1):
        if len({words[:count] for words in rows}) == len(rows):
            return count
    return 1


def places(comparison: Comparison) -> dict[str, str]:
    """Return the id of each experiment's part of the page."""
    return {
        name: f"of-{name}" if entry.section == COMMON else entry.section
        for name, entry in compared().items()
        if comparison.experiment(name)
    }


def profile_figures(profiles: list[ProfiledCell]) -> list[tuple[ProfiledCell, Markup, Markup]]:
    """Return the figures of the first profiles, as many as there is room for."""
    found, room = [], PROFILE_ROOM
    for one in profiles:
        bars, matrix = share_figure(one), matrix_figure(one)
        room -= len(bars) + len(matrix)
        if room < 0:
            break
        found.append((one, bars, matrix))
    return found


def counts(campaign: Campaign) -> dict[str, int]:
    """Return how many launches there are of each outcome."""
    tally: Counter[str] = Counter(launch.record.outcome for launch in campaign.launches)
    tally["compared"] = sum(bool(launch.values.series) for launch in campaign.sound())
    return dict(tally)


def write_report(path: Path, base: str | None, out: Path | None) -> Path:
    """Write the report of a campaign; return its path."""
    campaign = read_campaign(path)
    campaign.leave_out_unreadable()
    return report_on(campaign, compare(campaign, base), out)


def report_on(campaign: Campaign, comparison: Comparison, out: Path | None) -> Path:
    """Write the report of a campaign that was read and compared; return its path.

    What it finds that cannot be read becomes one of the campaign's problems.
    """
    profiles, unreadable = profiled_cells(campaign)
    campaign.problems += unreadable
    manifest = manifest_of_nodes(campaign)
    environment = page_environment(
        __file__, prefixed=prefixed, interval=interval_text, fact=fact_text, p=p_text,
        covering=covering,
    )  # fmt: skip
    rounds = {launch.record.round for launch in campaign.launches}
    models, plane = (
        Models(campaign, ROOT),
        latency_plane(campaign, comparison.implementations, ROOT),
    )
    start_ups = start_up_table(parts_of(campaign))
    tables = all_tables(comparison, models, plane, start_ups, profiles)
    coverages = sorted(
        {e.interval.coverage for c in comparison.cells for es in c.estimates.values() for e in es}
    )
    ratios = RatioCurves(comparison.base)
    figures = figures_of(comparison, ratios=ratios)
    caveats = image_caveats(comparison)
    said = warnings(comparison, caveats)
    target = out or campaign.path / "report.html"
    pages = MorePages.beside(target, tables)
    every = {name: comparison.experiment(name) for name in metrics()}
    template = environment.get_template("report.html")
    values = dict(
        campaign=campaign,
        manifest=manifest,
        comparison=comparison,
        sentences_of=sentences_of,
        rankings=by_experiment(comparison),
        ranked=ranked,
        headlines=headlines(comparison),
        most_headlines=MOST_HEADLINES,
        answers=forest(answers_in(comparison)),
        warnings=said,
        caveats=caveats,
        tally=[
            one for one in tally(comparison) if one not in {warning.sentence for warning in said}
        ],
        counts=counts(campaign),
        rounds=len(rounds),
        coverages=coverages,
        looks=looks_of(campaign.manifest),
        metrics=metrics(),
        first=first_curves(comparison, figures),
        differences=shown_differences(comparison),
        heat_maps={name: heat_maps(comparison, name, ratios) for name in metrics()},
        forests={name: forest_of_cells(cells) for name, cells in every.items()},
        places=places(comparison),
        against=lambda cells: verdicts_on(comparison, cells),
        winners=next((table for table in tables if table.name == WINNERS), None),
        options=next((table for table in tables if table.name == OPTIONS), None),
        by_implementation=lambda cells: [(cell, name) for cell in cells for name in cell.estimates],
        foremost_rows=lambda rows: foremost(rows, lambda row: (row[0], row[1])),
        foremost_medians=lambda rows: foremost(rows, subject_of_medians),
        foremost_start_ups=lambda rows: foremost(
            rows, lambda row: (row["cell"], row["implementation"])
        ),
        most_rows=MOST_ROWS,
        most_open=MOST_OPEN,
        most_below=MOST_BELOW,
        names_of=names_of,
        pages=pages,
        communications=communications(comparison),
        sections={entry.section: name for name, entry in compared().items()},
        plane=plane,
        median_rows=median_rows,
        row_names=row_names(comparison),
        derived=for_people([*models.derived, *(one for one in tables if one.name == OVER_RANKS)]),
        limited=[table for table in tables if table.name in {limit.name for limit in LIMITS}],
        placement=next((table for table in tables if table.name == PLACEMENT), None),
        hpl=next((table for table in models.rates if table.name == HPL), None),
        node_rates=[table for table in models.rates if table.name != HPL],
        pair_maps=pair_maps(models.node_pairs),
        start_ups=start_up_rows(comparison, start_ups),
        profiles=profiles,
        shares=next((shares_beside_names(one) for one in tables if one.name == SHARES), None),
        profile_figures=profile_figures(profiles),
        thesis_start_ups=of_the_thesis(ROOT),
        legend=[(name, legend_mark(i)) for i, name in enumerate(comparison.implementations)],
    )

    files = downloads_of(tables)

    def rendered(figures: dict[str, Figures], files: dict[str, Download]) -> str:
        return template.render(
            values, traces=Traces(comparison), figures=figures, downloads=files,
            limits=sorted({one.limit for of in figures.values() for one in of.drawn if one.limit}),
        )  # fmt: skip

    text = rendered(figures, files)
    excess = len(text.encode()) - MOST_BYTES
    if excess > 0:
        fewer, excess = without(figures, excess)
        if excess > 0:
            room = sum(len(one.href or "") for one in files.values()) - excess
            files = downloads_of(tables, max(0, room))
        text = rendered(fewer, files)
    write_whole(target, text)
    pages.write(campaign.path.name, environment)
    return target


def forest_of_cells(cells: list[Cell]) -> Forest[Cell] | None:
    """Return the picture of cells without message sizes; None if they have sizes."""
    if any(size > 0 for cell in cells for size in cell.message_sizes()):
        return None
    every = [(cell, one) for cell in cells for one in cell.verdicts.values()]
    return forest(foremost(every, lambda row: (row[0], row[1].implementation)))
