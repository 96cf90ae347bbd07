"""Limit the disk space of nights: remove the raw output of old ones, keep what history needs.

Of a night older than the newest ones that are kept, and of its repetitions, the launches and
ReFrame's logs are removed; manifest, tables, report and summary stay. Never touched are campaigns
that are not nights or came in a bundle, nights that are named in a site's data (the provenance of
its references), nights with a confirmed regression, and nights that are not decided.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from records import files, kept, layout, packs
from records.acting_user import rights_of_owner
from records.base import CampaignError
from records.campaign import is_imported
from records.manifest import Manifest, read_manifest, write_manifest
from records.proof import kept_doubts, proof_in

RAW = (kept.FOLDERS, packs.FOLDER, "reframe")
#: What a night leaves for the history (analysis/history/campaign_rows.py).
KEPT_ROWS = "tables/history.parquet"
KEEP_NIGHTS = 30
#: Tonight's, and the one that it is compared with.
FEWEST_KEPT = 2


@dataclass(frozen=True)
class Removal:
    """The raw output of one campaign; `bytes` is its size on the disk."""

    campaign: Path
    bytes: int


@dataclass(frozen=True)
class RemovalPlan:
    """What retention does, and sentences on old nights that stay as they are."""

    removals: list[Removal]
    kept: list[str]


def checked(nights: int) -> int:
    """Return how many nights are kept completely; raise CampaignError for too few."""
    if nights < FEWEST_KEPT:
        raise CampaignError(
            f"KEEP_NIGHTS={nights}: keep at least {FEWEST_KEPT}, tonight's and the one before"
        )
    return nights


def json_of(path: Path) -> dict[str, Any]:
    """Return a JSON object of a file, empty where there is none that can be read."""
    try:
        found = files.read_json(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def nights_of(root: Path, site: str) -> dict[Path, Manifest]:
    """Return the nights of a site and their repetitions, with their manifests, by time."""
    found = {}
    for path in sorted(layout.runs(root).glob("*/manifest.json")):
        try:
            manifest = read_manifest(path.parent)
        except CampaignError:
            continue
        own = not path.parent.is_symlink() and manifest.campaign == path.parent.name
        if not own or is_imported(path.parent) or manifest.site != site:
            continue
        if manifest.night:
            found[path.parent] = manifest
    return found


def remains(campaign: Path) -> list[Path]:
    """Return the folders of raw output that a campaign has, including half removed ones."""
    return [path for name in RAW for path in (campaign / name, campaign / f".removed-{name}")
            if path.is_dir()]  # fmt: skip


def size_of(paths: list[Path]) -> int:
    """Return what the files in folders hold, in bytes."""
    return sum(file.lstat().st_size for path in paths for file in path.rglob("*") if file.is_file())


def reason_to_keep(root: Path, night: Path, manifest: Manifest) -> str | None:
    """Return why an old night is kept completely, if there is a reason."""
    told = json_of(night / "night.json")
    if told.get("verdict") == "regression":
        return "it has a confirmed regression"
    if told.get("verdict") in (None, "measure again"):
        return f"it is undecided; resume it: make nightly RESUME={night.name}"
    if not manifest.finished_utc:
        return f"some of its launches are missing; measure them: make nightly RESUME={night.name}"
    if not (night / KEPT_ROWS).is_file():
        return f"it has no {KEPT_ROWS}, without which it would be lost to the history"
    return None


def texts_of_sites(root: Path) -> dict[Path, str]:
    """Return the sites' data, each file read once, in the order of their paths."""
    return {
        Path(layout.name_of(root, path)): path.read_text(errors="replace")
        for path in layout.all_seen(layout.sites(root), "**/*.yaml")
    }


def plan(root: Path, site: str, keep: int) -> RemovalPlan:
    """Return what is removed if the newest `keep` nights of a site are kept completely."""
    all_of_site = nights_of(root, site)
    own, again = [], defaultdict(list)
    for path, one in all_of_site.items():
        if one.night and one.night.again_of:
            again[one.night.again_of].append(path)
        elif one.night:
            own.append(path)
    texts: dict[Path, str] | None = None
    removals, kept = [], []
    for night in own[: max(0, len(own) - keep)]:
        belonging = [night, *again[night.name]]
        left = [path for path in belonging if remains(path)]
        if not left:
            continue
        reason = reason_to_keep(root, night, all_of_site[night])
        texts = texts_of_sites(root) if texts is None else texts
        for path in belonging:
            file = next((file for file, text in texts.items() if path.name in text), None)
            if file:
                reason = f"{file} names {path.name}"
        if reason:
            kept.append(f"{night.name} stays whole: {reason}")
        else:
            removals += [Removal(path, size_of(remains(path))) for path in left]
    return RemovalPlan(removals, kept)


def remove(removal: Removal) -> None:
    """Remove a campaign's raw output; if interrupted, it is completed the next time.

    Raises CampaignError if that cannot be done.
    """
    with rights_of_owner(removal.campaign):
        _remove(removal.campaign)


def _remove(campaign: Path) -> None:
    try:
        # First what readers check: from here on the history takes the rows that were kept.
        manifest = read_manifest(campaign)
        if not manifest.raw_removed_utc:
            doubts = kept_doubts(proof_in(campaign))
            now = files.utc_now()
            write_manifest(campaign, manifest.changed(raw_removed_utc=now, doubts=doubts))
        for path in remains(campaign):
            aside = campaign / f".removed-{path.name.removeprefix('.removed-')}"
            if path != aside and not aside.exists():
                path = path.rename(aside)
            shutil.rmtree(path)
    except (OSError, CampaignError) as error:
        raise CampaignError(
            f"the raw output of {campaign.name} could not be removed: {error}"
        ) from None


def sentences(found: RemovalPlan, dry_run: bool) -> list[str]:
    """Return what retention announces before it acts."""
    verb = "would remove" if dry_run else "removing"
    return [
        *(f"{verb} the raw output of {one.campaign.name}, {one.bytes / 1e6:.1f} MB; its tables and "
          "report stay" for one in found.removals),
        *found.kept,
    ]  # fmt: skip
