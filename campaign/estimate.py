"""Estimate how long a campaign will take from the last similar one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from records import layout
from records.base import CampaignError
from records.budget import left_out
from records.campaign import is_imported, read_campaign
from records.counting import how_many
from records.manifest import BEGIN, FEWEST, FILE, Manifest, read_manifest
from records.schedule import state_of


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
    return frozenset(
        name for name in inputs if name.startswith("reframe_checks/") and name.endswith(".py")
    )


def last_round_like(
    root: Path, wanted: Work, besides: str | None = None
) -> tuple[float, str] | None:
    """Return the seconds of a round of the last similar campaign, and its name; None without one.

    Alike are campaigns of the same site, tier, checks (by their files' names) and implementations.
    Whole rounds count, of campaigns that had room for all; a campaign that cannot be read, and the
    one named `besides`, is passed over.
    """
    for path in sorted(layout.runs(root).glob(f"*/{FILE}"), reverse=True):
        try:
            if is_imported(path.parent):
                continue
            other = read_manifest(path.parent)
            state = state_of(path.parent) if other.design else None
        except (OSError, CampaignError):
            continue
        if state and (left_out(state) or state.cells_of(1) is not None):
            # What its rounds took is that of a part; also where that of another one is repeated.
            continue
        took = [one.wall_s for one in other.rounds_done if one.round <= other.rounds_of_all]
        # Nobody knows how long rounds took that a kill left without an entry, and that all failed.
        if sum(took) and other.campaign != besides and Work.of(other) == wanted:
            return sum(took) / len(took), other.campaign
    return None


def duration(seconds: float) -> str:
    """Return a duration for people."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def expectation(root: Path, wanted: Work, rounds: int, besides: str | None = None) -> str:
    """Return a sentence on how long so many rounds will take."""
    found = last_round_like(root, wanted, besides)
    if not found:
        return f"{how_many(rounds, 'round')}; an estimate follows after the first"
    seconds, name = found
    return (
        f"{how_many(rounds, 'round')} will take about {duration(rounds * seconds)}: one took "
        f"{duration(seconds)} "
        f"in runs/{name}"
    )


def expected_share(root: Path, wanted: Work, budget_s: float, all_pairs: bool = False) -> str:
    """Return a sentence on what share of series a budget probably decides, by the last campaign.

    It has no words where there is none, its rounds say nothing of their spread, or all pairs are
    to be compared, whose family is larger than that one's. Raises CampaignError where that campaign
    cannot be read.
    """
    if all_pairs and len(wanted.images) > 2:
        return ""
    # It takes a while to load, and only an estimate needs it.
    from analysis.comparison.compare import compare
    from analysis.simulation.forecast import share_decided

    found = last_round_like(root, wanted)
    if not found:
        return ""
    seconds, name = found
    comparison = compare(read_campaign(layout.runs(root) / name))
    share = share_decided(comparison, seconds, budget_s, BEGIN, FEWEST)
    if share is None:
        return ""
    return (
        f"; it will probably decide {share:.0%} of the compared series, if they differ and vary "
        "as they did then"
    )


def enough_for(root: Path, wanted: Work, budget_s: float, besides: str | None = None) -> str:
    """Return a sentence on what a budget is enough for."""
    found = last_round_like(root, wanted, besides)
    if not found:
        return (
            f"a budget of {duration(budget_s)}; what it allows will be known after the first "
            "round, since no similar campaign was measured here; that round takes the most "
            "important cells first"
        )
    seconds, name = found
    blocks = int(budget_s / seconds)
    if budget_s >= FEWEST * seconds:
        what = f"enough for {BEGIN} rounds of everything, and " + (
            "with one implementation nothing more is measured"
            if len(wanted.images) == 1
            # A round alone does not tell how long the longest cell's next look takes.
            else "then, unless one cell takes most of a round, for what is still open"
        )
    elif blocks >= BEGIN:
        what = (
            f"enough for {how_many(blocks, 'round')} of everything with one test at the end, but "
            f"not to choose cells: that takes {duration(FEWEST * seconds)}"
        )
    else:
        what = (
            f"too little for {BEGIN} rounds of everything: the most important cells are measured, "
            f"as many as fit; everything takes {duration(BEGIN * seconds)}, and "
            f"{duration(FEWEST * seconds)} to leave time for what is still open"
        )
    return (
        f"a budget of {duration(budget_s)} is {what}; a round took {duration(seconds)} in "
        f"runs/{name}"
    )
