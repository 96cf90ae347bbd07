"""The tables of a comparison: medians, ratios, groups, launches."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from analysis.comparison.metrics import direction, metrics
from analysis.comparison.result import Cell, Comparison
from analysis.comparison.verdict import Verdict
from analysis.tables.table import (
    COUNT,
    INTERVAL,
    PERCENT,
    PREFIXED,
    PROBABILITY,
    RATIO,
    Column,
    Kind,
    Marked,
    Row,
    Table,
    digests,
    ends,
    formatted,
    interval,
    of_ratio,
    plain_columns,
    with_origin,
)
from analysis.tables.units import prefixed
from records.campaign import Campaign

#: How many rows a note names.
MOST_NAMED = 3
FORMULA = "geometric mean over paired rounds of the ratio to the base, averaged over message sizes"


def median_table(
    comparison: Comparison, experiment: str, cells: Sequence[Cell] | None = None
) -> Table:
    """Return the medians of an experiment's cells, or of some, at every message size."""
    about, names = metrics()[experiment], comparison.launch_names
    unit, metric = about["unit"], about["metric"]
    columns = (
        *plain_columns("experiment", "cell", "series", "oversubscribed"),
        Column("implementation", "implementation"),
        Column("message_bytes", "bytes", COUNT, "B"),
        Column(f"median_{metric}", metric, PREFIXED, unit),
        Column("interval", "interval", INTERVAL, unit,
               (f"interval_low ({unit})", f"interval_high ({unit})")),
        Column("interval_coverage", "it covers", PERCENT, "1"),
        Column("launches", "launches", COUNT, "1"), Column("launch_names"),
    )  # fmt: skip
    rows = [
        Row(
            (
                experiment, cell.launch_cell, cell.series, cell.oversubscribed, name,
                one.message_bytes, one.median, ends(one.interval), one.interval.coverage,
                len(one.launches), names.of_size(cell, name, one.message_bytes),
            ),
            name, (cell.launch_cell,),
        )
        for cell in (comparison.experiment(experiment) if cells is None else cells)
        for name, estimates in cell.estimates.items()
        for one in estimates
    ]  # fmt: skip
    title, formula = (
        f"{experiment}: {about['label']}",
        f"median over launches of: {about['formula']}",
    )
    table = Table(f"medians-{experiment}", title, columns, rows, formula=formula)
    return with_origin(table, comparison.campaign, names)


def verdict_value(verdict: Verdict) -> Marked:
    """Return the value of a verdict, with its kind as the mark."""
    return Marked(verdict.words, verdict.kind)


def of_verdict(verdict: Verdict) -> tuple[Any, Any, Marked]:
    """Return the values of a ratio, of its verdict's interval, and of the verdict."""
    return of_ratio(verdict.ratio)[0], ends(verdict.interval), verdict_value(verdict)


#: Above an interval that agrees with the verdict beside it: one of all of its family together.
INTERVAL_OF_VERDICT = "simultaneous interval"
#: A verdict of an implementation against the base.
COMPARED = (
    Column("implementations", "implementations", Kind(lambda of, _: " / ".join(of), False),
           fields=("implementation", "base")),
    *plain_columns("base_image_sha256", "launch_names", "base_launch_names"),
    Column("ratio", "ratio", RATIO, "1"),
    Column("ratio_interval", INTERVAL_OF_VERDICT, INTERVAL,
           fields=("interval_low (1)", "interval_high (1)")),
    Column("own_interval", "own 95% interval", INTERVAL,
           fields=("own_95_interval_low (1)", "own_95_interval_high (1)")),
    Column("p", "p", PROBABILITY, "1"), Column("p_adjusted", "corrected", PROBABILITY, "1"),
    Column("margin", "margin", formatted(".3g"), "1"),
    Column("p_equivalence_adjusted", "equivalence p, corrected", PROBABILITY, "1"),
    Column("paired_rounds", "paired rounds", COUNT, "1"), Column("verdict", "verdict"),
)  # fmt: skip
OF_VERDICTS = f"{FORMULA}; above 1 is better"


def compared(verdict: Verdict, name: str, digest: dict[str, str], of: Iterable[str]) -> Any:
    """Return the values of COMPARED; `of` are the launches and those of the base."""
    ratio = verdict.ratio
    value, own = of_ratio(ratio) if ratio.pairs else (None, ends(ratio.interval))
    return (
        (name, verdict.base), digest.get(verdict.base), *of, value, ends(verdict.interval), own,
        ratio.p_value,
        verdict.adjusted_p, verdict.margin, verdict.adjusted_equivalence_p, ratio.pairs,
        verdict_value(verdict),
    )  # fmt: skip


