"""Models, scaling and guidelines as data: the numbers behind their tables of words, in SI units."""

from __future__ import annotations

from typing import Any

from analysis.campaign import Campaign
from analysis.data_tables import DataTable, digests
from analysis.guidelines import SUMMARY, trials_in
from analysis.launch_means import Mean
from analysis.log_gp import parameters_of
from analysis.message_models import Fitted
from analysis.model_tables import PARAMETERS, SEGMENTS
from analysis.scaling import hpl_scaled, programs_in, scaled_of
from analysis.scaling_tables import SPEEDUPS
from analysis.statistics import Interval
from analysis.text_table import file_name


def ends(interval: Interval | None) -> tuple[float | None, float | None]:
    """Return the ends of an interval, nothing where there is none."""
    return (interval.low, interval.high) if interval else (None, None)


def three(mean: Mean) -> tuple[Any, ...]:
    """Return a mean and its interval's ends."""
    return (mean.value, *ends(mean.interval))


def with_ends(name: str, unit: str) -> tuple[str, ...]:
    """Return the headers of a value and its interval's ends."""
    return tuple(f"{name}{which} ({unit})" for which in ("", "_low", "_high"))


def segment_data(campaign: Campaign, fitted: Fitted) -> DataTable:
    """Return the lines between switches."""
    digest = digests(campaign)
    columns = ("campaign", "cell", "series", "implementation", "image_sha256", "time",
               "first_bytes (B)", "last_bytes (B)", "rounds (1)", *with_ends("alpha", "s"),
               *with_ends("beta", "s/B"), *with_ends("half_bandwidth", "B"),
               "formula")  # fmt: skip
    rows = [
        (
            campaign.path.name, model.sweep.cell, model.sweep.series, model.sweep.implementation,
            digest.get(model.sweep.implementation),
            "one way" if model.sweep.one_way else "iteration", one.line.first_bytes,
            one.line.last_bytes, one.alpha.launches, *three(one.alpha), *three(one.beta),
            *three(one.half_bandwidth),
            "t = alpha + beta n by relative least squares of each round; means over rounds",
        )
        for model in fitted.models
        for one in model.segments
    ]  # fmt: skip
    return DataTable(file_name(SEGMENTS), SEGMENTS, columns, rows)


def parameter_data(campaign: Campaign, fitted: Fitted) -> DataTable:
    """Return LogGP's parameters, also those that are not told."""
    digest = digests(campaign)
    columns = ("campaign", "implementation", "image_sha256", "parameter", "unit", "rounds (1)",
               *with_ends("value", "unit"), "formula")  # fmt: skip
    parameters = parameters_of(fitted.sweeps, fitted.models)
    rows = [
        (
            campaign.path.name, one.implementation, digest.get(one.implementation), one.name,
            one.unit, one.value.launches if one.value else None,
            *(three(one.value) if one.value else (None, None, None)), one.how,
        )
        for one in parameters
    ]  # fmt: skip
    cells = [one.cells for one in parameters]
    return DataTable(file_name(PARAMETERS), PARAMETERS, columns, rows, cells)


def speedup_data(campaign: Campaign) -> DataTable:
    """Return speedups and serial parts."""
    digest = digests(campaign)
    columns = ("campaign", "program", "implementation", "image_sha256", "ranks (1)",
               "base_ranks (1)", "base (base_unit)", "base_unit", "rounds (1)",
               *with_ends("speedup", "1"), "efficiency (1)", *with_ends("serial_part", "1"),
               "formula")  # fmt: skip
    every = [*hpl_scaled(campaign), *scaled_of(programs_in(campaign))]
    rows = [
        (
            campaign.path.name, one.what, one.implementation, digest.get(one.implementation),
            one.ranks, one.base_ranks, one.base, one.unit, one.speedup.pairs, one.speedup.value,
            *ends(one.speedup.interval), one.efficiency, one.serial_part,
            *ends(one.serial_interval),
            "geometric mean over rounds of the rate over the base's; Karp and Flatt 1990",
        )
        for one in every
    ]  # fmt: skip
    cells = [one.cells for one in every]
    return DataTable(file_name(SPEEDUPS), SPEEDUPS, columns, rows, cells)


def guideline_data(campaign: Campaign) -> DataTable:
    """Return every test of a guideline."""
    digest = digests(campaign)
    columns = ("campaign", "guideline", "implementation", "image_sha256", "setting",
               "message_bytes (B)", "rounds (1)", *with_ends("factor", "1"),
               "p_one_sided (1)", "p_adjusted (1)", "violation_shown", "formula")  # fmt: skip
    tests = trials_in(campaign)
    rows = [
        (
            campaign.path.name, one.guideline, one.setting.implementation,
            digest.get(one.setting.implementation), one.setting.words, one.message_bytes,
            one.ratio.pairs, one.ratio.value, *ends(one.ratio.interval), one.p_value,
            one.adjusted_p, one.violated,
            "geometric mean over rounds of the left side's time over the right side's",
        )
        for one in tests
    ]  # fmt: skip
    return DataTable(file_name(SUMMARY), SUMMARY, columns, rows, [one.cells for one in tests])


def derived_data(campaign: Campaign, fitted: Fitted) -> list[DataTable]:
    """Return the numbers of models, scaling and guidelines."""
    return [
        segment_data(campaign, fitted), parameter_data(campaign, fitted),
        speedup_data(campaign), guideline_data(campaign),
    ]  # fmt: skip
