"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import jinja2
from markupsafe import Markup

from analysis.campaign import Campaign, manifest_of_nodes, read_campaign
from analysis.clock_limited import limited_data, limited_sentence, limited_table
from analysis.comparison import Cell, Comparison, Group, compare
from analysis.data_tables import data_tables
from analysis.downloads import downloads_of
from analysis.facts import fact_text
from analysis.figures import legend_mark, prefixed
from analysis.image_caveats import image_caveats
from analysis.latency_plane import latency_plane
from analysis.linpack_tables import TITLE as HPL
from analysis.measured_cells import series_of
from analysis.message_models import fitted_in
from analysis.metrics import metrics
from analysis.model_data import derived_data
from analysis.profile import ProfiledCell, profiled_cells
from analysis.profile_figures import matrix_figure, share_figure
from analysis.profile_tables import profile_data
from analysis.ranking import by_experiment, ranked, within
from analysis.report_figures import figures_of
from analysis.start_up import of_the_thesis
from analysis.start_up_tables import start_up_data, start_up_rows
from analysis.statistics import Interval
from analysis.stolen_time import stolen_time
from analysis.text_table import file_name
from analysis.text_tables import derived_tables, rate_tables
from analysis.traces import Traces
from analysis.verdict import Verdict, percent
from analysis.whole_file import write_whole

#: The longest table and list that a page shows; the rest is in the CSV, so that it stays small.
MOST_ROWS = 500
#: How large the file may be, in bytes: if it is larger, its tables show fewer rows.
MOST_BYTES = 5_000_000
#: What the figures of profiles together may take, in characters.
PROFILE_ROOM = 400_000
ROOT = Path(__file__).resolve().parent.parent


def interval_text(interval: Interval | None, unit: str = "") -> str:
    """Return an interval for people."""
    if interval and unit:
        return f"{prefixed(interval.low, unit)} – {prefixed(interval.high, unit)}"
    return within(interval)


def covering(interval: Interval, scale: float) -> str:
    """Return an interval of a median in multiples of `scale`, with its coverage."""
    low, high = interval.low / scale, interval.high / scale
    return f"{low:.4g} – {high:.4g} ({interval.coverage:.0%})"


def p_text(p_value: float | None) -> str:
    """Return a p value for people."""
    return "–" if p_value is None else f"{p_value:.3g}"


def in_words(verdict: Verdict) -> str:
    """Return a verdict over a group of cells as the end of a sentence."""
    ratio = verdict.ratio
    if not verdict.is_told:
        return f"cannot be told from {ratio.counted}."
    how_sure = f"95% interval {interval_text(ratio.interval)}" if ratio.interval else ratio.counted
    numbers = f"ratio {ratio.value:.3f}, {how_sure}"
    if verdict.is_equivalent:
        also = f", {verdict.words}" if verdict.is_different else ""
        return f"equivalent to {verdict.base} within {percent(verdict.margin)}{also} ({numbers})."
    if not verdict.is_different:
        return f"no difference to {verdict.base} shown ({numbers})."
    times = ratio.value if ratio.value > 1 else 1 / ratio.value
    return f"{verdict.words} than {verdict.base} by a factor of {times:.2f} ({numbers})."


def answer(comparison: Comparison) -> list[str]:
    """Return the answer in words, a sentence for each group of cells and implementation.

    What else the images differ in follows.
    """
    sentences = [sentence for group in comparison.groups for sentence in sentences_of(group)]
    return sentences + [caveat.sentence for caveat in image_caveats(comparison)]


def sentences_of(group: Group) -> list[str]:
    """Return a group's answer in words, a sentence for each implementation."""
    sentences = []
    for other, verdict in group.verdicts.items():
        name = group.name
        if verdict.cells != len(group.cells):
            name += f" that both have ({verdict.cells} of {len(group.cells)})"
        is_told = verdict.is_different or verdict.is_equivalent
        sentences.append(f"{name}: {other}{' is' if is_told else ':'} {in_words(verdict)}")
    return sentences


