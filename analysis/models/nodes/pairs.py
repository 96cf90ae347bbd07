"""Which nodes and links of a campaign are slow or unstable, by its messages between all pairs.

The logarithm of a pair's time is that of its base, what either node adds and what the link between
them adds (`inference/shared_effects.py`). Nodes and links are compared with those of this campaign,
not with what was promised: where all are slow, none is named.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import yaml
from pydantic import BaseModel, ConfigDict, Field

from inference.frequent_events import Culprit, culprits
from inference.shared_effects import Effect, effects_of
from records.bounded import TakesTooLong, ended_after
from records.campaign import Campaign
from records.node_pairs import NodePairsRound
from records.program_output import ProgramOutput

Measure = Literal["latency", "bandwidth"]
MEASURES: tuple[Measure, Measure] = ("latency", "bandwidth")
NodeVerdict = Literal["slow", "unstable", "fine", "not determined"]
#: Of a processor, in s, what the patterns of a topology may take; honest ones take thousandths.
MOST_MATCHING_S = 2.0
#: Slow and unstable, by latency and by bandwidth.
LOOKS = 4
#: A pair's time is that of the quarter of its sweeps in which it was quickest: what disturbs some
#: sweeps is no slow link, and with thousands of pairs chance disturbs some of them often.
QUARTILE = 0.25
#: With fewer sweeps it cannot be said which were disturbed.
FEWEST_SWEEPS = 4
#: A pair of nodes by their places in the order of names, the lower one first.
Pair = tuple[int, int]


class Thresholds(BaseModel):
    """When a node or link is slow, unstable or fine (verdicts.yaml, which explains them)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    slower: Annotated[float, Field(gt=0, lt=10)]
    level: Annotated[float, Field(gt=0, lt=0.5)]
    disturbed: Annotated[float, Field(gt=0, lt=1)]
    times_others: Annotated[float, Field(ge=1)]

    @property
    def least(self) -> float:
        """Return the logarithm of the ratio of times from which on a node or link is slow."""
        return math.log(1 + self.slower)


@cache
def thresholds() -> Thresholds:
    """Return the thresholds of verdicts.yaml."""
    text = Path(__file__).with_name("verdicts.yaml").read_text()
    return Thresholds.model_validate(yaml.safe_load(text))


@dataclass(frozen=True)
class PairTimes:
    """One measure's times in s between nodes: for each way, one of each sweep; NaN: not measured.

    `seconds` is by (from, to), the median of a sweep's iterations, and `means` their mean; all have
    as many sweeps. `transfer_bytes` pass in one of the times.
    """

    seconds: Mapping[Pair, Sequence[float]]
    means: Mapping[Pair, Sequence[float]]
    transfer_bytes: int

    def typical(self, way: Pair) -> float:
        """Return a way's median time in s over the sweeps."""
        return float(np.nanmedian(self.seconds[way]))


@dataclass(frozen=True)
class Judged:
    """The finding on a node or a link: by how much it is slower, and where it is disturbed."""

    names: tuple[str, ...]
    verdict: NodeVerdict
    slower: Mapping[Measure, Effect]
    disturbed: Mapping[Measure, Culprit]

    @property
    def name(self) -> str:
        """Return its name."""
        return " – ".join(self.names)

    @property
    def because(self) -> tuple[Measure, ...]:
        """Return by which measures it is slow or unstable."""
        if self.verdict == "unstable":
            return tuple(self.disturbed)
        return tuple(one for one, effect in self.slower.items() if effect.shown)


@dataclass(frozen=True)
class JudgedPairs:
    """What launches of one kind measured, and what follows; nodes in the order of the topology."""

    together: bool
    nodes: tuple[str, ...]
    switches: tuple[str, ...]
    times: Mapping[Measure, PairTimes]
    of_nodes: list[Judged]
    of_links: list[Judged]
    sweeps: int
    oversubscribed: bool
    #: How many of the rounds of a whole tournament were measured.
    rounds: int
    all_rounds: int
    cells: tuple[str, ...]

    @property
    def named(self) -> list[Judged]:
        """Return the nodes and links that are slow or unstable."""
        return [one for one in self.of_nodes + self.of_links if one.verdict in ("slow", "unstable")]


def topology_of(campaign: Campaign) -> Mapping[str, Sequence[str]]:
    """Return the patterns of nodes' names by switch that the campaign's site has, if any."""
    found: Mapping[str, Sequence[str]] = (campaign.manifest.site_data or {}).get("topology") or {}
    return found


def switches_of(
    nodes: Iterable[str], topology: Mapping[str, Sequence[str]], most_s: float = MOST_MATCHING_S
) -> dict[str, str]:
    """Return the switch of each node, whose patterns match its name; empty if none does.

    The patterns may be a bundle's, and never come to an end, or be none: then no switch is known.
    """
    nodes = list(nodes)
    try:
        with ended_after(most_s):
            return {
                node: next(
                    (switch for switch, patterns in topology.items()
                     if any(re.search(pattern, node) for pattern in patterns)), "",
                )
                for node in nodes
            }  # fmt: skip
    except (TakesTooLong, re.error, RecursionError, OverflowError):
        return dict.fromkeys(nodes, "")