def ratio_table(
    comparison: Comparison, experiment: str, cells: Sequence[Cell] | None = None
) -> Table:
    """Return the ratios to the base, and the verdicts, of an experiment's cells, or of some."""
    digest, names = digests(comparison.campaign), comparison.launch_names
    rows = [
        Row(
            (
                experiment, cell.launch_cell, cell.series, cell.oversubscribed,
                *compared(verdict, name, digest, (
                    names.of(cell, of, cell.log_ratios[name]) for of in (name, verdict.base)
                )),
            ),
            name, (cell.launch_cell,),
        )
        for cell in (
            [cell for one in comparison.pairs for cell in one.experiment(experiment)]
            if cells is None
            else cells
        )
        for name, verdict in cell.verdicts.items()
    ]  # fmt: skip
    title = f"{experiment}: {ratios_in(comparison)}"
    columns = (*plain_columns("experiment", "cell", "series", "oversubscribed"), *COMPARED)
    table = Table(f"ratios-{experiment}", title, columns, rows, formula=OF_VERDICTS)
    return with_origin(table, comparison.campaign, names)


def ratios_in(comparison: Comparison) -> str:
    """Return in words between what the ratios of a comparison are."""
    if comparison.among_others:
        return "ratios of every two implementations"
    return f"ratios to {comparison.base}"


def group_table(comparison: Comparison) -> Table:
    """Return the answers: one verdict over the cells of each group."""
    digest, names = digests(comparison.campaign), comparison.launch_names
    rows = [
        Row(
            (
                group.experiment, group.name, verdict.cells,
                "; ".join(dict.fromkeys(cell.launch_cell for cell in group.judged(name))),
                *compared(verdict, name, digest, (
                    names.of_group(group.judged(name), name, of) for of in (name, verdict.base)
                )),
            ),
            name, tuple(cell.launch_cell for cell in group.cells),
        )
        for one in comparison.pairs
        for group in one.groups
        for name, verdict in group.verdicts.items()
    ]  # fmt: skip
    columns = (
        Column("experiment"), Column("group"), Column("cells", unit="1"), Column("cell_names"),
        *COMPARED,
    )  # fmt: skip
    title = f"Answers: {ratios_in(comparison)}"
    table = Table("answers", title, columns, rows, formula=OF_VERDICTS)
    return with_origin(table, comparison.campaign, names)


def words_of(cell: Cell) -> str:
    """Return the values of a cell's parameters, and its series."""
    return " ".join([*map(str, cell.parameters.values()), cell.series]).rstrip()


def side_by_side(comparison: Comparison, experiment: str, with_series: bool) -> Table:
    """Return an experiment's cells with all implementations, by series if wanted.

    Medians are over the sizes of the ratios beside them, which are named; where that cannot be,
    there is none. If the two point in different directions, a note says so.
    """
    about, every = metrics()[experiment], comparison.implementations
    others = [name for name in every if name != comparison.base]
    cells = [cell for cell in comparison.experiment(experiment) if with_series or not cell.series]
    has_sizes = any(map(has_messages, cells))
    columns = (
        Column("cell", "cell"),
        *([Column("median_sizes", "medians over")] if has_sizes else []),
        *(Column(f"median of {name}", name, PREFIXED, about["unit"]) for name in every),
        *(
            column
            for name in others
            for column in (
                Column(f"ratio of {name}", f"{name} /\n{comparison.base}", RATIO, "1"),
                interval(f"ratio of {name}", INTERVAL_OF_VERDICT, "1"),
                Column(f"verdict of {name}", "verdict"),
            )
        ),
    )
    rows = []
    for cell in cells:
        sizes = sizes_beside(cell)
        verdicts = [cell.verdicts.get(one) for one in others]
        values = (
            words_of(cell),
            *([sizes_in_words(sizes)] if has_sizes else []),
            *(median_over(cell, one, sizes) for one in every),
            *(
                value
                for one in verdicts
                for value in (of_verdict(one) if one else (None, None, "not measured"))
            ),
        )
        rows.append(Row(values, cells=(cell.launch_cell,)))
    title = f"{experiment}: {about['label']}, medians over launches"
    notes = notes_on_medians(cells, others)
    return Table(f"side-by-side-{experiment}", title, columns, rows, notes)


def notes_on_medians(cells: Sequence[Cell], others: Sequence[str]) -> list[str]:
    """Return notes on medians beside ratios of some implementations to the base."""
    against = [words_of(cell) for cell in cells for one in others if contradicts(cell, one)]
    unlike = [words_of(cell) for cell in cells if not sizes_beside(cell)]
    notes = []
    if others and any(map(has_messages, cells)):
        notes.append(
            "Medians, like the ratios beside them, cover the sizes named; over several sizes they "
            "are geometric means."
        )
    if unlike:
        notes.append(
            f"No medians are given beside the ratios of {len(unlike)} ({listed(unlike)}): the "
            "implementations were not measured at the same sizes."
        )
    if against:
        notes.append(
            f"Medians point the opposite way to the ratio in {len(against)} of "
            f"{len(cells) * len(others)} ({listed(against)}): a ratio is the mean over paired "
            "rounds, and verdicts are based on ratios."
        )
    return notes