def tally(comparison: Comparison) -> list[str]:
    """Return in how many single cells each verdict was reached, and what bears on all of them."""
    sentences = []
    for experiment in metrics():
        for other in comparison.implementations:
            cells = [cell for cell in comparison.experiment(experiment) if other in cell.verdicts]
            count = Counter(cell.verdicts[other].words.split(" (")[0] for cell in cells)
            if cells:
                parts = ", ".join(f"{words} in {number}" for words, number in count.most_common())
                sentences.append(
                    f"{experiment}, cell by cell: {other} against {comparison.base}: {parts} of "
                    f"{len(cells)}."
                )
    return sentences + limited_sentence(comparison) + stolen_time(comparison.campaign)


def communications(comparison: Comparison) -> list[tuple[str, list[Cell]]]:
    """Return the experiments that have no section of their own, each with its cells."""
    return [
        (name, cells)
        for name in metrics()
        if name not in ("PointToPoint", "Linpack", "Nas", "StartUp")
        and (cells := comparison.experiment(name))
    ]


def median_rows(cells: list[Cell]) -> list[tuple[Cell, int]]:
    """Return each cell with each of its message sizes."""
    return [(cell, size) for cell in cells for size in cell.message_sizes()]


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
    tally["compared"] = sum(bool(series_of(launch)) for launch in campaign.sound())
    return dict(tally)


def write_report(path: Path, base: str | None, out: Path | None) -> Path:
    """Write the report of a campaign; return where it is."""
    campaign = read_campaign(path)
    comparison = compare(campaign, base)
    profiles, unreadable = profiled_cells(campaign)
    campaign.problems += unreadable
    manifest = manifest_of_nodes(campaign)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        prefixed=prefixed, interval=interval_text, fact=fact_text, p=p_text, covering=covering
    )
    rounds = {launch.record.round for launch in campaign.launches}
    fitted = fitted_in(campaign)
    rates, derived = rate_tables(campaign, ROOT), derived_tables(campaign, fitted)
    numbers = [
        limited_data(comparison),
        *derived_data(campaign, fitted),
        start_up_data(campaign),
        *profile_data(campaign, profiles),
    ]
    tables = data_tables(comparison, [*rates, *derived], numbers)
    coverages = sorted(
        {e.interval.coverage for c in comparison.cells for es in c.estimates.values() for e in es}
    )
    figures = figures_of(comparison)
    template = environment.get_template("report.html")
    values = dict(
        campaign=campaign,
        manifest=manifest,
        comparison=comparison,
        sentences_of=sentences_of,
        rankings=by_experiment(comparison),
        ranked=ranked,
        caveats=image_caveats(comparison),
        tally=tally(comparison),
        counts=counts(campaign),
        rounds=len(rounds),
        coverages=coverages,
        metrics=metrics(),
        figures=figures,
        limits=sorted({one.limit for of in figures.values() for one in of.drawn if one.limit}),
        communications=communications(comparison),
        plane=latency_plane(campaign, comparison.implementations, ROOT),
        median_rows=median_rows,
        downloads=downloads_of(tables),
        file_name=file_name,
        derived=derived,
        limited=limited_table(comparison),
        hpl=next((table for table in rates if table.title == HPL), None),
        node_rates=[table for table in rates if table.title != HPL],
        start_ups=start_up_rows(comparison),
        profiles=[(one, one.shares()) for one in profiles],
        profile_figures=profile_figures(profiles),
        thesis_start_ups=of_the_thesis(ROOT),
        legend=[(name, legend_mark(i)) for i, name in enumerate(comparison.implementations)],
    )
    most_rows = MOST_ROWS
    while True:
        text = template.render(values, traces=Traces(comparison), most_rows=most_rows)
        if len(text.encode()) <= MOST_BYTES or most_rows <= 1:
            break
        most_rows //= 2
    target = out or path / "report.html"
    write_whole(target, text)
    return target
