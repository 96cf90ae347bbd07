"""A campaign's medians for what centres already watch: OpenMetrics, and Bencher's JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from analysis.comparison.metrics import metrics
from analysis.comparison.result import Comparison
from analysis.tables.csv import plain
from inference.estimates import Estimate

#: Units in the words that names of OpenMetrics end with.
IN_WORDS = {
    "s": "seconds", "B/s": "bytes_per_second", "FLOP/s": "flops_per_second",
    "op/s": "operations_per_second", "1/s": "per_second",
}  # fmt: skip


def estimates(comparison: Comparison) -> Iterator[tuple[str, str, str, Estimate]]:
    """Yield each median: its experiment, its cell, its implementation and itself."""
    for cell in comparison.cells:
        for name, found in cell.estimates.items():
            for one in found:
                yield cell.experiment, cell.launch_cell, name, one


def escaped(text: object) -> str:
    """Return a text as the value of a label of OpenMetrics."""
    words = " ".join(plain(text).split())
    return words.replace("\\", "\\\\").replace('"', '\\"')


def labelled(**labels: object) -> str:
    """Return labels in their brackets."""
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"


def openmetrics(comparison: Comparison) -> str:
    """Return the medians and their intervals as a text file of OpenMetrics.

    A scrape tells the time itself: when the campaign was begun is a value of its own.
    """
    manifest = comparison.campaign.manifest
    families: dict[str, list[str]] = {}
    for experiment, cell, name, one in estimates(comparison):
        about = metrics()[experiment]
        unit = str(about["unit"])
        family = f"wyeast_{about['metric']}_{IN_WORDS.get(unit, 'value')}"
        lines = families.setdefault(family, [])
        values = {"median": one.median}
        if one.interval.coverage:
            values |= {"low": one.interval.low, "high": one.interval.high}
        for statistic, value in values.items():
            labels = labelled(
                site=manifest.site, tier=manifest.tier, experiment=experiment, cell=cell,
                implementation=name, message_bytes=one.message_bytes, statistic=statistic,
            )  # fmt: skip
            lines.append(f"{family}{labels} {value!r}")
    created = datetime.fromisoformat(manifest.created_utc).timestamp()
    begun = "wyeast_campaign_begun_timestamp_seconds"
    whose = labelled(site=manifest.site, tier=manifest.tier, campaign=manifest.campaign)
    families[begun] = [f"{begun}{whose} {created!r}"]
    help_of = {begun: "When the campaign was begun."}
    common = "Median over launches, and its interval of 95% or what so few launches allow."
    lines = [
        line
        for family, samples in families.items()
        for line in (f"# HELP {family} {help_of.get(family, common)}", f"# TYPE {family} gauge",
                     *samples)
    ]  # fmt: skip
    return "\n".join([*lines, "# EOF", ""])


def bencher(comparison: Comparison) -> str:
    """Return the medians and their intervals in Bencher's metric format, JSON."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for experiment, cell, name, one in estimates(comparison):
        about = metrics()[experiment]
        size = f", {one.message_bytes} B" if one.message_bytes else ""
        value = {"value": one.median}
        if one.interval.coverage:
            value |= {"lower_value": one.interval.low, "upper_value": one.interval.high}
        measure = f"{about['metric']} ({about['unit']})"
        found[" ".join(plain(f"{cell}{size}, {name}").split())] = {measure: value}
    return json.dumps(found, indent=1) + "\n"