def listed(names: Sequence[str]) -> str:
    """Return the first of some names."""
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")


def has_messages(cell: Cell) -> bool:
    """Return whether a cell has sizes of messages."""
    return any(cell.message_sizes())


def sizes_beside(cell: Cell) -> list[int]:
    """Return the sizes that medians beside a cell's ratios are over: those of every ratio.

    Empty where ratios are over different sizes, of implementations or of rounds.
    """
    found = {
        frozenset(cell.values[one][number].keys() & cell.values[verdict.base][number].keys())
        for one, verdict in cell.verdicts.items()
        for number in cell.log_ratios.get(one, {})
    }
    if not found:
        # There is no ratio.
        own = [{size for of in rounds.values() for size in of} for rounds in cell.values.values()]
        found = {frozenset(set.intersection(*own) if own else ())}
    return sorted(found.pop()) if len(found) == 1 else []


def sizes_in_words(sizes: Sequence[int]) -> str | None:
    """Return sizes in bytes for people; None where there are none."""
    if not any(sizes):
        return None
    ends_ = [prefixed(float(size), "B") for size in (sizes[0], sizes[-1])]
    return ends_[0] if len(sizes) == 1 else f"{len(sizes)}: {ends_[0]} to {ends_[1]}"


def median_over(cell: Cell, implementation: str, sizes: Sequence[int]) -> float | None:
    """Return the geometric mean over sizes of an implementation's medians; None if it lacks one."""
    found = [cell.estimate(implementation, size) for size in sizes]
    medians = [one.median for one in found if one]
    if not medians or len(medians) < len(found):
        return None
    # The median itself, to the last digit.
    return medians[0] if len(medians) == 1 else statistics.geometric_mean(medians)


def contradicts(cell: Cell, implementation: str) -> bool:
    """Return whether medians contradict the direction of the ratio beside them."""
    verdict, sizes = cell.verdicts.get(implementation), sizes_beside(cell)
    if verdict is None or not verdict.ratio.pairs:
        return False
    of, base = (median_over(cell, name, sizes) for name in (implementation, verdict.base))
    if of is None or base is None:
        return False
    return direction(cell.experiment) * (of - base) * math.log(verdict.ratio.value) < 0


def one_below_the_other(comparison: Comparison, experiment: str, with_series: bool) -> Table:
    """Return the content of `side_by_side` with a row for each cell and implementation."""
    about, every = metrics()[experiment], comparison.implementations
    others = [name for name in every if name != comparison.base]
    cells = [cell for cell in comparison.experiment(experiment) if with_series or not cell.series]
    has_sizes = any(map(has_messages, cells))
    columns = (
        Column("cell", "cell"), Column("implementation", "implementation"),
        *([Column("median_sizes", "median over")] if has_sizes else []),
        Column("median", "median", PREFIXED, about["unit"]),
        Column("ratio", "ratio", RATIO, "1"), interval("ratio", INTERVAL_OF_VERDICT, "1"),
        Column("verdict", "verdict"),
    )  # fmt: skip
    rows = []
    for cell in cells:
        sizes = sizes_beside(cell)
        for name in every:
            verdict = cell.verdicts.get(name)
            is_base = name == comparison.base and cell.estimates.get(name)
            untold = "base" if is_base else "not measured"
            values = (
                words_of(cell), name, *([sizes_in_words(sizes)] if has_sizes else []),
                median_over(cell, name, sizes),
                *(of_verdict(verdict) if verdict else (None, None, untold)),
            )  # fmt: skip
            rows.append(Row(values, name, (cell.launch_cell,)))
    title = f"{experiment}: {about['label']}, medians over launches, ratios to {comparison.base}"
    notes = notes_on_medians(cells, others)
    return Table(f"one-below-the-other-{experiment}", title, columns, rows, notes)


def launch_table(campaign: Campaign) -> Table:
    """Return the launches: what ran, in which round, with which image, and the outcome."""
    columns = plain_columns(
        "campaign", "launch", "round", "experiment", "cell", "implementation", "image_sha256",
        "ranks (1)", "nodes (1)", "oversubscribed", "started_utc", "wall (s)", "outcome",
        "sentence",
    )  # fmt: skip
    rows = [
        Row((
            campaign.path.name, r.launch, r.round, r.experiment, r.cell, r.implementation,
            r.image_sha256, r.ranks, r.nodes, r.oversubscribed, r.started_utc, r.wall_s,
            r.outcome, r.sentence,
        ))
        for r in (launch.record for launch in campaign.launches)
    ]  # fmt: skip
    return Table("launches", "Launches", columns, rows)


def problem_table(campaign: Campaign) -> Table:
    """Return what was left out, and why."""
    rows = [Row((campaign.path.name, one.where, one.sentence)) for one in campaign.problems]
    return Table("left-out", "Left out", plain_columns("campaign", "where", "sentence"), rows)
