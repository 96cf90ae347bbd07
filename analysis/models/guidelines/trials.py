"""Tests of guidelines on a campaign's times.

A violation is shown only by paired rounds: one-sided Student's test on the logarithms of the
rounds' factors, Holm's correction over all tests of the campaign.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from statistics import geometric_mean

from analysis.comparison.oversubscription import without_waiting
from analysis.models.guidelines.declared import declared
from inference.intervals import Ratio, holm, median, paired_ratio
from records.campaign import Campaign
from records.communication import Communication
from records.launch import Launch
from records.limits.plausibility import clock_resolution, limited_by_clock
from records.program_output import ProgramOutput

ALPHA = 0.05


@dataclass(frozen=True)
class Setting:
    """What must be equal for operations to be compared: participants, and the state of caches."""

    implementation: str
    ranks: int
    nodes: int
    group: str
    scrub_bytes: int


#: (operation, bytes) -> round -> seconds.
Times = dict[tuple[str, int], dict[int, float]]
#: setting -> (operation, bytes) -> the cells that it was measured in.
CellsOf = dict[Setting, dict[tuple[str, int], set[str]]]


@dataclass(frozen=True)
class Trial:
    """An operation over its upper bound, by rounds; a `ratio` above 1 speaks against it."""

    guideline: str
    setting: Setting
    message_bytes: int
    ratio: Ratio
    #: One-sided, that the ratio is above 1; None below two rounds.
    p_value: float | None
    adjusted_p: float | None = None
    #: Which operations it compares at which sizes, and the cells that they were measured in.
    terms: tuple[tuple[str, int], ...] = ()
    cells: tuple[str, ...] = ()

    @property
    def violated(self) -> bool:
        """Return whether a violation is shown."""
        return self.adjusted_p is not None and self.adjusted_p < ALPHA


def collectives_in(campaign: Campaign) -> Iterator[tuple[Launch, Setting, Communication]]:
    """Yield the collective operations of a campaign, without cells whose ranks waited."""
    for launch in without_waiting(campaign):
        record, output = launch.record, launch.output
        if not isinstance(output, ProgramOutput):
            continue
        scrub = output.header.parameters.get("scrub_bytes", 0)
        for result in output.results:
            if not isinstance(result, Communication) or output.header.program != "collective":
                continue
            # Guidelines are for blocking calls, and for times of one definition.
            if result.method or result.synchronisation != "barrier":
                continue
            if result.time_s.median > 0:
                setting = Setting(
                    record.implementation, result.ranks, record.nodes, result.group, int(scrub)
                )
                yield launch, setting, result


def cells_in(campaign: Campaign) -> CellsOf:
    """Return the cells that each operation was measured in at each size, by setting."""
    found: CellsOf = defaultdict(lambda: defaultdict(set))
    for launch, setting, result in collectives_in(campaign):
        found[setting][result.operation, result.message_bytes].add(launch.record.cell)
    return found


def times_in(campaign: Campaign) -> dict[Setting, Times]:
    """Return the times of collective operations by setting, without cells whose ranks waited.

    Also without those that the clock is too coarse for.
    If several launches of a round measured the same, their geometric mean is the round's.
    """
    found: dict[Setting, dict[tuple[str, int], dict[int, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    coarsest: dict[Setting, float] = defaultdict(float)
    for launch, setting, result in collectives_in(campaign):
        if launch.record.round > campaign.manifest.rounds_of_all:
            # Measured because of what was seen: of such launches there is no single test.
            continue
        assert isinstance(launch.output, ProgramOutput)
        rounds = found[setting][result.operation, result.message_bytes]
        rounds[launch.record.round].append(result.time_s.median)
        coarsest[setting] = max(coarsest[setting], clock_resolution(launch.output.header))
    return {
        setting: {
            key: {number: geometric_mean(values) for number, values in rounds.items()}
            for key, rounds in times.items()
            if not limited_by_clock(median([*chain(*rounds.values())]), coarsest[setting])
        }
        for setting, times in found.items()
    }


def trial_of(
    guideline: str, setting: Setting, size: int, times: Times,
    terms: Sequence[tuple[str, int]], factor: float = 1.0,
) -> Trial | None:  # fmt: skip
    """Return the test of the first term <= factor x the sum of the others.

    A term is an operation at a size; None where no round has them all.
    """
    left, *right = (times.get(term, {}) for term in terms)
    rounds = sorted(set(left).intersection(*right))
    if not rounds:
        return None
    logs = [math.log(left[r] / (factor * sum(one[r] for one in right))) for r in rounds]
    ratio = paired_ratio(logs)
    return Trial(guideline, setting, size, ratio, one_sided(ratio), terms=tuple(terms))


def one_sided(ratio: Ratio) -> float | None:
    """Return the p value against a ratio of at most 1, None below two rounds."""
    if ratio.p_value is None:
        return None
    return ratio.p_value / 2 if ratio.value > 1 else 1 - ratio.p_value / 2


def trials_of(setting: Setting, times: Times) -> Iterator[Trial]:
    """Yield the tests that a setting's times allow."""
    every = declared()
    for guideline in every.guidelines:
        for operation, size in sorted(times):
            # Without data the operations are not the same work: each may do nothing.
            if operation != guideline.operation or size == 0:
                continue
            terms = [
                (term.operation, other)
                for term in guideline.at_most
                if (other := term.size(size, setting.ranks)) is not None
            ]
            if len(terms) < len(guideline.at_most):
                continue
            if one := trial_of(guideline.name, setting, size, times, [(operation, size), *terms]):
                yield one
    for operation in every.every_operation:
        measured = sorted(size for name, size in times if name == operation and size > 0)
        for smaller, larger in pairwise(measured):
            small, large = (operation, smaller), (operation, larger)
            name = f"{operation} is monotone in size"
            monotone = trial_of(name, setting, smaller, times, [small, large])
            if every.between_sizes.monotone and monotone:
                yield monotone
            name = f"{operation} of k n bytes <= k x n bytes"
            split = trial_of(name, setting, larger, times, [large, small], larger / smaller)
            if every.between_sizes.split and larger % smaller == 0 and split:
                yield split


def trials_by(
    every: dict[Setting, Times], cells: CellsOf, is_judged: bool = True
) -> list[Trial]:  # fmt: skip
    """Return all tests that times allow, with Holm's correction over them.

    Where none `is_judged` yet, none shows anything.
    """
    tests = [one for key, times in every.items() for one in trials_of(key, times)]
    told = [one for one in tests if one.p_value is not None and is_judged]
    adjusted = holm([one.p_value or 0.0 for one in told])
    corrected = {id(one): p for one, p in zip(told, adjusted, strict=True)}
    return [
        replace(
            one,
            adjusted_p=corrected.get(id(one)),
            cells=tuple(sorted(set().union(*(cells[one.setting][term] for term in one.terms)))),
        )
        for one in tests
    ]
