"""The models of messages as tables of words: ORNL's line, lines between switches, LogGP."""

from __future__ import annotations

from collections.abc import Callable

from analysis.campaign import Campaign
from analysis.figures import prefixed
from analysis.latency_bandwidth import FEWEST_SIZES, LatencyBandwidth, fit
from analysis.launch_means import AGREE, Mean, mean_of_launches, quotient_of_launches
from analysis.log_gp import parameters_of
from analysis.message_models import Fitted, SweepModel
from analysis.one_way_times import Rounds, medians, one_way_times
from analysis.protocol_switch import Line
from analysis.text_table import TextTable

SEGMENTS, PARAMETERS = "Lines between protocol switches", "LogGP parameters"

Words = Callable[[float], str]


def seconds(value: float) -> str:
    """Return seconds for people."""
    return prefixed(value, "s")


def whole_bytes(value: float) -> str:
    """Return a number of bytes for people."""
    return f"{value:,.0f} B"


def interval_of(mean: Mean, words: Words, least: float | None = None) -> str:
    """Return the interval of a mean in words; `least` is the least that the quantity can be."""
    if mean.interval is None:
        return mean.untold
    low = mean.interval.low if least is None else max(least, mean.interval.low)
    return f"{words(low)} – {words(mean.interval.high)}"


def bandwidth_words(beta: Mean) -> tuple[str, str]:
    """Return 1 / beta and its interval; a time per byte that may be 0 has no upper end."""
    if beta.value <= 0:
        return "–", "–"
    value = prefixed(1 / beta.value, "B/s")
    if beta.interval is None:
        return value, beta.untold
    low = prefixed(1 / beta.interval.high, "B/s")
    if beta.interval.low <= 0:
        return value, f"above {low}"
    return value, f"{low} – {prefixed(1 / beta.interval.low, 'B/s')}"


def half_words(alpha: Mean, beta: Mean, half: Mean) -> tuple[str, str]:
    """Return n1/2 and its interval, nothing where the line is no message's."""
    if alpha.value < 0 or beta.value <= 0:
        return "–", "–"
    return whole_bytes(half.value), interval_of(half, whole_bytes, 0.0)


def line_table(campaign: Campaign, only: str) -> TextTable | None:
    """Return latency, bandwidth and ORNL's one line through all sizes (1996, section 2.1)."""
    rows: list[tuple[str, ...]] = []
    left_out: list[str] = []
    for (cell, name), rounds in sorted(one_way_times(campaign).items()):
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
        rows.append((
            cell, name, str(len(fits)),
            seconds(measured.latency_s), whole_bytes(measured.latency_bytes),
            prefixed(measured.bandwidth, "B/s"), whole_bytes(measured.bandwidth_bytes),
            seconds(alpha.value) if alpha.value > 0 else "–",
            bandwidth_words(beta)[0], *half_words(alpha, beta, half),
        ))  # fmt: skip
    columns = ("cell", "implementation", "rounds", "latency", "at", "bandwidth", "at ", "alpha",
               "1 / beta", "n1/2", "95% interval")  # fmt: skip
    note = (
        "Latency and bandwidth: medians over launches of the smallest and the largest message. "
        "Alpha, 1 / beta and n1/2: one line through all sizes asked for by least squares, as ORNL "
        "1996 has it, also over a change of protocol; the long messages decide it. " + AGREE
    )
    notes = [note]
    if left_out:
        notes.append(f"Left out, since they lack a size that others have: {'; '.join(left_out)}.")
    title = "One line through all sizes"
    return TextTable(title, columns, rows, 2, notes) if rows or left_out else None


def fits_by_round(rounds: Rounds, sizes: list[int]) -> list[LatencyBandwidth]:
    """Return ORNL's line of each round that has every size."""
    return [
        fit(sizes, [times[size] for size in sizes])
        for times in rounds.values()
        if all(size in times for size in sizes)
    ]


