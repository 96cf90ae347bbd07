"""How quiet a campaign's nodes are before anything is measured, told once and kept with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

from campaign.progress import CampaignProgress
from records.base import RecordError
from records.experiments import proving
from records.kept import kept_launches
from records.launch import read_launch
from records.manifest import Manifest
from records.noise import Noise, Quiet
from records.program_output import ProgramOutput

#: How long each image's preflight looks, in s: this share of a campaign's budget between these,
#: or, without one, the first.
ASKED_S, SHARE, LEAST_S, MOST_S = 1.0, 0.005, 0.5, 5.0
#: An interval that reaches further from 1 tells nothing.
WIDEST = 10.0
#: What a campaign has at most (records.base.RoundNumber).
MOST_ROUNDS = 999_999


def looked_ms(manifest: Manifest) -> int:
    """Return for how many milliseconds each preflight looks how quiet its nodes are."""
    budget = manifest.design.budget_s if manifest.design else None
    seconds = min(MOST_S, max(LEAST_S, SHARE * budget)) if budget else ASKED_S
    return round(1000 * seconds)


def with_quiet(campaign: Path, manifest: Manifest, progress: CampaignProgress) -> Manifest:
    """Return the manifest with what the preflights of its first round saw, and say it.

    Unchanged where it has that already, another round than the first one is done, or none of them
    looked: later ones are not looked through again.
    """
    if manifest.quiet or len(manifest.rounds_done) != 1:
        return manifest
    looks: list[Noise] = []
    proofs = tuple(f"_{name}_" for name in proving("image"))
    for kept in kept_launches(campaign):
        if not any(proof in kept.name for proof in proofs):
            continue
        # What cannot be read is said when the campaign is.
        with suppress(RecordError, OSError):
            launch = read_launch(kept)
            output = launch.output if launch.record.experiment in proving("image") else None
            if isinstance(output, ProgramOutput):
                looks += [one for one in output.results if isinstance(one, Noise)]
    took_s = manifest.rounds_done[0].wall_s
    rounds = manifest.rounds
    if manifest.design:
        enough = manifest.design.budget_s / took_s if took_s else 1
        rounds = max(1, int(min(enough, MOST_ROUNDS)))
    found = quiet_of(looks, rounds, of_budget=manifest.design is not None)
    if found is None:
        return manifest
    progress.say(found.sentence)
    return manifest.changed(quiet=found.model_dump())


def half_width(deviation: float, rounds: int) -> float | None:
    """Return how wide half the interval of a ratio of two is that are alike.

    Each round has a launch of both, whose logarithms have this deviation. None of one round, and
    where it is so wide that it tells nothing.
    """
    if rounds < 2:
        return None
    # Loading it takes as long as all else that a campaign begins with.
    from inference.intervals import CONFIDENCE, student

    quantile = student(rounds - 1, (1 + CONFIDENCE) / 2)
    half = quantile * deviation * math.sqrt(2 / rounds)
    return math.expm1(half) if half < math.log1p(WIDEST) else None


def quiet_of(looks: Sequence[Noise], rounds: int, of_budget: bool = False) -> Quiet | None:
    """Return how quiet nodes were, and what so many rounds can show; None where nobody looked."""
    if not looks:
        return None
    noisiest = max(looks, key=lambda one: one.share)
    deviation = median([one.deviation for one in looks])
    stolen = [
        min(1.0, one.stolen_s / one.looked_s) for one in looks if one.stolen_s and one.looked_s
    ]
    hosts = len({one.host for one in looks})
    return Quiet(
        looks=max(1, round(len(looks) / hosts)), hosts=hosts,
        looked_s=median([one.looked_s for one in looks]), noisiest=noisiest.host,
        share=noisiest.share, longest_s=max(one.longest_s for one in looks),
        stolen_share=max(stolen, default=0.0), slowest_hz=min(one.slowest_hz for one in looks),
        fastest_hz=max(one.fastest_hz for one in looks), deviation=deviation, rounds=rounds,
        of_budget=of_budget, half_width=half_width(deviation, rounds),
    )  # fmt: skip
