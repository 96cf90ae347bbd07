"""The models of messages as tables: ORNL's line, lines between switches, LogGP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.models.log_gp import parameters_of
from analysis.models.messages import Fitted, SweepModel
from analysis.models.one_way_times import RoundsBySize, medians
from analysis.tables.table import (
    COUNT,
    INTERVAL,
    JOINED,
    NOTHING,
    PREFIXED,
    WHOLE_BYTES,
    Column,
    Kind,
    Printed,
    Row,
    Table,
    ends,
    interval,
    unseen,
)
from analysis.tables.units import prefixed
from inference.latency_bandwidth import FEWEST_SIZES, LatencyBandwidth, fit
from inference.means import AGREE, Mean, mean_of_launches, quotient_of_launches
from inference.protocol_switch import FittedLine
from records.experiments import serving


def interval_of_half(ends: tuple[float, float], _: str) -> str:
    """Return the interval of n1/2, which is at least 0, as text."""
    return f"{max(0.0, ends[0]):,.0f} B – {ends[1]:,.0f} B"


def interval_of_bandwidth(ends: tuple[float, float | None], unit: str) -> str:
    """Return the interval of 1 / beta; a time per byte that may be 0 has no upper end."""
    low, high = ends
    return f"above {prefixed(low, unit)}" if high is None else INTERVAL.words(ends, unit)


#: A start-up, which is none below 0; columns of a line t(n) = alpha + beta n for people.
START_UP = Kind(lambda value, unit: prefixed(value, unit) if value > 0 else NOTHING)
BANDWIDTH = (
    Column("asymptotic_bandwidth", "1 / beta", PREFIXED, "B/s"),
    interval("asymptotic_bandwidth", "95% interval", "B/s", Kind(interval_of_bandwidth)),
)
HALF = (
    Column("half_bandwidth", "n1/2", WHOLE_BYTES, "B"),
    interval("half_bandwidth", "95% interval", "B", Kind(interval_of_half)),
)
BETA = (Column("beta", None, PREFIXED, "s/B"), unseen(interval("beta", "", "s/B")))


def bandwidth_cells(beta: Mean) -> tuple[Any, Any]:
    """Return 1 / beta and its interval, whose upper end is None if beta may be 0."""
    if beta.value <= 0:
        return None, None
    if beta.interval is None:
        return 1 / beta.value, ends(beta)
    high = 1 / beta.interval.low if beta.interval.low > 0 else None
    return 1 / beta.value, (1 / beta.interval.high, high)


def half_cells(alpha: Mean, beta: Mean, half: Mean) -> tuple[Any, Any]:
    """Return n1/2 and its interval, empty as text if the line cannot be that of messages."""
    if alpha.value < 0 or beta.value <= 0:
        return Printed(half.value), Printed(half.interval and ends(half))
    return half.value, ends(half)


def line_table(one_way: Mapping[tuple[str, str], RoundsBySize], only: str) -> Table | None:
    """Return latency, bandwidth and ORNL's one line through all sizes (1996, section 2.1)."""
    rows: list[Row] = []
    left_out: list[str] = []
    for (cell, name), rounds in sorted(one_way.items()):
        times = medians(rounds)
        if len(times) < FEWEST_SIZES or only not in cell:
            continue
        measured = fit(list(times), list(times.values()))
        fits = fits_by_round(rounds, list(times))
        if len(fits) < len(rounds):
            left_out.append(f"{len(rounds) - len(fits)} of {len(rounds)} of {cell} ({name})")
        if not fits:
            continue
        alphas, betas = [f.alpha_s for f in fits], [f.beta_s_per_byte for f in fits]
        alpha, beta = mean_of_launches(alphas), mean_of_launches(betas)
        half = quotient_of_launches(alphas, betas)
        values = (
            cell, name, len(fits),
            measured.latency_s, measured.latency_bytes,
            measured.bandwidth, measured.bandwidth_bytes, alpha.value, ends(alpha),
            beta.value, ends(beta), *bandwidth_cells(beta), *half_cells(alpha, beta, half),
        )  # fmt: skip
        rows.append(Row(values, name, (cell,)))
    columns = (
        Column("cell", "cell"), Column("implementation", "implementation"),
        Column("rounds", "rounds", COUNT, "1"), Column("latency", "latency", PREFIXED, "s"),
        Column("latency_bytes", "at", WHOLE_BYTES, "B"),
        Column("bandwidth", "bandwidth", PREFIXED, "B/s"),
        Column("bandwidth_bytes", "at", WHOLE_BYTES, "B"),
        Column("alpha", "alpha", START_UP, "s"), unseen(interval("alpha", "", "s")), *BETA,
        BANDWIDTH[0], unseen(BANDWIDTH[1]), *HALF,
    )  # fmt: skip
    note = (
        "Latency and bandwidth: medians over launches of the smallest and the largest message. "
        "Alpha, 1 / beta and n1/2: one line through all requested sizes by least squares, as in "
        "ORNL 1996, even across a change of protocol; the long messages dominate it. " + AGREE
    )
    notes = [note]
    if left_out:
        notes.append(f"Left out because they lack a size that others have: {'; '.join(left_out)}.")
    table = Table("one-line-through-all-sizes", "One line through all sizes", columns, rows, notes)
    return table if rows or left_out else None


