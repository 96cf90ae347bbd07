"""Estimate how long a campaign will take from the last similar one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from records.base import CampaignError
from records.campaign import is_imported
from records.manifest import BEGIN, FEWEST, FILE, Manifest, read_manifest


@dataclass(frozen=True)
class Work:
    """What decides how long a round takes, apart from the machine's load."""

    site: str
    tier: str
    checks: str | None
    time_limit: str | None
    images: frozenset[str]
    #: Of checks.
    files: frozenset[str]

    @classmethod
    def of(cls, manifest: Manifest) -> Work:
        """Return the work of a campaign."""
        return cls(
            manifest.site, manifest.tier, manifest.checks, manifest.time_limit,
            frozenset(manifest.images), files_of_checks(manifest.inputs),
        )  # fmt: skip


def files_of_checks(inputs: Iterable[str]) -> frozenset[str]:
    """Return the files of checks among those that decide what a campaign measures."""
    return frozenset(name for name in inputs if name.startswith("reframe_checks/"))


def last_round_like(
    root: Path, wanted: Work, besides: str | None = None
) -> tuple[float, str] | None:
    """Return the seconds of a round of the last similar campaign, and its name; None without one.

    Campaigns are similar if they have the same site, tier, checks (by their files' names) and
    implementations. Only complete rounds count; campaigns that cannot be read, and `besides`, are
    ignored.
    """
    for path in sorted((root / "runs").glob(f"*/{FILE}"), reverse=True):
        try:
            if is_imported(path.parent):
                continue
            other = read_manifest(path.parent)
        except (OSError, CampaignError):
            continue
        took = [one.wall_s for one in other.rounds_done if one.round <= other.rounds_of_all]
        if took and other.campaign != besides and Work.of(other) == wanted:
            return sum(took) / len(took), other.campaign
    return None


def duration(seconds: float) -> str:
    """Return a duration for people."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def expectation(root: Path, wanted: Work, rounds: int, besides: str | None = None) -> str:
    """Return a sentence on how long so many rounds will take."""
    found = last_round_like(root, wanted, besides)
    if not found:
        return f"{rounds} round(s); an estimate follows after the first"
    seconds, name = found
    return (
        f"{rounds} round(s) will take about {duration(rounds * seconds)}: one took "
        f"{duration(seconds)} "
        f"in runs/{name}"
    )


def enough_for(root: Path, wanted: Work, budget_s: float) -> str:
    """Return a sentence on what a budget is enough for."""
    found = last_round_like(root, wanted)
    if not found:
        return f"a budget of {budget_s:g} s; what that is enough for is known after the first round"
    seconds, name = found
    blocks = int(budget_s / seconds)
    what = (
        f"{BEGIN} blocks of everything, and then of what is still open"
        if blocks >= FEWEST
        else f"{blocks} round(s) of everything with one test at the end, and for no choice: that "
        f"takes {duration(FEWEST * seconds)}"
    )
    return f"{budget_s:g} s are enough for {what}: a round took {duration(seconds)} in runs/{name}"


def refuse_too_little(root: Path, wanted: Work, budget_s: float) -> None:
    """Raise CampaignError for a budget too small for three blocks of everything.

    Without a similar campaign nothing is known, and nothing is refused.
    """
    found = last_round_like(root, wanted)
    if found and budget_s < BEGIN * found[0]:
        least = math.ceil(BEGIN * found[0])
        raise CampaignError(
            f"a budget of {budget_s:g} s is too small: {BEGIN} blocks of everything "
            f"take about {duration(least)}, as a round took {duration(found[0])} in runs/{found[1]}"
            f"; give BUDGET={least}s or more, or fewer CHECKS, or ROUNDS=1 without a budget"
        )
