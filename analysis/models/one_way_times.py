"""One-way times of a campaign's ping-pongs and echoes, and the line through those of each cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from inference.intervals import median
from inference.latency_bandwidth import FEWEST_SIZES, LatencyBandwidth, fit
from records.campaign import Campaign
from records.communication import Communication, PingPong
from records.program_output import ProgramOutput

#: round -> message size in bytes -> time in seconds: what the launches of one round measured.
RoundsBySize = dict[int, dict[int, float]]

#: The program that passes messages without a library.
RAW = "echo"


def one_way_times(campaign: Campaign) -> dict[tuple[str, str], RoundsBySize]:
    """Return the one-way times of ping-pongs and echoes by cell and implementation.

    At the requested sizes: one line through all sizes uses the same ones in every round.
    """
    times: dict[tuple[str, str], RoundsBySize] = defaultdict(lambda: defaultdict(dict))
    for launch in campaign.sound():
        if not isinstance(launch.output, ProgramOutput):
            continue
        record, added = launch.record, launch.output.added_sizes()
        for result in launch.output.results:
            if (isinstance(result, PingPong) and result.message_bytes not in added) or (
                isinstance(result, Communication) and result.operation == "echo"
            ):
                of_round = times[record.cell, record.implementation][record.round]
                of_round[result.message_bytes] = result.time_s.median / 2
    return times


def medians(rounds: RoundsBySize) -> dict[int, float]:
    """Return the median over rounds at each message size, in ascending order of size."""
    by_size: dict[int, list[float]] = defaultdict(list)
    for times in rounds.values():
        for size, seconds in times.items():
            by_size[size].append(seconds)
    return {size: median(by_size[size]) for size in sorted(by_size)}


def lines_of_launches(
    times: Mapping[tuple[str, str], RoundsBySize],
) -> list[tuple[str, str, LatencyBandwidth]]:
    """Return the line of each cell and implementation, through medians over launches."""
    return [
        (cell, implementation, fit(list(of), list(of.values())))
        for (cell, implementation), rounds in sorted(times.items())
        if len(of := medians(rounds)) >= FEWEST_SIZES
    ]
