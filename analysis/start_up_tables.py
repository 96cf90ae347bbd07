"""The parts of process start-up as tables: for the report, and to be saved."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import Any

from analysis.campaign import Campaign
from analysis.comparison import Comparison
from analysis.data_tables import DataTable, digests
from analysis.records import ProgramOutput
from analysis.start_up import start_up_times
from analysis.statistics import median

#: What each part is; what else a launch's record has in times_s is by its name alone.
PARTS = {
    "start_up": "from the launch to the last rank's integer at rank 0",
    "to_main": "from the launch to the last rank's entry of main, on rank 0's node",
    "initialisation": "the slowest rank's time in MPI_Init",
    "container": "one start of /bin/true in the same image just before the launch",
    "daemons": "from the launch until the daemons stood",
}


def parts_of(campaign: Campaign) -> dict[tuple[str, str], dict[str, list[float]]]:
    """Return the launches' times of each part, in seconds, by cell and implementation."""
    parts: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for launch in campaign.sound():
        if launch.record.experiment == "StartUp" and isinstance(launch.output, ProgramOutput):
            times = asdict(start_up_times(launch.output, launch.record.started_s()))
            for name, seconds in (times | launch.record.times_s).items():
                parts[launch.record.cell, launch.record.implementation][name].append(seconds)
    return parts


def start_up_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return a row for each cell and implementation of StartUp: medians over launches, seconds."""
    parts = parts_of(comparison.campaign)
    return [
        {
            "cell": cell,
            "implementation": name,
            "estimate": estimates[0],
            "parts": {
                part: median(values) for part, values in parts.get((cell.name, name), {}).items()
            },
        }
        for cell in comparison.experiment("StartUp")
        for name, estimates in cell.estimates.items()
    ]


def start_up_data(campaign: Campaign) -> DataTable:
    """Return the median of each part over launches, with the least and the most."""
    digest = digests(campaign)
    columns = ("campaign", "cell", "implementation", "image_sha256", "part", "median (s)",
               "least (s)", "most (s)", "launches (1)", "formula")  # fmt: skip
    rows = [
        (
            campaign.path.name, cell, name, digest.get(name), part, median(values), min(values),
            max(values), len(values), f"median over launches: {PARTS.get(part, part)}",
        )
        for (cell, name), parts in sorted(parts_of(campaign).items())
        for part, values in parts.items()
    ]  # fmt: skip
    return DataTable("start-up-parts", "Parts of process start-up", columns, rows)