def fits_by_round(rounds: RoundsBySize, sizes: list[int]) -> list[LatencyBandwidth]:
    """Return ORNL's line of each round that has every size."""
    return [
        fit(sizes, [times[size] for size in sizes])
        for times in rounds.values()
        if all(size in times for size in sizes)
    ]


def line_words(model: SweepModel, line: FittedLine) -> str:
    """Return which line of a sweep it is."""
    return (
        f"{model.sweep.name} ({model.sweep.implementation}) between {line.first_bytes:,} and "
        f"{line.last_bytes:,} bytes"
    )


def segment_table(models: list[SweepModel]) -> Table:
    """Return the lines between switches, with their intervals over launches."""
    rows: list[Row] = []
    shared = False
    left_out: list[str] = []
    for model in models:
        jumps = {one.above_bytes: one for one in model.switches}
        for segment in model.segments:
            line = segment.line
            jump = jumps.get(line.first_bytes)
            other = bool(jump and jump.below_bytes in model.sweep.borders)
            shared = shared or other
            if segment.left_out:
                every = segment.left_out + segment.alpha.launches
                left_out.append(f"{segment.left_out} of {every} of {line_words(model, line)}")
            values = (
                (model.sweep.cell, model.sweep.series), model.sweep.implementation,
                "one way" if model.sweep.one_way else "iteration",
                (line.first_bytes, line.last_bytes), (jump.jump, other) if jump else None,
                segment.alpha.launches, segment.alpha.value, ends(segment.alpha),
                segment.beta.value, ends(segment.beta), *bandwidth_cells(segment.beta),
                *half_cells(segment.alpha, segment.beta, segment.half_bandwidth),
            )  # fmt: skip
            rows.append(Row(values, model.sweep.implementation, model.sweep.cells))
        left_out += [
            f"all of {line_words(model, line)}, which has no row" for line in model.unfitted
        ]
    notes = [
        "Each line t(n) = alpha + beta n is fitted by least squares of relative errors, between "
        "the switches that the medians over launches show (Liu, Wu, Zidek 1997). The fit of each "
        "round, at the sizes it has on that line, is one value; the table gives means over rounds "
        "with Student's intervals, for n1/2 Fieller's. "
        "“–” for an interval: a single round, or a time per byte that cannot be distinguished "
        "from 0; for n1/2: a negative alpha, which no message can have. "
        + AGREE
        + " The jump is the time after the switch over the time before it.",
    ]
    if shared:
        notes.append(
            "* Sizes below and above come from different launches, so the difference may be one "
            "between launches."
        )
    if left_out:
        notes.append(
            "Rounds left out because they have fewer than three sizes on the line, or none twice "
            f"as large as another: {'; '.join(left_out)}."
        )
    columns = (
        Column("cell", "cell", JOINED, fields=("cell", "series")),
        Column("implementation", "implementation"), Column("time", "time"),
        Column("sizes", "bytes", Kind(lambda of, _: f"{of[0]:,} – {of[1]:,}"),
               fields=("first_bytes (B)", "last_bytes (B)")),
        Column("jump", "jump", Kind(lambda of, _: f"x {of[0]:.2f}{'*' if of[1] else ''}"),
               fields=("jump (1)", "jump_between_launches")),
        Column("rounds", "rounds", COUNT, "1"), Column("alpha", "alpha", PREFIXED, "s"),
        interval("alpha", "95% interval", "s"), *BETA, *BANDWIDTH, *HALF,
    )  # fmt: skip
    formula = "t = alpha + beta n by relative least squares of each round; means over rounds"
    title = "Lines between protocol switches"
    return Table("lines-between-protocol-switches", title, columns, rows, notes, formula)


def parameter_table(fitted: Fitted) -> Table | None:
    """Return LogGP's parameters of each implementation."""
    rows = [
        Row(
            (
                one.implementation, one.name, one.unit or None,
                one.value.launches if one.value else None,
                one.value.value if one.value else None, ends(one.value), one.how,
            ),
            one.implementation, one.cells,
        )
        for one in parameters_of(fitted.sweeps, fitted.models)
    ]  # fmt: skip
    columns = (
        Column("implementation", "implementation"), Column("parameter", "parameter"),
        Column("unit"), Column("rounds", "rounds", COUNT, "1"),
        Column("value", "value", PREFIXED, "unit"), interval("value", "95% interval", "unit"),
        Column("formula", "how"),
    )  # fmt: skip
    note = (
        "L: latency; o_s, o_r: overhead of sender and receiver; g: gap between messages; G: gap "
        "between bytes; gamma: time to reduce a byte. Means over rounds, intervals Student's. "
        + AGREE
    )
    table = Table(
        "loggp-parameters", "LogGP parameters", columns, rows, [note], experiments=serving("loggp")
    )
    return table if rows else None


def model_tables(fitted: Fitted, only: str = "") -> list[Table]:
    """Return the tables of models of the cells that have `only` in their names.

    `fitted` are the models of the same cells.
    """
    line = line_table(fitted.one_way, only)
    tables = [line] if line else []
    if fitted.models:
        tables.append(segment_table(fitted.models))
    parameters = None if only else parameter_table(fitted)
    return [*tables, parameters] if tables and parameters else tables
