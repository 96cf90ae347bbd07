"""What a campaign with a budget measures next: a pure function of its journal and its launches.

Whoever has the same journal and the same launches gets the same waves, whether he measures, goes on
with a campaign or replays it. All cells begin with as many blocks; then those are measured of which
most open series are expected to be decided in a second (`inference.allocation`), until the budget
is used up or nothing is left that can be decided. What the first round had no room for
(`records.budget`) is not begun later either.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, variance
from typing import Literal

from analysis.comparison.compare import compare
from analysis.comparison.families import family_in
from analysis.comparison.metrics import metrics
from analysis.comparison.result import Comparison
from inference.allocation import OpenSeries, next_wave, scores
from inference.families import DIFFERENCE_ERROR, EQUIVALENCE_ERROR
from inference.looks import Looks
from records.base import CampaignError
from records.budget import begun_cells, left_out, spent_s
from records.campaign import Campaign
from records.events import (
    Ended,
    Entry,
    Event,
    Gone,
    Intended,
    Recorded,
    Repeated,
    Resumed,
    SessionBegan,
    Submitted,
    Wave,
    WaveRound,
    WaveScore,
)
from records.fold import State, fold
from records.manifest import BEGIN, DECIDED_BY, FEWEST, Design

#: How much a number may differ when it is replayed, as a share: only in its last digits.
SAME = 1e-6
Decision = Wave | Ended
#: The length of a wave, unless its only check takes longer.
WAVE_S = 60.0


def block_seconds(entries: Sequence[Entry], state: State) -> dict[str, float]:
    """Return how long a block of each cell takes: the mean over its recorded blocks.

    A launch takes as long as it is in flight, and what comes between it and the next one in the
    mean. One in flight while somebody went on with the campaign has no duration, and a cell without
    any takes as long as the others do in the mean.
    """
    began: dict[str, float] = {}
    took: dict[str, float] = {}
    gaps = []
    last: float | None = None
    boot = None
    for entry in entries:
        event = entry.event
        if isinstance(event, Resumed | SessionBegan) or entry.boot != boot:
            began, last, boot = {}, None, entry.boot
        if isinstance(event, Intended):
            began[event.launch] = entry.monotonic_s
            if last is not None:
                gaps.append(entry.monotonic_s - last)
        elif isinstance(event, Recorded):
            if event.launch in began:
                took[event.launch] = entry.monotonic_s - began[event.launch]
            last = entry.monotonic_s
        elif not isinstance(event, Submitted):
            # Between rounds a process is started, or a wave is chosen.
            last = None
    gap = fmean(gaps) if gaps else 0.0
    blocks: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for name, seconds in took.items():
        one = state.launches[name]
        blocks[one.planned.cell][one.round] += seconds + gap
    known = {cell: fmean(of.values()) for cell, of in blocks.items()}
    if not known:
        return {}
    cells = dict.fromkeys(one.planned.cell for one in state.of(None))
    return {cell: known.get(cell, fmean(known.values())) for cell in cells}


def sound_rounds(state: State) -> dict[str, dict[str, set[int]]]:
    """Return in which rounds of a cell's last wave each implementation of it was sound.

    Cells of which that wave is still being measured are left out.
    """
    last: dict[str, list[int]] = {}
    for wave in state.waves:
        own: dict[str, list[int]] = defaultdict(list)
        for one in wave.rounds:
            for cell in one.cells or ():
                own[cell].append(one.round)
        last |= own
    # Each round is looked through once, and not once a cell.
    measured = {number for numbers in last.values() for number in numbers}
    blocks = {number: state.blocks(number) for number in measured}
    settled = {number for number in blocks if state.is_settled(number)}
    found: dict[str, dict[str, set[int]]] = {}
    for cell, numbers in last.items():
        if settled.issuperset(numbers):
            found[cell] = defaultdict(set)
            for launch in [
                one for number in numbers for one in blocks[number].get((number, cell), ())
            ]:
                sound = {launch.round} if launch.outcome == "sound" else set()
                found[cell][launch.planned.implementation] |= sound
    return found


def is_in_vain(rounds: Mapping[str, set[int]], base: str, other: str) -> bool:
    """Return whether a cell's last wave brought nothing for an implementation and its base.

    No round of it has sound launches of both: what fails time and again would take all that is left
    of a budget.
    """
    return other in rounds and rounds[other].isdisjoint(rounds.get(base, ()))


def open_series(comparison: Comparison) -> list[tuple[tuple[str, str], OpenSeries]]:
    """Return the series that are neither shown to differ nor to be equivalent, and may yet be.

    Each comes with its base and its implementation. Oversubscribed ones are judged by nobody, and
    one below two blocks says nothing of its spread.
    """
    found = []
    for experiment in dict.fromkeys(cell.experiment for cell in comparison.cells):
        family = [one for one in family_in(comparison.pairs, experiment) if one.claim]
        levels = (
            DIFFERENCE_ERROR / max(1, sum(not one.is_different for one in family)),
            EQUIVALENCE_ERROR
            / max(1, sum(not (one.claim and one.claim.is_within_margin) for one in family)),
        )
        for base, cell in [
            (one.base, cell) for one in comparison.pairs for cell in one.experiment(experiment)
        ]:
            for other, verdict in sorted(cell.verdicts.items()):
                logarithms = list(cell.log_ratios[other].values())
                decided = verdict.unjudged or verdict.is_different or verdict.is_equivalent
                if decided or len(logarithms) < 2:
                    continue
                one = OpenSeries(
                    cell.launch_cell, experiment, len(logarithms), fmean(logarithms),
                    variance(logarithms), verdict.margin, *levels,
                )  # fmt: skip
                found.append(((base, other), one))
    return found


def decide(
    design: Design, entries: Sequence[Entry], state: State, compared: Callable[[], Comparison]
) -> Decision:
    """Return the next wave, or why there is none.

    `state` is what the entries amount to; `compared` gives the comparison of the launches that are
    recorded by then; it is asked for where something is to be chosen.
    """
    spent = spent_s(entries)
    left = design.budget_s - spent
    number = len(state.waves) + 1
    after = max((one.round for wave in state.waves for one in wave.rounds), default=0)
    cells = begun_cells(state) if state.waves else None

    def wave_of_all(why: Literal["begin", "uniform"], predicted: float | None) -> Wave:
        return Wave(
            number=number, why=why,
            rounds=(WaveRound(round=after + 1, cells=cells),), scores=(),
            predicted_s=predicted or None, spent_s=spent,
        )  # fmt: skip

    if not state.waves:
        return wave_of_all("begin", None)
    if not cells:
        return Ended(why="decided", spent_s=spent, open_series=0)
    seconds = block_seconds(entries, state)
    round_s = math.fsum(seconds.get(cell, 0.0) for cell in cells)
    is_small = bool(left_out(state)) or any(wave.why == "uniform" for wave in state.waves)
    if after == design.begin:
        is_small = is_small or not has_room(
            design, left, round_s, max(seconds.get(cell, 0.0) for cell in cells)
        )
    if after < design.begin or is_small:
        if round_s <= left:
            return wave_of_all("uniform" if is_small else "begin", round_s)
        return Ended(why="budget", spent_s=spent, open_series=None)
    comparison = compared()
    every = open_series(comparison)
    sound = sound_rounds(state)
    series = [
        one for (base, other), one in every
        if not is_in_vain(sound.get(one.check, {}), base, other)
    ]  # fmt: skip
    return chosen(design, series, seconds, spent, number, after, len(every))


def has_room(design: Design, left: float, round_s: float, longest_s: float) -> bool:
    """Return whether looks are worth their price, by times alone: no value has been looked at yet.

    What every cell begins with is measured, and so many seconds are left: enough for the share of a
    round that pays by simulation, and to bring any one cell to its next look, which with few cells
    takes more.
    """
    coming = [blocks for blocks in design.looks if blocks > design.begin]
    to_next = (min(coming) - design.begin) * longest_s if coming else math.inf
    return max((design.fewest - design.begin) * round_s, to_next) <= left


def is_uniform(state: State) -> bool:
    """Return whether everything was measured equally often and is tested once, at the whole level.

    So it is where a budget had no room for looks; and while it goes on, that is not known before
    something was chosen. What repeats another campaign is tested as that one was.
    """
    if state.design and state.design.once is not None:
        return state.design.once
    if any(wave.why != "begin" for wave in state.waves):
        return any(wave.why == "uniform" for wave in state.waves)
    ended = state.ended
    if ended is None or ended.why == "interrupted":
        return False
    return bool(state.waves) and (len(state.waves) == 1 or ended.open_series is None)


def chosen(
    design: Design, series: Sequence[OpenSeries], seconds: dict[str, float], spent: float,
    number: int, after: int, count: int,
) -> Decision:  # fmt: skip
    """Return the wave of the best checks, or why there is none.

    `count` is how many series are open, also of those that are not measured any more.
    """
    looks = Looks(tuple(design.looks), tuple(design.shares))
    left = design.budget_s - spent
    known = [one for one in series if seconds.get(one.check)]
    if series and not known:
        return Ended(why="unknown", spent_s=spent, open_series=count)
    ranked = scores(known, seconds, looks, left)
    best = next_wave(ranked, left, design.wave_s)
    if not best:
        return Ended(why=why_none(known, count, seconds, looks, left), spent_s=spent,
                     open_series=count)  # fmt: skip
    most = max(score.blocks for score in best)
    rounds = tuple(
        WaveRound(
            round=after + 1 + more,
            cells=tuple(sorted(score.check for score in best if score.blocks > more)),
        )
        for more in range(most)
    )
    return Wave(
        number=number, why="chosen", rounds=rounds,
        scores=tuple(
            WaveScore(cell=one.check, blocks=one.blocks, seconds=one.seconds, rate=one.rate)
            for one in best
        ),
        predicted_s=math.fsum(one.seconds for one in best), spent_s=spent,
    )  # fmt: skip


def why_none(
    known: Sequence[OpenSeries], count: int, seconds: dict[str, float], looks: Looks, left: float
) -> Literal["budget", "decided", "hopeless"]:  # fmt: skip
    """Return why nothing more is measured."""
    if not count:
        return "decided"
    blocks: dict[str, int] = {}
    for one in known:
        blocks[one.check] = min(blocks.get(one.check, one.blocks), one.blocks)
    coming = [(check, looks.coming(done)[:1], done) for check, done in blocks.items()]
    costs = [(look[0][0] - done) * seconds[check] for check, look, done in coming if look]
    return "budget" if costs and min(costs) > left else "hopeless"


def part_of(campaign: Campaign, state: State) -> Campaign:
    """Return a campaign with only the launches that a state has recorded.

    What comes next is chosen by them, whatever may be said of them to people.
    """
    launches = [
        launch for launch in campaign.launches
        if (one := state.launches.get(launch.record.launch)) and one.status == "recorded"
    ]  # fmt: skip
    return replace(campaign, launches=launches, awaits_test=False)


@dataclass(frozen=True)
class Replayed:
    """A decision of a journal, and what the journal and launches before it give.

    `replaced` is a launch that it was decided by and that is no longer there, since it was measured
    again: what it gave is not known any more.
    """

    recorded: Decision
    again: Decision
    replaced: str | None = None

    @property
    def agrees(self) -> bool:
        """Return whether they are the same, except for the last digits of numbers."""
        return same(self.recorded.model_dump(), self.again.model_dump())


def sentence_of(decision: Decision) -> str:
    """Return a decision in words."""
    if isinstance(decision, Ended):
        return f"end after {decision.spent_s:.0f} s: {decision.why}"
    first, last = decision.rounds[0].round, decision.rounds[-1].round
    cells = sorted({cell for one in decision.rounds for cell in one.cells or ()})
    which = f"round {first}" if first == last else f"rounds {first} to {last}"
    what = ", ".join(cells) if cells else "everything"
    return f"wave {decision.number} after {decision.spent_s:.0f} s, {which}: {what}"


def same(one: object, two: object) -> bool:
    """Return whether two decisions are the same, except for the last digits of numbers."""
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=SAME, abs_tol=SAME)
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    return one == two


def replaced_by(event: Event) -> tuple[str, ...]:
    """Return the recorded launches that these events have measured again."""
    if isinstance(event, Repeated):
        return event.launches
    return (event.launch,) if isinstance(event, Gone) else ()


def replayed(campaign: Campaign, entries: Sequence[Entry]) -> Iterator[Replayed]:
    """Yield each decision of a campaign with a budget, and what replay gives.

    Raises CampaignError if the campaign has none, or its manifest differs from its
    journal what was declared.
    """
    state = fold(entry.event for entry in entries)
    design = state.design
    if design is None or not state.waves:
        raise CampaignError(f"{campaign.path.name} has no budget, so it made no decisions")
    if design.repeats:
        raise CampaignError(
            f"{campaign.path.name} repeats the decisions of {design.repeats}, and made none itself"
        )
    if design.version < DECIDED_BY:
        raise CampaignError(
            f"{campaign.path.name} decided by rules of version {design.version}, and this Wyeast "
            f"has those of version {DECIDED_BY}; replay it with the Wyeast that measured it"
        )
    if campaign.manifest.design != design or campaign.manifest.tested_once != is_uniform(state):
        raise CampaignError(
            f"the manifest of {campaign.path.name} declares a different design than its journal"
        )
    for place, entry in enumerate(entries):
        event = entry.event
        if not isinstance(event, Wave | Ended):
            continue
        if isinstance(event, Ended) and event.why == "interrupted":
            continue
        before = entries[:place]
        then = fold(one.event for one in before)
        gone = [name for one in entries[place:] for name in replaced_by(one.event)]
        replaced = [
            name for name in gone if (had := then.launches.get(name)) and had.status == "recorded"
        ]
        again = decide(design, before, then, partial(compare, part_of(campaign, then)))
        yield Replayed(event, again, replaced[0] if replaced else None)


def declared(budget_s: float, seed: int) -> Design:
    """Return the design of a campaign with a budget, as it is declared before it begins."""
    looks = Looks()
    return Design(
        budget_s=budget_s, seed=seed, looks=list(looks.blocks), shares=list(looks.shares),
        margins={name: float(one["margin"]) for name, one in metrics().items()},
        begin=BEGIN, fewest=FEWEST, wave_s=WAVE_S,
    )  # fmt: skip