def line_words(model: SweepModel, line: Line) -> str:
    """Return which line of a sweep it is."""
    return (
        f"{model.sweep.name} ({model.sweep.implementation}) between {line.first_bytes:,} and "
        f"{line.last_bytes:,} bytes"
    )


def segment_table(models: list[SweepModel]) -> TextTable:
    """Return the lines between switches, with their intervals over launches."""
    rows: list[tuple[str, ...]] = []
    shared = False
    left_out: list[str] = []
    for model in models:
        jumps = {one.above_bytes: one for one in model.switches}
        for segment in model.segments:
            line = segment.line
            jump = jumps.get(line.first_bytes)
            mark = "*" if jump and jump.below_bytes in model.sweep.borders else ""
            shared = shared or bool(mark)
            if segment.left_out:
                every = segment.left_out + segment.alpha.launches
                left_out.append(f"{segment.left_out} of {every} of {line_words(model, line)}")
            rows.append((
                model.sweep.name, model.sweep.implementation,
                "one way" if model.sweep.one_way else "iteration",
                f"{line.first_bytes:,} – {line.last_bytes:,}",
                f"x {jump.jump:.2f}{mark}" if jump else "–",
                str(segment.alpha.launches),
                seconds(segment.alpha.value), interval_of(segment.alpha, seconds),
                *bandwidth_words(segment.beta),
                *half_words(segment.alpha, segment.beta, segment.half_bandwidth),
            ))  # fmt: skip
        left_out += [
            f"all of {line_words(model, line)}, which is no row" for line in model.unfitted
        ]
    notes = [
        "Each line t(n) = alpha + beta n is by least squares of relative errors, between the "
        "switches that the medians over launches show (Liu, Wu, Zidek 1997). A round's own fit, "
        "at the sizes that it has there, is one value; values are means over rounds, intervals "
        "Student's, that of n1/2 Fieller's. "
        "“–” for an interval: a single round, or a time per byte that is not told from 0; for "
        "n1/2: an alpha below 0, which no message has. "
        + AGREE
        + " The jump is the time after the "
        "switch over that before.",
    ]
    if shared:
        notes.append(
            "* Sizes below and above are of different launches: what differs may be the launch."
        )
    if left_out:
        notes.append(
            "Rounds left out, since they have fewer than three sizes of the line, or none twice "
            f"another: {'; '.join(left_out)}."
        )
    columns = ("cell", "implementation", "time", "bytes", "jump", "rounds", "alpha",
               "95% interval", "1 / beta", "95% interval ", "n1/2", "95% interval  ")  # fmt: skip
    return TextTable(SEGMENTS, columns, rows, 3, notes)


def parameter_table(fitted: Fitted) -> TextTable | None:
    """Return LogGP's parameters of each implementation."""
    rows: list[tuple[str, ...]] = []
    parameters = parameters_of(fitted.sweeps, fitted.models)
    for one in parameters:
        if one.value is None:
            rows.append((one.implementation, one.name, "–", "–", "–", one.how))
            continue

        def words(value: float, unit: str = one.unit) -> str:
            return prefixed(value, unit)

        rows.append((
            one.implementation, one.name, str(one.value.launches), words(one.value.value),
            interval_of(one.value, words), one.how,
        ))  # fmt: skip
    columns = ("implementation", "parameter", "rounds", "value", "95% interval", "how")
    note = (
        "L: latency; o_s, o_r: overhead of sender and receiver; g: gap between messages; G: gap "
        "between bytes; gamma: time to reduce a byte. Means over rounds, intervals Student's. "
        + AGREE
    )
    cells = [one.cells for one in parameters]
    return TextTable(PARAMETERS, columns, rows, 2, [note], cells) if rows else None


def model_tables(campaign: Campaign, fitted: Fitted, only: str = "") -> list[TextTable]:
    """Return the tables of models of the cells that have `only` in their names.

    `fitted` are the models of the same cells.
    """
    line = line_table(campaign, only)
    tables = [line] if line else []
    if fitted.models:
        tables.append(segment_table(fitted.models))
    parameters = None if only else parameter_table(fitted)
    return [*tables, parameters] if tables and parameters else tables
