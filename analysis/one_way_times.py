"""One-way times of a campaign's ping-pongs and echoes, and the line through those of each cell."""

from __future__ import annotations

from collections import defaultdict

from analysis.campaign import Campaign
from analysis.communication_records import Communication, PingPong
from analysis.latency_bandwidth import FEWEST_SIZES, LatencyBandwidth, fit
from analysis.records import ProgramOutput
from analysis.statistics import median

Times = dict[int, list[float]]  # message size in bytes -> one-way times in seconds, by launch


#: The program that passes messages without a library.
RAW = "echo"


def one_way_times(campaign: Campaign, raw: bool = True) -> dict[tuple[str, str], Times]:
    """Return the one-way times of ping-pongs and echoes by cell and implementation.

    Without `raw` only those of a library's messages.
    """
    times: dict[tuple[str, str], Times] = defaultdict(lambda: defaultdict(list))
    for launch in campaign.sound():
        if not isinstance(launch.output, ProgramOutput):
            continue
        if launch.record.program == RAW and not raw:
            continue
        for result in launch.output.results:
            if isinstance(result, PingPong) or (
                isinstance(result, Communication) and result.operation == "echo"
            ):
                key = launch.record.cell, launch.record.implementation
                times[key][result.message_bytes].append(result.time_s.median / 2)
    return times


def lines_of_launches(campaign: Campaign) -> list[tuple[str, str, LatencyBandwidth]]:
    """Return the line of each cell and implementation, through medians over launches."""
    return [
        (cell, implementation, fit(list(times), [median(values) for values in times.values()]))
        for (cell, implementation), times in sorted(one_way_times(campaign).items())
        if len(times) >= FEWEST_SIZES
    ]
