"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from analysis.campaign import Campaign, read_campaign
from analysis.communication_records import PingPong
from analysis.comparison import Cell, Comparison, compare
from analysis.data_tables import data_tables
from analysis.downloads import downloads_of
from analysis.figures import Curve, bandwidth_figure, legend_mark, prefixed
from analysis.latency_plane import latency_plane
from analysis.linpack_tables import TITLE as HPL
from analysis.measured_cells import series_of
from analysis.message_models import fitted_in
from analysis.metrics import metrics
from analysis.model_data import derived_data
from analysis.profile import profiled_cells
from analysis.profile_figures import matrix_figure, share_figure
from analysis.profile_tables import profile_data
from analysis.ratio_curves import ratio_curve, ratio_figure
from analysis.records import ProgramOutput
from analysis.start_up import of_the_thesis
from analysis.start_up_tables import start_up_data, start_up_rows
from analysis.statistics import Interval
from analysis.stolen_time import stolen_time
from analysis.text_table import file_name
from analysis.text_tables import derived_tables, rate_tables
from analysis.verdict import Verdict, percent
from analysis.whole_file import write_whole

#: The longest table and list that a page shows; the rest is in the CSV, so that it stays small.
MOST_ROWS = 500
ROOT = Path(__file__).resolve().parent.parent


def interval_text(interval: Interval | None, unit: str = "") -> str:
    """Return an interval for people."""
    if interval is None:
        return "–"
    if unit:
        return f"{prefixed(interval.low, unit)} – {prefixed(interval.high, unit)}"
    return f"{interval.low:.3f} – {interval.high:.3f}"


def fact_text(fact: object) -> str:
    """Return a fact of the manifest for people, one of several named facts too."""
    if isinstance(fact, dict):
        return ", ".join(
            f"{str(name).replace('_', ' ')} ({fact_text(inner)})" if isinstance(inner, dict)
            else f"{str(name).replace('_', ' ')} {fact_text(inner)}"
            for name, inner in fact.items()
        )  # fmt: skip
    return "not known" if fact is None else str(fact)


def in_words(verdict: Verdict) -> str:
    """Return a verdict over a group of cells as the end of a sentence."""
    ratio = verdict.ratio
    if not verdict.is_told:
        return f"cannot be told from {ratio.counted}."
    within = f"95% interval {interval_text(ratio.interval)}" if ratio.interval else ratio.counted
    numbers = f"ratio {ratio.value:.3f}, {within}"
    if verdict.is_equivalent:
        also = f", {verdict.words}" if verdict.is_different else ""
        return f"equivalent to {verdict.base} within {percent(verdict.margin)}{also} ({numbers})."
    if not verdict.is_different:
        return f"no difference to {verdict.base} shown ({numbers})."
    times = ratio.value if ratio.value > 1 else 1 / ratio.value
    return f"{verdict.words} than {verdict.base} by a factor of {times:.2f} ({numbers})."


def answer(comparison: Comparison) -> list[str]:
    """Return the answer in words, a sentence for each group of cells and implementation."""
    sentences = []
    for group in comparison.groups:
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
    return sentences + stolen_time(comparison.campaign)


def memory_limits(campaign: Campaign) -> list[tuple[int, float]]:
    """Return the best plain copy in memory of any launch, as (message bytes, B/s)."""
    best: dict[int, float] = defaultdict(float)
    for launch in campaign.sound():
        if isinstance(launch.output, ProgramOutput):
            for result in launch.output.results:
                if isinstance(result, PingPong) and result.memory_copy_s > 0:
                    rate = result.message_bytes / result.memory_copy_s
                    best[result.message_bytes] = max(best[result.message_bytes], rate)
    return sorted(best.items())


def figures(comparison: Comparison) -> list[dict[str, Any]]:
    """Return a figure for each send/receive pair, over all its ranges."""
    by_pair: dict[str, list[Cell]] = defaultdict(list)
    for cell in comparison.experiment("PointToPoint"):
        order = cell.parameters.get("order", "modified")
        name = str(cell.parameters["pair"]) + ("" if order == "modified" else f", {order} order")
        by_pair[name].append(cell)
    limit = memory_limits(comparison.campaign)
    drawn = []
    for pair, cells in by_pair.items():
        curves = []
        for style, name in enumerate(comparison.implementations):
            estimates = sorted(
                (e for cell in cells for e in cell.estimates.get(name, [])),
                key=lambda estimate: estimate.message_bytes,
            )
            if estimates:
                curves.append(Curve(name, style, estimates))
        words = f"over message size, MPI_{pair.replace('/', ' / MPI_')}"
        svg = bandwidth_figure(f"Bandwidth {words}", curves, limit)
        drawn.append(
            {"pair": pair, "svg": svg, "ratio": ratios(comparison, cells, f"Ratio {words}")}
        )
    return drawn


def ratios(comparison: Comparison, cells: list[Cell], title: str) -> Markup | None:
    """Return the figure of ratios to the base over message size, of cells of different sizes."""
    others = [
        (name, style)
        for style, name in enumerate(comparison.implementations)
        if name != comparison.base
    ]
    curves = [
        (name, style, curve)
        for name, style in others
        for cell in cells
        if (curve := ratio_curve(cell, name, comparison.base))
    ]
    return ratio_figure(title, curves)


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
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(prefixed=prefixed, interval=interval_text, fact=fact_text)
    rounds = {launch.record.round for launch in campaign.launches}
    fitted = fitted_in(campaign)
    rates, derived = rate_tables(campaign, ROOT), derived_tables(campaign, fitted)
    numbers = [
        *derived_data(campaign, fitted), start_up_data(campaign), *profile_data(campaign, profiles)
    ]  # fmt: skip
    tables = data_tables(comparison, [*rates, *derived], numbers)
    coverages = sorted(
        {e.interval.coverage for c in comparison.cells for es in c.estimates.values() for e in es}
    )
    text = environment.get_template("report.html").render(
        campaign=campaign,
        manifest=campaign.manifest,
        comparison=comparison,
        answer=answer(comparison),
        tally=tally(comparison),
        counts=counts(campaign),
        rounds=len(rounds),
        coverages=coverages,
        metrics=metrics(),
        figures=figures(comparison),
        communications=communications(comparison),
        ratio_figures=[
            (cell, figure)
            for _, cells in communications(comparison)
            for cell in cells
            if (figure := ratios(comparison, [cell], f"Ratio over message size, {cell.name}"))
        ],
        plane=latency_plane(campaign, comparison.implementations, ROOT),
        median_rows=median_rows,
        most_rows=MOST_ROWS,
        downloads=downloads_of(tables),
        file_name=file_name,
        derived=derived,
        hpl=next((table for table in rates if table.title == HPL), None),
        node_rates=[table for table in rates if table.title != HPL],
        start_ups=start_up_rows(comparison),
        profiles=[(one, one.shares(), share_figure(one), matrix_figure(one)) for one in profiles],
        thesis_start_ups=of_the_thesis(ROOT),
        legend=[(name, legend_mark(i)) for i, name in enumerate(comparison.implementations)],
    )
    target = out or path / "report.html"
    write_whole(target, text)
    return target
