"""What forbids comparing a campaign with its history, and what affects the comparison.

The rules are those of two campaigns (comparability.yaml). An earlier campaign that a rule refuses
is left out of the series. Other differences are reported for the last ones that are left: what
changed earlier would by now be a change of the series, if it had moved a number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from analysis.comparison.caveats.comparability import Discrepancy, differences, refuses, rules
from analysis.comparison.caveats.stolen_time import stolen_time
from analysis.history.campaign_rows import categories, of_folders, rows_of
from analysis.history.lost_cells import LOOKED_THROUGH as LAST
from analysis.history.lost_cells import WAITED, UntoldCell, counted
from analysis.history.series import earlier_of_each, key_of
from analysis.history.two_campaigns import IncomparableError, known_differences
from records.base import CampaignError
from records.campaign import Campaign, measured_on, read_campaign
from records.manifest import read_manifest
from records.proof import proof_of

#: How many earlier campaigns of a series are searched for differences.
LOOKED_THROUGH = 10


def series_of(campaign: Campaign) -> list[dict[str, Any]]:
    """Return the rows of a campaign that have a series; raises CampaignError."""
    return [row for row in rows_of(campaign) if row.get("cell")]


def without_refused(
    campaign: Campaign, frame: pl.DataFrame, runs: Path
) -> tuple[pl.DataFrame, list[UntoldCell]]:
    """Return the rows of a history without those that a campaign must not be compared with.

    Also return the campaign's cells for which earlier campaigns have rows, but none is left.
    Raises CampaignError if the campaign's own time cannot be read.
    """
    refusing = [
        rule for rule in rules() if rule.effect == "refuse" and rule.of in ("campaign", "image")
    ]
    own = [
        row for row in series_of(campaign)
        if any(not rule.experiments or row["experiment"] in rule.experiments for rule in refusing)
    ]  # fmt: skip
    forbidden: dict[tuple[str, str, str], Discrepancy] = {}
    wanted = sorted({row["experiment"] for row in own})
    measured = (
        frame.filter(
            pl.col("experiment").is_in(wanted), pl.col("site") == campaign.manifest.site
        )
        .select("folder", "experiment", "implementation")
        .unique(maintain_order=True)
        .group_by("folder", maintain_order=True)
        .agg("experiment", "implementation")
    )  # fmt: skip
    # Each manifest is read once, whatever was measured.
    for folder, experiments, names in measured.iter_rows():
        images = [(name, name) for name in dict.fromkeys(names)]
        for one in differences(manifest_of(runs / folder), campaign.manifest.facts, images):
            for experiment, name in zip(experiments, names, strict=True):
                if refuses(one, experiment) and one.implementation in ("", name):
                    forbidden[folder, experiment, name] = one
    if not forbidden:
        return frame, []
    left = frame.join(
        categories(
            folder=[folder for folder, _, _ in forbidden],
            experiment=[experiment for _, experiment, _ in forbidden],
            implementation=[implementation for _, _, implementation in forbidden],
        ),
        on=["folder", "experiment", "implementation"], how="anti", maintain_order="left",
    )  # fmt: skip
    refused = []
    before, still = earlier_of_each(own, frame), earlier_of_each(own, left)
    for row in own:
        if key_of(row) in before and key_of(row) not in still:
            folder = before[key_of(row)]["folder"][-1]
            why = forbidden[folder, row["experiment"], row["implementation"]]
            refused.append(
                UntoldCell(row["cell"], row["experiment"], row["implementation"], why.sentence)
            )
    return left, refused


def no_longer_judged(campaign: Campaign, frame: pl.DataFrame) -> list[UntoldCell]:
    """Return the cells that the last campaigns of their series judged and this one does not.

    Raises CampaignError if the campaign's own time cannot be read.
    """
    own = [row for row in series_of(campaign) if row["oversubscribed"]]
    earlier = earlier_of_each(own, frame, LAST)
    found = []
    for row in own:
        if key_of(row) not in earlier:
            continue
        waited = earlier[key_of(row)]["oversubscribed"]
        if judged := len(waited) - waited.sum():
            said = f"{judged} of the last {len(waited)} campaigns judged it; {WAITED}"
            of = (row["cell"], row["experiment"], row["implementation"])
            found.append(UntoldCell(*of, said, "not judged"))
    return found


def manifest_of(folder: Path) -> dict[str, Any]:
    """Return the manifest of an earlier campaign, or an empty one if nothing is known."""
    try:
        return read_manifest(folder).facts
    except CampaignError:
        return {}


def caveats_of(campaign: Campaign, frame: pl.DataFrame, runs: Path) -> list[str]:
    """Return in words what differs from the last campaigns of each of a campaign's series.

    Raises CampaignError if the campaign's own time cannot be read.
    """
    rows: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    own = series_of(campaign)
    before = earlier_of_each(own, frame, LOOKED_THROUGH)
    for row in own:
        if key_of(row) in before:
            folders = before[key_of(row)]["folder"].to_list()
            rows[tuple(reversed(folders))].append(row)
    found = [
        f"{sentence}{of_cells(of, own)}"
        for folders, of in rows.items()
        for sentence in sentences_since([runs / name for name in folders], campaign, of)
    ]
    if not campaign.manifest.finished_utc:
        found.append(f"{campaign.path.name} is not finished")
    found += unproven_sentences(campaign, own, frame)
    return found + [f"{campaign.path.name}: {said}" for said in stolen_time(campaign)]


def unproven_sentences(
    campaign: Campaign, own: Sequence[Mapping[str, Any]], frame: pl.DataFrame
) -> list[str]:
    """Return in words whether a campaign, or one that it is compared with, is not proven."""
    found = [proof_of(campaign).caveat] if own and own[0]["doubts"] else []
    folders = {name for rows in earlier_of_each(own, frame).values() for name in rows["folder"]}
    earlier = of_folders(frame, "folder", "doubts").cast(pl.String)
    doubted = [name for name, doubts in earlier.rows() if name in folders and doubts]
    if doubted:
        found.append(
            f"{len(doubted)} of {len(folders)} earlier campaigns are unproven or damaged, the last "
            f"of them {doubted[-1]}; why: make audit"
        )
    return found


def of_cells(rows: list[dict[str, Any]], every: list[dict[str, Any]]) -> str:
    """Return which cells are meant, if not all."""
    return "" if len(rows) == len(every) else f" ({counted(row['cell'] for row in rows)})"


def sentences_since(
    earlier: Sequence[Path], after: Campaign, rows: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Return what differs from earlier campaigns, the last one first, and concerns the rows.

    For each difference the last campaign that has it is named; conditions are those of the last.
    """
    experiments = {row["experiment"] for row in rows}
    pairs = [(name, name) for name in sorted({row["implementation"] for row in rows})]
    found: dict[tuple[str, str], str] = {}
    for folder in earlier:
        try:
            if folder == earlier[0]:
                every = known_differences(read_campaign(folder), after, pairs)
            else:
                now = measured_on(after.path, after.manifest).facts
                before = measured_on(folder, read_manifest(folder)).facts
                every = differences(before, now, pairs)
        except (CampaignError, IncomparableError) as error:
            found["", folder.name] = f"what differs from {folder.name} is unknown: {error}"
            continue
        for one in every:
            if not one.rule.experiments or experiments & set(one.rule.experiments):
                said = f"since {folder.name} {one.sentence}"
                found.setdefault((one.rule.name, one.where), said)
    return list(found.values())