def in_order(nodes: Sequence[str], topology: Mapping[str, Sequence[str]]) -> list[str]:
    """Return nodes by their switches, in the topology's order, then by name with its numbers."""
    places = [*topology, ""]
    switches = switches_of(nodes, topology)

    def key(node: str) -> tuple[int, list[tuple[int, str]]]:
        # Each number by its length and its digits: it may have more than Python reads as one.
        parts = [part.lstrip("0") if place % 2 else part
                 for place, part in enumerate(re.split(r"(\d+)", node))]  # fmt: skip
        return places.index(switches[node]), [
            (len(part) if place % 2 else 0, part) for place, part in enumerate(parts)
        ]

    return sorted(nodes, key=key)


def logs_of(
    seconds: Mapping[Pair, Sequence[float]],
) -> tuple[list[Pair], npt.NDArray[np.float64]]:
    """Return the pairs, and of each the logarithm of its time by sweep, the mean of both ways'.

    What slows all pairs of a sweep down is no pair's, and is taken off: the lower quartile over
    pairs of how much longer than at their quickest they take. So a node that half of the pairs
    belong to, as of four nodes, does not hide itself, and pairs that are always slow have no say.
    """
    pairs = sorted({way for way in seconds if way[0] < way[1]})
    there, back = (
        np.log(np.array([seconds[way] for way in ways], dtype=float))
        for ways in (pairs, [(b, a) for a, b in pairs])
    )
    logs = (there + back) / 2
    # A sweep in which nothing was measured says nothing of the others.
    measured = np.isfinite(logs).any(axis=0)
    longer = logs[:, measured] - np.nanmin(logs, axis=1)[:, None]
    of_all = lower_quartile(longer, 0)
    logs[:, measured] += np.median(of_all) - of_all
    return pairs, logs


