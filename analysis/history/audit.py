"""Which campaigns are proven, and which references and histories of a site depend on others."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from analysis.history.campaign_rows import KEPT, are_changed
from analysis.history.series import SERIES
from analysis.tables.table import COUNT, JOINED, Column, Row, Table
from records.acting_user import rights_of_owner
from records.base import CampaignError
from records.manifest import read_manifest
from records.proof import ROWS_CHANGED, Doubt, Proof, proof_in
from records.references import ACCEPTED, PROPOSED, load

#: The name of a campaign's folder within a text.
CAMPAIGN = re.compile(r"\b[0-9]{8}T[0-9]{6}Z-[A-Za-z0-9._-]*[A-Za-z0-9]")


@dataclass(frozen=True)
class Resting:
    """References of one file, and the campaigns it names that are not proven."""

    site: str
    file: str
    #: How many cells depend on them, and of how many; None for a file that people write.
    cells: tuple[int, int] | None
    campaigns: tuple[str, ...]


def folders_of_site(folders: Iterable[Path], site: str) -> list[Path]:
    """Return the campaigns of a site: by the folder's name if a manifest cannot be read."""
    found = []
    for folder in folders:
        try:
            of_site = read_manifest(folder).site == site
        except CampaignError:
            of_site = folder.name.partition("-")[2].startswith(f"{site}-")
        found += [folder] if of_site else []
    return found


def audited(folder: Path) -> Proof:
    """Return what speaks against a campaign, the rows that histories take from it included."""
    proof = proof_in(folder)
    try:
        with rights_of_owner(folder):
            changed = are_changed(folder)
    except (CampaignError, OSError):
        # The proof says so.
        return proof
    if not changed:
        return proof
    said = f"what histories take from it ({KEPT}) is not what its launches give; remove that file"
    return replace(proof, doubts=(*proof.doubts, Doubt(ROWS_CHANGED, said)))


def absent(name: str) -> Proof:
    """Return what is known about a campaign that is named somewhere but no longer exists."""
    return Proof(name, None, 0, (Doubt("not here", "it is not in runs/, so nobody can check"),))


def resting_references(
    sites: Path, proofs: Mapping[str, Proof], runs: Path, site: str | None, with_absent: bool
) -> list[Resting]:
    """Return the references that depend on campaigns that are not proven, file by file.

    With `with_absent` also on those that are not in runs/ any more. Raises ReferencesError for a
    file that is not one of references, and OSError.
    """
    found = []

    def rests(name: str) -> bool:
        if name in proofs:
            return bool(proofs[name].doubts)
        return with_absent and not (runs / name).is_dir()

    for file in sorted(sites.glob("*/references*.yaml")):
        if site not in (None, file.parent.name):
            continue
        cells: tuple[int, int] | None = None
        if file.name in (ACCEPTED, PROPOSED):
            entries = load(file)
            resting = [one for one in entries if any(map(rests, one.campaigns))]
            cells = (len(resting), len(entries))
            names = {name for one in resting for name in one.campaigns if rests(name)}
        else:
            names = {name for name in CAMPAIGN.findall(file.read_text()) if rests(name)}
        if names:
            found.append(Resting(file.parent.name, file.name, cells, tuple(sorted(names))))
    return found


def resting_series(frame: pl.DataFrame, doubted: Collection[str]) -> pl.DataFrame:
    """Return by site, tier and experiment how many series depend on unproven campaigns.

    Of those that rest on any: `resting` of `series`, and how many of these `campaigns`.
    """
    text = frame.with_columns(pl.col("folder").cast(pl.String).is_in(list(doubted)).alias("is"))
    each = text.group_by(*SERIES).agg(
        pl.col("is").any(), pl.col("folder").filter(pl.col("is")).alias("folders")
    )
    return (
        each.group_by("site", "tier", "experiment")
        .agg(
            pl.col("is").sum().alias("resting"),
            pl.len().alias("series"),
            pl.col("folders")
            .explode(empty_as_null=True)
            .drop_nulls()
            .n_unique()
            .alias("campaigns"),
        )
        .filter(pl.col("resting") > 0)
        .cast({name: pl.String for name in ("site", "tier", "experiment")})
        .sort("site", "tier", "experiment")
    )


def audit_table(proofs: Sequence[Proof]) -> Table:
    """Return a row for each campaign: its verdict, and the doubts about it in a few words."""
    columns = (
        Column("campaign", "campaign"), Column("site", "site"),
        Column("launches", "launches", COUNT, "1"), Column("verdict", "verdict"),
        Column("doubts", "because of"),
    )  # fmt: skip
    rows = [
        Row((one.campaign, one.site or "?", one.launches, one.verdict,
             ", ".join(doubt.word for doubt in one.doubts) or "–"))
        for one in proofs
    ]  # fmt: skip
    counts: dict[str, int] = defaultdict(int)
    for one in proofs:
        counts[one.verdict] += 1
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return Table("audit", f"Audit: {said}", columns, rows, [])


def references_table(resting: Sequence[Resting]) -> Table:
    """Return a row for each file of references that depends on unproven campaigns."""
    columns = (
        Column("file", "references", JOINED, fields=("site", "file")),
        Column("cells", "cells that depend on them"), Column("campaigns", "campaigns"),
    )  # fmt: skip
    rows = [
        Row(((one.site, one.file),
             f"{one.cells[0]} of {one.cells[1]}" if one.cells else "named in it",
             ", ".join(one.campaigns)))
        for one in resting
    ]  # fmt: skip
    return Table("audited-references", "References based on unproven campaigns", columns, rows)


def series_table(found: pl.DataFrame) -> Table:
    """Return a row for each experiment whose history depends on unproven campaigns."""
    columns = (
        Column("site", "site", JOINED, fields=("site", "tier")),
        Column("experiment", "experiment"), Column("resting", "series that depend on them", COUNT),
        Column("series", "of", COUNT), Column("campaigns", "campaigns", COUNT),
    )  # fmt: skip
    names = ("experiment", "resting", "series", "campaigns")
    rows = [
        Row(((row["site"], row["tier"]), *(row[name] for name in names)))
        for row in found.iter_rows(named=True)
    ]
    return Table("audited-histories", "Histories based on unproven campaigns", columns, rows)
