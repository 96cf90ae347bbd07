"""What an earlier campaign measured, and a new one should have measured but did not.

A campaign should have measured a cell of an implementation if its manifest has the image, and the
same site, tier and expression of checks as the earlier one, or all checks; or if it started it.
What a campaign has left out for its budget, or has not got to, is not lost: nobody tried it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from analysis.history.campaign_rows import of_folders, rows_of
from records.base import CampaignError
from records.campaign import Campaign
from records.manifest import Manifest, read_manifest

#: So many earlier campaigns are looked through: what is gone for longer than a new level takes to
#: be one (history.FEWEST_BEFORE) was given up.
LOOKED_THROUGH = 3


#: Why a campaign does not judge a cell that it measured.
WAITED = "in this one ranks waited for processors (oversubscribed)"
LossKind = Literal["lost", "no room", "not reached", "not judged"]


@dataclass(frozen=True)
class UntoldCell:
    """A cell of an implementation without a result, and why."""

    cell: str
    experiment: str
    implementation: str
    sentence: str
    #: Whether something went wrong, or it was left out for a budget, or is still to be measured, or
    #: was measured but says too little.
    kind: LossKind = "lost"

    @property
    def heading(self) -> str:
        """Return in two words what happened to it."""
        return "not judged" if self.kind == "not judged" else "not measured"


def counted(cells: Iterable[str]) -> str:
    """Return cells in words: a single one by name, more as a number."""
    names = sorted(set(cells))
    return names[0] if len(names) == 1 else f"{len(names)} cells"


def lost_sentences(lost: Sequence[UntoldCell]) -> list[str]:
    """Return the losses in words, a sentence for each implementation and reason."""
    cells: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for one in lost:
        cells[one.heading, one.implementation, one.sentence].append(one.cell)
    return [
        f"{heading}: {name}, {counted(of)}: {said}" for (heading, name, said), of in cells.items()
    ]


def asked_for_other(before: Manifest, after: Manifest) -> str | None:
    """Return why a campaign did not have to measure everything that another did; None if it did."""
    if before.site != after.site:
        return f"they are of different sites ({before.site} and {after.site})"
    if before.tier != after.tier:
        return f"they are of different tiers ({before.tier} and {after.tier})"
    if after.checks not in (None, before.checks):
        return f"they were asked for different checks ({before.checks or 'all'} and {after.checks})"
    return None


def lost_cells(
    had: Iterable[tuple[str, str | None, str, str]],
    has: set[tuple[str, str]],
    before: Manifest,
    after: Campaign,
) -> list[UntoldCell]:
    """Return the part of `had` that `has` (cell, implementation) lacks and needs.

    `had` are cells, the cells of their launches if these are known, experiments and
    implementations; `before` is the manifest of the campaign that had it.
    """
    asked = asked_for_other(before, after.manifest) is None
    reasons: dict[tuple[str, str], str] = {}
    for launch in after.launches:
        if not launch.is_sound:
            said = launch.record.sentence or "no reason was recorded"
            reasons.setdefault(
                (launch.record.cell, launch.record.implementation),
                f"{launch.record.outcome}: {said}",
            )
    no_room, still_open = set(after.no_room), set(after.open)
    found = []
    for cell, launch_cell, experiment, implementation in had:
        if (cell, implementation) in has or implementation not in after.manifest.images:
            continue
        launches = (launch_cell or cell, implementation)
        reason = reasons.get(launches)
        if asked or reason:
            sentence = f"{before['campaign']} measured it, {after.path.name} has no sound launch"
            kind: LossKind = "lost"
            if not reason and launches[0] in no_room:
                kind, reason = "no room", "its budget had no room for it"
            elif not reason and launches in still_open:
                kind, reason = "not reached", "it is still to be measured; use RESUME"
            sentence += f" ({reason})" if reason else ""
            found.append(UntoldCell(cell, experiment, implementation, sentence, kind))
    return found


def lost_since(campaign: Campaign, frame: pl.DataFrame, runs: Path) -> list[UntoldCell]:
    """Return what the last campaigns before one measured and it did not, from the history's rows.

    These are at most three at its site and tier with no other checks requested.
    Raises CampaignError if the campaign's own time cannot be read.
    """
    manifest = campaign.manifest
    own = rows_of(campaign)
    has = {(row["cell"], row["implementation"]) for row in own if row.get("cell")}
    earlier = frame.filter(
        pl.col("campaign") != manifest.campaign,
        pl.col("site") == manifest.site,
        pl.col("tier") == manifest.tier,
        pl.col("created_utc") < own[0]["created_utc"],
    )
    found: list[UntoldCell] = []
    looked = 0
    for folder in reversed(of_folders(earlier, "folder")["folder"].to_list()):
        try:
            before = read_manifest(runs / folder)
        except CampaignError:
            continue
        if asked_for_other(before, manifest) is not None:
            continue
        rows = earlier.filter(pl.col("folder") == folder)
        had = rows.select("cell", "launch_cell", "experiment", "implementation").iter_rows()
        lost = lost_cells(had, has, before, campaign)
        found += lost
        has |= {(one.cell, one.implementation) for one in lost}
        looked += 1
        if looked == LOOKED_THROUGH:
            break
    return found