def lower_quartile(logs: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
    """Return the lower quartile of what was measured, along an axis."""
    # What leaves NaN out goes through all rows one by one, which takes seconds of thousands.
    of = np.nanquantile if np.isnan(logs).any() else np.quantile
    return np.asarray(of(logs, QUARTILE, axis=axis), dtype=float)


def under_switches(pairs: Sequence[Pair], switches: Sequence[str]) -> list[int]:
    """Return of each pair 0 if its nodes are under one switch, else 1."""
    return [int(switches[a] != switches[b]) for a, b in pairs]


def unstable(times: PairTimes, switches: Sequence[str]) -> dict[tuple[int, ...], Culprit]:
    """Return the nodes and links of which more sweeps are disturbed than of others.

    Links are compared with those that are under one switch, or not, as they are.

    A disturbed one takes longer than the pair does in its quickest quarter, by what is slow: the
    very quickest may be one in which others were disturbed, and would have disturbed all that
    follow. By the mean of a sweep's iterations: of many short ones a core that is taken away
    lengthens few, and their median not at all.
    """
    pairs, logs = logs_of(times.means)
    usual = lower_quartile(logs, 1)
    seen = np.isfinite(logs)
    limits = thresholds()
    happened = (logs > usual[:, None] + limits.least) & seen
    if seen.sum(axis=1).min() < FEWEST_SWEEPS:
        return {}
    found = culprits(
        pairs, happened.sum(axis=1).tolist(), seen.sum(axis=1).tolist(), len(switches),
        least_share=limits.disturbed, least_ratio=limits.times_others, level=limits.level / LOOKS,
        classes=under_switches(pairs, switches),
    )  # fmt: skip
    return {one.members: one for one in found}


def slower(
    seconds: Mapping[Pair, Sequence[float]],
    switches: Sequence[str],
    without: Collection[tuple[int, ...]],
) -> dict[tuple[int, ...], Effect]:
    """Return what nodes and links add to times; not of links that are unstable or of such nodes."""
    pairs, logs = logs_of(seconds)
    steady = [
        place for place, (a, b) in enumerate(pairs)
        if not {(a,), (b,), (a, b)}.intersection(without)
    ]  # fmt: skip
    numbers = lower_quartile(logs, 1)[steady]
    kept = [pairs[place] for place in steady]
    repeated = logs[steady].T
    repeated = repeated[np.isfinite(repeated).all(axis=1)]
    limits = thresholds()
    effects = effects_of(
        kept, numbers.tolist(), len(switches), least=limits.least, level=limits.level / LOOKS,
        classes=under_switches(kept, switches), repeated=repeated,
    )  # fmt: skip
    return {one.members: one for one in effects.members + effects.pairs}


def verdict_of(
    slower: Mapping[Measure, Effect], disturbed: Mapping[Measure, Culprit]
) -> NodeVerdict:
    """Return the verdict; `fine` has to be shown by both measures."""
    if disturbed:
        return "unstable"
    if any(one.shown for one in slower.values()):
        return "slow"
    limit = thresholds().least
    if len(slower) == len(MEASURES) and all(one.high < limit for one in slower.values()):
        return "fine"
    return "not determined"


def judge(
    nodes: Sequence[str], switches: Sequence[str], times: Mapping[Measure, PairTimes]
) -> tuple[list[Judged], list[Judged]]:
    """Return the verdicts of all nodes and of all links between them that were measured."""
    culprits_by = {measure: unstable(one, switches) for measure, one in times.items()}
    # A node or link that is unstable by one measure is no reference for the other either.
    without = {members for found in culprits_by.values() for members in found}
    # Bandwidth is what passed in all the time: of few long transfers the median does not tell of a
    # core that is taken away in some of them. Of many short round trips the mean is mostly that.
    effects_by = {
        measure: slower(one.means if measure == "bandwidth" else one.seconds, switches, without)
        for measure, one in times.items()
    }
    links = sorted({way for one in times.values() for way in one.seconds if way[0] < way[1]})
    judged = []
    for members in [*((place,) for place in range(len(nodes))), *links]:
        slow = {one: found[members] for one, found in effects_by.items() if members in found}
        disturbed = {one: found[members] for one, found in culprits_by.items() if members in found}
        names = tuple(nodes[place] for place in members)
        judged.append(Judged(names, verdict_of(slow, disturbed), slow, disturbed))
    return judged[: len(nodes)], judged[len(nodes) :]


def rounds_in(campaign: Campaign) -> Iterator[tuple[str, bool, list[str], list[NodePairsRound]]]:
    """Yield each launch's cell, whether ranks waited for processors, hosts and rounds."""
    for launch in campaign.sound():
        if isinstance(launch.output, ProgramOutput):
            rounds = [one for one in launch.output.results if isinstance(one, NodePairsRound)]
            if rounds:
                record = launch.record
                yield record.cell, record.oversubscribed, launch.output.header.hosts, rounds


def node_pairs_in(campaign: Campaign) -> list[JudgedPairs]:
    """Return the findings on a campaign's nodes: by pairs together, and by pairs alone.

    Sweeps of all launches count alike, whatever implementation sent the messages.
    """
    topology = topology_of(campaign)
    found = []
    for together in (True, False):
        launches = [
            one for one in rounds_in(campaign)
            if all((r.at_once == len(r.source) // 2 > 1 or len(one[2]) < 4) == together
                   for r in one[3])
        ]  # fmt: skip
        if launches:
            found.append(judged_launches(launches, topology, together))
    return found


def judged_launches(
    launches: Sequence[tuple[str, bool, list[str], list[NodePairsRound]]],
    topology: Mapping[str, Sequence[str]],
    together: bool,
) -> JudgedPairs:
    """Return what launches of one kind show together about their nodes."""
    nodes = in_order(sorted({host for _, _, hosts, _ in launches for host in hosts}), topology)
    place = {name: number for number, name in enumerate(nodes)}
    sweeps: list[tuple[int, int]] = []
    seconds: dict[Measure, dict[Pair, dict[tuple[int, int], tuple[float, float]]]] = {
        measure: defaultdict(dict) for measure in MEASURES
    }
    transfer = dict.fromkeys(MEASURES, 0)
    for number, (_, _, hosts, rounds) in enumerate(launches):
        for one in rounds:
            sweep = (number, one.sweep)
            if sweep not in sweeps[-1:]:
                sweeps.append(sweep)
            transfer[one.measure] = one.messages * one.message_bytes
            for source, to, *both in zip(
                one.source, one.to, one.median_s, one.means_s, strict=True
            ):
                way = (place[hosts[source]], place[hosts[to]])
                # Ranks of one node, by a launch that had several there, are no pair of nodes.
                if way[0] != way[1]:
                    seconds[one.measure][way][sweep] = (both[0], both[1])
    unseen = (math.nan, math.nan)

    def of_sweeps(of: Mapping[tuple[int, int], tuple[float, float]], which: int) -> list[float]:
        return [of.get(sweep, unseen)[which] for sweep in sweeps]

    times = {
        measure: PairTimes(
            {way: of_sweeps(of, 0) for way, of in ways.items()},
            {way: of_sweeps(of, 1) for way, of in ways.items()},
            transfer[measure],
        )
        for measure, ways in seconds.items()
        if ways
    }
    switches = tuple(switches_of(nodes, topology).values())
    of_nodes, of_links = judge(nodes, switches, times)
    return JudgedPairs(
        together, tuple(nodes), switches, times, of_nodes, of_links, len(sweeps),
        any(waited for _, waited, _, _ in launches),
        max(len({one.round for one in rounds}) for _, _, _, rounds in launches),
        max(one.rounds for _, _, _, rounds in launches for one in rounds),
        tuple(dict.fromkeys(cell for cell, _, _, _ in launches)),
    )  # fmt: skip
